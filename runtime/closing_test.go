package runtime

// What happens beside the end of a stream or a device.

import (
	"context"
	"errors"
	goruntime "runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/concord-compute/concord/runtime/driver"
	"github.com/concord-compute/concord/source"
)

// closeEvent is an event that tells when it is closed.
type closeEvent struct {
	nullEvent
	closed func()
}

func (e closeEvent) Close() error { e.closed(); return nil }

// closeBeside closes d, which has to wait for the caller, and tells closed what came of it.
func closeBeside(t *testing.T, d *Device, closed chan error) {
	go func() { closed <- d.Close() }()
	for !d.core.isClosed() {
		goruntime.Gosched()
	}
	select {
	case err := <-closed:
		assert.Fail(t, "the device is closed in the middle of a call")
		go func() { closed <- err }()
	case <-time.After(20 * time.Millisecond): // as long as it would take
	}
}

// A device is not closed while its driver makes memory or a stream; what comes of that is
// given back.
func TestMakeBesideDeviceClose(t *testing.T) {
	b := &nullBackend{}
	_, d := open(t, b, Config{})
	closed := make(chan error)
	b.allocErr = func() error { closeBeside(t, d, closed); return nil }
	_, err := d.Alloc(F32, 10)
	require.ErrorIs(t, err, ErrClosed)
	require.NoError(t, <-closed)
	assert.Equal(t, int64(1), b.frees.Load())

	b = &nullBackend{}
	_, d = open(t, b, Config{})
	b.streamed = func() { closeBeside(t, d, closed) }
	_, err = d.NewStream()
	require.ErrorIs(t, err, ErrClosed)
	require.NoError(t, <-closed)
}

// Memory whose last handle is closed during the device's Close: Close waits for the call that gives
// it back.
func TestFreeBesideDeviceClose(t *testing.T) {
	b := &nullBackend{full: true, slow: new(atomic.Bool)}
	_, d := open(t, b, Config{})
	x, err := d.Stream().Alloc(F32, 10)
	require.NoError(t, err)
	other, err := d.NewStream()
	require.NoError(t, err)
	b.slow.Store(true)
	require.NoError(t, other.Fill(x, float32(1)))
	closed := make(chan error)
	closes := 0
	x.a.ready = closeEvent{nullEvent{b}, func() { // free has the memory now, and does not hold the device
		if closes++; closes == 1 {
			closeBeside(t, d, closed)
		}
	}}
	require.NoError(t, x.Close())
	require.NoError(t, <-closed)
	assert.Equal(t, 1, closes)
	assert.Equal(t, int64(1), b.frees.Load(), "once")
}

// A call that waits for a stream which another call closes waits until the stream's work is done,
// and returns no error.
func TestWaitBesideStreamClose(t *testing.T) {
	waits := map[string]func(t *testing.T, d *Device, s *Stream, x *Buffer){
		"pool":   func(_ *testing.T, _ *Device, s *Stream, _ *Buffer) { s.work.Wait(1) },
		"passed": func(t *testing.T, _ *Device, s *Stream, _ *Buffer) { assert.NoError(t, s.passed(t.Context())) },
		"across": func(t *testing.T, d *Device, _ *Stream, x *Buffer) {
			assert.NoError(t, CopyAcross(t.Context(), buffer(t, d, F32, 10), x))
		},
	}
	for name, wait := range waits {
		t.Run(name, func(t *testing.T) {
			b := &nullBackend{}
			_, d := open(t, b, Config{})
			s, err := d.NewStream()
			require.NoError(t, err)
			x := buffer(t, d, F32, 10)
			require.NoError(t, s.Fill(x, float32(1)))
			begun, release := make(chan bool), make(chan bool)
			b.closing = func() {
				close(begun)
				<-release
			}
			var wg sync.WaitGroup
			wg.Go(func() { assert.NoError(t, s.Close()) })
			<-begun
			wg.Go(func() {
				for range 1000 {
					goruntime.Gosched()
				}
				close(release)
			})
			wait(t, d, s, x)
			assert.False(t, s.busy(), "its work is done")
			wg.Wait()
			b.closing = nil
		})
	}
}

// A closed stream is closed for all callers at the same time.
func TestClosedIsGone(t *testing.T) {
	_, d := open(t, &nullBackend{}, Config{})
	for range 2000 {
		s, err := d.NewStream()
		require.NoError(t, err)
		begun := make(chan bool)
		var gone bool
		var wg sync.WaitGroup
		wg.Go(func() {
			close(begun)
			for closed := false; !closed; {
				s.mu.Lock()
				closed, gone = s.closed, s.gone.Load()
				s.mu.Unlock()
			}
		})
		<-begun
		require.NoError(t, s.Close())
		wg.Wait()
		require.True(t, gone)
	}
}

// Memory that could not be filled waits for the stream that was to fill it.
func TestFillThatFailsOnAStream(t *testing.T) {
	b := &nullBackend{pooled: true, name: "other", slow: new(atomic.Bool), syncErr: errors.New("broken")}
	_, d := open(t, b, Config{MemoryFill: driver.FillZero})
	s, err := d.NewStream()
	require.NoError(t, err)
	b.slow.Store(true)
	_, err = s.Alloc(F32, 10)
	assert.ErrorIs(t, err, b.syncErr)
	assert.Positive(t, d.Stats().Memory.Waiting, "the fill may still run")
	b.slow.Store(false)
	assert.Zero(t, d.Stats().Memory.Waiting)
	b.syncErr = nil
}

// A stream that was reset has another stream of the driver.
func TestReset(t *testing.T) {
	b := &nullBackend{full: true, told: true, devices: 1}
	_, d := open(t, b, Config{})
	s, err := d.NewStream()
	require.NoError(t, err)
	require.NoError(t, s.Fill(buffer(t, d, F32, 1), float32(1)))
	old := s.drv.(*fullStream)
	old.err = ErrLaunch
	assert.ErrorIs(t, s.Fill(buffer(t, d, F32, 1), float32(1)), ErrLaunch)
	var wg sync.WaitGroup
	for range 4 { // while others look at the stream
		wg.Go(func() { _, _, _ = s.Err(), s.Driver(), s.busy() })
	}
	require.NoError(t, s.Reset())
	wg.Wait()
	require.NoError(t, s.Err())
	assert.NotSame(t, old, s.Driver())
	require.NoError(t, s.Fill(buffer(t, d, F32, 1), float32(1)))
	assert.False(t, s.failed() != nil)
	s.core.noticed(ErrDeviceLost)
	assert.ErrorIs(t, s.Reset(), ErrDeviceLost)
}

// Close of a device waits for a stream that another call is closing.
func TestDeviceWaitsForAStreamClose(t *testing.T) {
	b := &nullBackend{}
	_, d := open(t, b, Config{})
	began, gate := make(chan struct{}), make(chan struct{})
	s := d.core.streams.register(&Stream{core: d.core, drv: &slowlyClosed{nullStream{b: b}, began, gate}})
	closedStream := make(chan error, 1)
	go func() { closedStream <- s.Close() }()
	<-began
	closed := make(chan error, 1)
	go func() { closed <- d.Close() }()
	select {
	case <-closed:
		assert.Fail(t, "the device is closed while the work of a stream runs")
	case <-time.After(20 * time.Millisecond):
	}
	close(gate)
	require.NoError(t, <-closedStream)
	require.NoError(t, <-closed)
}

// slowlyClosed is a stream whose Close waits.
type slowlyClosed struct {
	nullStream
	began, gate chan struct{}
}

func (s *slowlyClosed) Close() error {
	close(s.began)
	<-s.gate
	return nil
}

// A program is not loaded on a device that was closed while it was compiled, and a device
// is not closed while one is loaded.
func TestLoadBesideDeviceClose(t *testing.T) {
	b := &nullBackend{}
	_, d := open(t, b, Config{})
	u, err := source.Parse(nullText, source.Options{Name: "null.cl"})
	require.NoError(t, err)
	loads := b.loads.Load()
	closed := make(chan error)
	b.compile = func(context.Context) error { return d.Close() }
	_, err = d.Program(t.Context(), u)
	require.ErrorIs(t, err, ErrClosed)
	assert.Equal(t, loads, b.loads.Load())

	b = &nullBackend{}
	_, d = open(t, b, Config{})
	b.loading = func() { closeBeside(t, d, closed) }
	_, err = d.Program(t.Context(), u)
	require.ErrorIs(t, err, ErrClosed)
	require.NoError(t, <-closed)
}
