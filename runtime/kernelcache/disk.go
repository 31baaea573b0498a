package kernelcache

// The disk layer: one file per key.

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/concord-compute/concord/internal/file"
	"github.com/concord-compute/concord/runtime/driver"
)

const (
	fileSuffix = ".kernel"
	tempPrefix = "entry-"
	// tempAge is the age from which on a temporary file counts as left over by a process that died,
	// and not as one that is still being written.
	tempAge = time.Hour
)

// disk is a directory of entries. Any number of processes may use the directory
// at once.
type disk struct {
	folder
	flock  func(*os.File) error
	bounds bounds
}

// openDisk opens the directory, or returns the reason why it cannot be used.
func openDisk(dir string, maxBytes int64, maxEntries int) (*disk, error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	d := &disk{
		folder: folder{dir: abs},
		flock:  file.TryLock,
		bounds: bounds{maxBytes: maxBytes, maxEntries: maxEntries},
	}
	if _, err := d.open(); err != nil {
		return nil, err
	}
	d.sweep(time.Now().Add(-tempAge))
	return d, nil
}

// shard and pathOf return names in the directory.
func shard(key Key) string  { return key.String()[:2] }
func pathOf(key Key) string { return shard(key) + "/" + fileName(key) }

func fileName(key Key) string { return key.String() + fileSuffix }

func (d *disk) remove(key Key) error {
	root, err := d.writable()
	if err != nil {
		return err
	}
	return inRoot(root, root.Remove(pathOf(key)))
}

func isTemp(name string) bool {
	return strings.HasPrefix(name, tempPrefix) || strings.HasPrefix(name, lockPrefix)
}

// load reads and checks one file, and returns the time of its last use. An error that matches
// driver.ErrCorrupt means that the file was invalid, or could have been written by another user,
// and was deleted; fs.ErrNotExist means that there is none.
func (d *disk) load(key Key) (Entry, time.Time, error) {
	data, used, err := d.read(key)
	if err != nil && !errors.Is(err, driver.ErrCorrupt) {
		return Entry{}, used, err
	}
	var entry Entry
	if err == nil {
		entry, err = decode(key, data)
	}
	if err != nil {
		// Another process may just have replaced the file by a valid one. Deleting that one costs a
		// compile and nothing else.
		if gone := d.remove(key); gone != nil && !errors.Is(gone, fs.ErrNotExist) {
			err = fmt.Errorf("%w (and stays: %w)", err, gone)
		}
	}
	return entry, used, err
}

// read reads a whole file. Anything but a safe file of a possible size is corrupt.
func (d *disk) read(key Key) (data []byte, used time.Time, err error) {
	f, info, err := d.openEntry(key)
	if err != nil {
		return nil, used, err
	}
	defer f.Close()
	if info.Size() < headerSize || info.Size() > maxFile {
		return nil, used, fmt.Errorf("kernel cache: file of %d bytes: %w", info.Size(), driver.ErrFormat)
	}
	data = make([]byte, info.Size())
	if _, err := io.ReadFull(f, data); err == io.EOF || err == io.ErrUnexpectedEOF {
		return nil, used, fmt.Errorf("kernel cache: file became shorter: %w", driver.ErrCorrupt)
	} else if err != nil {
		return nil, used, err
	}
	return data, info.ModTime(), nil
}

// openEntry opens the file of a key if it and its directory are safe to use.
func (d *disk) openEntry(key Key) (*os.File, fs.FileInfo, error) {
	root, err := d.open()
	if err != nil {
		return nil, nil, err
	}
	sub, err := file.SubRoot(root, shard(key))
	if err != nil {
		return nil, nil, err
	}
	defer sub.Close()
	return file.OpenIn(sub, fileName(key))
}

// store writes an entry under a temporary name, forces it to the disk and only then renames it: no
// reader, and no crash, ever sees half of it.
//
// It returns the number of entries that were removed to make room. An entry that is larger than the
// bounds of the cache is kept in memory only, which is no error.
func (d *disk) store(key Key, e Entry) (evicted int, err error) {
	head := encodeHead(key, e)
	size := int64(len(head)) + int64(len(e.Binary))
	if size > maxFile || !d.bounds.fits(size) {
		return 0, nil
	}
	for try := range 2 {
		root, err := d.writable()
		if err != nil {
			return 0, err
		}
		if err = write(root, key, head, e.Binary); err == nil {
			break
		}
		// Another process removed the directory: make a new one.
		if missing := errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrClosed); try > 0 || !missing {
			return 0, d.noted(root, err)
		}
		d.forget(root)
	}
	return d.stored(key, size), nil
}

// write writes the file of a key.
func write(root *os.Root, key Key, parts ...[]byte) error {
	f, err := createTemp(root)
	if err != nil {
		return err
	}
	temp := tempName + "/" + filepath.Base(f.Name())
	err = writeAndClose(f, parts...)
	var sub *os.Root
	if err == nil {
		sub, err = below(root, shard(key))
	}
	if err == nil {
		defer sub.Close()
		err = root.Rename(temp, pathOf(key))
	}
	if err != nil {
		_ = root.Remove(temp)
		return err
	}
	// Without this the name may be missing after a power failure, which is a miss.
	syncDir(sub)
	return nil
}

// syncDir forces a directory's names to the disk, where the file system can.
func syncDir(dir *os.Root) {
	if f, err := dir.Open("."); err == nil {
		_ = f.Sync()
		f.Close()
	}
}

func writeAndClose(f *os.File, parts ...[]byte) (err error) {
	for _, part := range parts {
		if err == nil {
			_, err = f.Write(part)
		}
	}
	if err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

// sweep removes temporary files last written before a time, and returns how many.
func (d *disk) sweep(before time.Time) (n int) {
	root, err := d.writable()
	if err != nil {
		return 0
	}
	names, _ := fs.ReadDir(root.FS(), tempName)
	for _, entry := range names {
		info, err := entry.Info()
		if err == nil && isTemp(entry.Name()) && info.Mode().IsRegular() && info.ModTime().Before(before) &&
			root.Remove(tempName+"/"+entry.Name()) == nil {
			n++
		}
	}
	return n
}

// head reads and checks only the header and the label of a file.
func (d *disk) head(key Key) (h header, label string, ok bool) {
	f, info, err := d.openEntry(key)
	if err != nil {
		return h, "", false
	}
	defer f.Close()
	var buf [headerSize + maxLabel]byte
	n, err := io.ReadFull(f, buf[:])
	if err != nil && err != io.ErrUnexpectedEOF {
		return h, "", false
	}
	if h, err = headerOf(key, buf[:n], info.Size()); err != nil {
		return h, "", false
	}
	return h, cleanLabel(string(buf[headerSize:min(headerSize+int(h.label), n)])), true
}

// walk calls visit for every file with an entry's name, in the order of keys. Other files are never
// touched. Files that vanish meanwhile are skipped.
func (d *disk) walk(visit func(key Key, info fs.FileInfo) error) error {
	root, err := d.open()
	if err != nil {
		return ignoreMissing(err)
	}
	shards, err := fs.ReadDir(root.FS(), ".")
	if err != nil {
		return ignoreMissing(inRoot(root, err))
	}
	for _, shard := range shards {
		if len(shard.Name()) != 2 || !shard.IsDir() {
			continue
		}
		files, err := fs.ReadDir(root.FS(), shard.Name())
		if ignoreMissing(err) != nil {
			return inRoot(root, err)
		}
		for _, file := range files {
			key, ok := keyOfFile(shard.Name(), file.Name())
			info, err := file.Info()
			if !ok || err != nil {
				continue
			}
			if err := visit(key, info); err != nil {
				return err
			}
		}
	}
	return nil
}

func keyOfFile(shard, name string) (Key, bool) {
	digits, ok := strings.CutSuffix(name, fileSuffix)
	if !ok || !strings.HasPrefix(digits, shard) {
		return Key{}, false
	}
	key, err := ParseKey(digits)
	return key, err == nil
}

func ignoreMissing(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
