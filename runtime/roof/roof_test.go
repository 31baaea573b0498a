package roof

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/concord-compute/concord/runtime"
	"github.com/concord-compute/concord/runtime/driver"
	"github.com/concord-compute/concord/runtime/profile"
	"github.com/concord-compute/concord/source"
)

// fake is a backend, its device, stream, event, program and kernel, whose work is done as soon as it is queued.
type fake struct {
	name     string // of the device, so that each test has a roof of its own
	allocErr func() error
	build    func() error
	missing  error // why there is no compiler
}

func (f *fake) Name() string { return "fake" }
func (f *fake) Probe(context.Context, *driver.Config) driver.Probe {
	return driver.Probe{State: driver.Available, Devices: []driver.Info{f.Info()}}
}
func (f *fake) Open(context.Context, int, *driver.Config) (driver.Device, error) {
	return device{f}, nil
}
func (f *fake) Info() driver.Info {
	return driver.Info{ID: "fake:0", Backend: "fake", Name: f.name, Kind: driver.Discrete, TotalMemory: 1 << 30,
		BaseAlign: 256, MaxGroupSize: 1024, LocalMemory: 1 << 15, Features: source.Portable}
}

type device struct{ *fake }

func (d device) Alloc(n int64, kind driver.MemoryKind) (driver.Memory, error) {
	return driver.Memory{Handle: 1, Size: n, Kind: kind}, d.allocErr()
}
func (d device) Free(driver.Memory) error                   { return nil }
func (d device) NewStream() (driver.Stream, error)          { return stream{}, nil }
func (d device) Close() error                               { return nil }
func (d device) Identity(context.Context) ([]string, error) { return []string{"fake"}, d.missing }
func (d device) Compile(context.Context, *source.Unit, []string) (driver.Binary, error) {
	return driver.Binary{}, d.build()
}
func (d device) Load(context.Context, *source.Unit, driver.Binary) (driver.Module, error) {
	return module{}, nil
}

type module struct{}

func (module) Kernel(string) (driver.Kernel, error) { return module{}, nil }
func (module) Info() driver.KernelInfo              { return driver.KernelInfo{} }
func (module) Close() error                         { return nil }

type stream struct{}

func (stream) Upload(context.Context, driver.Memory, []byte) error   { return nil }
func (stream) Download(context.Context, []byte, driver.Memory) error { return nil }
func (stream) Copy(_, _ driver.Memory) error                         { return nil }
func (stream) Fill(driver.Memory, []byte) error                      { return nil }
func (stream) Launch(*driver.Launch) error                           { return nil }
func (stream) Record(bool) (driver.Event, error)                     { return event{}, nil }
func (stream) Sync(context.Context) error                            { return nil }
func (stream) Wait(driver.Event) error                               { return nil }
func (stream) Err() error                                            { return nil }
func (stream) Close() error                                          { return nil }

type event struct{}

func (event) Done() (bool, error)                         { return true, nil }
func (event) Wait(context.Context) error                  { return nil }
func (event) Elapsed(driver.Event) (time.Duration, error) { return 0, nil }
func (event) Close() error                                { return nil }

// open returns the device of a fake.
func open(t *testing.T, f *fake) *runtime.Device {
	t.Helper()
	f.name = t.Name()
	if f.allocErr == nil {
		f.allocErr = func() error { return nil }
	}
	if f.build == nil {
		f.build = func() error { return nil }
	}
	s, err := runtime.New(runtime.Config{Backends: []driver.Backend{f}, CacheDir: "off"})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	d, err := s.Open(t.Context(), "fake:0")
	require.NoError(t, err)
	return d
}

// Concurrent calls measure once; errors and contexts that are done keep nothing.
func TestConcurrent(t *testing.T) {
	var fail error
	d := open(t, &fake{allocErr: func() error { return fail }})
	fail = runtime.ErrOutOfMemory
	_, err := Of(t.Context(), d)
	require.ErrorIs(t, err, runtime.ErrOutOfMemory)
	fail = nil
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = Of(ctx, d)
	require.ErrorIs(t, err, context.Canceled)
	require.Zero(t, d.Stats().Live, "nothing is left open")

	var wg sync.WaitGroup
	var got [16]profile.Roof
	for i := range got {
		wg.Go(func() {
			var err error
			got[i], err = Of(t.Context(), d)
			assert.NoError(t, err)
		})
	}
	wg.Wait()
	for _, r := range got {
		assert.Equal(t, got[0], r)
	}
	assert.Positive(t, got[0].MemoryGBs)
	assert.Positive(t, got[0].LaunchNs)
	assert.Zero(t, got[0].GFLOPS, "this device reports no times")
	assert.WithinDuration(t, time.Now(), got[0].Measured, time.Minute)
	assert.EqualValues(t, 1, d.Stats().Compiles)
	before := d.Stats().Launches
	fresh, err := Measure(t.Context(), d)
	require.NoError(t, err)
	assert.Greater(t, d.Stats().Launches, before)
	kept, err := Of(t.Context(), d)
	require.NoError(t, err)
	assert.Equal(t, fresh, kept)
	require.NoError(t, d.Close())
	_, err = Of(t.Context(), d)
	assert.ErrorIs(t, err, runtime.ErrClosed)
	_, err = Of(t.Context(), nil)
	assert.ErrorIs(t, err, runtime.ErrInvalidArgument)
}

// Without a compiler there are copies alone.
func TestWithoutCompiler(t *testing.T) {
	r, err := Of(t.Context(), open(t, &fake{missing: runtime.ErrUnsupported}))
	require.NoError(t, err)
	assert.Positive(t, r.MemoryGBs)
	assert.Zero(t, r.GFLOPS+r.DoubleGFLOPS+r.LaunchNs)
	_, bound := r.Limit(1, 1)
	assert.Equal(t, profile.UnknownBound, bound)
}

func TestBrokenCompiler(t *testing.T) {
	broken := errors.New("the compiler broke")
	_, err := Of(t.Context(), open(t, &fake{build: func() error { return broken }}))
	assert.ErrorIs(t, err, broken)
}
