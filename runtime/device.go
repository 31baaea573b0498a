package runtime

// A device that is open: its memory accounts, its streams and its programs.

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/concord-compute/concord/runtime/choice"
	"github.com/concord-compute/concord/runtime/driver"
	"github.com/concord-compute/concord/runtime/kernelcache"
	"github.com/concord-compute/concord/runtime/mempool"
	"github.com/concord-compute/concord/source"
)

// Device is one open device. Opening the same device twice gives two Devices that share all of
// their state. Each is closed separately, and the last Close closes what is still open on the
// device. It is safe for concurrent use.
type Device struct {
	core     *core
	fallback error
	closed   atomic.Bool
}

// core is the state that all handles of one device share. Each part guards itself. Locks are taken
// in this order, and locks of one line are never held together:
//
//	those of package managed
//	Session.mu
//	Graph.mu
//	memory.settling   freeing what was closed while it was in use
//	Stream.mu         whatever is queued on one stream
//	programs.mu, programCore.mu, streams.mu, allocation.mu, staging.mu, Event.mu
//	memory.mu
//	the pool's own
//
// Against this order a lock is only tried. programs.mu and streams.mu are held for a few
// statements, and never while a driver is called.
type core struct {
	session   *Session
	key       string       // in session.open
	info      Info         // without Index
	place     atomic.Int64 // Info.Index, or -1
	drv       driver.Device
	pipelines pipelines
	choices   *choice.State
	keeping   sync.Mutex      // held while a table is kept
	compiler  driver.Compiler // nil if the device cannot build programs
	natives   driver.Natives  // nil if it has none
	handles   int             // guarded by session.mu

	life
	memory   memory
	streams  streams
	programs programs
}

// Stats are the accounts of one device since it was opened. Byte counts are those of the requests;
// Memory counts whole blocks as the device holds them. Memory, Staging and the other fields are
// each consistent, but read one after the other: while other goroutines allocate and free, Live and
// Memory.Requested may differ.
type Stats struct {
	Live        int64 // bytes of buffers that are open or in a graph
	LiveBuffers int64
	Wrapped     int64 // bytes of memory of Device.Wrap and WrapHandle, which is not in Live and not the pool's
	Deferred    int64 // bytes of closed buffers whose last use is still queued
	Peak        int64 // largest Live
	Allocations int64
	Frees       int64
	Forgotten   int64 // buffers never closed, freed after the collector found them
	Leaked      int64 // bytes that the driver held for a device that was abandoned
	Launches    int64
	Compiles    int64 // programs built here, not taken from the cache

	Memory  mempool.Stats   // the pool: memory kept for reuse, and what reuse saves
	Staging mempool.Staging // pinned memory for large copies
}

func newCore(s *Session, info Info, drv driver.Device) (*core, error) {
	key, index := info.ID, info.Index
	info = drv.Info()
	info.Simulated = info.Simulated || driver.IsSimulated(info.Backend)
	c := &core{session: s, key: key, info: info, drv: drv, handles: 1}
	c.place.Store(int64(index))
	c.compiler, _ = drv.(driver.Compiler)
	c.natives, _ = drv.(driver.Natives)
	c.choices = s.choicesOf(&c.info, drv)
	c.idle = make(chan struct{})
	c.memory = memory{core: c, live: map[*allocation]struct{}{}}
	c.streams = streams{core: c, open: map[*Stream]struct{}{}, graphs: map[*Graph]struct{}{}}
	c.programs = programs{core: c, loaded: map[programKey]*programCore{}, keys: map[programKey]kernelcache.Key{}}
	c.memory.pool = c.memory.newPool()
	own, err := c.streams.new(driver.Normal)
	if err != nil {
		return nil, err
	}
	c.streams.own = own
	if name := s.cfg.MemoryTrace; name != "" {
		c.memory.endTrace = c.memory.pool.RecordTo(name, c.info.ID)
	}
	c.memory.startUpkeep()
	return c, nil
}

// get returns the shared state of the device, if this handle is open.
func (d *Device) get(op string) (*core, error) {
	if d == nil || d.core == nil {
		return nil, fmt.Errorf("%s: device is nil: %w", op, ErrInvalidArgument)
	}
	if d.closed.Load() {
		return nil, d.core.error(op, ErrClosed)
	}
	return d.core, nil
}

// use is get for a call that takes a context.
func (d *Device) use(ctx context.Context, op string) (*core, error) {
	if err := checkContext(ctx, op); err != nil {
		return nil, err
	}
	return d.get(op)
}

// Info describes the device. FreeMemory is measured at the time of the call.
func (d *Device) Info() Info {
	info := d.core.info
	if !d.core.isAbandoned() {
		info = d.core.drv.Info()
	}
	info.Index, info.Simulated = d.core.index(), d.core.info.Simulated
	return info
}

// index is Info.Index: its value when the device was opened, or the first known value since.
func (c *core) index() int {
	if c.place.Load() < 0 {
		c.place.CompareAndSwap(-1, int64(c.session.indexOf(c.info.Backend, c.key)))
	}
	return int(c.place.Load())
}

// String returns the device's name for Open: "cuda:0".
func (d *Device) String() string { return d.core.info.ID }

// Enter keeps the device open until [Device.Leave], which every Enter that returned no error needs: Close waits for
// it. A program that uses memory of [Host] while another goroutine may close the device calls it around that use. It is
// ErrClosed after Close of this Device, and once the last Close of the device has begun; ErrDeviceLost for a lost one.
func (d *Device) Enter(op string) error {
	if d == nil || d.core == nil {
		return fmt.Errorf("%s: device is nil: %w", op, ErrInvalidArgument)
	}
	if err := d.core.lost(); err != nil {
		return err
	}
	if d.closed.Load() || !d.core.enter() {
		return d.core.closedError(op)
	}
	return nil
}

// Leave ends Enter. It is safe for concurrent use.
func (d *Device) Leave() { d.core.leave() }

// Run launches a kernel on the device's own stream, waits for it, and returns where it ran. Stream().Run does the
// same. But all users of the device share that stream, so that its result cannot say that this Device stands in for
// another.
func (d *Device) Run(ctx context.Context, k *Kernel, g Grid, args ...any) (Execution, error) {
	c, err := d.get("run")
	if err != nil {
		return Execution{}, err
	}
	r, err := c.streams.own.Run(ctx, k, g, args...)
	return r.after(d.fallback), err
}

// Session returns the session that opened the device.
func (d *Device) Session() *Session { return d.core.session }

// Fallback returns why this device stands in for the requested one, or nil.
func (d *Device) Fallback() error { return d.fallback }

// Features returns the optional language features of the device, for source.Options.
func (d *Device) Features() *source.Features {
	f := d.core.info.Features
	return &f
}

// Stream returns the device's own stream, which exists as long as the device is open.
func (d *Device) Stream() *Stream { return d.core.streams.own }

// NewStream returns another in-order queue. The caller closes it.
func (d *Device) NewStream() (*Stream, error) { return d.NewPriorityStream(driver.Normal) }

// NewPriorityStream is NewStream with a priority: when two streams have work that is ready, the
// work of the one with the higher priority starts first. On a device without priorities the stream
// is an ordinary one.
func (d *Device) NewPriorityStream(p driver.Priority) (*Stream, error) {
	const op = "new stream"
	c, err := d.get(op)
	if err != nil {
		return nil, err
	}
	if p < driver.Low || p > driver.High {
		return nil, c.error(op, fmt.Errorf("%d is no priority: %w", p, ErrInvalidArgument))
	}
	s, err := c.streams.new(p)
	if err != nil {
		return nil, err
	}
	s.fallback = d.fallback
	return s, nil
}

// Stats returns the accounts of the device.
func (d *Device) Stats() Stats {
	stats := d.core.memory.accounts()
	stats.Launches = d.core.streams.launched()
	stats.Compiles = d.core.programs.compiles.Load()
	return stats
}

// Driver returns the backend's own device, for optional interfaces such as
// driver.NativeHandles. Memory and streams made through it are the caller's.
func (d *Device) Driver() driver.Device { return d.core.drv }

// Sync waits until everything queued on every stream of the device is done, and returns the errors
// of the streams that failed.
func (d *Device) Sync(ctx context.Context) error {
	c, err := d.use(ctx, "sync")
	if err != nil {
		return err
	}
	if err := c.lost(); err != nil {
		return err
	}
	var errs []error
	for _, s := range c.streams.list() {
		if err := s.sync(ctx); err != nil && !errors.Is(err, ErrClosed) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// Abandon gives the device up without waiting, for a program whose work on it does not end: a kernel that loops, a
// driver that does not answer. Every handle of the device, of all Devices that opened it, answers an error from then on
// that matches ErrDeviceLost and why, closing does nothing, and nothing is waited for. Calls that the driver has not
// answered return when it does, and those that wait when their contexts are done.
//
// The device's memory, streams and programs, and what was wrapped, are never freed, because they may be in use:
// Stats.Leaked counts the bytes. Opening the device again gives a new one, if the driver can do that. Abandon
// is ErrClosed for a device that is closed, or is being closed.
func (d *Device) Abandon(why error) error {
	const op = "abandon"
	c, err := d.get(op)
	if err != nil {
		return err
	}
	cause := ErrDeviceLost
	if why != nil {
		cause = fmt.Errorf("%w: %w", ErrDeviceLost, why)
	}
	if !c.abandon(&OpError{Backend: c.info.Backend, Device: c.info.ID, Detail: "abandoned", Err: cause}) {
		return c.closedError(op)
	}
	c.session.forget(c)
	for _, s := range c.streams.list() {
		if s.notes.mu.TryLock() { // a call that does not return may hold it
			s.notes.mu.Unlock()
			s.notes.fetch(s, nil, true)
		}
	}
	if can, ok := c.drv.(driver.Abandoner); ok {
		can.Abandon()
	}
	c.session.debug(1, "abandoned", "device", c.info.ID, "reason", why)
	return nil
}

// Close releases this handle. The last Close of a device waits for its queued work, and for checks of it (see
// Session.Check), and closes what is still open on it; its buffers, streams and programs then answer ErrClosed.
// Closing twice does nothing.
func (d *Device) Close() error {
	if d == nil || d.core == nil || d.closed.Swap(true) {
		return nil
	}
	return d.core.session.release(d.core)
}

func (c *core) error(op string, err error) error {
	return &OpError{Backend: c.info.Backend, Device: c.info.ID, Op: op, Err: err}
}

// named puts device and operation before an error that has none.
func (c *core) named(op string, err error) error {
	if err == nil {
		return nil
	}
	if _, told := errors.AsType[*OpError](err); told {
		return err
	}
	return c.error(op, err)
}

// close ends everything on the device, users before what they use: work, graphs, programs,
// memory, device.
func (c *core) close() error {
	if check := c.session.checker.Load(); check != nil && !c.isClosed() {
		(*check).Wait() // its copies are on the device
	}
	if !c.end() {
		return nil
	}
	c.memory.stopUpkeep()
	lost := c.lost() != nil
	var errs []error
	done := func(err error) { errs = append(errs, unlessLost(lost, err)) }
	for _, s := range c.streams.list() {
		done(s.close())
		<-s.over // another call may be closing it
	}
	c.memory.drainWaiting()
	c.memory.report()
	for _, err := range c.streams.dropGraphs() {
		done(err)
	}
	for _, err := range c.programs.unload() {
		done(err)
	}
	for _, err := range c.memory.close() {
		done(err)
	}
	if !lost {
		c.keepPipelines()
	}
	done(c.drv.Close())
	if t := c.session.trace; t != nil {
		t.Write()
	}
	return errors.Join(errs...)
}
