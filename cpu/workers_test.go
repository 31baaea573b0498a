//go:build cgo && unix

package cpu

import (
	goruntime "runtime"
	"runtime/debug"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/concord-compute/concord/runtime/driver"
)

// gauge counts the goroutines between enter and leave, and keeps the largest count.
type gauge struct{ now, most int32 }

func (g *gauge) enter() {
	n := atomic.AddInt32(&g.now, 1)
	for {
		m := atomic.LoadInt32(&g.most)
		if n <= m || atomic.CompareAndSwapInt32(&g.most, m, n) {
			return
		}
	}
}

func (g *gauge) leave() { atomic.AddInt32(&g.now, -1) }

// TestWorkersModel checks that no more places are in use than there are, that every launch that waits gets
// one, and that all are free at the end.
func TestWorkersModel(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		w := &workers{limit: rapid.IntRange(1, 4).Draw(rt, "limit")}
		launches := rapid.SliceOfN(rapid.IntRange(0, 20), 1, 12).Draw(rt, "chunks of each launch")
		var g gauge
		var done atomic.Int64
		var all sync.WaitGroup
		for _, chunks := range launches {
			all.Go(func() {
				w.enter()
				defer w.leave()
				left := int64(chunks)
				var most *share
				help := func() bool {
					for atomic.AddInt64(&left, -1) >= 0 {
						g.enter()
						goruntime.Gosched()
						done.Add(1)
						g.leave()
						if atomic.LoadInt32(&w.crowded) > 0 {
							return true
						}
					}
					return false
				}
				most = &share{most: 2, help: help}
				w.offer(most)
				for help() {
					w.yield()
				}
				w.settle(most)
			})
		}
		all.Wait()
		total := 0
		for _, chunks := range launches {
			total += chunks
		}
		require.EqualValues(rt, total, done.Load())
		require.LessOrEqual(rt, int(g.most), w.limit)
		require.Zero(rt, w.running)
		require.Empty(rt, w.waiting)
		require.Empty(rt, w.open)
		require.Zero(rt, w.crowded)
	})
}

// TestHelpersLinger checks that a helper without work takes what is offered next, and ends if nothing is.
func TestHelpersLinger(t *testing.T) {
	w := &workers{limit: 2}
	served := map[string]int{} // rounds by goroutine
	for range 200 {
		var both sync.WaitGroup
		both.Add(2)
		meet := func() bool {
			both.Done()
			both.Wait()
			return false
		}
		s := &share{most: 1, help: func() bool {
			served[strings.Fields(string(debug.Stack()))[1]]++
			return meet()
		}}
		w.enter()
		w.offer(s)
		meet()
		w.settle(s)
		w.leave()
	}
	assert.Less(t, len(served), 200, "no helper worked twice")
	assert.Eventually(t, func() bool {
		w.mu.Lock()
		defer w.mu.Unlock()
		return w.idle == 0
	}, 5*time.Second, time.Millisecond)
	require.Zero(t, w.running)
	require.Empty(t, w.handed)
}

// TestSettleTakesBack checks that a launch does not wait for a helper that has not begun.
func TestSettleTakesBack(t *testing.T) {
	w := &workers{limit: 2, idle: 1}
	s := &share{most: 1, help: func() bool { return false }}
	w.enter()
	w.offer(s)
	require.Len(t, w.handed, 1)
	w.settle(s)
	w.leave()
	require.Empty(t, w.handed)
	require.Zero(t, w.calls.Load())
	require.Zero(t, w.running)
	require.Zero(t, s.helpers)
}

const gaugeText = `
// Each item is a group: it comes in, stays a while and leaves.
kernel void stay(global int *g, int rounds) {
  int n = atomic_inc(g) + 1;
  atomic_max(g + 1, n);
  volatile int x = 0;
  for (int i = 0; i < rounds; i++) x = x + i;
  atomic_dec(g);
  atomic_inc(g + 2 + get_group_id(0) * 0);
}
`

// TestWorkersAreShared checks that native and compiled kernels of many streams share the places.
func TestWorkersAreShared(t *testing.T) {
	d := openDevice(t)
	k := loadKernel(t, d, gaugeText, "stay")
	mem := allocBytes(t, d, 12)
	b, err := d.memory.bytes(mem)
	require.NoError(t, err)
	g := (*gauge)(unsafe.Pointer(unsafe.SliceData(b)))
	native := goKernel(d, "native", func(c *Call) error {
		return c.Parallel(64, 1, func(lo, hi int) {
			for range hi - lo {
				g.enter()
				for range 2000 {
					goruntime.KeepAlive(lo)
				}
				g.leave()
			}
		})
	})
	const launches, groups = 8, 100
	var streams []*stream
	for range 3 {
		a, b := openStream(t, d), openStream(t, d)
		for range launches {
			l := launchOf(k, groups, mem)
			pass(l, int32(20000))
			require.NoError(t, a.Launch(l))
			require.NoError(t, b.Launch(launchOf(native, 1)))
		}
		streams = append(streams, a, b)
	}
	for _, s := range streams {
		require.NoError(t, s.Sync(background(t)))
	}
	assert.Zero(t, g.now)
	assert.LessOrEqual(t, int(g.most), d.threads)
	assert.Positive(t, g.most)
	assert.EqualValues(t, 3*launches*groups, *(*int32)(unsafe.Pointer(&b[8])))
	require.Eventually(t, func() bool {
		d.workers.mu.Lock()
		defer d.workers.mu.Unlock()
		return d.workers.running == 0
	}, 10*1e9, 1e6, "every place is free again")
}

// TestWorkersSettleAfterGoexit checks that no helper runs any more after the goroutine of a launch has
// ended early.
func TestWorkersSettleAfterGoexit(t *testing.T) {
	d := openThreads(t, 3)
	var inside atomic.Int32
	entered := make(chan struct{}, 64)
	s := openStream(t, d)
	require.NoError(t, s.Launch(launchOf(goKernel(d, "exit", func(c *Call) error {
		return c.Parallel(64, 1, func(lo, hi int) {
			if strings.Contains(string(debug.Stack()), "cpu.(*call).Parallel(") {
				<-entered
				goruntime.Goexit()
			}
			inside.Add(1)
			entered <- struct{}{}
			time.Sleep(20 * time.Millisecond)
			inside.Add(-1)
		})
	}), 1)))
	require.ErrorIs(t, s.Sync(background(t)), errGoexit)
	assert.Zero(t, inside.Load(), "a helper still runs")
}

// TestWorkersAreFair checks that a short launch does not wait for the end of long ones.
func TestWorkersAreFair(t *testing.T) {
	d := openDevice(t)
	k := loadKernel(t, d, gaugeText, "stay")
	mem := allocBytes(t, d, 12)
	var long []*stream
	for range d.threads + 1 {
		s := openStream(t, d)
		l := launchOf(k, 100000, mem)
		pass(l, int32(40000))
		require.NoError(t, s.Launch(l))
		long = append(long, s)
	}
	s := openStream(t, d)
	l := launchOf(k, 1, mem)
	pass(l, int32(1))
	require.NoError(t, s.Launch(l))
	require.NoError(t, s.Sync(background(t)))
	for _, s := range long {
		assert.Zero(t, s.done.Load(), "a launch of seconds is over")
	}
	require.NoError(t, d.Close(), "closing ends the other launches between two groups")
}

// TestProductsYield checks that a large product gives a place to a launch that waits for one, and so do
// other kernels in C. If the product ends before the launch comes, the test tries again.
func TestProductsYield(t *testing.T) {
	f := newFence(t, 1)
	const n, rows, many, dim = 1500, 30000, 64, 512
	large := f.bytes(4 * rows * many)
	a, b, c := f.bytes(4*n*n), f.bytes(4*n*n), f.bytes(4*n*n)
	for threads := 1; threads <= 2; threads++ {
		opened, err := backend{}.Open(t.Context(), fastIndex, &driver.Config{CPUThreads: threads})
		require.NoError(t, err)
		d := opened.(*device)
		if d.simd == nil {
			t.Skip("the Go kernels yield between small ranges anyway")
		}
		for what, launch := range map[string]func() error{
			"gemm": func() error {
				return invoke(t, d, "gemm", "gemm", nil, [3]int{1, 1, 1}, uint32(n), uint32(n), uint32(n), float32(1), a, uint32(n),
					b, uint32(n), float32(0), c, uint32(n))
			},
			"gemm_i8": func() error {
				return invoke(t, d, "gemm_i8", "gemm_i8", nil, [3]int{1, 1, 1}, uint32(rows), uint32(many), uint32(dim/2),
					uint32(1), large,
					uint32(dim/2), a, uint32(many), uint32(0), c, uint32(many))
			},
			"l2": func() error {
				return invoke(t, d, "l2_distance", "l2_distance_fp32", nil, [3]int{1, 1, 1}, a, large, c, uint32(many),
					uint32(rows*many/dim), uint32(dim))
			},
			"softmax": func() error {
				return invoke(t, d, "softmax", "softmax", nil, [3]int{1, 1, 1}, a, b, uint32(n), uint32(n))
			},
		} {
			yields := false
			for try := 0; try < 20 && !yields; try++ {
				yields = launchYields(t, d, launch)
			}
			assert.True(t, yields, "%s on %d threads", what, threads)
		}
		assert.NoError(t, d.Close())
	}
}

// launchYields waits for a place of d while run computes, and reports whether it got one before the end.
func launchYields(t *testing.T, d *device, run func() error) bool {
	var over atomic.Bool
	var launch sync.WaitGroup
	launch.Go(func() {
		d.workers.enter()
		defer d.workers.leave()
		assert.NoError(t, run())
		over.Store(true)
	})
	for busy := 0; busy < d.threads && !over.Load(); {
		goruntime.Gosched()
		d.workers.mu.Lock()
		busy = d.workers.running
		d.workers.mu.Unlock()
	}
	d.workers.enter()
	early := !over.Load()
	d.workers.leave()
	launch.Wait()
	return early
}
