package runtime

// A driver that does nothing: what the runtime itself costs and checks, without
// any backend.

import (
	"cmp"
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/concord-compute/concord/runtime/driver"
	"github.com/concord-compute/concord/source"
	"github.com/stretchr/testify/require"
)

// nullBackend has devices whose work is done as soon as it is queued. Its fields
// are what a test wants to go wrong.
type nullBackend struct {
	name     string
	describe driver.Description
	kind     driver.Kind
	devices  int
	probe    func(ctx context.Context) Probe
	openErr  error
	nothing  string // the call that returns nil and no error: "open" or "stream"
	allocErr func() error
	streamed func() // called while a stream is made
	compile  func(ctx context.Context) error
	slow     *atomic.Bool // events are not done while it is true

	allocs, frees, compiles, loads, launches atomic.Int64
	last                                     driver.Launch // the last launch, copied
	noCompiler                               bool
	pooled                                   bool // memory is kept for reuse, as it is by default
	full                                     bool // devices and streams have every optional interface
	captureErr                               error
	allocKindErr                             error // of memory that is neither the device's nor pinned
	syncErr                                  error
	allocHereErr                             error
	handle                                   atomic.Uint64
	transferErr                              func() error // of uploads and downloads
	optIn                                    int64        // LocalMemoryOptIn
	opened                                   atomic.Int64

	mu          sync.Mutex
	told        bool     // calls of streams are noted
	calls       []string // what streams were told
	refuseLoads int64    // the first so many fail
	refuseErr   error    // with this, or ErrCorrupt
	unload      func()   // called by modules that are closed
	loading     func()   // called by Load
	maxGroups   [3]int   // Info.MaxGroups
	change      func(i *Info)
	freeHereErr error
	stream      func(s *nullStream) driver.Stream // what streams are instead
	recordErr   func() error                      // of events
	syncing     func(ctx context.Context)         // called by Sync of streams
	closing     func()                            // called by Close of streams
}

func (b *nullBackend) Name() string { return b.name }

// Describe returns b.describe or, for a reserved name, what the backend of that name says.
func (b *nullBackend) Describe() driver.Description {
	d := b.describe
	for name, reserved := range driver.Reserved() {
		if name == b.name {
			d = reserved
		}
	}
	return d
}

func (b *nullBackend) Probe(ctx context.Context, _ *Config) Probe {
	if b.probe != nil {
		return b.probe(ctx)
	}
	p := Probe{State: driver.Available, DriverVersion: "1.2"}
	for i := range b.devices {
		p.Devices = append(p.Devices, b.info(i))
	}
	return p
}

func (b *nullBackend) info(i int) Info {
	kind := b.kind
	if kind == "" {
		kind = driver.Discrete
	}
	info := Info{ID: fmt.Sprintf("%s:%d", b.name, i), Backend: b.name, NativeIndex: i, Name: "null", Kind: kind,
		TotalMemory: 1 << 40, MaxAllocation: 1 << 38, MaxGroupSize: 1024, MaxGroupSizes: [3]int{1024, 1024, 64},
		MaxGroups:   b.maxGroups,
		LocalMemory: 48 << 10, LocalMemoryOptIn: b.optIn, Features: source.Portable, Suballocation: b.name == "cuda"}
	if b.change != nil {
		b.change(&info)
	}
	return info
}

func (b *nullBackend) Open(_ context.Context, i int, _ *Config) (driver.Device, error) {
	if b.openErr != nil {
		return nil, b.openErr
	}
	if b.nothing == "open" {
		return nil, nil
	}
	b.opened.Add(1)
	d := &nullDevice{b: b, i: i}
	if b.full {
		return &fullDevice{d}, nil
	}
	return d, nil
}

// note keeps the name of a call if the test wants to know.
func (b *nullBackend) note(call string) {
	if b.told {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.calls = append(b.calls, call)
	}
}

// heard returns the calls noted so far and forgets them.
func (b *nullBackend) heard() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	calls := b.calls
	b.calls = nil
	return calls
}

type nullDevice struct {
	b      *nullBackend
	i      int
	handle atomic.Uint64
}

func (d *nullDevice) Info() Info { return d.b.info(d.i) }
func (d *nullDevice) Alloc(n int64, kind driver.MemoryKind) (driver.Memory, error) {
	if kind == driver.Unified && d.b.allocKindErr != nil {
		return driver.Memory{}, d.b.allocKindErr
	}
	if d.b.allocErr != nil {
		if err := d.b.allocErr(); err != nil {
			return driver.Memory{}, err
		}
	}
	d.b.allocs.Add(1)
	return driver.Memory{Handle: d.handle.Add(1), Size: n, Kind: kind}, nil
}
func (d *nullDevice) Free(driver.Memory) error { d.b.frees.Add(1); return nil }
func (d *nullDevice) NewStream() (driver.Stream, error) {
	if d.b.streamed != nil {
		d.b.streamed()
	}
	if d.b.nothing == "stream" {
		return nil, nil
	}
	s := &nullStream{b: d.b}
	if d.b.stream != nil {
		return d.b.stream(s), nil
	}
	return s, nil
}
func (d *nullDevice) Close() error { return nil }
func (d *nullDevice) Identity(context.Context) ([]string, error) {
	if d.b.noCompiler {
		return nil, fmt.Errorf("install one: %w", ErrUnsupported)
	}
	return []string{"null 1"}, nil
}
func (d *nullDevice) Compile(ctx context.Context, u *source.Unit, _ []string) (driver.Binary, error) {
	d.b.compiles.Add(1)
	if d.b.compile != nil {
		if err := d.b.compile(ctx); err != nil {
			return driver.Binary{}, err
		}
	}
	return driver.Binary{Code: []byte(u.Name())}, nil
}
func (d *nullDevice) Load(_ context.Context, u *source.Unit, _ driver.Binary) (driver.Module, error) {
	if d.b.loads.Add(1) <= d.b.refuseLoads {
		if d.b.refuseErr != nil {
			return nil, d.b.refuseErr
		}
		return nil, fmt.Errorf("not by this driver: %w", ErrCorrupt)
	}
	if d.b.loading != nil {
		d.b.loading()
	}
	return nullModule{d.b, u}, nil
}

type nullModule struct {
	b *nullBackend
	u *source.Unit
}

func (m nullModule) Kernel(name string) (driver.Kernel, error) { return nullKernel{name}, nil }
func (m nullModule) Close() error {
	if m.b.unload != nil {
		m.b.unload()
	}
	return nil
}

type nullKernel struct{ name string }

func (k nullKernel) Info() KernelInfo {
	return KernelInfo{Name: k.name, Implementation: "null", Registers: 24, SpillBytes: 4}
}

type nullStream struct {
	b   *nullBackend
	err error
}

func (s *nullStream) Upload(context.Context, driver.Memory, []byte) error {
	s.b.note("upload")
	return s.transferred()
}
func (s *nullStream) Download(context.Context, []byte, driver.Memory) error {
	s.b.note("download")
	return s.transferred()
}
func (s *nullStream) transferred() error {
	if s.err == nil && s.b.transferErr != nil {
		return s.b.transferErr()
	}
	return s.err
}
func (s *nullStream) Copy(_, _ driver.Memory) error { s.b.note("copy"); return s.err }
func (s *nullStream) Fill(driver.Memory, []byte) error {
	s.b.note("fill")
	return s.err
}
func (s *nullStream) Launch(l *driver.Launch) error {
	s.b.note("launch")
	s.b.launches.Add(1)
	s.b.last.Kernel, s.b.last.Dim, s.b.last.Global, s.b.last.Local = l.Kernel, l.Dim, l.Global, l.Local
	s.b.last.Args = append(s.b.last.Args[:0], l.Args...)
	s.b.last.Data = append(s.b.last.Data[:0], l.Data...)
	return s.err
}
func (s *nullStream) Record(bool) (driver.Event, error) {
	if s.b.recordErr != nil {
		return nil, s.b.recordErr()
	}
	return nullEvent{s.b}, s.err
}
func (s *nullStream) Wait(driver.Event) error { return s.err }
func (s *nullStream) Sync(ctx context.Context) error {
	if s.b.syncing != nil {
		s.b.syncing(ctx)
	}
	if s.err == nil && s.b.syncErr != nil {
		return s.b.syncErr
	}
	return s.err
}
func (s *nullStream) Err() error { return s.err }
func (s *nullStream) Close() error {
	if s.b.closing != nil {
		s.b.closing()
	}
	return nil
}

type nullEvent struct{ b *nullBackend }

func (e nullEvent) Done() (bool, error)                         { return e.b.slow == nil || !e.b.slow.Load(), nil }
func (e nullEvent) Wait(context.Context) error                  { return nil }
func (e nullEvent) Elapsed(driver.Event) (time.Duration, error) { return 0, nil }
func (e nullEvent) Close() error                                { return nil }

const nullText = `kernel void axpy(float a, global const float *x, global float *y, int n) {
	int i = get_global_id(0);
	if (i < n) y[i] += a * x[i];
}
kernel void odd(global float4 *v, local float *tmp, uint u, ulong w, float2 pair, global void *any) { }
kernel __attribute__((reqd_work_group_size(8, 4, 1))) void sized(global int *p) { p[0] = 1; }
`

// open returns a session with one open device over a null backend.
func open(t testing.TB, b *nullBackend, cfg Config) (*Session, *Device) {
	t.Helper()
	if b.name == "" {
		b.name = "cuda"
	}
	if b.devices == 0 {
		b.devices = 2
	}
	if cfg.Backends == nil {
		cfg.Backends = []driver.Backend{b}
	}
	cfg.CacheDir = cmp.Or(cfg.CacheDir, "off")
	cfg.NoMemoryPool = !b.pooled
	s, err := New(cfg)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	d, err := s.Open(t.Context(), b.name+":0")
	require.NoError(t, err)
	return s, d
}

func kernel(t testing.TB, d *Device, name string) *Kernel {
	t.Helper()
	u, err := source.Parse(nullText, source.Options{Name: "null.cl"})
	require.NoError(t, err)
	p, err := d.Program(context.Background(), u)
	require.NoError(t, err)
	k, err := p.Kernel(name)
	require.NoError(t, err)
	return k
}

func buffer(t testing.TB, d *Device, typ Type, n int) *Buffer {
	t.Helper()
	b, err := d.Alloc(typ, n)
	require.NoError(t, err)
	return b
}
