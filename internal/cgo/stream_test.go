//go:build cgo && unix

package cgo

import (
	"context"
	"encoding/binary"
	"hash/fnv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/concord-compute/concord/runtime/driver"
	"github.com/concord-compute/concord/tests/sim/null"
)

func TestCopies(t *testing.T) {
	d := openNull(t, vendor())
	s := newStream(t, d)
	a, b := alloc(t, d, 1<<20, driver.OnDevice), alloc(t, d, 1<<20, driver.OnDevice)
	p := alloc(t, d, 8, driver.Pinned)
	later, cancel := context.WithCancel(ctx)
	defer cancel()
	for _, c := range []context.Context{ctx, later} {
		require.NoError(t, s.Upload(c, a, make([]byte, 1<<20)))
		require.NoError(t, s.Upload(c, driver.Memory{Handle: a.Handle, Offset: 5, Size: 3}, []byte("abc")))
		require.NoError(t, s.Upload(c, a, nil))
		require.NoError(t, s.Copy(b, a))
		got := make([]byte, 4)
		require.NoError(t, s.Download(c, got, driver.Memory{Handle: b.Handle, Offset: 4, Size: 4}))
		assert.Equal(t, "\x00abc", string(got))
		require.NoError(t, s.Fill(driver.Memory{Handle: a.Handle, Offset: 1, Size: 8}, []byte("xy")))
		require.NoError(t, s.DownloadPinned(p, driver.Memory{Handle: a.Handle, Offset: 1, Size: 8}))
		host, _ := d.HostBytes(p)
		assert.Equal(t, "xyxyxyxy", string(host))
		copy(host, "pinned!!")
		require.NoError(t, s.UploadPinned(driver.Memory{Handle: b.Handle, Size: 8}, p))
		require.NoError(t, s.Download(c, got, b))
		assert.Equal(t, "pinn", string(got))
		require.NoError(t, s.Sync(c))
	}
	assert.Empty(t, openOf(&s.ops), "all of it is known to be done")
	for _, pattern := range []string{"", "abc", "123456789"} {
		assert.ErrorIs(t, s.Fill(a, []byte(pattern)), driver.ErrInvalidArgument)
	}
	assert.ErrorIs(t, s.UploadPinned(b, a), driver.ErrInvalidArgument, "not pinned")
	cancel()
	assert.ErrorIs(t, s.Upload(later, a, []byte{1}), context.Canceled)
	assert.ErrorIs(t, s.Download(later, []byte{1}, a), context.Canceled)
	assert.ErrorIs(t, s.Sync(later), context.Canceled)
}

func TestLaunch(t *testing.T) {
	d := openNull(t, vendor())
	s := newStream(t, d)
	m := load(t, d, saxpyText)
	k := kernelOf(t, m, "saxpy")
	x, y := alloc(t, d, 1024, driver.OnDevice), alloc(t, d, 1024, driver.OnDevice)
	y.Offset = 12
	l := launchOf(k, x, y)
	l.Dim, l.Global, l.Local = 2, [3]int{256, 6, 0}, [3]int{64, 3, 0}
	require.NoError(t, s.Launch(l))

	h := fnv.New64a()
	word := func(n uint64) { h.Write(binary.LittleEndian.AppendUint64(nil, n)) }
	h.Write([]byte{0, 0, 0, 0x80, 0x3f, 1})
	word(x.Handle)
	h.Write([]byte{1})
	word(y.Handle + 12)
	h.Write([]byte{2})
	word(256)
	assert.Equal(t, null.Launch{Groups: [3]uint64{4, 2, 1}, Group: [3]uint64{64, 3, 1}, Args: 4, Sum: h.Sum64()},
		null.Last())

	before := null.Calls("launch")
	l.Global[0] = 0
	require.NoError(t, s.Launch(l), "of nothing")
	assert.Equal(t, before, null.Calls("launch"))

	null.Fail("launch", 0, int(statusInvalid))
	err := s.Launch(launchOf(k, x, y))
	require.ErrorIs(t, err, driver.ErrLaunch)
	require.ErrorIs(t, err, driver.ErrInvalidArgument)
	assert.Equal(t, "launch saxpy", opErr(t, err).Op)
	assert.NoError(t, s.Launch(launchOf(k, x, y)), "a launch that was refused harms nothing")
	assert.NoError(t, s.Err())
}

func TestLaunchAllocatesNothing(t *testing.T) {
	if instrumented {
		t.Skip("allocations are the checker's")
	}
	d := openNull(t, vendor())
	s := newStream(t, d)
	k := kernelOf(t, load(t, d, saxpyText), "saxpy")
	x := alloc(t, d, 1024, driver.OnDevice)
	l := launchOf(k, x, x)
	assert.Zero(t, testing.AllocsPerRun(1000, func() {
		if s.Launch(l) != nil {
			t.Error("launch")
		}
	}))
	pattern := []byte{1, 2, 3, 4}
	assert.Zero(t, testing.AllocsPerRun(1000, func() {
		if s.Copy(x, x) != nil || s.Fill(x, pattern) != nil || s.Upload(ctx, x, pattern) != nil || s.Sync(ctx) != nil ||
			s.Err() != nil {
			t.Error("copy")
		}
	}))
}

// Work that fails after it was queued: the stream's error names exactly the operations that may
// have failed.
func TestFailsLater(t *testing.T) {
	find := map[string]func(s *stream, m driver.Memory) error{
		"sync":     func(s *stream, m driver.Memory) error { return s.Sync(ctx) },
		"err":      func(s *stream, m driver.Memory) error { return s.Err() },
		"upload":   func(s *stream, m driver.Memory) error { return s.Upload(ctx, m, []byte{1}) },
		"download": func(s *stream, m driver.Memory) error { return s.Download(ctx, []byte{1}, m) },
		"record":   func(s *stream, m driver.Memory) error { _, err := s.Record(false); return err },
		"close":    func(s *stream, m driver.Memory) error { return s.Close() },
	}
	for name, f := range find {
		for class, want := range map[status]error{statusLaunch: driver.ErrLaunch, statusTimeout: driver.ErrTimeout,
			statusFailed: driver.ErrLaunch} {
			t.Run(name, func(t *testing.T) {
				d := openNull(t, vendor())
				s, other := newStream(t, d), newStream(t, d)
				m := load(t, d, saxpyText)
				x := alloc(t, d, 64, driver.OnDevice)
				require.NoError(t, s.Launch(launchOf(kernelOf(t, m, "saxpy"), x, x)))
				require.NoError(t, s.Sync(ctx))
				null.Break(int(class))
				require.NoError(t, s.Launch(&driver.Launch{Kernel: kernelOf(t, m, "relu"), Dim: 1, Global: [3]int{1},
					Local: [3]int{1}}))
				err := f(s, x)
				require.ErrorIs(t, err, want)
				assert.Equal(t, "launch relu", opErr(t, err).Op, "saxpy was done")
				if name != "close" {
					assert.Same(t, err, s.Err())
					assert.Same(t, err, s.Launch(launchOf(kernelOf(t, m, "saxpy"), x, x)))
					assert.Same(t, err, s.Copy(x, x))
					assert.Same(t, err, s.Sync(ctx))
				}
				assert.NoError(t, other.Sync(ctx), "other streams go on")
				assert.NoError(t, s.Close(), "the failure was already returned")
			})
		}
	}
}

func TestFailsLaterAmongMany(t *testing.T) {
	d := openNull(t, vendor())
	s := newStream(t, d)
	m := load(t, d, saxpyText)
	x := alloc(t, d, 64, driver.OnDevice)
	relu := &driver.Launch{Kernel: kernelOf(t, m, "relu"), Dim: 1, Global: [3]int{1}, Local: [3]int{1}}
	require.NoError(t, s.Copy(x, x))
	before, err := s.Record(true)
	require.NoError(t, err)
	require.NoError(t, before.Wait(ctx))
	require.NoError(t, s.Launch(relu))
	require.NoError(t, s.Fill(x, []byte{0}))
	require.NoError(t, s.Launch(relu))
	null.Break(int(statusLaunch))
	require.NoError(t, s.Launch(launchOf(kernelOf(t, m, "saxpy"), x, x)))
	err = s.Sync(ctx)
	assert.EqualError(t, err, "null:0: one of 4 operations (launch relu x 2, fill, launch saxpy): NULL_ERROR_10: kernel "+
		"failed (code 1010)")
	done, err := before.Done()
	assert.True(t, done)
	assert.NoError(t, err, "an event that was reached before stays reached")
	require.NoError(t, before.Close())
}

func TestLost(t *testing.T) {
	d := openNull(t, vendor())
	s, other := newStream(t, d), newStream(t, d)
	m := load(t, d, saxpyText)
	x := alloc(t, d, 64, driver.OnDevice)
	e, err := other.Record(false)
	require.NoError(t, err)
	null.Break(int(statusLost))
	require.NoError(t, s.Launch(launchOf(kernelOf(t, m, "saxpy"), x, x)))
	_, err = d.Alloc(64, driver.OnDevice)
	require.ErrorIs(t, err, driver.ErrDeviceLost)
	require.ErrorIs(t, err, driver.ErrLaunch)
	assert.EqualError(t, err, "device lost: null:0: launch saxpy: NULL_ERROR_12: kernel failed (code 1012)")
	_, recordErr := s.Record(true)
	_, loadErr := d.Load(ctx, parse(t, saxpyText), driver.Binary{Code: programs.Seal([]byte("x"))})
	for what, got := range map[string]error{"sync": s.Sync(ctx), "other sync": other.Sync(ctx), "err": s.Err(),
		"other err": other.Err(),
		"copy":      other.Copy(x, x), "record": recordErr, "load": loadErr, "wait": s.Wait(e)} {
		assert.Equal(t, err, got, what)
	}
	for what, err := range map[string]error{"free": d.Free(x), "stream": s.Close(), "other": other.Close(),
		"event": e.Close(), "module": m.Close(), "device": d.Close()} {
		assert.NoError(t, err, what)
	}
	require.Empty(t, null.Live(), "a lost device leaves nothing behind")
	again, err := NewBackend(vendor()).Open(ctx, 0, nil)
	require.NoError(t, err)
	assert.NoError(t, again.Close())
}

// If nothing is running, the error of a lost device names no operation.
func TestLostIdle(t *testing.T) {
	d := openNull(t, vendor())
	null.Fail("mem_alloc", 0, int(statusLost))
	_, err := d.Alloc(64, driver.OnDevice)
	require.ErrorIs(t, err, driver.ErrDeviceLost)
	assert.NotErrorIs(t, err, driver.ErrLaunch)
	assert.ErrorContains(t, err, "alloc 64 B")
}

func TestWaiting(t *testing.T) {
	d := openNull(t, vendor())
	s, x := newStream(t, d), alloc(t, d, 64, driver.OnDevice)
	e, err := s.Record(true)
	require.NoError(t, err)
	null.Hold(true)
	short, cancel := context.WithTimeout(ctx, 10*time.Millisecond)
	defer cancel()
	assert.ErrorIs(t, s.Sync(short), context.DeadlineExceeded)
	short, cancel = context.WithTimeout(ctx, 10*time.Millisecond)
	defer cancel()
	assert.ErrorIs(t, e.Wait(short), context.DeadlineExceeded)
	done, err := e.Done()
	require.NoError(t, err)
	assert.False(t, done)
	require.NoError(t, s.Copy(x, x), "queueing goes on meanwhile")
	other := newStream(t, d)
	require.NoError(t, other.Wait(e))
	require.NoError(t, e.Close(), "closing an event does not wait")
	_, err = e.Done()
	assert.ErrorIs(t, err, driver.ErrClosed)

	closed := make(chan error)
	go func() { closed <- s.Close() }()
	select {
	case <-closed:
		assert.Fail(t, "Close waits for the work in flight")
	case <-time.After(20 * time.Millisecond):
	}
	null.Hold(false)
	assert.NoError(t, <-closed)
	assert.Eventually(t, func() bool { return null.Live()["event"] == 0 }, 5*time.Second, time.Millisecond,
		"the wait that was left ends")
}

func TestElapsed(t *testing.T) {
	d := openNull(t, vendor())
	s := newStream(t, d)
	var events [3]driver.Event
	for i := range events {
		e, err := s.Record(i != 2)
		require.NoError(t, err)
		defer e.Close()
		events[i] = e
	}
	between, err := events[1].Elapsed(events[0])
	require.NoError(t, err)
	assert.Equal(t, time.Microsecond, between)
	_, err = events[2].Elapsed(events[0])
	assert.ErrorIs(t, err, driver.ErrTimingDisabled)
	null.Hold(true)
	late, err := s.Record(true)
	require.NoError(t, err)
	defer late.Close()
	_, err = late.Elapsed(events[0])
	assert.ErrorIs(t, err, driver.ErrInvalidArgument, "not reached")
	null.Hold(false)
}

func TestCapture(t *testing.T) {
	d := openNull(t, vendor())
	s, x := newStream(t, d), alloc(t, d, 64, driver.OnDevice)
	reached, err := s.Record(false)
	require.NoError(t, err)
	defer reached.Close()
	_, err = s.EndCapture(nil)
	assert.ErrorIs(t, err, driver.ErrInvalidArgument)
	assert.ErrorIs(t, s.DropCapture(), driver.ErrInvalidArgument)

	require.NoError(t, s.BeginCapture())
	_, recordErr := s.Record(false)
	for what, err := range map[string]error{"upload": s.Upload(ctx, x, []byte{1}),
		"download": s.Download(ctx, []byte{1}, x),
		"sync":     s.Sync(ctx), "record": recordErr, "again": s.BeginCapture()} {
		assert.ErrorIs(t, err, driver.ErrInvalidArgument, what)
	}
	queries := null.Calls("stream_query")
	assert.NoError(t, s.Err())
	assert.Equal(t, queries, null.Calls("stream_query"), "drivers do not like to be asked for a stream that records")
	require.NoError(t, s.Wait(reached))
	require.NoError(t, s.Copy(x, x))
	assert.Empty(t, openOf(&s.ops), "nothing of it is running")
	g, err := s.EndCapture(nil)
	require.NoError(t, err)
	require.NoError(t, g.Launch(s))
	assert.Equal(t, "launch graph", openOf(&s.ops))

	require.NoError(t, s.BeginCapture())
	same, err := s.EndCapture(g)
	require.NoError(t, err)
	assert.Same(t, g, same)
	require.NoError(t, s.BeginCapture())
	null.Fail("capture_end", 0, int(statusUnsupported))
	_, err = s.EndCapture(g)
	require.ErrorIs(t, err, driver.ErrUnsupported)
	require.NoError(t, g.Launch(s), "the earlier graph is as it was")
	require.NoError(t, s.BeginCapture())
	require.NoError(t, s.DropCapture())
	require.NoError(t, s.Sync(ctx))
	require.NoError(t, g.Close())
	assert.ErrorIs(t, g.Launch(s), driver.ErrClosed)
	require.NoError(t, s.BeginCapture())
	_, err = s.EndCapture(g)
	assert.ErrorIs(t, err, driver.ErrClosed)
	require.NoError(t, s.DropCapture())
}

func TestInStreamOrder(t *testing.T) {
	d := openNull(t, vendor())
	s := newStream(t, d)
	m, err := s.AllocHere(64)
	require.NoError(t, err)
	require.NoError(t, s.FreeHere(m))
	assert.ErrorIs(t, s.FreeHere(m), driver.ErrInvalidArgument)
	assert.ErrorIs(t, s.FreeHere(alloc(t, d, 64, driver.OnDevice)), driver.ErrInvalidArgument)
	_, err = s.AllocHere(1 << 40)
	assert.ErrorIs(t, err, driver.ErrTooLarge)
	require.NoError(t, s.Prefetch(alloc(t, d, 64, driver.Unified), true))
}

// BenchmarkLaunch compares the time of a launch with that of an empty call of C.
func BenchmarkLaunch(b *testing.B) {
	for name, table := range map[string]bool{"table": true, "empty call": false} {
		b.Run(name, func(b *testing.B) {
			v := vendor()
			v.Table = null.Bare
			d := openNull(b, v)
			s := newStream(b, d)
			k := kernelOf(b, load(b, d, saxpyText), "saxpy")
			x := alloc(b, d, 1024, driver.OnDevice)
			l := launchOf(k, x, x)
			b.ReportAllocs()
			for b.Loop() {
				if !table {
					null.Nothing()
				} else if err := s.Launch(l); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkTimed compares the time of a launch with that of one whose times are taken and fetched.
func BenchmarkTimed(b *testing.B) {
	for name, timed := range map[string]bool{"plain": false, "timed": true} {
		b.Run(name, func(b *testing.B) {
			d := openNull(b, vendor())
			s := newStream(b, d)
			timeline := driver.Timeliner(s)
			k := kernelOf(b, load(b, d, saxpyText), "saxpy")
			x := alloc(b, d, 1024, driver.OnDevice)
			l := launchOf(k, x, x)
			var spans []driver.Span
			op := uint64(0)
			b.ReportAllocs()
			for b.Loop() {
				op++
				if timed {
					require.NoError(b, timeline.Time(op))
				}
				if err := s.Launch(l); err != nil {
					b.Fatal(err)
				}
				if timed {
					require.NoError(b, timeline.Time(0))
				}
				if op%64 == 0 {
					spans = timeline.Spans(spans[:0])
				}
			}
		})
	}
}
