package runtime

// What not every device has, over a driver that has it and one that has not.

import (
	"context"
	"fmt"
	"math"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/concord-compute/concord/runtime/driver"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestMemoryKinds(t *testing.T) {
	b := &nullBackend{full: true, told: true}
	_, d := open(t, b, Config{})
	dev := buffer(t, d, F32, 8)
	pin, err := d.AllocKind(Pinned, F32, 8)
	require.NoError(t, err)
	uni, err := d.AllocKind(Unified, F32, 8)
	require.NoError(t, err)
	assert.Equal(t, Pinned, pin.Kind())
	assert.Equal(t, OnDevice, dev.Kind())
	view, err := pin.Slice(2, 3)
	require.NoError(t, err)
	assert.Equal(t, Pinned, view.Kind())
	host, err := Host[float32](view)
	require.NoError(t, err)
	assert.Len(t, host, 3)
	_, err = Host[float32](dev)
	assert.ErrorIs(t, err, driver.ErrNoHostMemory)
	_, err = Host[int32](pin)
	assert.ErrorIs(t, err, ErrInvalidArgument)
	_, err = Host[float32](nil)
	assert.ErrorIs(t, err, ErrInvalidArgument)

	s := d.Stream()
	b.heard()
	same, err := pin.Slice(0, 3)
	require.NoError(t, err)
	require.NoError(t, s.Copy(dev, pin))
	require.NoError(t, s.Copy(pin, dev))
	require.NoError(t, s.Copy(pin, uni))
	require.NoError(t, s.Copy(uni, dev))
	require.NoError(t, s.Prefetch(uni, true))
	require.NoError(t, s.Prefetch(uni, false))
	assert.Equal(t, []string{"upload pinned", "download pinned", "download pinned", "copy", "prefetch true",
		"prefetch false"}, b.heard())
	assert.ErrorIs(t, s.Prefetch(pin, true), ErrInvalidArgument)
	assert.ErrorIs(t, s.Prefetch(nil, true), ErrInvalidArgument)
	assert.ErrorIs(t, s.Copy(pin, same), ErrInvalidArgument, "overlap")

	_, err = d.AllocKind(9, F32, 8)
	assert.ErrorIs(t, err, ErrInvalidArgument)
	_, err = d.AllocKind(Pinned, F32, -1)
	assert.ErrorIs(t, err, ErrInvalidArgument)
	_, err = d.AllocKind(Pinned, F32, math.MaxInt/4)
	assert.ErrorIs(t, err, ErrTooLarge)
	require.NoError(t, pin.Close())
	_, err = Host[float32](pin)
	assert.ErrorIs(t, err, ErrClosed)
}

func TestMemoryKindsWithout(t *testing.T) {
	b := &nullBackend{told: true, allocKindErr: fmt.Errorf("one address: %w", ErrUnsupported)}
	_, d := open(t, b, Config{})
	dev := buffer(t, d, F32, 8)
	pin, err := d.AllocKind(Pinned, F32, 8)
	require.NoError(t, err)
	_, err = Host[float32](pin)
	assert.ErrorIs(t, err, driver.ErrNoHostMemory)
	_, err = d.AllocKind(Unified, F32, 8)
	assert.ErrorIs(t, err, ErrUnsupported)
	assert.EqualValues(t, 64, d.Stats().Live, "what failed counts nothing")
	b.heard()
	require.NoError(t, d.Stream().Copy(dev, pin))
	require.NoError(t, d.Stream().Copy(pin, dev))
	assert.Equal(t, []string{"copy", "copy"}, b.heard())
}

func TestPriorities(t *testing.T) {
	b := &nullBackend{full: true, told: true}
	_, d := open(t, b, Config{})
	b.heard()
	for _, p := range []driver.Priority{driver.Low, driver.Normal, driver.High} {
		s, err := d.NewPriorityStream(p)
		require.NoError(t, err)
		require.NoError(t, s.Close())
	}
	assert.Equal(t, []string{"stream -1", "stream 0", "stream 1"}, b.heard())
	for _, p := range []driver.Priority{-2, 2} {
		_, err := d.NewPriorityStream(p)
		assert.ErrorIs(t, err, ErrInvalidArgument)
	}
	s, err := d.NewPriorityStream(driver.High)
	require.NoError(t, err)
	_, err = s.Capture(func(*Stream) error { return nil })
	require.NoError(t, err)
	assert.Contains(t, b.heard(), "stream 1", "a recording has the priority of its stream")

	_, plain := open(t, &nullBackend{}, Config{})
	s, err = plain.NewPriorityStream(driver.High)
	require.NoError(t, err)
	require.NoError(t, s.Sync(t.Context()))
}

func TestOccupancy(t *testing.T) {
	_, d := open(t, &nullBackend{full: true}, Config{})
	k := kernel(t, d, "axpy")
	n, err := k.Occupancy(256, 1024)
	require.NoError(t, err)
	assert.Equal(t, 8, n)
	n, err = k.SuggestGroup(0)
	require.NoError(t, err)
	assert.Equal(t, 512, n)
	for _, c := range []struct {
		group int
		local int64
	}{{0, 0}, {-1, 0}, {1025, 0}, {256, -1}} {
		_, err = k.Occupancy(c.group, c.local)
		assert.ErrorIs(t, err, ErrInvalidArgument, "%+v", c)
	}
	_, err = k.SuggestGroup(-1)
	assert.ErrorIs(t, err, ErrInvalidArgument)
	_, err = (*Kernel)(nil).Occupancy(1, 0)
	assert.ErrorIs(t, err, ErrInvalidArgument)
	require.NoError(t, k.program.release())
	_, err = k.Occupancy(256, 0)
	assert.ErrorIs(t, err, ErrClosed)

	_, plain := open(t, &nullBackend{}, Config{})
	_, err = kernel(t, plain, "axpy").Occupancy(256, 0)
	assert.ErrorIs(t, err, ErrUnsupported)
	_, err = kernel(t, plain, "axpy").SuggestGroup(0)
	assert.ErrorIs(t, err, ErrUnsupported)
}

// A kernel may have as much local memory as it can opt in to.
func TestLocalMemoryOptIn(t *testing.T) {
	b := &nullBackend{optIn: 100 << 10}
	_, d := open(t, b, Config{})
	k := kernel(t, d, "odd")
	x := buffer(t, d, F32, 100)
	args := func(n Local) []any { return []any{x, n, uint32(1), uint64(1), make([]byte, 8), x} }
	require.NoError(t, d.Stream().Launch(k, Items(1), args(100<<10)...))
	assert.ErrorIs(t, d.Stream().Launch(k, Items(1), args(100<<10+1)...), ErrLaunch)
}

func TestCopyAcross(t *testing.T) {
	gpu := &nullBackend{full: true, told: true, devices: 2}
	plain := &nullBackend{name: "opencl", told: true, devices: 1}
	s, a := open(t, gpu, Config{Backends: []driver.Backend{gpu, plain}})
	b, err := s.Open(t.Context(), "cuda:1")
	require.NoError(t, err)
	c, err := s.Open(t.Context(), "opencl:0")
	require.NoError(t, err)
	const n = 3*acrossChunk/4 + 5 // four pieces, the last a small one
	x, x2, y, z := buffer(t, a, F32, n), buffer(t, a, F32, n), buffer(t, b, F32, n), buffer(t, c, F32, n)
	pinned, err := a.AllocKind(Pinned, F32, n)
	require.NoError(t, err)
	for _, step := range []struct {
		what        string
		dst, src    *Buffer
		gpu, opencl []string
	}{
		{"one device", x2, x, []string{"copy"}, nil},
		{"peers", y, x, []string{"copy from peer"}, nil},
		{"through the host", z, x, []string{"stream 0", "download", "download", "download", "download"},
			[]string{"upload", "upload", "upload", "upload"}},
		{"back", x, z, []string{"upload pinned", "upload pinned", "upload pinned", "upload pinned"},
			[]string{"download", "download", "download", "download"}},
		{"from what the host sees", z, pinned, nil, []string{"upload", "upload", "upload", "upload"}},
		{"to what the host sees", pinned, z, []string{"copy", "copy", "copy", "copy"},
			[]string{"download", "download", "download", "download"}},
	} {
		gpu.heard()
		plain.heard()
		require.NoError(t, CopyAcross(t.Context(), step.dst, step.src), step.what)
		assert.Equal(t, step.gpu, gpu.heard(), step.what)
		assert.Equal(t, step.opencl, plain.heard(), step.what)
	}
	short, ints := buffer(t, c, F32, 3), buffer(t, c, I32, n)
	assert.ErrorIs(t, CopyAcross(t.Context(), short, x), ErrBufferOverflow)
	assert.ErrorIs(t, CopyAcross(t.Context(), ints, x), ErrInvalidArgument)
	assert.ErrorIs(t, CopyAcross(t.Context(), nil, x), ErrInvalidArgument)
	assert.ErrorIs(t, CopyAcross(t.Context(), x, nil), ErrInvalidArgument)
	assert.ErrorIs(t, CopyAcross(t.Context(), x, x), ErrInvalidArgument, "overlap")
	require.NoError(t, short.Close())
	assert.ErrorIs(t, CopyAcross(t.Context(), short, short), ErrInvalidArgument)
	assert.ErrorIs(t, CopyAcross(t.Context(), short, buffer(t, a, F32, 3)), ErrClosed)
	require.NoError(t, c.Close())
	assert.ErrorIs(t, CopyAcross(t.Context(), x, z), ErrClosed)
	assert.ErrorIs(t, CopyAcross(t.Context(), z, x), ErrClosed)
}

// CopyFrom waits for events, and never for all that streams do.
func TestCopyFromWaitsForNoStream(t *testing.T) {
	gpu, plain := &nullBackend{full: true, devices: 2, slow: new(atomic.Bool)},
		&nullBackend{name: "opencl", devices: 1, slow: new(atomic.Bool)}
	gpu.slow.Store(true)
	plain.slow.Store(true)
	s, a := open(t, gpu, Config{Backends: []driver.Backend{gpu, plain}})
	b, err := s.Open(t.Context(), "cuda:1")
	require.NoError(t, err)
	c, err := s.Open(t.Context(), "opencl:0")
	require.NoError(t, err)
	buffers := []*Buffer{buffer(t, a, F32, 8), buffer(t, b, F32, 8), buffer(t, c, F32, 8), buffer(t, a, F32, 8)}
	var streams []*Stream
	for i, d := range []*Device{a, b, c, a} {
		one, err := d.NewStream()
		require.NoError(t, err)
		require.NoError(t, one.Fill(buffers[i], float32(1)), "it is busy with the buffer")
		streams = append(streams, one)
	}
	readers := map[*core]bool{}
	for range 2 { // once to make the streams that read
		var synced atomic.Int64
		for i, to := range buffers {
			for j, from := range buffers {
				if i == j {
					continue
				}
				e, err := streams[j].Record()
				require.NoError(t, err)
				for _, after := range []*Event{nil, e} {
					count := func(context.Context) { synced.Add(1) }
					gpu.syncing, plain.syncing = count, count
					require.NoError(t, streams[i].CopyFrom(t.Context(), to, from, after), "%v from %v", to, from)
					gpu.syncing, plain.syncing = nil, nil
				}
				require.NoError(t, e.Close())
				if r := from.a.core.streams.reader; r != nil {
					readers[from.a.core] = true
				}
			}
		}
		// Reads are of streams that only read.
		assert.EqualValues(t, 2*6, synced.Load(), "copies through the host to opencl:0 and from it")
	}
	assert.Len(t, readers, 3)
	for _, one := range streams {
		assert.True(t, one.busy(), "nothing has waited for it")
	}
}

// An error on either side ends the copy, and nothing of it goes on.
func TestCopyAcrossFails(t *testing.T) {
	one, two := &nullBackend{devices: 1}, &nullBackend{name: "opencl", devices: 1}
	s, a := open(t, one, Config{Backends: []driver.Backend{one, two}})
	b, err := s.Open(t.Context(), "opencl:0")
	require.NoError(t, err)
	const n = 40 << 20
	x, y := buffer(t, a, U8, n), buffer(t, b, U8, n)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	two.transferErr = func() error { return ctx.Err() }
	assert.ErrorIs(t, CopyAcross(ctx, y, x), context.Canceled)
	one.transferErr, two.transferErr = two.transferErr, nil
	assert.ErrorIs(t, CopyAcross(ctx, y, x), context.Canceled)
	one.transferErr = nil
	assert.NoError(t, CopyAcross(t.Context(), y, x))
}

// The memory of both sides is kept until the copy is done, even if no call waits for it.
func TestCopyAcrossKeepsBoth(t *testing.T) {
	b := &nullBackend{full: true, slow: new(atomic.Bool), devices: 2}
	s, one := open(t, b, Config{})
	two, err := s.Open(t.Context(), "cuda:1")
	require.NoError(t, err)
	x, y := buffer(t, one, F32, 10), buffer(t, two, F32, 10)
	b.slow.Store(true)
	b.syncErr = context.Canceled
	assert.ErrorIs(t, CopyAcross(t.Context(), y, x), context.Canceled)
	b.syncErr = nil
	require.NoError(t, x.Close())
	require.NoError(t, y.Close())
	assert.EqualValues(t, 40, one.Stats().Deferred)
	assert.EqualValues(t, 40, two.Stats().Deferred)
	b.slow.Store(false)
	assert.Zero(t, one.Stats().Deferred)
	assert.Zero(t, two.Stats().Deferred)
	assert.EqualValues(t, 2, b.frees.Load())
}

func TestCopyAcrossConcurrently(t *testing.T) {
	b := &nullBackend{full: true, devices: 2}
	s, one := open(t, b, Config{})
	two, err := s.Open(t.Context(), "cuda:1")
	require.NoError(t, err)
	x, y := buffer(t, one, F32, 10), buffer(t, two, F32, 10)
	var wg sync.WaitGroup
	for i := range 8 {
		dst, src := x, y
		if i%2 == 0 {
			dst, src = y, x
		}
		wg.Go(func() {
			for range 200 {
				if err := CopyAcross(t.Context(), dst, src); err != nil {
					assert.ErrorIs(t, err, ErrClosed)
				}
			}
		})
	}
	require.NoError(t, two.Close())
	wg.Wait()
}

func TestLostDevice(t *testing.T) {
	b := &nullBackend{devices: 1}
	s, d := open(t, b, Config{})
	x := buffer(t, d, F32, 10)
	other, err := d.NewStream()
	require.NoError(t, err)
	g, err := other.Capture(func(s *Stream) error { return s.Fill(x, float32(1)) })
	require.NoError(t, err)
	lost := fmt.Errorf("bus error: %w", ErrDeviceLost)
	d.Stream().drv.(*nullStream).err = lost
	assert.ErrorIs(t, d.Stream().Fill(x, float32(1)), ErrDeviceLost)
	assert.ErrorIs(t, other.Fill(x, float32(1)), ErrDeviceLost, "on every stream")
	assert.ErrorIs(t, other.Err(), ErrDeviceLost)
	assert.ErrorIs(t, g.Launch(other), ErrDeviceLost)
	anew, err := s.Open(t.Context(), d.String())
	require.NoError(t, err)
	assert.EqualValues(t, 2, b.opened.Load(), "a lost device is not handed out again")
	assert.NoError(t, anew.Stream().Fill(buffer(t, anew, F32, 1), float32(1)))
	assert.ErrorIs(t, other.Fill(x, float32(1)), ErrDeviceLost, "who had it before has the lost one")
	_, err = d.Alloc(F32, 1)
	assert.ErrorIs(t, err, ErrDeviceLost)
	_, err = d.NewStream()
	assert.ErrorIs(t, err, ErrDeviceLost)
	assert.NoError(t, g.Close())
	assert.NoError(t, x.Close())
	assert.NoError(t, d.Close())
	again, err := s.Open(t.Context(), d.String())
	require.NoError(t, err)
	assert.Same(t, anew.core, again.core, "closing the lost one changes nothing")
}

// Opening notices a loss that no earlier call has noticed.
func TestLostDeviceUnseen(t *testing.T) {
	b := &nullBackend{devices: 1}
	s, d := open(t, b, Config{})
	d.Stream().drv.(*nullStream).err = ErrDeviceLost
	_, err := s.Open(t.Context(), d.String())
	require.NoError(t, err)
	assert.EqualValues(t, 2, b.opened.Load())
	assert.ErrorIs(t, d.Sync(t.Context()), ErrDeviceLost)
	assert.NoError(t, d.Close())
}
