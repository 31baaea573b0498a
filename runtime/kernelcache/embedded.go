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
	f, size, err := openBundle(fsys, name)
	if err != nil {
		return err
	}
	defer f.Close()
	return scanBundle(f, size, func(h header, at int64) error {
		if _, known := x.places[h.key]; known { // the first bundle with an entry has priority
			return nil
		}
		x.places[h.key] = place{name, at, h.size()}
		if _, known := x.targets[h.target]; !known && h.target != (Key{}) {
			x.targets[h.target] = h.key
		}
		return nil
	})
}

// randomAccess is a file that can be read at an offset.
type randomAccess interface {
	io.ReaderAt
	io.Closer
}

// openBundle opens a bundle that no other user can have written, as far as its file shows that: a
// file that is built into the program shows no owner and is trusted like the program.
func openBundle(fsys fs.FS, name string) (_ randomAccess, size int64, err error) {
	f, err := fsys.Open(name)
	if err != nil {
		return nil, 0, err
	}
	info, err := f.Stat()
	if err == nil {
		err = file.Check(name, info)
	}
	r, ok := f.(randomAccess)
	if err == nil && !ok {
		err = fmt.Errorf("files of %T cannot be read at an offset: %w", f, driver.ErrUnsupported)
	}
	if err != nil {
		f.Close()
		return nil, 0, err
	}
	return r, info.Size(), nil
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
