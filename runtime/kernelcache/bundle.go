package kernelcache

// Bundles: the entries of a cache as one file, to be imported elsewhere or built into a
// program. The bytes:
//
//	magic    8 bytes
//	version  uint64, that of the entries
//	entries  as on disk, one after the other
//	end      8 bytes
//	count    uint64, of the entries
//	SHA-256 of everything before it, 32 bytes

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"slices"

	"github.com/concord-compute/concord/internal/file"
	"github.com/concord-compute/concord/runtime/driver"
)

const (
	bundleMagic  = "CNCRDbnd"
	bundleEnd    = "CNCRDend"
	bundleHeader = len(bundleMagic) + 8
	bundleTail   = len(bundleEnd) + 8 + sha256.Size
)

// Moved counts the entries that Export wrote or Import kept.
type Moved struct {
	Entries int   // written, or new in this cache
	Bytes   int64 // of those entries
	Known   int   // of Import: entries that the cache already had, which are unchanged
}

// Export writes the entries for which filter is true, or all if it is nil, as one bundle to w:
// those on disk, then those that are only in memory, without damaged ones. It neither closes nor
// syncs w. If it returns an error, the result counts the entries written so far, and the output is
// not a bundle.
func (c *Cache) Export(w io.Writer, filter func(Info) bool) (Moved, error) {
	out := &bundleWriter{w: w, sum: sha256.New()}
	out.write([]byte(bundleMagic), binary.LittleEndian.AppendUint64(nil, version))
	done := map[Key]bool{}
	if d := c.layer(); d != nil {
		err := d.walk(func(key Key, info fs.FileInfo) error {
			h, label, ok := d.head(key)
			if !ok || filter != nil && !filter(Info{key, label, info.Size(), info.ModTime(), h.flags&imported != 0}) {
				return nil
			}
			e, _, err := d.load(key)
			switch {
			case err == nil:
				done[key] = true
				return out.entry(key, e)
			case errors.Is(err, driver.ErrCorrupt):
				c.count(func(s *Stats) { s.Corrupt++ })
				return nil
			}
			return ignoreMissing(err)
		})
		if err != nil {
			return out.moved, fmt.Errorf("kernel cache: export: %w", err)
		}
	}
	for _, it := range c.inMemory() {
		size := int64(headerSize + len(it.entry.Label) + len(it.entry.Log) + len(it.entry.Binary))
		info := Info{Key: it.key, Label: it.entry.Label, Bytes: size, Imported: it.entry.Imported}
		if !done[it.key] && size <= maxFile && (filter == nil || filter(info)) {
			_ = out.entry(it.key, it.entry) // out keeps the error
		}
	}
	out.write([]byte(bundleEnd), binary.LittleEndian.AppendUint64(nil, uint64(out.moved.Entries)))
	out.write(out.sum.Sum(nil))
	if out.err != nil {
		return out.moved, fmt.Errorf("kernel cache: export: %w", out.err)
	}
	return out.moved, nil
}

// inMemory returns the entries in memory in the order of their keys, without those that Find has
// stored under their target's key.
func (c *Cache) inMemory() []*item {
	c.mu.Lock()
	defer c.mu.Unlock()
	var list []*item
	for e := c.memory.order.Front(); e != nil; e = e.Next() {
		if it := e.Value.(*item); it.err == nil && it.key != it.entry.Target {
			list = append(list, it)
		}
	}
	slices.SortFunc(list, func(a, b *item) int { return bytes.Compare(a.key[:], b.key[:]) })
	return list
}

// bundleWriter writes until the first error, which it keeps.
type bundleWriter struct {
	w     io.Writer
	sum   hash.Hash
	moved Moved
	err   error
}

func (b *bundleWriter) write(parts ...[]byte) {
	for _, p := range parts {
		if b.err == nil {
			_, b.err = b.w.Write(p)
			b.sum.Write(p)
		}
	}
}

func (b *bundleWriter) entry(key Key, e Entry) error {
	head := encodeHead(key, e)
	b.write(head, e.Binary)
	if b.err == nil {
		b.moved.Entries++
		b.moved.Bytes += int64(len(head) + len(e.Binary))
	}
	return b.err
}

// Import reads a bundle and keeps its entries, marked as imported, on disk, or in memory if there
// is no disk. Entries that the cache already has are not replaced. r is read to its end, and the
// whole bundle is held in memory and checked before any entry is kept: a damaged or truncated one
// is an error that matches driver.ErrCorrupt and changes nothing. The bounds of the cache apply to
// imported entries, too.
//
// A bundle is code that will be run: import only bundles of people whose programs you would run. If
// r is an *os.File that another user could have written or put in its place, Import returns an
// error that matches driver.ErrUnsupported: make a private copy, or pass another kind of reader.
func (c *Cache) Import(r io.Reader) (Moved, error) {
	list, err := readOwn(r)
	if err != nil {
		return Moved{}, fmt.Errorf("kernel cache: import: %w", err)
	}
	var moved Moved
	d := c.layer()
	for _, b := range list {
		e := b.entry
		e.Imported = true
		known, err := c.keep(d, b.key, e)
		switch {
		case err != nil:
			return moved, fmt.Errorf("kernel cache: import: %w", err)
		case known:
			moved.Known++
		default:
			moved.Entries++
			moved.Bytes += b.size
		}
	}
	return moved, nil
}

// readOwn reads a bundle that no other user can have written.
func readOwn(r io.Reader) ([]bundleEntry, error) {
	if f, ok := r.(*os.File); ok {
		if err := file.CheckOpen(f); err != nil {
			return nil, err
		}
	}
	return readBundle(r)
}

// keep stores one imported entry, unless the cache has it.
func (c *Cache) keep(d *disk, key Key, e Entry) (known bool, err error) {
	c.mu.Lock()
	it := c.memory.get(key)
	switch {
	case it != nil && it.err == nil:
		known = true
	case it != nil: // a failed build is replaced by the imported entry
		c.memory.remove(key)
	}
	if d == nil && !known {
		c.remember(newItem(key, e, nil))
	}
	c.mu.Unlock()
	if d == nil {
		return known, nil
	}
	if _, _, err := d.load(key); err == nil {
		return true, nil
	}
	evicted, err := d.store(key, e)
	c.count(func(s *Stats) { s.DiskEvictions += int64(evicted) })
	return false, err
}

// bundleEntry is one entry of a bundle that was read.
type bundleEntry struct {
	key   Key
	entry Entry
	size  int64
}

// readBundle reads and checks a whole bundle. It never allocates more than twice the bytes that it
// could read.
func readBundle(r io.Reader) ([]bundleEntry, error) {
	in := &bundleReader{r: bufio.NewReaderSize(r, 64<<10), sum: sha256.New()}
	head, err := in.next(bundleHeader)
	if err != nil {
		return nil, err
	}
	if err := checkBundleHeader(head); err != nil {
		return nil, err
	}
	var list []bundleEntry
	for {
		start, err := in.next(len(bundleEnd))
		if err != nil {
			return nil, err
		}
		if string(start) == bundleEnd {
			return list, in.end(len(list))
		}
		b, err := in.entry(start)
		if err != nil {
			return nil, err
		}
		list = append(list, b)
	}
}

func checkBundleHeader(head []byte) error {
	if string(head[:len(bundleMagic)]) != bundleMagic {
		return fmt.Errorf("not a bundle of kernels: %w", driver.ErrFormat)
	}
	if v := binary.LittleEndian.Uint64(head[len(bundleMagic):]); v != version {
		return fmt.Errorf("bundle of version %d, not %d: %w", v, version, driver.ErrFormat)
	}
	return nil
}

// bundleReader reads a bundle and hashes what it reads.
type bundleReader struct {
	r   *bufio.Reader
	sum hash.Hash
}

// next returns the next n bytes. Its allocation grows with the bytes that are read.
func (in *bundleReader) next(n int) ([]byte, error) {
	var buf bytes.Buffer
	got, err := io.CopyN(&buf, in.r, int64(n))
	if err == io.EOF {
		err = fmt.Errorf("bundle ends early, %d bytes are missing: %w", int64(n)-got, driver.ErrCorrupt)
	}
	in.sum.Write(buf.Bytes())
	return buf.Bytes(), err
}

// entry reads the entry that begins with start.
func (in *bundleReader) entry(start []byte) (b bundleEntry, err error) {
	rest, err := in.next(headerSize - len(start))
	if err != nil {
		return b, err
	}
	head := append(slices.Clip(start), rest...)
	h, err := readHeader(head)
	if err != nil {
		return b, err
	}
	body, err := in.next(int(h.size()) - headerSize)
	if err != nil {
		return b, err
	}
	b = bundleEntry{key: h.key, size: h.size()}
	b.entry, err = decode(h.key, append(head, body...))
	return b, err
}

// end checks the bytes that follow the end mark, after n entries.
func (in *bundleReader) end(n int) error {
	count, err := in.next(8)
	if err != nil {
		return err
	}
	want := in.sum.Sum(nil)
	sum, err := in.next(sha256.Size)
	if err != nil {
		return err
	}
	if _, err := in.r.ReadByte(); err != io.EOF {
		return errors.Join(fmt.Errorf("bytes after the end of the bundle: %w", driver.ErrCorrupt), err)
	}
	if binary.LittleEndian.Uint64(count) != uint64(n) || !bytes.Equal(sum, want) {
		return fmt.Errorf("checksum of the bundle disagrees: %w", driver.ErrCorrupt)
	}
	return nil
}
