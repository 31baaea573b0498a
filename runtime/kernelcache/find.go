package kernelcache

// Entries by target: for machines without a compiler, which cannot make a key.

import (
	"io/fs"
)

// Find returns an entry that was stored with that Target, regardless of the compiler, from memory,
// from disk or from a bundle. It reads the header of every entry on disk, and is meant for machines
// without a compiler: others can make the complete key, of which the compiler is a part, and call
// Get.
func (c *Cache) Find(target Key) (Entry, Hit, bool) {
	if target == (Key{}) {
		return Entry{}, NoHit, false
	}
	if entry, ok := c.Lookup(target); ok {
		return entry, Memory, true
	}
	entry, hit := c.find(target)
	if hit == NoHit {
		c.count(func(s *Stats) { s.Misses++ })
		return Entry{}, NoHit, false
	}
	c.mu.Lock()
	c.remember(newItem(target, entry, nil))
	c.mu.Unlock()
	return entry, hit, true
}

func (c *Cache) find(target Key) (Entry, Hit) {
	for _, it := range c.inMemory() {
		if it.entry.Target == target {
			c.count(func(s *Stats) { s.MemoryHits++ })
			return it.entry, Memory
		}
	}
	if d := c.layer(); d != nil {
		for _, key := range d.keysOf(target) {
			if entry, ok := c.load(key); ok && entry.Target == target {
				return entry, Disk
			}
		}
	}
	x := c.bundles()
	c.mu.Lock()
	key, ok := x.targets[target]
	c.mu.Unlock()
	if ok {
		if entry, ok := c.bundled(key); ok && entry.Target == target {
			return entry, Bundled
		}
	}
	return Entry{}, NoHit
}

// keysOf lists the keys of the entries on disk with a target. A directory that cannot be read has
// none.
func (d *disk) keysOf(target Key) (keys []Key) {
	_ = d.walk(func(key Key, _ fs.FileInfo) error {
		if h, _, ok := d.head(key); ok && h.target == target {
			keys = append(keys, key)
		}
		return nil
	})
	return keys
}
