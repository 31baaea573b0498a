package cpu

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
)

func TestStreamRunsInOrder(t *testing.T) {
	d := openDevice(t)
	s := openStream(t, d)
	ctx := background(t)
	m := allocBytes(t, d, 1<<20)
	var got []int
	for i := range 2000 {
		require.NoError(t, s.Launch(launchOf(goKernel(d, "note", func(c *Call) error {
			got = append(got, i) // only the stream's worker touches it
			return nil
		}), 1)))
		switch i % 100 {
		case 10:
			require.NoError(t, s.Fill(m, []byte{byte(i)}))
		case 20:
			require.NoError(t, s.Upload(ctx, driver.Memory{Handle: m.Handle, Size: 4}, []byte{1, 2, 3, 4}))
		}
	}
	require.NoError(t, s.Sync(ctx))
	require.Len(t, got, 2000)
	for i, v := range got {
		require.Equal(t, i, v)
	}
	out := make([]byte, 8)
	require.NoError(t, s.Download(ctx, out, driver.Memory{Handle: m.Handle, Size: 8}))
	assert.Equal(t, []byte{1, 2, 3, 4, 1910 & 255, 1910 & 255, 1910 & 255, 1910 & 255}, out)
}

func TestTransfersBehindALaunch(t *testing.T) {
	d := openDevice(t)
	s := openStream(t, d)
	ctx := background(t)
	a, b := allocBytes(t, d, 8), allocBytes(t, d, 8)
	big := allocBytes(t, d, int64(2*d.workers.stageBytes()))
	f, started, open := gate()
	require.NoError(t, s.Launch(launchOf(goKernel(d, "gate", f), 1)))
	<-started

	src := []byte{1, 2, 3, 4, 5, 6, 7, 8}
	require.NoError(t, s.Upload(ctx, a, src), "a small upload to a busy stream is staged")
	clear(src) // the caller may change it again
	require.NoError(t, s.Copy(b, a))
	require.NoError(t, s.Fill(driver.Memory{Handle: a.Handle, Offset: 4, Size: 4}, []byte{9, 8}))

	expired, cancel := context.WithTimeout(ctx, 10*time.Millisecond)
	defer cancel()
	require.ErrorIs(t, s.Upload(expired, big, make([]byte, 2*d.workers.stageBytes())), context.DeadlineExceeded,
		"ctx ends the wait of a large upload")
	out := make([]byte, 8)
	require.ErrorIs(t, s.Download(expired, out, a), context.DeadlineExceeded)
	require.ErrorIs(t, s.Sync(expired), context.DeadlineExceeded)
	close(open)
	require.NoError(t, s.Download(ctx, out, b))
	assert.Equal(t, []byte{1, 2, 3, 4, 5, 6, 7, 8}, out)
	require.NoError(t, s.Download(ctx, out, a))
	assert.Equal(t, []byte{1, 2, 3, 4, 9, 8, 9, 8}, out)
}

func TestLaunchBelongsToTheCallerAgain(t *testing.T) {
	d := openDevice(t)
	s := openStream(t, d)
	m := allocBytes(t, d, 4000)
	set := goKernel(d, "set", func(c *Call) error {
		c.I32(0)[c.Int(1)] = int32(c.Int(1) * 3)
		return nil
	}, intBuffer, intValue)
	l := launchOf(set, 1, m)
	pass(l, int32(0))
	for i := range 1000 {
		copy(l.Data, bytesOf([]int32{int32(i)}))
		require.NoError(t, s.Launch(l))
		clear(l.Data)
	}
	out := make([]int32, 1000)
	require.NoError(t, s.Download(background(t), bytesOf(out), m))
	for i, v := range out {
		require.EqualValues(t, 3*i, v)
	}
}

func TestFailureIsSticky(t *testing.T) {
	d := openDevice(t)
	s := openStream(t, d)
	ctx := background(t)
	m := allocBytes(t, d, 64)
	f, started, open := gate()
	before, err := s.Record(false)
	require.NoError(t, err)
	require.NoError(t, s.Launch(launchOf(goKernel(d, "gate", f), 1)))
	<-started
	gated, err := s.Record(true)
	require.NoError(t, err)
	mine := errors.New("mine")
	var ran atomic.Bool
	require.NoError(t, s.Launch(launchOf(goKernel(d, "bad", func(*Call) error { return mine }), 64)))
	require.NoError(t, s.Launch(launchOf(goKernel(d, "after", func(*Call) error { ran.Store(true); return nil }), 1)))
	after, err := s.Record(false)
	require.NoError(t, err)
	timed, err := s.Record(true)
	require.NoError(t, err)
	require.NoError(t, s.Err(), "nothing has failed yet")
	close(open)

	err = s.Sync(ctx)
	require.ErrorIs(t, err, driver.ErrLaunch)
	require.ErrorIs(t, err, mine)
	assert.Equal(t, "cpu:0: launch bad global=(64,1,1) local=(1,1,1): kernel failed: mine", err.Error())
	assert.False(t, ran.Load(), "work behind a failure must not run")

	_, recordErr := s.Record(false)
	for name, got := range map[string]error{
		"Upload": s.Upload(ctx, m, make([]byte, 64)), "Download": s.Download(ctx, make([]byte, 64), m),
		"Copy": s.Copy(m, m), "Fill": s.Fill(m, []byte{1}), "Launch": s.Launch(launchOf(goKernel(d, "x", f), 1)),
		"Record": recordErr, "Wait": s.Wait(before), "Sync": s.Sync(ctx), "Err": s.Err(),
	} {
		assert.Same(t, err, got, name)
	}
	for name, e := range map[string]driver.Event{"before": before, "gated": gated} {
		reached, err := e.Done()
		assert.True(t, reached && err == nil, name)
	}
	for name, e := range map[string]driver.Event{"after": after, "timed": timed} {
		reached, doneErr := e.Done()
		assert.False(t, reached, name)
		assert.Same(t, err, doneErr, name)
		assert.Same(t, err, e.Wait(ctx), name)
	}
	require.NoError(t, s.Close(), "the failure was reported")
	require.ErrorIs(t, s.Sync(ctx), driver.ErrClosed)

	fresh := openStream(t, d)
	require.NoError(t, fresh.Launch(launchOf(goKernel(d, "fine", func(*Call) error { ran.Store(true); return nil }), 1)))
	require.NoError(t, fresh.Sync(ctx))
	assert.True(t, ran.Load())
}

func TestCloseReportsAFailureThatNobodySaw(t *testing.T) {
	d := openDevice(t)
	s := openStream(t, d)
	require.NoError(t, s.Launch(launchOf(goKernel(d, "bad", func(*Call) error { panic("oops") }), 1)))
	err := s.Close()
	require.ErrorIs(t, err, driver.ErrLaunch)
	assert.Regexp(t, `the function panicked at .*/stream_test.go:\d+: oops$`, err.Error())
	require.NoError(t, s.Close(), "idempotent")
}

func TestGoexitFailsTheStream(t *testing.T) {
	d := openDevice(t)
	s := openStream(t, d)
	require.NoError(t, s.Launch(launchOf(goKernel(d, "exit", func(*Call) error { goruntime.Goexit(); return nil }), 1)))
	require.NoError(t, ignoreFailed(s.Launch(launchOf(goKernel(d, "next", func(*Call) error { return nil }), 1))))
	require.ErrorIs(t, s.Sync(background(t)), errGoexit)
}

// ignoreFailed accepts the error of a launch that is refused because the stream has failed before.
func ignoreFailed(err error) error {
	if errors.Is(err, driver.ErrLaunch) {
		return nil
	}
	return err
}

func TestEventsAcrossStreams(t *testing.T) {
	d := openDevice(t)
	ctx := background(t)
	a, b := openStream(t, d), openStream(t, d)
	f, started, open := gate()
	var order []string
	note := func(what string) *driver.Launch {
		return launchOf(goKernel(d, what, func(*Call) error { order = append(order, what); return nil }), 1)
	}
	require.NoError(t, a.Launch(launchOf(goKernel(d, "gate", f), 1)))
	<-started
	require.NoError(t, a.Launch(note("a")))
	e, err := a.Record(false)
	require.NoError(t, err)
	require.NoError(t, b.Wait(e))
	require.NoError(t, b.Launch(note("b")))
	reached, err := e.Done()
	require.NoError(t, err)
	assert.False(t, reached)
	expired, cancel := context.WithTimeout(ctx, 10*time.Millisecond)
	defer cancel()
	require.ErrorIs(t, e.Wait(expired), context.DeadlineExceeded)
	close(open)
	require.NoError(t, b.Sync(ctx))
	assert.Equal(t, []string{"a", "b"}, order)
	require.NoError(t, e.Wait(ctx))
	require.NoError(t, e.Close())
	require.NoError(t, e.Close())
	_, err = e.Done()
	require.ErrorIs(t, err, driver.ErrClosed)
}

func TestWaitForAFailedStreamFails(t *testing.T) {
	d := openDevice(t)
	ctx := background(t)
	a, b := openStream(t, d), openStream(t, d)
	f, started, open := gate()
	require.NoError(t, a.Launch(launchOf(goKernel(d, "gate", f), 1)))
	<-started
	require.NoError(t, a.Launch(launchOf(goKernel(d, "bad", func(*Call) error { return errors.New("x") }), 1)))
	e, err := a.Record(false)
	require.NoError(t, err)
	require.NoError(t, b.Wait(e))
	close(open)
	err = b.Sync(ctx)
	require.ErrorIs(t, err, driver.ErrLaunch)
	assert.Contains(t, err.Error(), "launch bad")
}

func TestElapsed(t *testing.T) {
	d := openDevice(t)
	ctx := background(t)
	s := openStream(t, d)
	from, err := s.Record(true)
	require.NoError(t, err)
	plain, err := s.Record(false)
	require.NoError(t, err)
	require.NoError(t,
		s.Launch(launchOf(goKernel(d, "sleep", func(*Call) error { time.Sleep(20 * time.Millisecond); return nil }), 1)))
	to, err := s.Record(true)
	require.NoError(t, err)
	_, err = to.Elapsed(from)
	require.ErrorIs(t, err, driver.ErrInvalidArgument, "not reached yet")
	require.NoError(t, s.Sync(ctx))
	took, err := to.Elapsed(from)
	require.NoError(t, err)
	assert.GreaterOrEqual(t, took, 20*time.Millisecond)
	assert.Less(t, took, 10*time.Second)
	_, err = to.Elapsed(plain)
	require.ErrorIs(t, err, driver.ErrTimingDisabled)
}

func TestEightStreams(t *testing.T) {
	d := openDevice(t)
	ctx := background(t)
	add := goKernel(d, "add", func(c *Call) error {
		x := c.I32(0)
		return c.Parallel(len(x), 64, func(lo, hi int) {
			for i := lo; i < hi; i++ {
				x[i]++
			}
		})
	}, intBuffer)
	var wg sync.WaitGroup
	for range 8 {
		s, m := openStream(t, d), allocBytes(t, d, 4096)
		wg.Go(func() {
			for i := range 300 {
				assert.NoError(t, s.Launch(launchOf(add, 1, m)))
				if i%50 == 0 {
					assert.NoError(t, s.Sync(ctx))
				}
			}
			out := make([]int32, 1024)
			assert.NoError(t, s.Download(ctx, bytesOf(out), m))
			for _, v := range out {
				if !assert.EqualValues(t, 300, v) {
					return
				}
			}
		})
	}
	wg.Wait()
}

func TestConcurrentSync(t *testing.T) {
	d := openDevice(t)
	s := openStream(t, d)
	ctx := background(t)
	stop := make(chan struct{})
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				short, cancel := context.WithTimeout(ctx, 50*time.Microsecond)
				if err := s.Sync(short); err != nil {
					assert.ErrorIs(t, err, context.DeadlineExceeded)
				}
				cancel()
				assert.NoError(t, s.Err())
			}
		})
	}
	nothing := goKernel(d, "nothing", func(*Call) error { return nil })
	for range 3000 {
		require.NoError(t, s.Launch(launchOf(nothing, 1)))
	}
	require.NoError(t, s.Sync(ctx))
	close(stop)
	wg.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	assert.Empty(t, s.waiters)
}

func TestCloseOfTheDeviceStopsWork(t *testing.T) {
	d := openDevice(t)
	s := openStream(t, d)
	started := make(chan struct{})
	require.NoError(t, s.Launch(launchOf(goKernel(d, "long", func(c *Call) error {
		close(started)
		return c.Parallel(1<<40, 1, func(lo, hi int) { <-c.Context().Done() })
	}), 1)))
	require.NoError(t, s.Launch(launchOf(goKernel(d, "never", func(*Call) error { t.Error("ran"); return nil }), 1)))
	<-started
	require.NoError(t, d.Close())
	require.ErrorIs(t, s.Err(), context.Canceled)
	_, err := d.NewStream()
	require.ErrorIs(t, err, driver.ErrClosed)
	_, err = d.Alloc(1, driver.OnDevice)
	require.ErrorIs(t, err, driver.ErrClosed)
}

func TestIdleStreamsHaveNoGoroutine(t *testing.T) {
	d := openDevice(t)
	ctx := background(t)
	before := goruntime.NumGoroutine()
	nothing := goKernel(d, "nothing", func(*Call) error { return nil })
	for range 50 {
		s := openStream(t, d)
		require.NoError(t, s.Launch(launchOf(nothing, 1)))
		require.NoError(t, s.Sync(ctx))
	}
	assert.Eventually(t, func() bool { return goruntime.NumGoroutine() <= before+2 }, 5*time.Second, time.Millisecond)
}

// An event that is recorded again keeps the time of its last point, even if an earlier one is reached later.
func TestEventRecordedAgain(t *testing.T) {
	d := openDevice(t)
	busy, idle := openStream(t, d), openStream(t, d)
	ctx := background(t)
	gate := make(chan struct{})
	require.NoError(t, busy.Launch(launchOf(goKernel(d, "gate", func(*Call) error { <-gate; return nil }), 1)))
	e, err := busy.Record(true)
	require.NoError(t, err)
	waits := openStream(t, d)
	require.NoError(t, waits.Wait(e))
	require.NoError(t, idle.Rerecord(e))
	done, err := e.Done()
	require.NoError(t, err)
	assert.True(t, done)
	f, err := idle.Record(true)
	require.NoError(t, err)
	short, cancel := context.WithTimeout(ctx, 10*time.Millisecond)
	assert.ErrorIs(t, waits.Sync(short), context.DeadlineExceeded, "it waits for the earlier point")
	cancel()
	close(gate)
	require.NoError(t, waits.Sync(ctx))
	took, err := f.Elapsed(e)
	require.NoError(t, err)
	assert.GreaterOrEqual(t, took, time.Duration(0))
	other := openDevice(t)
	assert.ErrorIs(t, openStream(t, other).Rerecord(e), driver.ErrInvalidArgument)
	require.NoError(t, e.Close())
	assert.ErrorIs(t, idle.Rerecord(e), driver.ErrClosed)
}

func TestLaunchAllocations(t *testing.T) {
	if instrumented {
		t.Skip("the checker allocates")
	}
	d := openDevice(t)
	s := openStream(t, d)
	ctx := background(t)
	l := launchOf(goKernel(d, "nothing", func(*Call) error { return nil }), 1, allocBytes(t, d, 64))
	n := testing.AllocsPerRun(500, func() {
		_ = s.Launch(l)
		_ = s.Sync(ctx)
	})
	assert.LessOrEqual(t, n, 0.5)
}

func BenchmarkLaunchSync(b *testing.B) {
	d := openDevice(b)
	s := openStream(b, d)
	ctx := context.Background()
	l := launchOf(goKernel(d, "nothing", func(*Call) error { return nil }), 1, allocBytes(b, d, 64))
	b.ReportAllocs()
	for b.Loop() {
		_ = s.Launch(l)
		_ = s.Sync(ctx)
	}
}

func BenchmarkLaunchQueued(b *testing.B) {
	d := openDevice(b)
	s := openStream(b, d)
	ctx := context.Background()
	l := launchOf(goKernel(d, "nothing", func(*Call) error { return nil }), 1, allocBytes(b, d, 64))
	b.ReportAllocs()
	i := 0
	for b.Loop() {
		_ = s.Launch(l)
		if i++; i%256 == 0 {
			_ = s.Sync(ctx)
		}
	}
	_ = s.Sync(ctx)
}
