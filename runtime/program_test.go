package runtime

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/concord-compute/concord/runtime/driver"
	"github.com/concord-compute/concord/source"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestProgramIsBuiltOnce(t *testing.T) {
	b := &nullBackend{}
	s, d := open(t, b, Config{})
	u, err := source.Parse(nullText, source.Options{Name: "null.cl"})
	require.NoError(t, err)
	var wg sync.WaitGroup
	for range 32 {
		wg.Go(func() {
			p, err := d.Program(context.Background(), u)
			if assert.NoError(t, err) {
				_, err = p.Kernel("axpy")
				assert.NoError(t, err)
			}
		})
	}
	wg.Wait()
	assert.EqualValues(t, 1, b.compiles.Load())
	other, err := s.Open(t.Context(), "cuda:1")
	require.NoError(t, err)
	p, err := other.Program(t.Context(), u)
	require.NoError(t, err)
	assert.Equal(t, "memory", p.Built().From, "an equal device shares the binary")
	_, err = d.Program(t.Context(), u, ProgramOptions{Flags: []string{"-x"}})
	require.NoError(t, err)
	assert.EqualValues(t, 2, b.compiles.Load(), "options are part of the key")
}

func TestProgramCloses(t *testing.T) {
	b := &nullBackend{}
	_, d := open(t, b, Config{})
	k := kernel(t, d, "axpy")
	p := &Program{core: k.program}
	q, err := d.Program(t.Context(), p.Unit())
	require.NoError(t, err)
	x := buffer(t, d, F32, 1)
	require.NoError(t, p.Close())
	require.NoError(t, p.Close(), "closing one twice leaves the other")
	require.NoError(t, d.Stream().Launch(k, Items(1), float32(1), x, x, int32(1)))
	require.NoError(t, q.Close())
	assert.ErrorIs(t, d.Stream().Launch(k, Items(1), float32(1), x, x, int32(1)), ErrClosed)
	_, err = q.Kernel("axpy")
	assert.ErrorIs(t, err, ErrClosed)
	again, err := d.Program(t.Context(), p.Unit())
	require.NoError(t, err)
	assert.Equal(t, "memory", again.Built().From)
	assert.EqualValues(t, 2, b.loads.Load())
}

func TestProgramRefuses(t *testing.T) {
	b := &nullBackend{}
	_, d := open(t, b, Config{})
	_, err := d.Program(t.Context(), nil)
	assert.ErrorIs(t, err, ErrInvalidArgument)
	u, err := source.Parse(nullText, source.Options{Name: "null.cl"})
	require.NoError(t, err)
	_, err = d.Program(t.Context(), u, ProgramOptions{Implementation: Native})
	assert.ErrorIs(t, err, ErrUnsupported)

	build := &BuildError{Source: "null.cl", Target: "cuda:0", Log: "null.cl:3: error: no"}
	fails := true
	b.compile = func(context.Context) error {
		if fails {
			return build
		}
		return nil
	}
	bad, err := source.Parse(nullText+" ", source.Options{Name: "bad.cl"})
	require.NoError(t, err)
	for range 2 {
		_, err = d.Program(t.Context(), bad)
		assert.ErrorIs(t, err, ErrCompile)
		var be *BuildError
		require.ErrorAs(t, err, &be)
		assert.Equal(t, build.Log, be.Log)
	}
	fails = false
	p, err := d.Program(t.Context(), u)
	require.NoError(t, err, "a failed compile changes nothing")
	_, err = p.Kernel("missing")
	assert.ErrorIs(t, err, ErrCompile)
	assert.ErrorContains(t, err, "axpy, odd, sized", "the entry points that are there")
}

func TestProgramWithoutCompiler(t *testing.T) {
	_, d := open(t, &nullBackend{noCompiler: true}, Config{})
	u, err := source.Parse(nullText, source.Options{})
	require.NoError(t, err)
	_, err = d.Program(t.Context(), u)
	assert.ErrorIs(t, err, ErrUnsupported)
	assert.ErrorContains(t, err, "install one")
}

func TestStreamFailureIsTold(t *testing.T) {
	_, d := open(t, &nullBackend{}, Config{})
	s, err := d.NewStream()
	require.NoError(t, err)
	failure := &OpError{Device: "cuda:0", Op: "launch axpy", Err: ErrLaunch}
	s.drv.(*nullStream).err = failure
	x := buffer(t, d, F32, 1)
	for _, err := range []error{s.Sync(t.Context()), s.Err(), s.Copy(x, x), s.Write(t.Context(), x, 0, []byte{1}),
		s.Launch(kernel(t, d, "axpy"), Items(1), float32(1), x, x, 1)} {
		assert.Same(t, failure, err)
	}
	assert.NoError(t, s.Close())
	assert.NoError(t, d.Stream().Sync(t.Context()), "other streams go on")
}

func TestRecord(t *testing.T) {
	_, d := open(t, &nullBackend{}, Config{})
	x := buffer(t, d, F32, 1)
	rec, err := d.Stream().Run(t.Context(), kernel(t, d, "axpy"), Items(1), float32(1), x, x, 1)
	require.NoError(t, err)
	assert.True(t, rec.GPUExecuted)
	assert.Equal(t, "axpy", rec.KernelID)
}

// What is wrong with the device is not cured by new bytes.
func TestProgramThatDoesNotLoadForNow(t *testing.T) {
	b := &nullBackend{}
	s, d := open(t, b, Config{})
	u := kernel(t, d, "axpy").program.key.unit
	other, err := s.Open(t.Context(), "cuda:1")
	require.NoError(t, err)
	p, err := other.Program(t.Context(), u)
	require.NoError(t, err)
	require.NoError(t, p.Close())
	compiled := b.compiles.Load()
	for _, want := range []error{ErrOutOfMemory, driver.ErrTimeout, ErrDeviceLost} {
		b.refuseLoads, b.refuseErr = 1<<40, want
		_, err = other.Program(t.Context(), u)
		assert.ErrorIs(t, err, want)
		assert.Equal(t, compiled, b.compiles.Load(), "%v", want)
	}
}

// A device that is closed waits for a program that is being unloaded.
func TestDeviceWaitsForAnUnload(t *testing.T) {
	began, gate := make(chan struct{}), make(chan struct{})
	b := &nullBackend{}
	_, d := open(t, b, Config{})
	u, err := source.Parse(nullText, source.Options{Name: "null.cl"})
	require.NoError(t, err)
	p, err := d.Program(t.Context(), u)
	require.NoError(t, err)
	b.unload = func() { close(began); <-gate }
	go func() { _ = p.Close() }()
	<-began
	closed := make(chan error, 1)
	go func() { closed <- d.Close() }()
	select {
	case err := <-closed:
		closed <- err
		assert.Fail(t, "the device is gone while a program of it is unloaded")
	case <-time.After(20 * time.Millisecond):
	}
	close(gate)
	assert.NoError(t, <-closed)
}

func TestProgramThatDoesNotLoadIsBuiltAnew(t *testing.T) {
	b := &nullBackend{}
	s, d := open(t, b, Config{})
	u := kernel(t, d, "axpy").program.key.unit
	other, err := s.Open(t.Context(), "cuda:1")
	require.NoError(t, err)
	b.refuseLoads = b.loads.Load() + 1
	p, err := other.Program(t.Context(), u)
	require.NoError(t, err)
	assert.Equal(t, "compiled", p.Built().From)
	assert.EqualValues(t, 2, b.compiles.Load())
	require.NoError(t, p.Close())
	b.refuseLoads = 1 << 40
	_, err = other.Program(t.Context(), u)
	assert.ErrorIs(t, err, ErrCorrupt, "once is enough")
	assert.EqualValues(t, 3, b.compiles.Load())
}
