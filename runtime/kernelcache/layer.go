package kernelcache

// The cache's use of its disk layer: opened once, counted, and given up with one warning if it
// cannot be used.

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"time"

	"github.com/concord-compute/concord/runtime/driver"
)

// layer returns the disk layer, or nil. The first call opens it.
func (c *Cache) layer() *disk {
	if c.options.Dir == "" && c.options.NoDir == nil {
		return nil
	}
	c.diskOnce.Do(func() {
		if c.options.Dir == "" {
			c.giveUp(c.options.NoDir)
			return
		}
		d, err := openDisk(c.options.Dir, orDefault(c.options.DiskBytes, DefaultDiskBytes),
			orDefault(c.options.DiskEntries, DefaultDiskEntries))
		if err != nil {
			c.giveUp(err)
			return
		}
		c.disk.Store(d)
	})
	return c.disk.Load()
}

func orDefault[T int | int64 | time.Duration](n, otherwise T) T {
	if n == 0 {
		return otherwise
	}
	return n
}

// giveUp continues without the disk.
func (c *Cache) giveUp(reason error) {
	c.disk.Store(nil)
	c.count(func(s *Stats) { s.DiskErrors++; s.DiskOff = reason.Error() })
	c.warn("kernel cache: kept in memory only", reason)
}

func (c *Cache) warn(text string, reason error) {
	c.warnOnce.Do(func() {
		logger := c.options.Logger
		if logger == nil {
			logger = slog.Default()
		}
		logger.Warn(text, "dir", c.options.Dir, "reason", reason)
	})
}

// load searches the disk. Any error there is a miss.
func (c *Cache) load(key Key) (Entry, bool) {
	d := c.layer()
	if d == nil {
		return Entry{}, false
	}
	entry, used, err := d.load(key)
	switch {
	case err == nil:
		d.touch(key, used)
		c.count(func(s *Stats) { s.DiskHits++ })
		return entry, true
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, fs.ErrClosed):
	case errors.Is(err, driver.ErrCorrupt):
		c.count(func(s *Stats) { s.Corrupt++ })
		if errors.Is(err, driver.ErrUnsupported) { // another user may have written it
			c.warn("kernel cache: entry not used", err)
		}
	default:
		c.count(func(s *Stats) { s.DiskErrors++ })
		c.warn("kernel cache: entry not read", err)
	}
	return Entry{}, false
}

// lock takes the lock that keeps other processes from compiling the same kernel, and returns a
// function that releases it. The only error is that of a context that is over; without locks every
// process compiles for itself.
func (c *Cache) lock(ctx context.Context, key Key) (unlock func(), err error) {
	unlock, err = c.lockWithin(ctx, key, orDefault(c.options.LockWait, DefaultLockWait))
	if errors.Is(err, errLate) {
		c.count(func(s *Stats) { s.LockTimeouts++ })
		return func() {}, nil
	}
	return unlock, err
}

// lockWithin is lock with a limit to the wait, after which it returns errLate.
func (c *Cache) lockWithin(ctx context.Context, key Key, limit time.Duration) (unlock func(), err error) {
	d := c.layer()
	if d == nil || c.options.LockWait < 0 {
		return func() {}, nil
	}
	if _, err := d.writable(); unwritable(err) {
		return func() {}, nil // the result will not be stored anyway
	}
	unlock, err = d.lock(ctx, key, limit)
	switch {
	case err == nil || errors.Is(err, errLate):
		return unlock, err
	case ctx.Err() != nil:
		return nil, ctx.Err()
	}
	c.count(func(s *Stats) { s.LockErrors++ })
	return func() {}, nil
}

// store writes to the disk. After any error there the caller still has the entry that it compiled.
func (c *Cache) store(key Key, entry Entry) {
	d := c.layer()
	if d == nil {
		return
	}
	evicted, err := d.store(key, entry)
	switch {
	case err == nil:
		c.count(func(s *Stats) { s.DiskEvictions += int64(evicted) })
	case unwritable(err): // the error is permanent; existing entries can still be read
		c.warn("kernel cache: nothing is written", err)
	default: // the error may be temporary, such as a full disk
		c.count(func(s *Stats) { s.DiskErrors++ })
		c.warn("kernel cache: entry not written", err)
	}
}
