package managed

import (
	goruntime "runtime"
	"sync"
	"testing"
	"time"

	"github.com/concord-compute/concord/runtime"
	"github.com/concord-compute/concord/runtime/mempool"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestArena(t *testing.T) {
	b := &nullBackend{}
	_, d := open(t, b, runtime.Config{})
	a, err := NewArena(d, nil)
	require.NoError(t, err)
	var list []*runtime.Buffer
	end := int64(0)
	for i := range 1000 {
		x, err := a.Alloc(runtime.F32, i+1)
		require.NoError(t, err)
		m := x.Memory()
		assert.Zero(t, m.Offset%256)
		assert.EqualValues(t, 4*(i+1), m.Size)
		if i > 0 && m.Handle == list[i-1].Memory().Handle {
			assert.GreaterOrEqual(t, m.Offset, end, "apart from the one before")
		} else {
			assert.Zero(t, m.Offset)
		}
		end = m.Offset + m.Size
		list = append(list, x)
	}
	used, held := a.Size()
	assert.Greater(t, used, int64(4*1000*1001/2))
	assert.LessOrEqual(t, used, held)
	st := d.Stats()
	assert.EqualValues(t, 2, st.LiveBuffers, "blocks of 1 and 2 MiB")
	assert.Equal(t, held, st.Live)
	require.NoError(t, d.Stream().Fill(list[7], float32(1)))
	require.NoError(t, list[7].Close())
	assert.ErrorIs(t, d.Stream().Fill(list[7], float32(1)), runtime.ErrClosed)
	require.NoError(t, d.Stream().Fill(list[8], float32(1)), "its block stays")

	require.NoError(t, a.Reset())
	assert.Zero(t, d.Stats().Live)
	assert.ErrorIs(t, d.Stream().Fill(list[8], float32(1)), runtime.ErrClosed)
	_, err = list[8].Slice(0, 1)
	assert.ErrorIs(t, err, runtime.ErrClosed)
	require.NoError(t, list[8].Close())
	for i := range 1000 {
		_, err := a.Alloc(runtime.F32, i+1)
		require.NoError(t, err)
	}
	assert.EqualValues(t, 1, d.Stats().LiveBuffers, "the same once more has one block")
	big, err := a.Alloc(runtime.U8, arenaMost+1)
	require.NoError(t, err)
	assert.EqualValues(t, arenaMost+1, big.Bytes())
	require.NoError(t, a.Close())
	require.NoError(t, a.Close())
	require.NoError(t, (*Arena)(nil).Close())
	_, err = a.Alloc(runtime.F32, 1)
	assert.ErrorIs(t, err, runtime.ErrClosed)
	assert.ErrorIs(t, a.Reset(), runtime.ErrClosed)
	st = d.Stats()
	assert.Zero(t, st.Live)
	assert.Equal(t, st.Allocations, st.Frees)
}

func TestArenaRefuses(t *testing.T) {
	_, d := open(t, &nullBackend{}, runtime.Config{MemoryLimit: 1 << 20})
	a, err := NewArena(d, nil)
	require.NoError(t, err)
	for n, want := range map[int]error{-1: runtime.ErrInvalidArgument, 1 << 62: runtime.ErrTooLarge,
		1 << 38: runtime.ErrTooLarge, 1 << 19: runtime.ErrBudget} {
		_, err := a.Alloc(runtime.F32, n)
		assert.ErrorIs(t, err, want, "%d elements", n)
	}
	_, err = a.Alloc(runtime.Type(0), 1)
	assert.ErrorIs(t, err, runtime.ErrInvalidArgument)
	_, err = a.Alloc(runtime.F32, 100)
	require.NoError(t, err)
	require.NoError(t, d.Memory().SetLimits(0, 1<<20+1<<18))
	_, err = a.Alloc(runtime.F32, 1<<18)
	assert.ErrorIs(t, err, runtime.ErrBudget)
	_, err = a.Alloc(runtime.U8, 1<<18)
	require.NoError(t, err, "there is room for this one alone")
	_, err = NewArena(nil, nil)
	assert.ErrorIs(t, err, runtime.ErrInvalidArgument)
	assert.ErrorIs(t, captured(d.Stream(), func(r *runtime.Stream) error { _, err := NewArena(d, r); return err }),
		runtime.ErrInvalidArgument)
	require.NoError(t, d.Close())
	_, err = a.Alloc(runtime.F32, 1)
	assert.ErrorIs(t, err, runtime.ErrClosed)
	require.NoError(t, a.Close())
}

// What outlives an arena is told, and stays what it was.
func TestArenaTellsWhatIsAlive(t *testing.T) {
	_, d := open(t, &nullBackend{pooled: true}, runtime.Config{})
	s, err := d.NewStream()
	require.NoError(t, err)
	a, err := NewArena(d, s)
	require.NoError(t, err)
	x, err := a.Alloc(runtime.F32, 100)
	require.NoError(t, err)
	view, err := x.Slice(10, 10)
	require.NoError(t, err)
	err = a.Reset()
	require.ErrorIs(t, err, mempool.ErrLeak)
	assert.ErrorContains(t, err, "1 blocks of 1.0 MiB")
	y, err := a.Alloc(runtime.F32, 100)
	require.NoError(t, err)
	v, w := view.Memory(), y.Memory()
	assert.True(t, v.Handle != w.Handle || v.Offset+v.Size <= w.Offset || w.Offset+w.Size <= v.Offset,
		"nobody else gets it")
	require.NoError(t, s.Fill(view, float32(1)))
	require.NoError(t, view.Close())
	g, err := s.Capture(func(r *runtime.Stream) error { return r.Fill(y, float32(1)) })
	require.NoError(t, err)
	require.ErrorIs(t, a.Close(), mempool.ErrLeak)
	require.NoError(t, g.Launch(s))
	require.NoError(t, g.Close())
	require.NoError(t, s.Sync(t.Context()))
	assert.Zero(t, d.Stats().Live+d.Stats().Deferred)
}

// A stream's arena has the same memory in each step, while the step before runs.
func TestArenaReusesInStreamOrder(t *testing.T) {
	_, d := open(t, &nullBackend{pooled: true}, runtime.Config{})
	s, err := d.NewStream()
	require.NoError(t, err)
	a, err := NewArena(d, s)
	require.NoError(t, err)
	for range 100 {
		for range 10 {
			x, err := a.Alloc(runtime.F32, 1000)
			require.NoError(t, err)
			require.NoError(t, s.Fill(x, float32(1)))
		}
		require.NoError(t, a.Reset())
	}
	require.NoError(t, a.Close())
	assert.LessOrEqual(t, d.Stats().Memory.DriverAllocs, int64(2))
}

func TestArenaForgotten(t *testing.T) {
	_, d := open(t, &nullBackend{}, runtime.Config{})
	var kept *runtime.Buffer
	func() {
		for range 2 {
			a, err := NewArena(d, nil)
			require.NoError(t, err)
			kept, err = a.Alloc(runtime.F32, 10)
			require.NoError(t, err)
		}
	}()
	deadline := time.Now().Add(10 * time.Second)
	for d.Stats().Forgotten < 1 && time.Now().Before(deadline) {
		goruntime.GC()
		time.Sleep(time.Millisecond)
	}
	assert.EqualValues(t, 1, d.Stats().Forgotten)
	require.NoError(t, d.Stream().Fill(kept, float32(1)), "a buffer keeps its block")
	goruntime.KeepAlive(kept)
}

func TestArenaConcurrently(t *testing.T) {
	_, d := open(t, &nullBackend{pooled: true}, runtime.Config{})
	a, err := NewArena(d, nil)
	require.NoError(t, err)
	var wg sync.WaitGroup
	for g := range 4 {
		wg.Go(func() {
			for i := range 500 {
				x, err := a.Alloc(runtime.U8, 1+i*37%5000)
				if !assert.NoError(t, err) {
					return
				}
				if err := d.Stream().Fill(x, uint8(1)); err != nil {
					assert.ErrorIs(t, err, runtime.ErrClosed)
				}
				if g == 0 && i%50 == 0 {
					if err := a.Reset(); err != nil {
						assert.ErrorIs(t, err, mempool.ErrLeak, "a call was under way")
					}
				}
			}
		})
	}
	wg.Wait()
	require.NoError(t, a.Close())
	require.NoError(t, d.Sync(t.Context()))
	assert.Zero(t, d.Stats().Live+d.Stats().Deferred)
}

// BenchmarkArenaAlloc is a small buffer of an arena beside one of the pool.
func BenchmarkArenaAlloc(b *testing.B) {
	_, d := open(b, &nullBackend{pooled: true}, runtime.Config{})
	b.Run("arena", func(b *testing.B) {
		a, err := NewArena(d, nil)
		require.NoError(b, err)
		defer a.Close()
		b.ReportAllocs()
		for i := 0; b.Loop(); i++ {
			if _, err := a.Alloc(runtime.F32, 64); err != nil {
				b.Fatal(err)
			}
			if i%1000 == 999 {
				if err := a.Reset(); err != nil {
					b.Fatal(err)
				}
			}
		}
	})
	b.Run("pool", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			x, err := d.Alloc(runtime.F32, 64)
			if err != nil {
				b.Fatal(err)
			}
			x.Close()
		}
	})
}
