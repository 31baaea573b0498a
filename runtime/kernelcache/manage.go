package kernelcache

// Administration of a cache: counters, contents, verification, and emptying it.

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/concord-compute/concord/runtime/driver"
)

// Stats are the counters of one Cache since it was opened, and its state.
type Stats struct {
	MemoryHits   int64 `json:"memory_hits"`
	DiskHits     int64 `json:"disk_hits"`
	BundleHits   int64 `json:"bundle_hits"`
	NegativeHits int64 `json:"negative_hits"` // failed builds answered from memory
	Misses       int64 `json:"misses"`        // requests that no layer had
	Compiles     int64 `json:"compiles"`      // programs given to a compiler
	Failures     int64 `json:"failures"`      // those that returned an error
	Waits        int64 `json:"waits"`         // callers that shared the search of another
	Evictions    int64 `json:"evictions"`     // entries removed from memory to keep its bounds
	// invalid files, which were deleted, and invalid bundles and entries of bundles
	Corrupt    int64 `json:"corrupt"`
	DiskErrors int64 `json:"disk_errors"` // reads and writes that failed

	DiskEvictions int64 `json:"disk_evictions"` // entries that this process removed to keep the disk's bounds
	LockTimeouts  int64 `json:"lock_timeouts"`  // compiles that waited too long for another process
	LockErrors    int64 `json:"lock_errors"`    // compiles without a lock because the file system has none

	MemoryEntries int    `json:"memory_entries"` // remembered failures included
	MemoryBytes   int64  `json:"memory_bytes"`
	Dir           string `json:"dir,omitempty"`       // directory in use; empty: memory only
	DiskOff       string `json:"disk_off,omitempty"`  // why the configured directory is not in use
	ReadOnly      string `json:"read_only,omitempty"` // why the directory is used for reading only
}

// Info describes one entry on disk.
type Info struct {
	Key      Key
	Label    string    // as written; Verify checks it
	Bytes    int64     // size of the file
	Used     time.Time // time of the last write or read, to within a minute
	Imported bool      // it came in a bundle and was not compiled here
}

// Report is the outcome of Verify.
type Report struct {
	Checked int   // entries read
	Bytes   int64 // size of the valid ones
	Corrupt []Key // invalid ones, deleted
	Temp    int   // leftovers of processes that died, deleted
}

// Stats returns the counters. It opens the disk layer if that has not been used yet.
func (c *Cache) Stats() Stats {
	d := c.layer()
	var readOnly error
	if d != nil {
		_, readOnly = d.writable()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.stats
	s.MemoryEntries, s.MemoryBytes = c.memory.order.Len(), c.memory.bytes
	if d != nil {
		s.Dir = d.dir
		if readOnly != nil {
			s.ReadOnly = readOnly.Error()
		}
	}
	return s
}

// List returns the entries on disk in the order of their keys; a cache in memory only has none.
// Only headers are read. Files that are not entries are left out.
func (c *Cache) List() ([]Info, error) {
	d := c.layer()
	if d == nil {
		return nil, nil
	}
	var list []Info
	err := d.walk(func(key Key, info fs.FileInfo) error {
		if h, label, ok := d.head(key); ok {
			list = append(list, Info{key, label, info.Size(), info.ModTime(), h.flags&imported != 0})
		}
		return nil
	})
	return list, err
}

// Size returns the number of entries on disk and the bytes of their files.
func (c *Cache) Size() (n int, bytes int64, err error) {
	d := c.layer()
	if d == nil {
		return 0, 0, nil
	}
	err = d.walk(func(_ Key, info fs.FileInfo) error {
		n++
		bytes += info.Size()
		return nil
	})
	return n, bytes, err
}

// Verify reads every entry on disk completely, deletes invalid ones and the leftovers of processes
// that died, and returns a report. It stops with ctx. Invalid entries are a result and not an
// error.
func (c *Cache) Verify(ctx context.Context) (Report, error) {
	var r Report
	d := c.layer()
	if d == nil {
		return r, nil
	}
	err := d.walk(func(key Key, info fs.FileInfo) error {
		if err := ctx.Err(); err != nil {
			return err
		}
		_, _, err := d.load(key)
		switch {
		case err == nil:
			r.Checked++
			r.Bytes += info.Size()
		case errors.Is(err, driver.ErrCorrupt):
			r.Checked++
			r.Corrupt = append(r.Corrupt, key)
			c.count(func(s *Stats) { s.Corrupt++ })
		default:
			return ignoreMissing(err)
		}
		return nil
	})
	r.Temp = d.sweep(time.Now().Add(-tempAge))
	if err != nil {
		return r, fmt.Errorf("kernel cache: verify: %w", err)
	}
	return r, nil
}

// Evict removes one key from memory, disk and the index of bundles, and reports whether memory or
// disk had it. It is meant for an intact entry that the device's driver nevertheless refuses to
// load.
func (c *Cache) Evict(key Key) bool {
	c.mu.Lock()
	known := c.memory.remove(key)
	c.mu.Unlock()
	c.bundles().forget(key)
	if d := c.layer(); d != nil && d.remove(key) == nil {
		known = true
	}
	return known
}

// Clear removes everything, remembered failures included, and deletes the entries on disk. It
// returns the number and the bytes of the removed entries: of those on disk, or of those in memory
// if there is no disk. Files that do not belong to the cache are not touched. A compile in progress
// is stored when it is done.
func (c *Cache) Clear() (n int, bytes int64, err error) {
	d := c.layer()
	c.mu.Lock()
	n, bytes = c.memory.order.Len(), c.memory.bytes
	c.memory = memory{}
	c.mu.Unlock()
	if d == nil {
		return n, bytes, nil
	}
	n, bytes = 0, 0
	var failed []error
	err = d.walk(func(key Key, info fs.FileInfo) error {
		if err := d.remove(key); err == nil {
			n++
			bytes += info.Size()
		} else if ignoreMissing(err) != nil {
			failed = append(failed, err)
		}
		return nil
	})
	d.sweep(time.Now().Add(-tempAge))
	if err = errors.Join(append(failed, err)...); err != nil {
		return n, bytes, fmt.Errorf("kernel cache: clear: %w", err)
	}
	return n, bytes, nil
}
