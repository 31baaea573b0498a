package kernelcache

// Bundles in a file system, such as one that is built into the program. They are indexed at the
// first miss; an entry is read and checked when it is requested.

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"

	"github.com/concord-compute/concord/internal/file"
	"github.com/concord-compute/concord/runtime/driver"
)

// bundleSuffix ends the names of bundles in Options.Bundles.
const bundleSuffix = ".bundle"

// bundleIndex holds the places of the entries of all bundles. The maps are guarded by
// the mutex of its Cache.
type bundleIndex struct {
	cache   *Cache
	places  map[Key]place
	targets map[Key]Key // the entry of a target
}

// place is the position of an entry in a bundle.
type place struct {
	name         string
	offset, size int64
}

// bundles returns the index. The first call makes it.
func (c *Cache) bundles() *bundleIndex {
	c.bundleOnce.Do(func() {
		c.index = bundleIndex{cache: c, places: map[Key]place{}, targets: map[Key]Key{}}
		if c.options.Bundles == nil {
			return
		}
		err := fs.WalkDir(c.options.Bundles, ".", func(name string, entry fs.DirEntry, err error) error {
			var past error // how the walk goes on: other bundles may be valid
			switch {
			case err != nil:
			case entry.IsDir():
				if err = checkDir(name, entry); err != nil {
					past = fs.SkipDir
				}
			case path.Ext(name) == bundleSuffix:
				err = c.index.add(c.options.Bundles, name)
			}
			if err != nil {
				c.badBundle(fmt.Errorf("%s: %w", name, err))
			}
			return past
		})
		if err != nil {
			c.badBundle(err)
		}
	})
	return &c.index
}

// checkDir refuses a directory that others could put bundles into.
func checkDir(name string, entry fs.DirEntry) error {
	info, err := entry.Info()
	if err != nil {
		return err
	}
	return file.Check(name, info)
}

func (c *Cache) badBundle(reason error) {
	c.count(func(s *Stats) { s.Corrupt++ })
	c.warn("kernel cache: bundle not used", reason)
}

// add notes the entries of one bundle by their headers. Entries before a damaged part are used:
// each entry is checked separately.
func (x *bundleIndex) add(fsys fs.FS, name string) error {
	f, info, err := openBundle(fsys, name)
	if err != nil {
		return err
	}
	defer f.Close()
	size := info.Size()
	var head [headerSize]byte
	if err := readAt(f, head[:bundleHeader], 0); err != nil {
		return err
	}
	if err := checkBundleHeader(head[:bundleHeader]); err != nil {
		return err
	}
	at := int64(bundleHeader)
	for ; size-at > int64(bundleTail); at += x.note(head[:], name, at) {
		if err := readAt(f, head[:], at); err != nil {
			return err
		}
		if h, err := readHeader(head[:]); err != nil {
			return err
		} else if h.size() > size-at-int64(bundleTail) {
			return fmt.Errorf("bundle ends early: %w", driver.ErrCorrupt)
		}
	}
	end := head[:len(bundleEnd)]
	if err := readAt(f, end, at); err != nil {
		return err
	}
	if string(end) != bundleEnd || size-at != int64(bundleTail) {
		return fmt.Errorf("bundle ends early: %w", driver.ErrCorrupt)
	}
	return nil
}

// openBundle opens a bundle that no other user can have written, as far as its file shows that: a
// file that is built into the program shows no owner and is trusted like the program.
func openBundle(fsys fs.FS, name string) (fs.File, fs.FileInfo, error) {
	f, err := fsys.Open(name)
	if err != nil {
		return nil, nil, err
	}
	info, err := f.Stat()
	if err == nil {
		err = file.Check(name, info)
	}
	if err != nil {
		f.Close()
		return nil, nil, err
	}
	return f, info, nil
}

// note adds the entry whose header was checked, and returns its length. The first bundle with an
// entry has priority.
func (x *bundleIndex) note(head []byte, name string, at int64) int64 {
	h, _ := readHeader(head)
	if _, known := x.places[h.key]; !known {
		x.places[h.key] = place{name, at, h.size()}
		if _, known := x.targets[h.target]; !known && h.target != (Key{}) {
			x.targets[h.target] = h.key
		}
	}
	return h.size()
}

// readAt fills buf from an offset.
func readAt(f fs.File, buf []byte, at int64) error {
	r, ok := f.(io.ReaderAt)
	if !ok {
		return fmt.Errorf("files of %T cannot be read at an offset: %w", f, driver.ErrUnsupported)
	}
	if n, err := r.ReadAt(buf, at); n == len(buf) {
		return nil
	} else if err != io.EOF {
		return err
	}
	return fmt.Errorf("bundle ends early: %w", driver.ErrCorrupt)
}

// forget excludes an entry of the bundles from later searches.
func (x *bundleIndex) forget(key Key) {
	x.cache.mu.Lock()
	defer x.cache.mu.Unlock()
	delete(x.places, key)
}

// bundled searches the bundles. Any error there is a miss.
func (c *Cache) bundled(key Key) (Entry, bool) {
	x := c.bundles()
	c.mu.Lock()
	p, ok := x.places[key]
	c.mu.Unlock()
	if !ok {
		return Entry{}, false
	}
	e, err := c.readBundled(key, p)
	if err != nil {
		x.forget(key)
		c.badBundle(fmt.Errorf("%s: %w", p.name, err))
		return Entry{}, false
	}
	c.count(func(s *Stats) { s.BundleHits++ })
	return e, true
}

func (c *Cache) readBundled(key Key, p place) (Entry, error) {
	f, _, err := openBundle(c.options.Bundles, p.name)
	if err != nil {
		return Entry{}, err
	}
	data := make([]byte, p.size)
	if err := errors.Join(readAt(f, data, p.offset), f.Close()); err != nil {
		return Entry{}, err
	}
	e, err := decode(key, data)
	e.Imported = true
	return e, err
}
