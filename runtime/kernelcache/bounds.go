package kernelcache

// The bounds of the disk layer: which entries are removed when there are too many bytes or
// too many entries. The time of a file's last use is its modification time.

import (
	"io/fs"
	"slices"
	"sync"
	"time"
)

// touchAfter is the precision of the noted time of last use: noting every use of a busy entry would
// cost more than it is worth.
const touchAfter = time.Minute

// bounds are limits, and this process's estimate of the directory's contents. It reads the
// directory again before its own additions since the last time come to a sixteenth of a limit, so
// that each of several processes that share a directory exceeds the limits by no more than that,
// and only until its next look.
type bounds struct {
	maxBytes   int64 // negative: none
	maxEntries int   // negative: none

	mu         sync.Mutex
	looked     bool
	bytes      int64 // at the last look, plus the additions since
	entries    int
	newBytes   int64 // added by this process since the last look
	newEntries int
}

// fits reports whether an entry of that size may be on disk at all.
func (b *bounds) fits(size int64) bool {
	return b.maxEntries != 0 && (b.maxBytes < 0 || size <= b.maxBytes)
}

// stored notes a new entry. If the bounds are exceeded it removes the least recently used entries,
// except the new one. It returns the number of removed entries.
func (d *disk) stored(key Key, size int64) (evicted int) {
	b := &d.bounds
	b.mu.Lock()
	defer b.mu.Unlock()
	b.bytes, b.newBytes = b.bytes+size, b.newBytes+size
	b.entries, b.newEntries = b.entries+1, b.newEntries+1
	if b.looked && !over(b.bytes, b.maxBytes) && !over(int64(b.entries), int64(b.maxEntries)) &&
		!over(16*b.newBytes, b.maxBytes) && !over(16*int64(b.newEntries), int64(b.maxEntries)) {
		return 0
	}
	return d.shrink(key)
}

func over(n, limit int64) bool { return limit >= 0 && n > limit }

// used is an entry with the time of its last use.
type used struct {
	key  Key
	size int64
	time time.Time
}

// shrink reads the directory and, if it is over a limit, removes entries down to seven eighths of
// the limit, so that a full cache is not walked at every store. It is called with the bounds' mutex
// held.
func (d *disk) shrink(keep Key) (evicted int) {
	b := &d.bounds
	var list []used
	b.bytes, b.entries, b.newBytes, b.newEntries = 0, 0, 0, 0
	err := d.walk(func(key Key, info fs.FileInfo) error {
		list = append(list, used{key, info.Size(), info.ModTime()})
		b.bytes += info.Size()
		return nil
	})
	b.entries, b.looked = len(list), err == nil
	if !over(b.bytes, b.maxBytes) && !over(int64(b.entries), int64(b.maxEntries)) {
		return 0
	}
	slices.SortFunc(list, func(a, b used) int { return a.time.Compare(b.time) })
	bytes, entries := b.maxBytes-b.maxBytes/8, int64(b.maxEntries-b.maxEntries/8)
	for _, e := range list {
		if !(b.maxBytes >= 0 && b.bytes > bytes) && !(b.maxEntries >= 0 && int64(b.entries) > entries) {
			break
		}
		if e.key == keep || ignoreMissing(d.remove(e.key)) != nil {
			continue
		}
		b.bytes -= e.size
		b.entries--
		evicted++
	}
	return evicted
}

// touch notes the use of an entry whose last use is given. If that fails, the entry is merely
// removed sooner.
func (d *disk) touch(key Key, last time.Time) {
	now := time.Now()
	if now.Sub(last).Abs() <= touchAfter {
		return
	}
	if root, err := d.writable(); err == nil {
		_ = root.Chtimes(pathOf(key), now, now)
	}
}
