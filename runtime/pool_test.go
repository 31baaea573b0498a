package runtime

import (
	"bytes"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/concord-compute/concord/runtime/mempool"
)

// Memory is reused without the driver, and all of it is given back at the end.
func TestPool(t *testing.T) {
	for _, name := range []string{"cuda", "opencl", "other"} {
		b := &nullBackend{name: name, pooled: true}
		s, d := open(t, b, Config{})
		for range 100 {
			x, y := buffer(t, d, F32, 1000), buffer(t, d, U8, 33)
			require.NoError(t, d.Stream().Fill(x, float32(1)))
			require.NoError(t, d.Sync(t.Context()))
			require.NoError(t, y.Close())
			require.NoError(t, x.Close())
		}
		st := d.Stats()
		assert.LessOrEqual(t, b.allocs.Load(), int64(2), name)
		assert.Zero(t, b.frees.Load())
		assert.Zero(t, st.Live+st.Deferred+st.Memory.Live)
		assert.EqualValues(t, 200, st.Allocations)
		assert.EqualValues(t, 200, st.Frees)
		assert.EqualValues(t, 200, st.Memory.Hits+st.Memory.Misses)
		assert.EqualValues(t, 4033, st.Peak)
		freed, err := d.Memory().Trim(0)
		require.NoError(t, err)
		assert.Equal(t, st.Memory.Cached, freed)
		assert.Equal(t, b.allocs.Load(), b.frees.Load())
		buffer(t, d, F32, 1000)
		require.NoError(t, s.Close())
		assert.Equal(t, b.allocs.Load(), b.frees.Load(), "with the device")
		_, err = d.Memory().Trim(0)
		assert.ErrorIs(t, err, ErrClosed)
	}
}

// Memory that queued work uses: for the same stream at once, and for others when the
// work is done, or behind an event.
func TestPoolOrder(t *testing.T) {
	b := &nullBackend{pooled: true, full: true, told: true, slow: new(atomic.Bool)}
	_, d := open(t, b, Config{})
	s, other := d.Stream(), func() *Stream { s, err := d.NewStream(); require.NoError(t, err); return s }()
	const n = 10 << 20 // slabs would hide what is reused
	ordered := func(s *Stream) *Buffer {
		x, err := s.Alloc(F32, n)
		require.NoError(t, err)
		return x
	}
	b.heard()
	b.slow.Store(true)
	x := ordered(s)
	require.NoError(t, s.Fill(x, float32(1)))
	mem := x.Memory()
	require.NoError(t, x.Close())
	assert.EqualValues(t, 4*n, d.Stats().Deferred)
	y := ordered(s)
	assert.Equal(t, mem, y.Memory(), "the same memory while the work goes on")
	z := buffer(t, d, F32, n)
	assert.NotEqual(t, mem.Handle, z.Memory().Handle, "not for everyone")
	assert.Equal(t, []string{"fill"}, b.heard())
	require.NoError(t, s.Fill(y, float32(1)))
	require.NoError(t, other.Fill(y, float32(1)))
	assert.Equal(t, []string{"fill", "wait", "fill"}, b.heard(), "another stream waits for what was before")
	require.NoError(t, y.Close())
	assert.EqualValues(t, 4*n, d.Stats().Deferred, "two streams use it")
	assert.NotEqual(t, mem.Handle, ordered(s).Memory().Handle)
	b.slow.Store(false)
	assert.Zero(t, d.Stats().Deferred)
	assert.Equal(t, mem, ordered(other).Memory())
	require.NoError(t, s.Close())
	assert.EqualValues(t, 3, b.allocs.Load())
}

// An unused buffer in memory that earlier work may still use keeps the order of that work.
func TestPoolOrderOfUnused(t *testing.T) {
	b := &nullBackend{pooled: true, slow: new(atomic.Bool)}
	_, d := open(t, b, Config{})
	b.slow.Store(true)
	x, err := d.Stream().Alloc(F32, 10<<20)
	require.NoError(t, err)
	require.NoError(t, d.Stream().Fill(x, float32(1)))
	mem := x.Memory()
	require.NoError(t, x.Close())
	y, err := d.Stream().Alloc(F32, 10<<20)
	require.NoError(t, err)
	require.Equal(t, mem, y.Memory())
	require.NoError(t, y.Close())
	assert.NotEqual(t, mem.Handle, buffer(t, d, F32, 10<<20).Memory().Handle)
}

// Memory that is out: what is kept, closed or forgotten is given back first.
func TestPoolOutOfMemory(t *testing.T) {
	var held, room atomic.Int64
	room.Store(3)
	b := &nullBackend{name: "other", pooled: true}
	b.allocErr = func() error {
		if held.Store(b.allocs.Load() - b.frees.Load()); held.Load() >= room.Load() {
			return ErrOutOfMemory
		}
		return nil
	}
	_, d := open(t, b, Config{})
	for i := range 10 { // of different sizes
		x := buffer(t, d, U8, 100<<(2*i))
		require.NoError(t, d.Stream().Fill(x, uint8(1)))
		require.NoError(t, x.Close())
	}
	func() {
		for range 3 {
			buffer(t, d, F64, 1000)
		}
	}()
	x := buffer(t, d, F64, 2000)
	assert.Positive(t, d.Stats().Forgotten)
	room.Store(0)
	require.NoError(t, d.Memory().Track(true))
	_, err := d.Alloc(U8, 1<<30)
	assert.ErrorIs(t, err, ErrOutOfMemory)
	var told *OpError
	require.True(t, errors.As(err, &told))
	assert.Equal(t, "alloc 1.0 GiB", told.Op)
	assert.ErrorContains(t, err, "KiB in 1 buffers")
	require.NoError(t, x.Close())
}

func TestPoolLimits(t *testing.T) {
	b := &nullBackend{pooled: true, name: "other"}
	_, d := open(t, b, Config{MemoryLimit: 1 << 20})
	x := buffer(t, d, U8, 700<<10)
	require.NoError(t, x.Close())
	x = buffer(t, d, U8, 1<<20)
	_, err := d.Alloc(U8, 1)
	assert.ErrorIs(t, err, ErrBudget)
	assert.ErrorContains(t, err, "1.0 MiB in 1 blocks")
	_, err = d.AllocKind(Pinned, U8, 1)
	assert.ErrorIs(t, err, ErrBudget, "of every kind")
	require.NoError(t, d.Memory().SetLimits(0, 0))
	y := buffer(t, d, U8, 5<<20)
	assert.ErrorIs(t, d.Memory().SetLimits(0, -1), ErrInvalidArgument)
	require.NoError(t, d.Memory().SetLimits(1<<20, 0))
	require.NoError(t, x.Close())
	require.NoError(t, y.Close())
	assert.Zero(t, d.Stats().Memory.Slabs, "above the soft limit nothing is kept")
}

func TestLeakReport(t *testing.T) {
	var log bytes.Buffer
	old := slog.Default()
	slog.SetDefault(slog.New(slog.NewTextHandler(&log, nil)))
	defer slog.SetDefault(old)
	s, d := open(t, &nullBackend{pooled: true}, Config{})
	require.NoError(t, d.Memory().Track(true))
	x := buffer(t, d, F32, 1000)
	list := d.Memory().Holders()
	require.Len(t, list, 1)
	assert.Contains(t, list[0].Place(), "null_test.go:", "the first place that is not ours")
	require.NoError(t, d.Memory().WriteProfile(&bytes.Buffer{}))
	require.NoError(t, s.Close())
	assert.Contains(t, log.String(), "memory is open at close")
	assert.Contains(t, log.String(), "null_test.go:")
	require.NoError(t, x.Close())
}

// Every call at once, with memory that streams still use.
func TestPoolConcurrent(t *testing.T) {
	for _, pooled := range []bool{true, false} {
		b := &nullBackend{pooled: pooled, full: true, slow: new(atomic.Bool)}
		s, d := open(t, b, Config{MemoryLimit: 64 << 20})
		var wg sync.WaitGroup
		for g := range 4 {
			wg.Go(func() {
				s, err := d.NewStream()
				if !assert.NoError(t, err) {
					return
				}
				defer s.Close()
				for i := range 300 {
					b.slow.Store(i%3 == 0)
					var x *Buffer
					if i%2 == 0 {
						x, err = s.Alloc(U8, 1<<((i+g)%21))
					} else {
						x, err = d.Alloc(U8, 1<<((i+g)%21))
					}
					if !assert.NoError(t, err) {
						return
					}
					assert.NoError(t, s.Fill(x, uint8(g)))
					if i%5 == 0 {
						assert.NoError(t, d.Stream().Fill(x, uint8(g)))
					}
					assert.NoError(t, x.Close())
					if i%50 == 0 {
						_, err := d.Memory().Trim(1 << 20)
						assert.NoError(t, err)
						d.Stats()
						assert.NoError(t, s.Sync(t.Context()))
					}
				}
			})
		}
		wg.Wait()
		b.slow.Store(false)
		require.NoError(t, d.Sync(t.Context()))
		st := d.Stats()
		assert.Zero(t, st.Live+st.Deferred+st.Memory.Live)
		assert.Equal(t, st.Allocations, st.Frees)
		require.NoError(t, s.Close())
	}
}

var _ mempool.Source = (*nullDevice)(nil)

// BenchmarkMemory is a buffer from the pool and back, with all that a buffer is.
func BenchmarkMemory(b *testing.B) {
	_, d := open(b, &nullBackend{pooled: true}, Config{})
	b.ReportAllocs()
	for b.Loop() {
		x, err := d.Alloc(F32, 1<<18)
		if err != nil {
			b.Fatal(err)
		}
		x.Close()
	}
}
