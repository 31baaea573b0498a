package mempool

import (
	"errors"
	"math"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/concord-compute/concord/runtime/driver"
)

func get(t testing.TB, p *Pool, n int64, lane *Lane) Block {
	t.Helper()
	b, err := p.Get(n, driver.OnDevice, lane)
	require.NoError(t, err)
	return b
}

// Memory that is put back while work uses it can be reused at once on the same lane, and on other
// lanes later.
func TestLanes(t *testing.T) {
	for _, mode := range []Mode{Split, Whole, Exact} {
		src := &fakeSource{}
		p := New(src, Options{Mode: mode})
		q, other := &queue{queued: 7}, &queue{}
		q.lane, other.lane = p.NewLane(q), p.NewLane(other)
		const n = 40 << 20 // so that a slab is one block
		b := get(t, p, n, nil)
		require.NoError(t, p.Put(b.ID, q.lane, 7))
		assert.EqualValues(t, n, p.Stats().Waiting)
		again := get(t, p, n, q.lane)
		assert.Equal(t, b.Memory, again.Memory, "the same lane gets it at once")
		assert.True(t, again.Ordered)
		require.NoError(t, p.Put(again.ID, q.lane, 7))
		for _, lane := range []*Lane{nil, other.lane} {
			c := get(t, p, n, lane)
			assert.NotEqual(t, b.Memory.Handle, c.Memory.Handle)
			assert.False(t, c.Ordered)
		}
		q.passed = 6
		assert.EqualValues(t, n, p.Stats().Waiting)
		q.passed = 7
		c := get(t, p, n, other.lane)
		assert.Equal(t, b.Memory, c.Memory)
		assert.False(t, c.Ordered)
		assert.Zero(t, p.Stats().Waiting)
		assert.EqualValues(t, 3, src.allocs)
	}
}

// TestSizes: the sizes of blocks in each mode.
func TestSizes(t *testing.T) {
	p := New(&fakeSource{}, Options{Mode: Whole})
	a, b := get(t, p, 256, nil), get(t, p, 128, nil)
	s := p.Stats()
	assert.EqualValues(t, 512, s.Live)
	assert.Equal(t, 0.25, s.Internal())
	require.NoError(t, p.Put(a.ID, nil, 0))
	require.NoError(t, p.Put(b.ID, nil, 0))
	for range 10 {
		get(t, p, 1024*1024*4, nil)
	}
	s = p.Stats()
	assert.Zero(t, s.Internal())
	assert.EqualValues(t, 40<<20, s.Live)
	assert.Equal(t, 0.0390625, s.Pressure(), "of 1 GiB")
	assert.EqualValues(t, 6012954214, AdviseLimit(8<<30))
	assert.EqualValues(t, 4<<30-1, AdviseLimit(8<<30-1), "a small memory")
	assert.EqualValues(t, 1<<29, AdviseLimit(1<<30))
	assert.EqualValues(t, 0, AdviseLimit(1), "which is that of an unknown memory")
	assert.Positive(t, AdviseLimit(math.MaxInt64))
	for _, n := range []int64{0, -1} {
		_, err := p.Get(n, driver.OnDevice, nil)
		assert.ErrorIs(t, err, driver.ErrInvalidArgument)
	}
	_, err := p.Get(math.MaxInt64, driver.OnDevice, nil)
	assert.ErrorIs(t, err, driver.ErrTooLarge)
	none := New(&fakeSource{}, Options{}).Stats()
	assert.Equal(t, 1.0, none.Efficiency())
	assert.Zero(t, none.Internal()+none.TypeDiversity())
}

// An emergency clean-up leaves live blocks, and the accounts end at zero.
func TestCleanupWithLiveBuffers(t *testing.T) {
	for _, mode := range []Mode{Split, Whole, Exact} {
		src := &fakeSource{}
		p := New(src, Options{Mode: mode})
		a, b := get(t, p, 100<<20, nil), get(t, p, 90<<20, nil)
		require.NoError(t, p.Put(a.ID, nil, 0))
		assert.EqualValues(t, 100<<20, p.Trim(0))
		s := p.Stats()
		assert.EqualValues(t, 90<<20, s.Live)
		assert.Zero(t, s.Cached)
		assert.WithinDuration(t, time.Now(), s.LastCleanup, time.Minute)
		require.NoError(t, p.Put(b.ID, nil, 0))
		s = p.Stats()
		assert.Zero(t, s.Live)
		assert.EqualValues(t, 90<<20, s.Cached)
		assert.EqualValues(t, 100<<20+90<<20, s.PeakLive)
	}
}

// Out of memory: the pool frees everything that is not in use, and then tries the driver again.
func TestOutOfMemory(t *testing.T) {
	calls := 0
	src := &fakeSource{fail: func(int64) error { calls++; return driver.ErrOutOfMemory }}
	var order []string
	p := New(src, Options{
		Drain:   func() { order = append(order, "drain") },
		Collect: func() { order = append(order, "collect") },
	})
	_, err := p.Get(100, driver.OnDevice, nil)
	assert.ErrorIs(t, err, driver.ErrOutOfMemory)
	assert.Equal(t, 2, calls, "exactly one retry")
	assert.Equal(t, []string{"drain", "collect"}, order)
	assert.Zero(t, p.Stats().Allocations+p.Stats().Misses, "a failed get counts nothing")
	assert.EqualValues(t, 1, p.Stats().Retries)

	src.fail = nil
	src.room = 100 << 20
	q := &queue{queued: 3}
	q.lane = p.NewLane(q)
	b := get(t, p, 60<<20, nil)
	require.NoError(t, p.Put(b.ID, q.lane, 3))
	get(t, p, 70<<20, nil)
	assert.EqualValues(t, 3, q.passed, "it waited for the work")
	p.Track(true)
	held := get(t, p, 10<<20, nil)
	p.SetTag(held.ID, "weights")
	_, err = p.Get(80<<20, driver.OnDevice, nil)
	assert.ErrorIs(t, err, driver.ErrOutOfMemory)
	assert.ErrorContains(t, err, "70.0 MiB in 1 blocks")
	assert.ErrorContains(t, err, "10.0 MiB in 1 blocks (weights), ")
	assert.ErrorContains(t, err, "pool_test.go:")
	src.fail = func(int64) error { return driver.ErrDeviceLost }
	_, err = p.Get(80<<20, driver.OnDevice, nil)
	assert.ErrorIs(t, err, driver.ErrDeviceLost)
}

// Collect may put blocks back: the request is then served by them.
func TestCollectServes(t *testing.T) {
	src := &fakeSource{room: 50 << 20}
	var lost Block
	var p *Pool
	p = New(src, Options{Collect: func() { _ = p.Put(lost.ID, nil, 0) }})
	lost = get(t, p, 40<<20, nil)
	b := get(t, p, 40<<20, nil)
	assert.Equal(t, lost.Memory, b.Memory)
	assert.EqualValues(t, 1, src.allocs)
}

func TestLimits(t *testing.T) {
	src := &fakeSource{}
	p := New(src, Options{Mode: Exact, HardLimit: 1000, SoftLimit: 600})
	a := get(t, p, 600, nil)
	_, err := p.Get(401, driver.OnDevice, nil)
	assert.ErrorIs(t, err, driver.ErrBudget)
	b := get(t, p, 400, nil)
	require.NoError(t, p.Put(a.ID, nil, 0))
	assert.EqualValues(t, 400, p.Stats().Reserved, "above the soft limit nothing is kept")
	require.NoError(t, p.Put(b.ID, nil, 0))
	assert.EqualValues(t, 400, p.Stats().Cached)
	c := get(t, p, 700, nil)
	assert.EqualValues(t, 700, p.Stats().Reserved, "kept memory is freed to make room; a soft limit does not make a "+
		"request fail")
	require.NoError(t, p.Put(c.ID, nil, 0))
	require.NoError(t, p.SetLimits(600, 0))
	get(t, p, 5000, nil)
	assert.ErrorIs(t, p.SetLimits(-1, 0), driver.ErrInvalidArgument)

	p = New(src, Options{Mode: Exact})
	a, b = get(t, p, 500, nil), get(t, p, 300, nil)
	require.NoError(t, p.SetLimits(0, 600))
	require.NoError(t, p.Put(a.ID, nil, 0))
	assert.EqualValues(t, 300, p.Stats().Reserved, "nothing is kept above a hard limit that came later")
	require.NoError(t, p.Put(b.ID, nil, 0))
	assert.EqualValues(t, 300, p.Stats().Cached)

	_, err = New(src, Options{HardCount: 1}).Get(1, driver.Pinned, nil)
	require.NoError(t, err)
	counted := New(src, Options{Mode: Exact, HardCount: 2, SoftCount: 1})
	a, b = get(t, counted, 1, nil), get(t, counted, 2, nil)
	_, err = counted.Get(3, driver.OnDevice, nil)
	assert.ErrorIs(t, err, driver.ErrBudget)
	require.NoError(t, counted.Put(a.ID, nil, 0))
	require.NoError(t, counted.Put(b.ID, nil, 0))
	assert.EqualValues(t, 1, counted.Stats().Slabs)
}

func TestReserve(t *testing.T) {
	p := New(&fakeSource{}, Options{Mode: Exact, HardLimit: 1000})
	kept := get(t, p, 700, nil)
	require.NoError(t, p.Put(kept.ID, nil, 0))
	id, err := p.Reserve(600)
	require.NoError(t, err)
	assert.EqualValues(t, 600, p.Stats().Reserved, "kept memory was freed to make room")
	_, err = p.Get(500, driver.OnDevice, nil)
	assert.ErrorIs(t, err, driver.ErrBudget)
	_, err = p.Reserve(401)
	assert.ErrorIs(t, err, driver.ErrBudget)
	require.NoError(t, p.Release(id))
	assert.ErrorIs(t, p.Release(id), driver.ErrInvalidArgument)
	assert.Zero(t, p.Stats().Reserved)
	for _, n := range []int64{0, -1, math.MaxInt64} {
		_, err = p.Reserve(n)
		assert.Error(t, err)
	}
	assert.Zero(t, p.Stats().LiveBlocks)

	p = New(&fakeSource{}, Options{Mode: Exact, SoftLimit: 1000})
	kept = get(t, p, 700, nil)
	require.NoError(t, p.Put(kept.ID, nil, 0))
	_, err = p.Reserve(600)
	require.NoError(t, err)
	assert.EqualValues(t, 700, p.Stats().PeakReserved, "kept memory was freed before")
}

func TestMaintenance(t *testing.T) {
	p := New(&fakeSource{}, Options{})
	b := get(t, p, 1, nil)
	require.NoError(t, p.Put(b.ID, nil, 0))
	assert.False(t, p.Maintenance(time.Hour))
	p.made = p.made.Add(-time.Hour)
	assert.True(t, p.Maintenance(time.Hour), "a pool without an earlier clean-up is due")
	assert.NotZero(t, p.Stats().Reserved, "blocks that were used since then stay")
	assert.False(t, p.Maintenance(time.Hour))
	p.swept = p.swept.Add(-time.Hour)
	assert.True(t, p.Maintenance(time.Hour))
	assert.Zero(t, p.Stats().Reserved, "the memory was not used any more")
}

func TestPreallocate(t *testing.T) {
	src := &fakeSource{}
	p := New(src, Options{Mode: Exact, HardLimit: 10000})
	require.NoError(t, p.Preallocate([]Spec{{1000, 3}, {500, 2}}))
	assert.EqualValues(t, 4000, p.Stats().Cached)
	assert.EqualValues(t, 5, p.Stats().Misses)
	for range 3 {
		get(t, p, 1000, nil)
	}
	assert.EqualValues(t, 5, src.allocs)
	assert.ErrorIs(t, p.Preallocate([]Spec{{2000, 9}}), driver.ErrBudget)
	assert.EqualValues(t, 3000, p.Stats().Live)
	assert.ErrorIs(t, p.Preallocate([]Spec{{1, -1}}), driver.ErrInvalidArgument)
	assert.ErrorIs(t, p.Preallocate([]Spec{{0, 1}}), driver.ErrInvalidArgument)
	require.NoError(t, New(src, Options{Mode: PassThrough}).Preallocate([]Spec{{10, 10}}))
	assert.ErrorIs(t, New(src, Options{SoftCount: 2, Mode: Whole}).Preallocate([]Spec{{10, 3}}), driver.ErrBudget)
	assert.ErrorIs(t, New(src, Options{SoftCount: 2}).Preallocate([]Spec{{2 << 20, 3}, {1, 1}}), driver.ErrBudget)
	require.NoError(t, New(src, Options{SoftCount: 2}).Preallocate([]Spec{{2 << 10, 1000}}))
	for _, mode := range []Mode{Split, Whole, Exact} {
		for _, o := range []Options{{SoftLimit: 10 << 20}, {HardLimit: 10 << 20}, {HardCount: 4}} {
			o.Mode = mode
			src := &fakeSource{}
			p := New(src, o)
			b := get(t, p, 1<<20, nil)
			held := src.held
			assert.ErrorIs(t, p.Preallocate([]Spec{{1 << 20, 50}}), driver.ErrBudget)
			assert.Equal(t, held, src.held, "all or nothing")
			require.NoError(t, p.Put(b.ID, nil, 0))
			specs := []Spec{{1 << 20, 2}, {100 << 10, 2}}
			require.NoError(t, p.Preallocate(specs))
			got := src.allocs
			for _, s := range specs {
				for range s.Count {
					get(t, p, s.Bytes, nil)
				}
			}
			assert.Equal(t, got, src.allocs, "without the driver")
		}
	}
}

func TestCloseListsWhatIsLive(t *testing.T) {
	src := &fakeSource{}
	p := New(src, Options{})
	p.Track(true)
	a := get(t, p, 100, nil)
	assert.Len(t, p.Leaks(0), 1)
	assert.Empty(t, p.Leaks(time.Hour))
	err := p.Close()
	assert.ErrorIs(t, err, ErrLeak)
	assert.ErrorContains(t, err, "pool_test.go:")
	_, err = p.Get(1, driver.OnDevice, nil)
	assert.ErrorIs(t, err, driver.ErrClosed)
	require.NoError(t, p.Put(a.ID, nil, 0))
	assert.Zero(t, src.held, "freed when it comes back")
	assert.NoError(t, p.Close())
	assert.ErrorIs(t, p.SetLimits(0, 0), driver.ErrClosed)
	assert.ErrorIs(t, p.Preallocate([]Spec{{1, 1}}), driver.ErrClosed)
	_, err = p.Reserve(1)
	assert.ErrorIs(t, err, driver.ErrClosed)
}

// While the driver must not free, memory that is to be freed is still counted.
func TestBusy(t *testing.T) {
	src, busy := &fakeSource{}, true
	p := New(src, Options{Mode: PassThrough, Busy: func() bool { return busy }})
	b := get(t, p, 100, nil)
	require.NoError(t, p.Put(b.ID, nil, 0))
	assert.EqualValues(t, 100, src.held)
	assert.EqualValues(t, 100, p.Stats().Reserved)
	busy = false
	p.Settle()
	assert.Zero(t, src.held+p.Stats().Reserved)
}

// Of ten thousand handles, none names another block after its own block is gone.
func TestHandles(t *testing.T) {
	p := New(&fakeSource{}, Options{})
	seen := map[ID]bool{}
	var last []ID
	for range 10_000 {
		b := get(t, p, 64, nil)
		require.False(t, seen[b.ID])
		seen[b.ID] = true
		if last = append(last, b.ID); len(last) == 100 {
			for _, id := range last {
				require.NoError(t, p.Put(id, nil, 0))
				require.ErrorIs(t, p.Put(id, nil, 0), driver.ErrInvalidArgument)
			}
			last = nil
		}
	}
	assert.ErrorIs(t, p.Put(NoID, nil, 0), driver.ErrInvalidArgument)
}

// All calls from many goroutines at once.
func TestConcurrent(t *testing.T) {
	for _, mode := range []Mode{Split, Whole, Exact, PassThrough} {
		var left atomic.Int64
		src := &fakeSource{}
		left.Store(400)
		src.fail = func(int64) error {
			if left.Add(-1)%97 == 0 {
				return errors.Join(driver.ErrOutOfMemory)
			}
			return nil
		}
		p := New(src, Options{Mode: mode, HardLimit: 1 << 30})
		var wg sync.WaitGroup
		for g := range 4 {
			wg.Go(func() {
				w := &counter{}
				lane := p.NewLane(w)
				defer lane.Close()
				for i := range 500 {
					b, err := p.Get(int64(1)<<((i+g)%24), driver.OnDevice, lane)
					if err != nil {
						assert.ErrorIs(t, err, driver.ErrOutOfMemory)
						continue
					}
					assert.NoError(t, p.Put(b.ID, lane, uint64(i)))
					w.n.Store(uint64(max(0, i-3)))
					if i%50 == 0 {
						p.Trim(1 << 20)
						s := p.Stats()
						assert.Equal(t, s.Reserved, s.Live+s.Cached)
						p.Holders()
					}
				}
				w.n.Store(500)
			})
		}
		wg.Wait()
		require.NoError(t, p.Close())
		assert.Zero(t, src.held)
		assert.NoError(t, src.wrong)
		assert.LessOrEqual(t, src.most, int64(1<<30))
	}
}

type counter struct{ n atomic.Uint64 }

func (c *counter) Finished() uint64 { return c.n.Load() }
func (c *counter) Wait(upTo uint64) {}

// BenchmarkGetPut measures getting a kept block and putting it back.
func BenchmarkGetPut(b *testing.B) {
	for _, mode := range []struct {
		name string
		Mode
	}{{"split", Split}, {"whole", Whole}, {"exact", Exact}} {
		b.Run(mode.name, func(b *testing.B) {
			p := New(&fakeSource{}, Options{Mode: mode.Mode})
			b.ReportAllocs()
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					block, err := p.Get(1<<20, driver.OnDevice, nil)
					if err != nil || p.Put(block.ID, nil, 0) != nil {
						b.Fatal(err)
					}
				}
			})
		})
	}
}

// Blocks are kept in the order in which they were put back: the oldest is freed first, the newest
// is reused first.
func TestOrderOfUse(t *testing.T) {
	for _, mode := range []Mode{Split, Whole, Exact} {
		for _, more := range []int{0, mostWarm, 2*mostWarm + 7} { // other blocks that were put back meanwhile
			const n = 40 << 20 // so that a slab is one block
			pool := func() (p *Pool, a, b Block) {
				p = New(&fakeSource{}, Options{Mode: mode, SoftLimit: 1 << 50})
				a, b = get(t, p, n, nil), get(t, p, 2*n, nil)
				var others []Block
				for range more {
					others = append(others, get(t, p, 3*n, nil))
				}
				require.NoError(t, p.Put(a.ID, nil, 0))
				for _, x := range others {
					require.NoError(t, p.Put(x.ID, nil, 0))
				}
				require.NoError(t, p.Put(b.ID, nil, 0))
				return p, a, b
			}
			p, a, _ := pool()
			assert.EqualValues(t, n, p.Trim(int64(2+3*more)*n), "the older one goes")
			assert.NotEqual(t, a.Memory.Handle, get(t, p, n, nil).Memory.Handle)
			p, _, b := pool()
			p.Trim(2 * n)
			assert.Equal(t, b.Memory, get(t, p, 2*n, nil).Memory, "the younger one stays")
		}
		p := New(&fakeSource{}, Options{Mode: mode})
		a, b := get(t, p, 40<<20, nil), get(t, p, 40<<20, nil)
		require.NoError(t, p.Put(a.ID, nil, 0))
		require.NoError(t, p.Put(b.ID, nil, 0))
		p.Stats()
		assert.Equal(t, b.Memory, get(t, p, 40<<20, nil).Memory)
	}
}

// Getting a kept block and putting it back allocates no memory of the program.
func TestGetPutAllocates(t *testing.T) {
	for _, mode := range []Mode{Split, Whole, Exact} {
		p := New(&fakeSource{}, Options{Mode: mode})
		assert.Zero(t, testing.AllocsPerRun(1000, func() {
			b, err := p.Get(5000, driver.OnDevice, nil)
			if err != nil || p.Put(b.ID, nil, 0) != nil {
				panic(err)
			}
		}), mode)
	}
}

// A slab may be larger than the driver's limit for an allocation, while the block is not.
func TestSlabTooLarge(t *testing.T) {
	p := New(&fakeSource{fail: func(n int64) error {
		if n > 17<<20+1<<10 {
			return driver.ErrTooLarge
		}
		return nil
	}}, Options{})
	get(t, p, 17<<20+1<<10, nil)
	assert.EqualValues(t, 17<<20+1<<10, p.Stats().Reserved)
	_, err := p.Get(17<<20+2<<10, driver.OnDevice, nil)
	assert.ErrorIs(t, err, driver.ErrTooLarge)
}

// ending is the work of a lane that is closed while a call waits for it.
type ending struct {
	queue
	t *testing.T
}

func (q *ending) Wait(uint64) { q.lane.Close(); q.lane = nil }

func (q *ending) Finished() uint64 {
	assert.NotNil(q.t, q.lane, "asked after the end")
	return q.passed
}

func TestLaneEndsWhileWaitedFor(t *testing.T) {
	src := &fakeSource{room: 100}
	p := New(src, Options{Mode: Exact})
	q := &ending{t: t}
	q.lane = p.NewLane(q)
	a := get(t, p, 60, nil)
	require.NoError(t, p.Put(a.ID, q.lane, 3))
	get(t, p, 70, nil)
	assert.EqualValues(t, 70, src.held)
}

func TestAlign(t *testing.T) {
	for given, want := range map[int64]int64{-1: 256, 0: 256, 1: 1, 64: 64, 65: 128, 1 << 30: 1 << 30, 1 << 50: 1 << 30,
		math.MaxInt64: 1 << 30} {
		p := New(&fakeSource{}, Options{Align: given})
		assert.Equal(t, want, p.o.Align)
		get(t, p, largest, nil)
		a, b := get(t, p, 1, nil), get(t, p, 1, nil)
		assert.Zero(t, a.Memory.Offset%want+b.Memory.Offset%want)
	}
}
