package managed

// A driver that does nothing but note what it is told.

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/concord-compute/concord/runtime"
	"github.com/concord-compute/concord/runtime/driver"
	"github.com/concord-compute/concord/source"
	"github.com/stretchr/testify/require"
)

// nullBackend has devices whose work is done as soon as it is queued. Its fields
// are what a test wants to go wrong.
type nullBackend struct {
	full         bool         // the host sees memory, and streams copy from and to pinned memory
	told         bool         // calls of streams are noted
	pooled       bool         // memory is kept for reuse, as it is by default
	slow         *atomic.Bool // events are not done while it is true
	allocKindErr error        // of unified memory
	transferErr  func() error // of uploads and downloads
	recordErr    error        // of events
	syncing      func(ctx context.Context)

	mu    sync.Mutex
	calls []string
	last  driver.Launch
	made  []*fakeStream
}

func (b *nullBackend) Name() string { return "cuda" }

func (b *nullBackend) Probe(context.Context, *runtime.Config) runtime.Probe {
	return runtime.Probe{State: driver.Available, Devices: []runtime.Info{b.info(0), b.info(1)}}
}

func (b *nullBackend) info(i int) runtime.Info {
	return runtime.Info{ID: fmt.Sprintf("cuda:%d", i), Backend: "cuda", NativeIndex: i, Name: "null",
		Kind:        driver.Discrete,
		TotalMemory: 1 << 40, MaxAllocation: 1 << 38, MaxGroupSize: 1024, MaxGroupSizes: [3]int{1024, 1024, 64},
		LocalMemory: 48 << 10, Features: source.Portable, Suballocation: true}
}

func (b *nullBackend) Open(_ context.Context, i int, _ *runtime.Config) (driver.Device, error) {
	d := &fakeDevice{b: b, i: i}
	if b.full {
		return &fullDevice{d}, nil
	}
	return d, nil
}

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

type fakeDevice struct {
	b      *nullBackend
	i      int
	handle atomic.Uint64
}

func (d *fakeDevice) Info() runtime.Info { return d.b.info(d.i) }
func (d *fakeDevice) Alloc(n int64, kind driver.MemoryKind) (driver.Memory, error) {
	if kind == driver.Unified && d.b.allocKindErr != nil {
		return driver.Memory{}, d.b.allocKindErr
	}
	return driver.Memory{Handle: d.handle.Add(1), Size: n, Kind: kind}, nil
}
func (d *fakeDevice) Free(driver.Memory) error { return nil }
func (d *fakeDevice) NewStream() (driver.Stream, error) {
	s := &fakeStream{b: d.b}
	d.b.mu.Lock()
	defer d.b.mu.Unlock()
	d.b.made = append(d.b.made, s)
	if d.b.full {
		return fullStream{s}, nil
	}
	return s, nil
}
func (d *fakeDevice) Close() error                               { return nil }
func (d *fakeDevice) Identity(context.Context) ([]string, error) { return []string{"null 1"}, nil }
func (d *fakeDevice) Compile(_ context.Context, u *source.Unit, _ []string) (driver.Binary, error) {
	return driver.Binary{Code: []byte(u.Name())}, nil
}
func (d *fakeDevice) Load(context.Context, *source.Unit, driver.Binary) (driver.Module, error) {
	return fakeModule{}, nil
}

type fullDevice struct{ *fakeDevice }

// HostBytes has no view of the device's own memory.
func (d *fullDevice) HostBytes(m driver.Memory) ([]byte, bool) {
	if m.Kind == driver.OnDevice {
		return nil, false
	}
	return make([]byte, m.Size), true
}

type fakeModule struct{}

func (fakeModule) Kernel(name string) (driver.Kernel, error) { return fakeKernel{name}, nil }
func (fakeModule) Close() error                              { return nil }

type fakeKernel struct{ name string }

func (k fakeKernel) Info() runtime.KernelInfo {
	return runtime.KernelInfo{Name: k.name, Implementation: "null"}
}

type fakeStream struct {
	b   *nullBackend
	err error
}

func (s *fakeStream) queued(call string) error { s.b.note(call); return s.err }
func (s *fakeStream) transferred(call string) error {
	s.b.note(call)
	if s.err == nil && s.b.transferErr != nil {
		return s.b.transferErr()
	}
	return s.err
}
func (s *fakeStream) Upload(context.Context, driver.Memory, []byte) error {
	return s.transferred("upload")
}
func (s *fakeStream) Download(context.Context, []byte, driver.Memory) error {
	return s.transferred("download")
}
func (s *fakeStream) Copy(_, _ driver.Memory) error    { return s.queued("copy") }
func (s *fakeStream) Fill(driver.Memory, []byte) error { return s.queued("fill") }
func (s *fakeStream) Launch(l *driver.Launch) error {
	s.b.mu.Lock()
	s.b.last.Args = append(s.b.last.Args[:0], l.Args...)
	s.b.mu.Unlock()
	return s.queued("launch")
}
func (s *fakeStream) Record(bool) (driver.Event, error) {
	if s.b.recordErr != nil {
		return nil, s.b.recordErr
	}
	return fakeEvent{s.b}, s.err
}
func (s *fakeStream) Wait(driver.Event) error { return s.queued("wait") }
func (s *fakeStream) Sync(ctx context.Context) error {
	if s.b.syncing != nil {
		s.b.syncing(ctx)
	}
	return s.err
}
func (s *fakeStream) Err() error   { return s.err }
func (s *fakeStream) Close() error { return nil }

// fullStream copies pinned memory on its own, and moves unified memory.
type fullStream struct{ *fakeStream }

func (s fullStream) UploadPinned(_, _ driver.Memory) error   { return s.queued("upload pinned") }
func (s fullStream) DownloadPinned(_, _ driver.Memory) error { return s.queued("download pinned") }
func (s fullStream) Prefetch(_ driver.Memory, toHost bool) error {
	return s.queued(fmt.Sprintf("prefetch %v", toHost))
}

type fakeEvent struct{ b *nullBackend }

func (e fakeEvent) Done() (bool, error)                         { return e.b.slow == nil || !e.b.slow.Load(), nil }
func (e fakeEvent) Wait(context.Context) error                  { return nil }
func (e fakeEvent) Elapsed(driver.Event) (time.Duration, error) { return 0, nil }
func (e fakeEvent) Close() error                                { return nil }

const fakeText = `kernel void axpy(float a, global const float *x, global float *y, int n) {
	int i = get_global_id(0);
	if (i < n) y[i] += a * x[i];
}
`

// open returns a session with one open device over a null backend.
func open(t testing.TB, b *nullBackend, cfg runtime.Config) (*runtime.Session, *runtime.Device) {
	t.Helper()
	cfg.Backends, cfg.CacheDir, cfg.NoMemoryPool = []driver.Backend{b}, "off", !b.pooled
	s, err := runtime.New(cfg)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	d, err := s.Open(t.Context(), "cuda:0")
	require.NoError(t, err)
	return s, d
}

func kernel(t testing.TB, d *runtime.Device, name string) *runtime.Kernel {
	t.Helper()
	u, err := source.Parse(fakeText, source.Options{Name: "null.cl"})
	require.NoError(t, err)
	p, err := d.Program(t.Context(), u)
	require.NoError(t, err)
	k, err := p.Kernel(name)
	require.NoError(t, err)
	return k
}

func buffer(t testing.TB, d *runtime.Device, typ runtime.Type, n int) *runtime.Buffer {
	t.Helper()
	b, err := d.Alloc(typ, n)
	require.NoError(t, err)
	return b
}
