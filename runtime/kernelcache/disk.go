package kernelcache

// The disk layer: one file per key, in 256 directories by the key's first byte.

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/concord-compute/concord/runtime/driver"
)

const (
	fileSuffix = ".kernel"
	tempPrefix = "entry-"
	// tempAge is how old a temporary file must be to be a leftover of a process
	// that died, and not the work of one that is still writing.
	tempAge = time.Hour
)

// disk is a directory of entries. Any number of processes may use the directory
// at once.
type disk struct {
	root   string // Dir/v2, absolute
	flock  func(*os.File) error
	bounds bounds
}

// openDisk makes the directory ready, or says why it cannot be used.
func openDisk(dir string, maxBytes int64, maxEntries int) (*disk, error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	d := &disk{
		root:   filepath.Join(abs, fmt.Sprintf("v%d", version)),
		flock:  flock,
		bounds: bounds{maxBytes: maxBytes, maxEntries: maxEntries},
	}
	for _, path := range []string{abs, d.root, d.temp()} {
		if err := os.MkdirAll(path, 0o700); err != nil {
			return nil, err
		}
		info, err := os.Stat(path)
		if err != nil {
			return nil, err
		}
		if err := checkPrivate(path, info); err != nil {
			return nil, err
		}
	}
	d.sweep(time.Now().Add(-tempAge))
	probe, err := os.CreateTemp(d.temp(), tempPrefix)
	switch {
	case errors.Is(err, syscall.ENOSPC): // what is there can be read
		return d, nil
	case err != nil:
		return nil, err
	}
	probe.Close()
	return d, os.Remove(probe.Name())
}

func (d *disk) temp() string         { return filepath.Join(d.root, "tmp") }
func (d *disk) shard(key Key) string { return filepath.Join(d.root, key.String()[:2]) }
func (d *disk) path(key Key) string  { return filepath.Join(d.shard(key), key.String()+fileSuffix) }
func (d *disk) remove(key Key) error { return os.Remove(d.path(key)) }
func (d *disk) isTemp(name string) bool {
	return strings.HasPrefix(name, tempPrefix) || strings.HasPrefix(name, lockPrefix)
}

// load reads and checks one file. An error that matches driver.ErrCorrupt means
// that the file was bad and is gone; fs.ErrNotExist that there is none.
func (d *disk) load(key Key) (Entry, error) {
	data, err := readRegular(d.path(key))
	if err != nil && !errors.Is(err, driver.ErrCorrupt) {
		return Entry{}, err
	}
	var entry Entry
	if err == nil {
		entry, err = decode(key, data)
	}
	if err != nil {
		// Another process may just have replaced the file by a good one. Then
		// that one is lost, which costs a compile and nothing else.
		if gone := d.remove(key); gone != nil && !errors.Is(gone, fs.ErrNotExist) {
			err = fmt.Errorf("%w (and stays: %w)", err, gone)
		}
	}
	return entry, err
}

// readRegular reads a file whole. Anything but a regular file of a possible size
// is corrupt: opening a pipe would wait for ever.
func readRegular(path string) ([]byte, error) {
	info, err := os.Lstat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("kernel cache: %v is not a file: %w", info.Mode().Type(), driver.ErrFormat)
	}
	if info.Size() < headerSize || info.Size() > maxFile {
		return nil, fmt.Errorf("kernel cache: file of %d bytes: %w", info.Size(), driver.ErrFormat)
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data := make([]byte, info.Size())
	if _, err := io.ReadFull(f, data); err == io.EOF || err == io.ErrUnexpectedEOF {
		return nil, fmt.Errorf("kernel cache: file became shorter: %w", driver.ErrCorrupt)
	} else if err != nil {
		return nil, err
	}
	return data, nil
}

// store writes an entry under a private name, forces it to the disk and only
// then gives it its own name: no reader, and no crash, ever sees half of it.
//
// It returns how many others had to go for it. An entry that is larger than all of
// the cache may be is kept in memory only, by rule and not by accident.
func (d *disk) store(key Key, e Entry) (evicted int, err error) {
	head := encodeHead(key, e)
	if len(e.Binary) > maxFile-len(head) || !d.bounds.fits(int64(len(head)+len(e.Binary))) {
		return 0, nil
	}
	f, err := os.CreateTemp(d.temp(), tempPrefix)
	if errors.Is(err, fs.ErrNotExist) { // somebody removed the directory
		if err = os.MkdirAll(d.temp(), 0o700); err == nil {
			f, err = os.CreateTemp(d.temp(), tempPrefix)
		}
	}
	if err != nil {
		return 0, err
	}
	err = writeAndClose(f, head, e.Binary)
	if err == nil {
		err = os.MkdirAll(d.shard(key), 0o700)
	}
	if err == nil {
		err = os.Rename(f.Name(), d.path(key))
	}
	if err != nil {
		os.Remove(f.Name())
		return 0, err
	}
	// Without this the name may be missing after a power failure: a miss.
	syncDir(d.shard(key))
	return d.stored(key, int64(len(head)+len(e.Binary))), nil
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
	names, _ := os.ReadDir(d.temp())
	for _, entry := range names {
		info, err := entry.Info()
		if err == nil && d.isTemp(entry.Name()) && info.Mode().IsRegular() && info.ModTime().Before(before) &&
			os.Remove(filepath.Join(d.temp(), entry.Name())) == nil {
			n++
		}
	}
	return n
}

// head reads and checks the header and the label of a file, and nothing else of it.
func (d *disk) head(key Key, info fs.FileInfo) (h header, label string, ok bool) {
	if !info.Mode().IsRegular() {
		return h, "", false
	}
	f, err := os.Open(d.path(key))
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

// walk calls visit for every file with an entry's name, in the order of keys.
// Other files are never touched. What vanishes meanwhile is passed over.
func (d *disk) walk(visit func(key Key, info fs.FileInfo) error) error {
	shards, err := os.ReadDir(d.root)
	if err != nil {
		return ignoreMissing(err)
	}
	for _, shard := range shards {
		if len(shard.Name()) != 2 || !shard.IsDir() {
			continue
		}
		files, err := os.ReadDir(filepath.Join(d.root, shard.Name()))
		if ignoreMissing(err) != nil {
			return err
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
