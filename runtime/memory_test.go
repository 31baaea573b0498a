package runtime

import (
	goruntime "runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/concord-compute/concord/runtime/driver"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestAllocRefuses(t *testing.T) {
	b := &nullBackend{}
	_, d := open(t, b, Config{})
	for _, n := range []int{-1, -1 << 62} {
		_, err := d.Alloc(F32, n)
		assert.ErrorIs(t, err, ErrInvalidArgument)
	}
	_, err := d.Alloc(Type(99), 1)
	assert.ErrorIs(t, err, ErrInvalidArgument)
	for _, n := range []int{1 << 62, 1 << 40, 1 << 37} {
		_, err = d.Alloc(F64, n)
		assert.ErrorIs(t, err, ErrTooLarge)
	}
	assert.Zero(t, b.allocs.Load(), "the driver is not called")
	assert.Zero(t, d.Stats().Live)
}

func TestBudget(t *testing.T) {
	b := &nullBackend{}
	_, d := open(t, b, Config{MemoryLimit: 1000})
	x := buffer(t, d, U8, 600)
	_, err := d.Alloc(U8, 401)
	assert.ErrorIs(t, err, ErrBudget)
	assert.NotErrorIs(t, err, ErrOutOfMemory)
	require.NoError(t, x.Close())
	y := buffer(t, d, U8, 1000)
	assert.EqualValues(t, 1000, d.Stats().Live)
	require.NoError(t, y.Close())
	assert.Zero(t, d.Stats().Live)
	assert.EqualValues(t, 1000, d.Stats().Peak)
}

func TestOutOfMemoryRetriesOnce(t *testing.T) {
	var calls atomic.Int64
	fails := int64(1)
	b := &nullBackend{allocErr: func() error {
		if calls.Add(1) <= fails {
			return ErrOutOfMemory
		}
		return nil
	}}
	_, d := open(t, b, Config{})
	x, err := d.Alloc(F32, 10)
	require.NoError(t, err)
	assert.EqualValues(t, 2, calls.Load())
	fails, _ = 100, calls.Swap(0)
	_, err = d.Alloc(F32, 10)
	assert.ErrorIs(t, err, ErrOutOfMemory)
	assert.ErrorContains(t, err, "live 40 B in 1 buffers")
	assert.EqualValues(t, 2, calls.Load(), "exactly one retry")
	assert.EqualValues(t, 40, d.Stats().Live, "a failed get counts nothing")
	require.NoError(t, x.Close())
}

func TestCloseWaitsForWorkWithoutBlocking(t *testing.T) {
	b := &nullBackend{slow: new(atomic.Bool)}
	_, d := open(t, b, Config{})
	k := kernel(t, d, "axpy")
	x := buffer(t, d, F32, 10)
	view, err := x.Slice(2, 4)
	require.NoError(t, err)
	b.slow.Store(true)
	require.NoError(t, d.Stream().Launch(k, Items(4), float32(1), view, view, int32(4)))
	require.NoError(t, x.Close())
	assert.Zero(t, b.frees.Load(), "a view keeps the memory")
	_, err = x.Slice(0, 1)
	assert.ErrorIs(t, err, ErrClosed)
	require.NoError(t, view.Close())
	require.NoError(t, view.Close(), "twice is nothing")
	st := d.Stats()
	assert.Zero(t, b.frees.Load(), "queued work keeps the memory")
	assert.Zero(t, st.Live)
	assert.EqualValues(t, 40, st.Deferred)
	b.slow.Store(false)
	st = d.Stats()
	assert.EqualValues(t, 1, b.frees.Load())
	assert.Zero(t, st.Deferred)
	assert.EqualValues(t, 1, st.Frees)
}

// Every stream may use what Upload returns, so it has waited for the copy.
func TestUploadWaits(t *testing.T) {
	b := &nullBackend{syncErr: driver.ErrTimeout}
	_, d := open(t, b, Config{})
	_, err := Upload(t.Context(), d, []float32{1})
	assert.ErrorIs(t, err, driver.ErrTimeout)
	assert.Zero(t, d.Stats().Live)
}

func TestViews(t *testing.T) {
	_, d := open(t, &nullBackend{}, Config{})
	x := buffer(t, d, F32, 10)
	v, err := x.Slice(3, 5)
	require.NoError(t, err)
	w, err := v.Slice(1, 2)
	require.NoError(t, err)
	assert.EqualValues(t, 16, w.Memory().Offset, "views of views flatten")
	assert.EqualValues(t, 8, w.Memory().Size)
	assert.Equal(t, x.Memory().Handle, w.Memory().Handle)
	for _, c := range [][2]int{{-1, 2}, {-1, 0}, {0, -1}, {0, 6}, {5, 1}, {6, 0}, {1, 1 << 62}} {
		_, err := v.Slice(c[0], c[1])
		assert.ErrorIs(t, err, ErrBufferOverflow, "%v", c)
	}
	b, err := w.As(U8)
	require.NoError(t, err)
	assert.Equal(t, 8, b.Len())
	odd, err := b.Slice(1, 4)
	require.NoError(t, err)
	_, err = odd.As(F32)
	assert.ErrorIs(t, err, ErrInvalidArgument, "misaligned")
	assert.ErrorIs(t, d.Stream().Copy(x, v), ErrInvalidArgument, "overlap")
	var none *Buffer
	_, err = none.Slice(0, 1)
	assert.ErrorIs(t, err, ErrInvalidArgument)
	assert.NoError(t, none.Close())
}

func TestTransfersRefuse(t *testing.T) {
	s, d := open(t, &nullBackend{}, Config{})
	other, err := s.Open(t.Context(), "cuda:1")
	require.NoError(t, err)
	x, foreign := buffer(t, d, F32, 4), buffer(t, other, F32, 4)
	ctx := t.Context()
	assert.ErrorIs(t, Write(ctx, x, make([]float32, 5)), ErrBufferOverflow)
	assert.ErrorIs(t, Read(ctx, x, make([]float32, 5)), ErrBufferOverflow)
	assert.ErrorIs(t, Write(ctx, x, make([]int32, 1)), ErrInvalidArgument)
	assert.ErrorIs(t, Write[float32](ctx, nil, nil), ErrInvalidArgument)
	assert.ErrorIs(t, d.Stream().Write(ctx, x, -1, []byte{1}), ErrBufferOverflow)
	assert.ErrorIs(t, d.Stream().Write(ctx, foreign, 0, []byte{1}), ErrInvalidArgument)
	assert.ErrorIs(t, d.Stream().Copy(x, foreign), ErrInvalidArgument)
	assert.ErrorIs(t, d.Stream().Copy(x, buffer(t, d, I32, 4)), ErrInvalidArgument)
	assert.ErrorIs(t, d.Stream().Copy(x, buffer(t, d, F32, 5)), ErrBufferOverflow)
	assert.ErrorIs(t, d.Stream().Fill(x, []byte{1}), ErrInvalidArgument)
	assert.ErrorIs(t, d.Stream().Fill(x, int32(1)), ErrInvalidArgument)
	assert.ErrorIs(t, d.Stream().Wait(nil), ErrInvalidArgument)
	assert.ErrorIs(t, d.Stream().Wait(new(Event)), driver.ErrEventNotRecorded)
	_, err = new(Event).Elapsed(nil)
	assert.ErrorIs(t, err, driver.ErrEventNotRecorded)
	e, err := other.Stream().Record()
	require.NoError(t, err)
	assert.ErrorIs(t, d.Stream().Wait(e), ErrInvalidArgument)
	require.NoError(t, e.Close())
	require.NoError(t, e.Close())
	assert.ErrorIs(t, other.Stream().Wait(e), ErrClosed)
	assert.NoError(t, Read(ctx, x, make([]float32, 4)))
}

func TestForgottenBuffersAreFreedByTheNextCall(t *testing.T) {
	b := &nullBackend{}
	_, d := open(t, b, Config{})
	const n = 20
	for range n {
		buffer(t, d, F32, 10)
	}
	deadline := time.Now().Add(10 * time.Second)
	for d.Stats().Forgotten < n && time.Now().Before(deadline) {
		goruntime.GC()
		time.Sleep(time.Millisecond)
	}
	st := d.Stats()
	assert.EqualValues(t, n, st.Forgotten)
	assert.EqualValues(t, n, b.frees.Load())
	assert.Zero(t, st.Live)
}

func TestDeviceCloseFreesEverything(t *testing.T) {
	b := &nullBackend{}
	_, d := open(t, b, Config{})
	x := buffer(t, d, F32, 10)
	v, err := x.Slice(0, 1)
	require.NoError(t, err)
	require.NoError(t, d.Close())
	require.NoError(t, d.Close())
	assert.EqualValues(t, 1, b.frees.Load())
	require.NoError(t, v.Close())
	require.NoError(t, x.Close())
	assert.EqualValues(t, 1, b.frees.Load(), "freed exactly once")
}

// A budget that is just enough must do while others look at the accounts.
func TestBudgetUnderConcurrentDrains(t *testing.T) {
	_, d := open(t, &nullBackend{}, Config{MemoryLimit: 1000})
	stop := make(chan struct{})
	var wg sync.WaitGroup
	for range 2 {
		wg.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
					d.Stats()
				}
			}
		})
	}
	for range 2000 {
		b, err := d.Alloc(U8, 1000)
		require.NoError(t, err)
		require.NoError(t, d.Stream().Fill(b, uint8(1)))
		require.NoError(t, b.Close())
	}
	close(stop)
	wg.Wait()
}

func TestClosedStreamsAreForgotten(t *testing.T) {
	_, d := open(t, &nullBackend{}, Config{})
	b := buffer(t, d, U8, 10)
	for range 100 {
		s, err := d.NewStream()
		require.NoError(t, err)
		require.NoError(t, s.Fill(b, uint8(1)))
		require.NoError(t, s.Close())
	}
	assert.LessOrEqual(t, len(b.a.used), 1)
}

// Zero values are refused like nil, and leave no lock behind.
func TestZeroValues(t *testing.T) {
	_, d := open(t, &nullBackend{}, Config{})
	ctx := t.Context()
	good := buffer(t, d, F32, 4)
	var noDevice *Device
	var noBuffer *Buffer
	var noStream *Stream
	for what, call := range map[string]func() error{
		"alloc":       func() error { _, err := noDevice.Alloc(F32, 1); return err },
		"alloc zero":  func() error { _, err := (&Device{}).Alloc(F32, 1); return err },
		"upload":      func() error { _, err := Upload(ctx, noDevice, []float32{1}); return err },
		"new stream":  func() error { _, err := noDevice.NewStream(); return err },
		"program":     func() error { _, err := noDevice.Program(ctx, nil); return err },
		"sync":        func() error { return noDevice.Sync(ctx) },
		"run":         func() error { _, err := noDevice.Run(ctx, nil, Items(1)); return err },
		"open":        func() error { _, err := (*Session)(nil).Open(ctx, "cpu"); return err },
		"open zero":   func() error { _, err := new(Session).Open(ctx, "cpu"); return err },
		"write":       func() error { return Write(ctx, noBuffer, []float32{1}) },
		"write zero":  func() error { return Write(ctx, &Buffer{}, []float32{1}) },
		"read zero":   func() error { return d.Stream().Read(ctx, &Buffer{}, 0, []byte{1}) },
		"slice zero":  func() error { _, err := (&Buffer{}).Slice(0, 1); return err },
		"copy":        func() error { return d.Stream().Copy(good, noBuffer) },
		"no stream":   func() error { return noStream.Copy(good, good) },
		"zero stream": func() error { return new(Stream).Sync(ctx) },
		"launch":      func() error { return d.Stream().Launch(&Kernel{}, Items(1)) },
		"kernel":      func() error { _, err := (*Program)(nil).Kernel("k"); return err },
		"kernel zero": func() error { _, err := new(Program).Kernel("k"); return err },
	} {
		assert.ErrorIs(t, call(), ErrInvalidArgument, what)
	}
	assert.NoError(t, noDevice.Close())
	assert.NoError(t, (&Device{}).Close())
	assert.NoError(t, (&Buffer{}).Close())
	assert.NoError(t, noStream.Close())
	assert.NoError(t, new(Program).Close())
	assert.NoError(t, (*Session)(nil).Close())
	assert.NoError(t, d.Stream().Sync(ctx), "the stream is as before")
}

// A driver that panics must not leave its stream locked.
func TestDriverPanicLeavesNoLock(t *testing.T) {
	_, d := open(t, &nullBackend{}, Config{})
	b := buffer(t, d, F32, 4)
	s := d.Stream()
	assert.Panics(t, func() { _ = s.queue("test", func() error { panic("driver bug") }) })
	assert.NoError(t, s.Fill(b, float32(1)))
}
