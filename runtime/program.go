package runtime

// Programs and kernels: from a parsed unit to kernels that can be launched.

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/concord-compute/concord/runtime/driver"
	"github.com/concord-compute/concord/runtime/kernelcache"
	"github.com/concord-compute/concord/runtime/profile"
	"github.com/concord-compute/concord/source"
)

// Implementation says which implementation of a catalog kernel a program uses.
type Implementation uint8

// The choices.
const (
	Fastest  Implementation = iota // the device's own where it has a faster one, else the portable text
	Portable                       // the portable text, always
	Native                         // the device's own, or ErrUnsupported
)

// ProgramOptions say how a unit is built. The zero value is the default.
type ProgramOptions struct {
	Implementation Implementation // of a catalog kernel; 0 is Fastest
	Flags          []string       // passed to the device's compiler as they are; nil is none
}

// Built says how a program was obtained.
type Built struct {
	From    string        // "compiled", "disk", "memory", "bundle" or "native"
	Elapsed time.Duration // to build or fetch, and to load
	Log     string        // the compiler's output
}

// Program is a unit built for one device. It is safe for concurrent use.
type Program struct {
	core   *programCore
	closed atomic.Bool
}

// programs are the programs that are loaded on one device.
type programs struct {
	core     *core
	compiles atomic.Int64 // programs built here, not taken from the cache

	mu     sync.Mutex
	loaded map[programKey]*programCore
	keys   map[programKey]kernelcache.Key // cache keys of programs that are loaded or being built
}

// unload unloads all programs when their device is closed.
func (lib *programs) unload() (errs []error) {
	lib.mu.Lock()
	loaded := lib.loaded
	lib.loaded = nil
	lib.mu.Unlock()
	for _, p := range loaded {
		errs = append(errs, p.unload())
	}
	return errs
}

// unneeded drops the noted key of a program that is not loaded.
func (lib *programs) unneeded(key programKey) {
	lib.mu.Lock()
	defer lib.mu.Unlock()
	if lib.loaded[key] == nil {
		delete(lib.keys, key)
	}
}

type programKey struct {
	unit  *source.Unit
	impl  Implementation
	flags string
}

// programCore is the state that all Programs of one unit on one device share.
type programCore struct {
	device *core
	key    programKey
	users  int // guarded by device.programs.mu
	built  Built
	module driver.Module // nil if the program has native kernels only

	mu      sync.Mutex
	kernels map[string]*Kernel
	gone    atomic.Bool
}

// Program builds a unit for the device, or takes it from the kernel cache. The
// same unit gives the same program for as long as one of its Programs is open.
// Options may be left out. Building can take seconds; ctx stops it.
func (d *Device) Program(ctx context.Context, unit *source.Unit, options ...ProgramOptions) (*Program, error) {
	c, err := d.use(ctx, "program")
	if err != nil {
		return nil, err
	}
	var opt ProgramOptions
	switch {
	case unit == nil:
		return nil, c.error("program", fmt.Errorf("unit is nil: %w", ErrInvalidArgument))
	case len(options) > 1:
		return nil, c.error("program", fmt.Errorf("%d option structs, at most one: %w", len(options), ErrInvalidArgument))
	case len(options) == 1:
		opt = options[0]
	}
	key := programKey{unit, opt.Implementation, strings.Join(opt.Flags, "\x00")}
	return c.programs.program(ctx, key, opt, time.Now(), nil)
}

// program builds a program, from bytes that are ready if there are any, and returns the first handle of it.
func (lib *programs) program(ctx context.Context, key programKey, opt ProgramOptions, start time.Time,
	ready *fetched) (*Program, error) {
	if p := lib.shared(key, nil); p != nil {
		return p, nil
	}
	core, err := lib.build(ctx, key, opt, start, ready)
	if session := lib.core.session; session.observed() {
		e := profile.Event{Kind: profile.Compile, Name: key.unit.Name(), Device: lib.core.info.ID, Err: err}
		if err == nil {
			e.Detail = core.built.From
		}
		session.told(e, driver.Now()-time.Since(start).Nanoseconds())
	}
	if err != nil {
		lib.unneeded(key)
		return nil, lib.core.noticed(err)
	}
	defer lib.core.leave()
	p := lib.shared(key, core)
	if p == nil {
		return nil, errors.Join(lib.core.closedError("program"), core.unload())
	}
	return p, nil
}

// shared returns a new handle of the loaded program with that key or, if there is none, of made.
// Two goroutines may build the same unit at once (the cache compiles once); the second to finish
// unloads its own. A caller with made has entered the device. Nil means that there is none, or that
// the device is closed.
func (lib *programs) shared(key programKey, made *programCore) *Program {
	if lib.core.isClosed() {
		return nil
	}
	lib.mu.Lock()
	have := lib.loaded[key]
	if have == nil && made != nil {
		have, made = made, nil
		lib.loaded[key] = have
	}
	if have != nil {
		have.users++
	}
	lib.mu.Unlock()
	if have == nil {
		return nil
	}
	if made != nil {
		_ = made.unload() // the same program is loaded already
	}
	return &Program{core: have}
}

// build compiles or fetches a unit, unless its bytes are ready, and loads it. Without an error the
// caller has entered the device, so that it is not closed before the program is known to it.
func (lib *programs) build(ctx context.Context, key programKey, opt ProgramOptions, start time.Time,
	ready *fetched) (*programCore, error) {
	p := &programCore{device: lib.core, key: key, kernels: map[string]*Kernel{}}
	if lib.allNative(key.unit, opt.Implementation) {
		if !lib.core.enter() {
			return nil, lib.core.closedError("program")
		}
		p.built = Built{From: "native", Elapsed: time.Since(start)}
		return p, nil
	}
	switch {
	case lib.core.isClosed():
		return nil, lib.core.closedError("program")
	case opt.Implementation == Native:
		return nil, lib.noNative("program "+key.unit.Name(), key.unit, key.unit.Kernels()...)
	case lib.core.compiler == nil:
		return nil, lib.core.error("program "+key.unit.Name(), fmt.Errorf("the device runs only its own kernels: %w",
			ErrUnsupported))
	}
	if ready == nil {
		ready = &fetched{}
		ready.entry, ready.hit, ready.err = lib.binary(ctx, key, opt.Flags)
	}
	bin, hit, err := ready.entry, ready.hit, ready.err
	if err != nil {
		return nil, err
	}
	p.module, err = lib.load(ctx, key.unit, bin)
	if stale(err) && hit != kernelcache.Compiled && ctx.Err() == nil {
		// Intact bytes that the driver refuses are compiled again, once.
		refused := err
		if bin, hit, err = lib.again(ctx, key, opt.Flags); err == nil {
			p.module, err = lib.load(ctx, key.unit, bin)
		} else if errors.Is(err, ErrUnsupported) && !errors.Is(refused, ErrUnsupported) {
			// no compiler: the reason for the refusal says more
			err = errors.Join(refused, err)
		}
	}
	if err != nil {
		return nil, err
	}
	p.built = Built{From: hit.String(), Elapsed: time.Since(start), Log: bin.Log}
	lib.core.session.debug(1, "built", "device", lib.core.info.ID, "program", key.unit.Name(), "from", p.built.From,
		"elapsed", p.built.Elapsed)
	return p, nil
}

// load loads a compiled unit. Without an error the caller has entered the device.
func (lib *programs) load(ctx context.Context, unit *source.Unit, bin kernelcache.Entry) (driver.Module, error) {
	if !lib.core.enter() {
		return nil, lib.core.closedError("program")
	}
	loaded := false
	defer func() { // also if the backend panics
		if !loaded {
			lib.core.leave()
		}
	}()
	m, err := lib.core.compiler.Load(ctx, unit, driver.Binary{Code: bin.Binary, Log: bin.Log})
	loaded = err == nil
	return m, err
}

// stale reports whether an error of Load is about the bytes and not about the device: other errors
// would come back with new bytes.
func stale(err error) bool { return errors.Is(err, ErrCorrupt) || errors.Is(err, driver.ErrNoKernel) }

// binary gets the compiled bytes of a unit from the cache.
func (lib *programs) binary(ctx context.Context, key programKey,
	flags []string) (kernelcache.Entry, kernelcache.Hit, error) {
	cache := lib.core.session.cache()
	lib.mu.Lock()
	cacheKey, ok := lib.keys[key]
	lib.mu.Unlock()
	if ok {
		if e, ok := cache.Lookup(cacheKey); ok {
			return e, kernelcache.Memory, nil
		}
	}
	// Before a look on disk or a compilation the key is computed again: the compiler may have been
	// replaced.
	cacheKey, err := lib.cacheKey(ctx, key, flags)
	if err != nil {
		if e, hit, ok := lib.prebuilt(key, flags, err); ok {
			return e, hit, nil
		}
		return kernelcache.Entry{}, 0, err
	}
	return cache.Get(ctx, cacheKey, func(ctx context.Context) (kernelcache.Entry, error) {
		bin, err := lib.core.compiler.Compile(ctx, key.unit, flags)
		if err != nil {
			return kernelcache.Entry{}, err
		}
		return lib.entry(key, flags, bin), nil
	})
}

// entry counts a compiled program, and makes what the cache keeps of it.
func (lib *programs) entry(key programKey, flags []string, bin driver.Binary) kernelcache.Entry {
	lib.compiles.Add(1)
	return kernelcache.Entry{Binary: bin.Code, Log: bin.Log, Label: lib.core.info.ID + " " + key.unit.Name(),
		Target: lib.targetKey(key, flags)}
}

// again drops a cached binary and compiles the unit again.
func (lib *programs) again(ctx context.Context, key programKey,
	flags []string) (kernelcache.Entry, kernelcache.Hit, error) {
	cacheKey, err := lib.cacheKey(ctx, key, flags)
	if err != nil {
		return kernelcache.Entry{}, 0, err
	}
	lib.core.session.cache().Evict(cacheKey)
	return lib.binary(ctx, key, flags)
}

// cacheKey computes the complete key of a unit on this device and notes it for the
// next time.
func (lib *programs) cacheKey(ctx context.Context, key programKey, flags []string) (kernelcache.Key, error) {
	identity, err := lib.core.compiler.Identity(ctx)
	if err != nil {
		return kernelcache.Key{}, err
	}
	k := lib.keyOf("identity", identity, key.unit, flags)
	lib.note(key, k)
	return k, nil
}

// Built says how the program was obtained and how long that took.
func (p *Program) Built() Built { return p.core.built }

// Unit returns the unit that the program was built from.
func (p *Program) Unit() *source.Unit { return p.core.key.unit }

// Kernel returns an entry point. An unknown name is an error that matches ErrNoKernel and lists the
// names that exist. A Kernel is valid while a Program of the unit is open on the device; it needs
// no Close.
func (p *Program) Kernel(name string) (*Kernel, error) {
	if p == nil || p.core == nil {
		return nil, fmt.Errorf("kernel %s: program is nil: %w", name, ErrInvalidArgument)
	}
	if p.closed.Load() || p.core.gone.Load() {
		return nil, p.core.device.error("kernel "+name, ErrClosed)
	}
	if c := p.core.device; c.isAbandoned() {
		return nil, c.lost()
	}
	return p.core.kernel(name)
}

func (p *programCore) kernel(name string) (*Kernel, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if k := p.kernels[name]; k != nil {
		return k, nil
	}
	unit, c := p.key.unit, p.device
	decl, ok := unit.Kernel(name)
	if !ok {
		var names []string
		for _, k := range unit.Kernels() {
			names = append(names, k.Name)
		}
		return nil, c.error("kernel "+name, fmt.Errorf("%s has %s: %w", unit.Name(), strings.Join(names, ", "),
			driver.ErrNoKernel))
	}
	k := &Kernel{program: p, drv: c.programs.native(unit, name, p.key.impl), decl: decl, id: decl.Name}
	if family := unit.Family(); family != "" && family != decl.Name {
		k.id = family + "/" + decl.Name
	}
	if own, ok := k.drv.(driver.Selective); ok && p.key.impl == Fastest {
		k.own, k.drv = own, nil
	}
	if k.drv == nil && p.module == nil {
		return nil, c.programs.noNative("kernel "+name, unit, *decl)
	}
	if k.drv == nil {
		var err error
		if k.drv, err = p.module.Kernel(name); err != nil {
			return nil, err
		}
	}
	k.info = k.drv.Info()
	if k.own != nil {
		k.info.Implementation += " or " + k.own.Info().Implementation
	}
	p.kernels[name] = k
	return k, nil
}

// Close releases this handle; the last Close unloads the program, after the work queued on the
// device is done. A graph keeps the programs of its kernels loaded. Closing twice does nothing.
func (p *Program) Close() error {
	if p == nil || p.core == nil || p.closed.Swap(true) {
		return nil
	}
	return p.core.release()
}

// retain keeps a program loaded. It fails once the last user is gone.
func (p *programCore) retain() bool {
	lib := &p.device.programs
	lib.mu.Lock()
	defer lib.mu.Unlock()
	if p.users == 0 || p.gone.Load() {
		return false
	}
	p.users++
	return true
}

// release drops one use; the last one unloads the program, after the work queued on the device is
// done.
func (p *programCore) release() error {
	c := p.device
	lib := &c.programs
	lib.mu.Lock()
	p.users--
	last := p.users == 0 && c.enter() // otherwise Close of the device unloads it
	if last {
		delete(lib.loaded, p.key)
		delete(lib.keys, p.key)
	}
	lib.mu.Unlock()
	if !last {
		return nil
	}
	defer c.leave()
	p.gone.Store(true)
	for _, s := range c.streams.list() {
		_ = s.passed(context.Background()) // its error belongs to the stream, which reports it
	}
	return p.unload()
}

func (p *programCore) unload() error {
	p.gone.Store(true)
	if p.module == nil {
		return nil
	}
	return p.module.Close()
}

// Kernel is one entry point of a program. It is safe for concurrent use, and must not be copied.
type Kernel struct {
	program *programCore
	drv     driver.Kernel
	own     driver.Selective // runs the launches that it accepts, or nil
	info    KernelInfo
	decl    *source.Kernel
	id      string // in Executions and events: family and entry point
	tally   driver.Tally
	offered atomic.Int32 // launches of which the session's tuner was told, or mostOffers
}

// Info describes the compiled kernel. If the device's own implementation runs some of the launches,
// Implementation names both; an Execution names the one that ran.
func (k *Kernel) Info() KernelInfo { return k.info }

// Name returns the name of the entry point.
func (k *Kernel) Name() string { return k.decl.Name }

// Unit returns the unit of which the kernel is an entry point.
func (k *Kernel) Unit() *source.Unit { return k.program.key.unit }

// Params returns the kernel's parameters.
func (k *Kernel) Params() []source.Param {
	if k == nil || k.decl == nil {
		return nil
	}
	return k.decl.Params
}

// String returns the kernel's signature: "saxpy(float a, global const float *x, ...)".
func (k *Kernel) String() string {
	parts := make([]string, len(k.decl.Params))
	for i, p := range k.decl.Params {
		parts[i] = p.Decl + " " + p.Name
	}
	return k.decl.Name + "(" + strings.Join(parts, ", ") + ")"
}
