//go:build cgo && opencl && (linux || darwin)

package opencl

import (
	"context"
	goruntime "runtime"
	"testing"
	"time"
	"unsafe"

	"github.com/go-gl/cl/v1.2/cl"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/concord-compute/concord/runtime/driver"
)

// gate is an event that the test controls: work after it waits until the test lets it continue or
// fail.
type gate struct {
	t    *testing.T
	user cl.Event
	*event
	opened bool
}

func newGate(t *testing.T, s *stream) *gate {
	var code cl.ErrorCode
	user := cl.CreateUserEvent(s.d.context, &code)
	require.Equal(t, cl.SUCCESS, code)
	// The handle is the first word of the binding's struct.
	g := &gate{t: t, user: user, event: &event{s: s, e: *(*clEvent)(unsafe.Pointer(&user))}}
	t.Cleanup(func() { g.open(0) })
	return g
}

func (g *gate) open(status int32) {
	if !g.opened {
		g.opened = true
		assert.Equal(g.t, cl.SUCCESS, cl.SetUserEventStatus(g.user, status))
	}
}

func TestEvents(t *testing.T) {
	d := open(t)
	s := newStream(t, d)
	k := kernelOf(t, load(t, d, programText), "set")
	out := alloc(t, d, 4*16)
	before, err := s.Record(true)
	require.NoError(t, err)
	for i := range 50 {
		require.NoError(t, s.Launch(launch(k, 16, 4, out, int32(i))))
	}
	after, err := s.Record(true)
	require.NoError(t, err)
	untimed, err := s.Record(false)
	require.NoError(t, err)
	require.NoError(t, untimed.Wait(t.Context()))
	require.NoError(t, after.Wait(context.Background()))
	for _, e := range []driver.Event{before, after, untimed} {
		done, err := e.Done()
		require.NoError(t, err)
		assert.True(t, done)
	}
	took, err := after.Elapsed(before)
	require.NoError(t, err)
	assert.Positive(t, took)
	assert.Less(t, took, time.Minute)
	t.Logf("50 launches in %v of device time", took)
	back, err := before.Elapsed(after)
	require.NoError(t, err)
	assert.LessOrEqual(t, back, time.Duration(0))
	_, err = untimed.Elapsed(before)
	assert.ErrorIs(t, err, driver.ErrTimingDisabled)
	_, err = after.Elapsed(untimed)
	assert.ErrorIs(t, err, driver.ErrTimingDisabled)

	for _, e := range []driver.Event{before, after, untimed} {
		require.NoError(t, e.Close())
		require.NoError(t, e.Close())
	}
	_, err = after.Done()
	assert.ErrorIs(t, err, driver.ErrClosed)
	assert.ErrorIs(t, after.Wait(t.Context()), driver.ErrClosed)
	assert.ErrorIs(t, s.Wait(after), driver.ErrClosed)
}

// TestElapsedIsDeviceTime compares with the wall-clock time, with a wide margin because the machine
// may be busy.
func TestElapsedIsDeviceTime(t *testing.T) {
	d := open(t)
	s := newStream(t, d)
	k := kernelOf(t, load(t, d, `kernel void spin(global int *p, int n) {
  uint x = p[get_global_id(0)];
  for (int i = 0; i < n; i++) x = x * 1664525u + 1013904223u;
  p[get_global_id(0)] = x;
}`), "spin")
	const items = 1 << 13 // many, as Mesa's llvmpipe ends each loop after 2^16 rounds
	out := alloc(t, d, 4*items)
	upload(t, s, out, make([]int32, items))
	run := func(n int32) (device, wall time.Duration) {
		start := time.Now()
		a, err := s.Record(true)
		require.NoError(t, err)
		require.NoError(t, s.Launch(launch(k, items, 64, out, n)))
		b, err := s.Record(true)
		require.NoError(t, err)
		require.NoError(t, b.Wait(t.Context()))
		wall = time.Since(start)
		device, err = b.Elapsed(a)
		require.NoError(t, err)
		require.NoError(t, a.Close())
		require.NoError(t, b.Close())
		return device, wall
	}
	run(1)
	device, wall := run(60_000)
	t.Logf("device %v, wall %v", device, wall)
	assert.Greater(t, device, wall/4)
	assert.Less(t, device, wall*5/4)
}

// TestWaitAcrossStreams lets one stream wait for another.
func TestWaitAcrossStreams(t *testing.T) {
	d := open(t)
	a, b := newStream(t, d), newStream(t, d)
	k := kernelOf(t, load(t, d, programText), "set")
	out := alloc(t, d, 4*16)
	g := newGate(t, a)
	require.NoError(t, a.Wait(g.event))
	require.NoError(t, a.Launch(launch(k, 16, 4, out, int32(1))))
	first, err := a.Record(false)
	require.NoError(t, err)
	defer first.Close()
	require.NoError(t, b.Wait(first))
	require.NoError(t, b.Launch(launch(k, 16, 4, out, int32(2))))
	second, err := b.Record(false)
	require.NoError(t, err)
	defer second.Close()
	time.Sleep(20 * time.Millisecond)
	for _, e := range []driver.Event{first, second} {
		done, err := e.Done()
		require.NoError(t, err)
		assert.False(t, done, "behind the gate")
	}
	g.open(0)
	require.NoError(t, second.Wait(t.Context()))
	done, err := first.Done()
	require.NoError(t, err)
	assert.True(t, done)
	assert.EqualValues(t, 2, download[int32](t, b, out)[7])
}

// TestContexts ends every kind of wait by a context, and checks that the work goes on and that no
// goroutine stays.
func TestContexts(t *testing.T) {
	d := open(t)
	s := newStream(t, d)
	k := kernelOf(t, load(t, d, programText), "set")
	out := alloc(t, d, 4*16)
	big := alloc(t, d, stageLimit+1)
	require.NoError(t, s.Sync(t.Context()))
	goroutines := goruntime.NumGoroutine()

	g := newGate(t, s)
	require.NoError(t, s.Wait(g.event))
	require.NoError(t, s.Launch(launch(k, 16, 4, out, int32(3))))
	e, err := s.Record(false)
	require.NoError(t, err)
	defer e.Close()
	buf := make([]byte, stageLimit+1)
	for name, f := range map[string]func(ctx context.Context) error{
		"sync":     s.Sync,
		"event":    e.Wait,
		"download": func(ctx context.Context) error { return s.Download(ctx, buf[:64], out) },
		"upload":   func(ctx context.Context) error { return s.Upload(ctx, big, buf) },
	} {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
		assert.ErrorIs(t, f(ctx), context.DeadlineExceeded, name)
		assert.ErrorIs(t, f(ctx), context.DeadlineExceeded, name)
		cancel()
	}
	require.NoError(t, s.Upload(t.Context(), view(big, 0, 4), []byte{1, 2, 3, 4}), "a small upload does not wait")
	assert.NoError(t, s.Err())
	g.open(0)
	require.NoError(t, s.Sync(t.Context()))
	assert.EqualValues(t, 3, download[int32](t, s, out)[15])
	assert.Equal(t, []byte{1, 2, 3, 4}, download[byte](t, s, view(big, 0, 4)))
	for range 500 {
		if goruntime.NumGoroutine() <= goroutines {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Errorf("%d goroutines, %d before", goruntime.NumGoroutine(), goroutines)
}

// TestStickyFailure makes work fail after it was queued.
func TestStickyFailure(t *testing.T) {
	d := open(t)
	s, other := newStream(t, d), newStream(t, d)
	k := kernelOf(t, load(t, d, programText), "set")
	out := alloc(t, d, 4*16)
	require.NoError(t, s.Launch(launch(k, 16, 4, out, int32(1))))
	fine, err := s.Record(false)
	require.NoError(t, err)
	defer fine.Close()

	g := newGate(t, s)
	require.NoError(t, s.Wait(g.event))
	require.NoError(t, s.Launch(launch(k, 16, 4, out, int32(2))))
	late, err := s.Record(false)
	require.NoError(t, err)
	defer late.Close()
	require.NoError(t, fine.Wait(t.Context()))
	assert.NoError(t, s.Err())
	g.open(int32(cl.OUT_OF_RESOURCES))

	err = s.Sync(t.Context())
	require.Error(t, err)
	assert.ErrorIs(t, err, driver.ErrLaunch)
	assert.Regexp(t, `opencl:0: (wait for an event|launch set): CL_`, err.Error())
	buf := make([]byte, 64)
	_, recordErr := s.Record(false)
	for name, again := range map[string]error{
		"err":      s.Err(),
		"sync":     s.Sync(context.Background()),
		"launch":   s.Launch(launch(k, 16, 4, out, int32(3))),
		"upload":   s.Upload(t.Context(), out, buf),
		"download": s.Download(context.Background(), buf, out),
		"copy":     s.Copy(view(out, 0, 4), view(out, 8, 4)),
		"fill":     s.Fill(out, []byte{1}),
		"wait":     s.Wait(fine),
		"record":   recordErr,
		"event":    late.Wait(t.Context()),
	} {
		assert.Equal(t, err, again, name)
	}
	done, err := fine.Done()
	assert.NoError(t, err, "earlier work did not fail")
	assert.True(t, done)

	require.NoError(t, other.Launch(launch(k, 16, 4, out, int32(9))), "other streams go on")
	assert.EqualValues(t, 9, download[int32](t, other, out)[3])
}

// TestErrNeverWaits calls Err while the queue is blocked.
func TestErrNeverWaits(t *testing.T) {
	d := open(t)
	s := newStream(t, d)
	g := newGate(t, s)
	require.NoError(t, s.Wait(g.event))
	start := time.Now()
	assert.NoError(t, s.Err())
	assert.Less(t, time.Since(start), time.Second)
	g.open(0)
}

func TestLostDevice(t *testing.T) {
	d := open(t)
	s, other := newStream(t, d), newStream(t, d)
	s.mu.Lock()
	s.fail(0, "launch wild", codeNVIDIAFault)
	s.mu.Unlock()
	for _, err := range []error{s.Err(), other.Err(), other.Sync(t.Context()),
		other.Fill(driver.Memory{Size: 1}, []byte{0})} {
		require.ErrorIs(t, err, driver.ErrDeviceLost)
		assert.Contains(t, err.Error(), "launch wild")
	}
	_, err := d.NewStream()
	assert.ErrorIs(t, err, driver.ErrDeviceLost)
	_, err = d.Alloc(4, driver.OnDevice)
	assert.ErrorIs(t, err, driver.ErrDeviceLost)
	d.cause.Store(nil)
}

func TestClose(t *testing.T) {
	d := open(t)
	ds, err := d.NewStream()
	require.NoError(t, err)
	s := ds.(*stream)
	k := kernelOf(t, load(t, d, programText), "set")
	out := alloc(t, d, 4*16)
	e, err := s.Record(true)
	require.NoError(t, err)
	for range 200 {
		require.NoError(t, s.Launch(launch(k, 16, 4, out, int32(1))))
	}
	require.NoError(t, s.Close(), "waits for the work in flight")
	require.NoError(t, s.Close())
	assert.ErrorIs(t, s.Launch(launch(k, 16, 4, out, int32(1))), driver.ErrClosed)
	assert.ErrorIs(t, s.Sync(t.Context()), driver.ErrClosed)
	_, err = s.Record(true)
	assert.ErrorIs(t, err, driver.ErrClosed)
	done, err := e.Done()
	assert.NoError(t, err, "events outlive their stream")
	assert.True(t, done)
	require.NoError(t, e.Wait(t.Context()))
	require.NoError(t, e.Close())

	second := open(t)
	require.NoError(t, second.Close())
	require.NoError(t, second.Close())
	_, err = second.Alloc(4, driver.OnDevice)
	assert.ErrorIs(t, err, driver.ErrClosed)
	_, err = second.NewStream()
	assert.ErrorIs(t, err, driver.ErrClosed)
}
