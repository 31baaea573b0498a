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
	// Dir is the directory of the disk layer; "" means none. A missing one is made with mode 0700. It is refused if
	// it, or a directory on the way to it, belongs to another user than this process's or the superuser, or if others
	// can write to it. Directories with the sticky bit are accepted on the way. A read-only directory is used for
	// reading. Several processes may share it.
	Dir string
	// NoDir is the reason why Dir is "" although a disk layer was requested. It is reported like
	// any other reason for which the disk cannot be used. Nil means that none was requested.
	NoDir error
	// DiskBytes and DiskEntries are the bounds of the disk layer; the least recently used entries
	// are removed first. 0 is the default, a negative number no bound. Processes that share a
	// directory may each exceed a bound by a sixteenth of it for a while.
	DiskBytes   int64
	DiskEntries int
	// LockWait is how long a compile waits for another process that compiles the same kernel before
	// it compiles nevertheless: 0 is the default, a negative number means no wait.
	LockWait time.Duration
	// Bundles is searched after memory and disk: every file whose name ends in .bundle, also in
	// subdirectories, is a bundle that Export wrote. Its files must support io.ReaderAt, as those
	// of embed.FS and os.DirFS do. Like any code, it has to come from a trusted source: files and
	// directories of another user, or that others can write to, are skipped with a warning.
	// Directories above the file system's root are not checked. Nil means none.
	Bundles fs.FS
	// MemoryBytes and MemoryEntries bound the memory layer: 0 is the default,
	// a negative number keeps nothing in memory.
	MemoryBytes   int64
	MemoryEntries int
	// Logger receives at most one warning, when the disk or a bundle cannot be used; nil means
	// slog.Default().
	Logger *slog.Logger
}

// Entry is one compiled kernel. Binary is shared by all callers that request the key and must never
// be changed.
type Entry struct {
	Binary []byte
	Log    string // the compiler's output, warnings included
	Label  string // a readable name: "cuda:0 gemm.cl". One line, cut to 200 bytes
	// Target is the key of the same program for all compilers: Find returns the entry by it. It is
	// zero if the binary can be used only on machines with the same compiler.
	Target   Key
	Imported bool // it came in a bundle and was not compiled here
}

// Hit says where an entry came from.
type Hit uint8

// The places an entry comes from.
const (
	NoHit    Hit = iota // the caller's context ended before there was a result
	Memory              // from this process's memory; also a remembered failure of a build
	Disk                // from a file
	Compiled            // from the compiler, called by this caller or by one that it waited for
	Bundled             // from a bundle of Options.Bundles
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

// Cache keeps compiled kernels. The zero value is a cache in memory with default bounds; a Cache
// must not be copied. Once its directory was used, the Cache holds it open until Close or until the
// Cache is collected.
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

// Open returns a cache. It never fails and touches no disk: the directory is first used when an
// entry is not in memory.
func Open(options Options) *Cache { return &Cache{options: options} }

// Close closes the directory, so that its file system can be unmounted. The cache may be used after
// Close: calls that need the directory open it again. A call that is using the directory during
// Close finds nothing.
func (c *Cache) Close() error {
	if d := c.disk.Load(); d != nil {
		return d.close()
	}
	return nil
}

// flight is one search of disk and compile in progress. Its fields except done are written by the
// caller that leads it, before done is closed.
type flight struct {
	done      chan struct{}
	entry     Entry
	hit       Hit
	err       error
	abandoned bool   // there is no result to share: a waiter takes over
	keep      bool   // the result is kept in memory
	unlock    func() // releases the lock against other processes; nil: there is none
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
// compile. A memory hit allocates nothing and ignores ctx.
//
// compile runs on the caller's goroutine, with the caller's ctx, which it should honour, and at
// most once at a time for each key; the cache owns its result. It must not call Get for the same
// key. Concurrent callers with the same key wait, each no longer than its own ctx, and share the
// result. If the ctx of the compiling caller ends, or its compile panics, one of the waiting
// callers compiles with its own ctx. Other processes that use the directory wait too, up to
// Options.LockWait, and then find the entry on disk.
//
// If the compiler refused a program (an error that matches driver.ErrCompile), the error is
// remembered until Clear or the end of the process, and later calls return it with Memory.
// Time-outs, cancellation, lack of memory and other errors that may not occur again are never
// remembered.
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

// compileAndStore leads a flight. Callers that wait in this process get the entry before it is
// written to disk, those in other processes after; the caller itself returns last.
func (c *Cache) compileAndStore(ctx context.Context, key Key, f *flight, compile func(context.Context) (Entry, error)) (
	Entry, Hit, error) {
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

// lead fills in the flight. It always ends with land, even if compile panics.
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
	// Another process may have finished between the search and the lock.
	if entry, ok := c.load(key); ok {
		f.found(entry, Disk)
		return
	}
	c.count(func(s *Stats) { s.Misses++; s.Compiles++ })
	entry, err := compile(ctx)
	c.compiled(ctx, f, entry, err)
}

// compiled fills in the flight with the result of the compiler.
func (c *Cache) compiled(ctx context.Context, f *flight, entry Entry, err error) {
	f.hit = Compiled
	if err != nil {
		c.count(func(s *Stats) { s.Failures++ })
		// An error after the end of the caller's own context counts as its cancellation, whatever
		// its text: a killed compiler looks like one that failed.
		f.err, f.abandoned = err, ctx.Err() != nil
		f.keep = !f.abandoned && verdict(err)
		return
	}
	entry.Imported = false
	f.found(shareable(entry), Compiled)
}

// search looks for the entry on disk and in bundles.
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

// land ends a flight and wakes the callers that wait.
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
	c.stats.Evictions += int64(c.memory.add(it, orDefault(bytes, DefaultMemoryBytes),
		orDefault(entries, DefaultMemoryEntries)))
}

// verdict reports whether err is the compiler's judgement of the program, which will be the same
// next time, and not a temporary condition.
func verdict(err error) bool {
	if !errors.Is(err, driver.ErrCompile) {
		return false
	}
	for _, passing := range []error{context.Canceled, context.DeadlineExceeded, driver.ErrTimeout,
		driver.ErrOutOfMemory, driver.ErrBudget, driver.ErrUnsupported, driver.ErrNoDevice,
		driver.ErrDeviceLost, driver.ErrClosed, driver.ErrCorrupt, driver.ErrLaunch} {
		if errors.Is(err, passing) {
			return false
		}
	}
	// A compiler that could not write its output has not judged the program.
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
