package kernelcache

// The cache itself: memory, then disk, then one compile that all callers share.

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/concord-compute/concord/runtime/driver"
)

// Defaults of Options.
const (
	DefaultMemoryBytes   = 256 << 20
	DefaultMemoryEntries = 1000
	DefaultDiskBytes     = 256 << 20
	DefaultDiskEntries   = 1000
	DefaultLockWait      = 30 * time.Second
)

// Options configure a Cache. The zero value keeps entries in memory only.
type Options struct {
	// Dir is the directory of the disk layer; "" means none. It is made with
	// mode 0700 if it is not there. It is refused if it, or a directory on the way
	// to it, belongs to another user than this process's or the superuser, or others can
	// write to it; on the way the sticky bit makes that good. One that can
	// only be read is read. Several processes may share it.
	Dir string
	// NoDir is why Dir is "" although a disk layer was wanted: it is said as any
	// other reason for which a disk cannot be used.
	NoDir error
	// DiskBytes and DiskEntries bound the disk layer; the least recently used
	// entries go first. 0 is the default, a negative number no bound. Processes
	// that share a directory may each pass a bound by a sixteenth of it for a while.
	DiskBytes   int64
	DiskEntries int
	// LockWait is how long a compile waits for another process that compiles the
	// same kernel before it goes ahead all the same: 0 is the default, with a
	// negative number nobody waits.
	LockWait time.Duration
	// Bundles is searched after memory and disk: every file of it whose name ends
	// in .bundle, in directories too, is one that Export wrote. Its files are read
	// at offsets (io.ReaderAt), as those of embed.FS and os.DirFS can be. Like any
	// code, it has to come from where the program's own code comes from: files and
	// directories of another user, or that others can write to, are passed over with a
	// warning. What is above the file system's root is the program's to know.
	Bundles fs.FS
	// MemoryBytes and MemoryEntries bound the memory layer: 0 is the default,
	// a negative number keeps nothing in memory.
	MemoryBytes   int64
	MemoryEntries int
	// Logger gets the one warning of a cache whose disk cannot be used; nil
	// means slog.Default().
	Logger *slog.Logger
}

// Entry is one compiled kernel. Binary is shared by everyone who asked for the
// key and must never be changed.
type Entry struct {
	Binary []byte
	Log    string // what the compiler said, warnings included
	Label  string // what it is, for people: "cuda:0 gemm.cl". One line, cut to 200 bytes
	// Target is the key of the same program for all compilers: Find returns the
	// entry by it. Zero if the binary is only good where that compiler is.
	Target   Key
	Imported bool // it came in a bundle and was not compiled here
}

// Hit says where an entry came from.
type Hit uint8

// The places an entry comes from.
const (
	NoHit    Hit = iota // the caller's context ended before there was anything
	Memory              // this process had it; also a failed build that is remembered
	Disk                // a file had it
	Compiled            // the compiler was called, by this caller or by one it waited for
	Bundled             // a bundle of Options.Bundles had it
)

// String returns "memory", "disk", "compiled", "bundle" or "none".
func (h Hit) String() string {
	switch h {
	case Memory:
		return "memory"
	case Disk:
		return "disk"
	case Compiled:
		return "compiled"
	case Bundled:
		return "bundle"
	}
	return "none"
}

// Cache keeps compiled kernels. The zero value is a cache in memory with default
// bounds; a Cache must not be copied. It holds its directory open, once that was used,
// until Close or until it is collected.
type Cache struct {
	options Options

	mu      sync.Mutex
	memory  memory
	flights map[Key]*flight
	stats   Stats // the counters; the rest is filled in by Stats

	diskOnce sync.Once
	disk     atomic.Pointer[disk] // nil: memory only
	warnOnce sync.Once

	bundleOnce sync.Once
	index      bundleIndex // of Options.Bundles, by bundles
}

// Open returns a cache. It never fails and touches no disk: the directory is
// looked at when the first entry is not in memory.
func Open(options Options) *Cache { return &Cache{options: options} }

// Close lets go of the directory, so that its file system can be unmounted. A cache may
// be used after it: what needs the directory opens it again. A call that is looking
// there meanwhile finds nothing.
func (c *Cache) Close() error {
	if d := c.disk.Load(); d != nil {
		return d.close()
	}
	return nil
}

// flight is one search of disk and compile in progress. Its fields but done are
// written by the caller that leads it, before done is closed.
type flight struct {
	done      chan struct{}
	entry     Entry
	hit       Hit
	err       error
	abandoned bool   // there is no outcome to share: a waiter takes over
	keep      bool   // the outcome goes into memory
	unlock    func() // ends the lock against other processes; nil: there is none
}

// Lookup returns the entry if it is in memory. It never waits for a disk or a
// compiler, and allocates nothing.
func (c *Cache) Lookup(key Key) (Entry, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	it := c.memory.get(key)
	if it == nil || it.err != nil {
		return Entry{}, false
	}
	c.stats.MemoryHits++
	return it.entry, true
}

// Get returns the entry for key from memory, from disk, from a bundle, or from
// compile. A memory hit allocates nothing and does not look at ctx.
//
// compile runs on the caller's goroutine, with the caller's ctx, which it should
// honour, and at most once at a time for each key; the cache owns what it
// returns. It must not call Get for the same key. Others that ask for the key
// meanwhile wait, each no longer than its own ctx, and share the outcome. If the
// ctx of the caller that compiles ends, or its compile panics, one of those that
// wait compiles again with its own ctx. Other processes that use the directory
// wait too, up to Options.LockWait, and then find the entry on disk.
//
// A program that the compiler refused (an error that matches driver.ErrCompile)
// is remembered until Clear or the end of the process and returned with Memory
// the next time. Time-outs, cancellation, lack of memory and everything else that
// may go better next time never are.
func (c *Cache) Get(ctx context.Context, key Key, compile func(context.Context) (Entry, error)) (Entry, Hit, error) {
	for waited := false; ; waited = true {
		c.mu.Lock()
		if it := c.memory.get(key); it != nil {
			entry, err := it.entry, it.err
			if err != nil {
				c.stats.NegativeHits++
			} else if !waited {
				c.stats.MemoryHits++
			}
			c.mu.Unlock()
			return entry, Memory, err
		}
		f, running := c.flights[key]
		if !running {
			f = c.takeOff(key)
			c.mu.Unlock()
			return c.compileAndStore(ctx, key, f, compile)
		}
		if !waited {
			c.stats.Waits++
		}
		c.mu.Unlock()
		select {
		case <-f.done:
			if !f.abandoned {
				return f.entry, f.hit, f.err
			}
		case <-ctx.Done():
			return Entry{}, NoHit, fmt.Errorf("kernel cache: waiting for a compile: %w", ctx.Err())
		}
	}
}

// takeOff registers a flight. It is called with the mutex held.
func (c *Cache) takeOff(key Key) *flight {
	f := &flight{done: make(chan struct{}), abandoned: true}
	if c.flights == nil {
		c.flights = make(map[Key]*flight)
	}
	c.flights[key] = f
	return f
}

// compileAndStore leads a flight. Those that wait in this process have the entry
// before it is written to disk, those in others after; the caller returns last.
func (c *Cache) compileAndStore(ctx context.Context, key Key, f *flight, compile func(context.Context) (Entry, error)) (Entry, Hit, error) {
	defer func() {
		if f.unlock != nil {
			f.unlock()
		}
	}()
	c.lead(ctx, key, f, compile)
	if f.hit == Compiled && f.err == nil {
		c.store(key, f.entry)
	}
	return f.entry, f.hit, f.err
}

// lead fills in the flight. Whatever happens, a panic of compile included, it
// ends with the flight landed.
func (c *Cache) lead(ctx context.Context, key Key, f *flight, compile func(context.Context) (Entry, error)) {
	defer c.land(key, f)
	if f.err = ctx.Err(); f.err != nil {
		return
	}
	if c.search(key, f) {
		return
	}
	if compile == nil {
		f.err = fmt.Errorf("kernel cache: no compile function: %w", driver.ErrInvalidArgument)
		return
	}
	if f.unlock, f.err = c.lock(ctx, key); f.err != nil {
		f.err = fmt.Errorf("kernel cache: waiting for another process: %w", f.err)
		return
	}
	// Another process may have been done between the search and the lock.
	if entry, ok := c.load(key); ok {
		f.found(entry, Disk)
		return
	}
	c.count(func(s *Stats) { s.Misses++; s.Compiles++ })
	entry, err := compile(ctx)
	f.hit = Compiled
	if err != nil {
		c.count(func(s *Stats) { s.Failures++ })
		// An error while the caller's own context is over is its cancellation,
		// whatever it says: a killed compiler looks like one that failed.
		f.err, f.abandoned = err, ctx.Err() != nil
		f.keep = !f.abandoned && verdict(err)
		return
	}
	entry.Imported = false
	f.found(shareable(entry), Compiled)
}

// search looks where others may have left the entry: on disk and in bundles.
func (c *Cache) search(key Key, f *flight) bool {
	entry, ok := c.load(key)
	hit := Disk
	if !ok {
		entry, ok = c.bundled(key)
		hit = Bundled
	}
	if ok {
		f.found(entry, hit)
	}
	return ok
}

func (f *flight) found(entry Entry, hit Hit) {
	f.entry, f.hit, f.keep, f.abandoned = entry, hit, true, false
}

// land ends a flight and lets those that wait go on.
func (c *Cache) land(key Key, f *flight) {
	c.mu.Lock()
	if f.keep {
		c.remember(newItem(key, f.entry, f.err))
	}
	delete(c.flights, key)
	c.mu.Unlock()
	close(f.done)
}

// remember puts an item into memory. It is called with the mutex held.
func (c *Cache) remember(it *item) {
	bytes, entries := c.options.MemoryBytes, c.options.MemoryEntries
	c.stats.Evictions += int64(c.memory.add(it, orDefault(bytes, DefaultMemoryBytes), orDefault(entries, DefaultMemoryEntries)))
}

// verdict reports whether err is the compiler's judgement of the program, which
// will be the same next time, and not the circumstances' of the moment.
func verdict(err error) bool {
	if !errors.Is(err, driver.ErrCompile) {
		return false
	}
	for _, passing := range []error{context.Canceled, context.DeadlineExceeded, driver.ErrTimeout,
		driver.ErrOutOfMemory, driver.ErrBudget, driver.ErrUnsupported, driver.ErrNoDevice,
		driver.ErrDeviceLost, driver.ErrClosed, driver.ErrCorrupt} {
		if errors.Is(err, passing) {
			return false
		}
	}
	// A compiler that could not write its output judged nothing.
	_, path := errors.AsType[*fs.PathError](err)
	_, syscall := errors.AsType[*os.SyscallError](err)
	return !path && !syscall
}

// shareable makes an entry safe to share: appending to Binary copies, and the label
// is one printable line.
func shareable(e Entry) Entry {
	e.Binary = e.Binary[:len(e.Binary):len(e.Binary)]
	e.Label = cleanLabel(e.Label)
	return e
}

func (c *Cache) count(add func(*Stats)) {
	c.mu.Lock()
	add(&c.stats)
	c.mu.Unlock()
}
