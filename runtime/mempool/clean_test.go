package mempool

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/concord-compute/concord/runtime/driver"
)

// fill makes a pool keep that many blocks of each size.
func fill(t *testing.T, p *Pool, blocks map[int64]int) {
	t.Helper()
	var specs []Spec
	for size, n := range blocks {
		specs = append(specs, Spec{size, n})
	}
	require.NoError(t, p.Preallocate(specs))
}

func keeps(p *Pool) map[int64]int {
	p.Settle()
	p.mu.Lock()
	defer p.mu.Unlock()
	m := map[int64]int{}
	for size, k := range p.keys {
		if k.ready > 0 {
			m[size] = k.ready
		}
	}
	return m
}

// hit gets a block of a size that is kept, and puts it back.
func hit(t *testing.T, p *Pool, size int64) {
	t.Helper()
	before := p.Counters().Hits
	b := get(t, p, size, nil)
	require.NoError(t, p.Put(b.ID, nil, 0))
	require.Equal(t, before+1, p.Counters().Hits)
}

func TestCleanupFragmented(t *testing.T) {
	for _, tc := range []struct {
		name   string
		before map[int64]int
		hits   []int64
		after  map[int64]int
	}{
		{"few sizes", map[int64]int{1: 2, 2: 2}, nil, map[int64]int{1: 2, 2: 2}}, // T/N = 0.5 is not above
		{"one each", map[int64]int{1: 1, 2: 1, 3: 1, 4: 1, 5: 1, 6: 1, 7: 1, 8: 1, 9: 1, 10: 1}, nil, map[int64]int{}},
		// a = 1, and 1/2 = 0 are few
		{"one each, two in use", map[int64]int{1: 1, 2: 1, 3: 1, 4: 1}, []int64{1, 3}, map[int64]int{1: 1, 3: 1}},
		{"one size has many", map[int64]int{1: 5, 2: 1, 3: 1, 4: 1, 5: 1}, []int64{1, 2}, map[int64]int{1: 2, 2: 1}},
		{"nothing", nil, nil, map[int64]int{}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			src := &fakeSource{}
			p := New(src, Options{Mode: Exact})
			fill(t, p, tc.before)
			for _, size := range tc.hits {
				hit(t, p, size)
			}
			live := get(t, p, 1000, nil)
			before := p.Stats()
			freed := p.CleanupFragmented()
			assert.Equal(t, tc.after, keeps(p))
			after := p.Stats()
			assert.Equal(t, before.Reserved-freed, after.Reserved)
			assert.Equal(t, src.held, after.Reserved)
			assert.False(t, after.LastCleanup.IsZero(), "the time is set even if there was nothing to do")
			require.NoError(t, p.Put(live.ID, nil, 0))
		})
	}
}

// Ten sizes, one block each, and no further request: the second clean-up frees them.
func TestOneBufferPerKeyIsFreed(t *testing.T) {
	p := New(&fakeSource{}, Options{Mode: Exact})
	one := map[int64]int{}
	for i := range int64(10) {
		one[100+i] = 1
		hit := get(t, p, 100+i, nil)
		require.NoError(t, p.Put(hit.ID, nil, 0))
	}
	for size := range one {
		hit(t, p, size)
	}
	p.CleanupFragmented()
	assert.Equal(t, one, keeps(p), "all were in use")
	p.CleanupFragmented()
	assert.Empty(t, keeps(p), "and are no more")
}

// At a utilization above 0.7 maintenance frees half of the kept blocks of each size.
func TestMaintenanceHalves(t *testing.T) {
	p := New(&fakeSource{}, Options{Mode: Exact, SoftLimit: 100})
	fill(t, p, map[int64]int{7: 5, 6: 6})
	require.True(t, p.Maintenance(0))
	assert.Equal(t, map[int64]int{7: 2, 6: 3}, keeps(p), "71 of 100 bytes")
	fill(t, p, map[int64]int{7: 10})
	require.True(t, p.Maintenance(0))
	assert.Equal(t, map[int64]int{7: 10}, keeps(p), "unused blocks are freed, and 70 of 100 is not above the threshold")
}

func TestMostReady(t *testing.T) {
	p := New(&fakeSource{}, Options{Mode: Exact})
	assert.ErrorIs(t, p.Preallocate([]Spec{{8, mostReady}, {8, 1}}), driver.ErrBudget)
	var ids []ID
	for range mostReady + mostWarm + 50 {
		ids = append(ids, get(t, p, 8, nil).ID)
	}
	for _, id := range ids {
		require.NoError(t, p.Put(id, nil, 0))
	}
	assert.Equal(t, map[int64]int{8: mostReady}, keeps(p))
	require.NoError(t, p.Preallocate([]Spec{{8, mostReady}}))
}

// Blocks that work has finished with are joined when the pool checks, which it also does at every
// 25th return.
func TestCoalesce(t *testing.T) {
	p := New(&fakeSource{}, Options{SoftLimit: 2 << 20})
	q := &queue{queued: 1 << 20}
	q.lane = p.NewLane(q)
	a, b := get(t, p, 1<<20, nil), get(t, p, 1<<20, nil)
	require.NoError(t, p.Put(a.ID, q.lane, 1))
	require.NoError(t, p.Put(b.ID, q.lane, 2))
	assert.Equal(t, int64(2<<20), p.Counters().Waiting)
	q.passed = 2
	p.Coalesce()
	assert.Zero(t, p.Counters().Waiting)
	assert.Equal(t, int64(2<<20), p.Stats().LargestFree)

	c := get(t, p, 1<<20, nil)
	require.NoError(t, p.Put(c.ID, q.lane, 3))
	q.passed = 3
	for range coalesceEvery {
		assert.Equal(t, p.Counters().Deallocations%coalesceEvery == 0, p.ShouldCoalesce())
		d := get(t, p, 100, nil)
		require.NoError(t, p.Put(d.ID, q.lane, 4))
	}
	assert.GreaterOrEqual(t, p.Counters().Coalesces, int64(2))
	get(t, p, 1, nil)
	assert.True(t, p.ShouldCoalesce(), "1 of 256 bytes was asked for")
}

func TestHot(t *testing.T) {
	p := New(&fakeSource{}, Options{Mode: Exact})
	for i, want := range classes {
		assert.Equal(t, i, classOf(want))
		assert.Equal(t, i+1, classOf(want+1))
	}
	assert.Zero(t, classOf(1))
	var held []Block
	for range 9 {
		held = append(held, get(t, p, 1000, nil))
	}
	require.NoError(t, p.Put(held[0].ID, nil, 0))
	hit(t, p, 1000)
	get(t, p, 5<<20, nil)
	b := get(t, p, 64, nil)
	require.NoError(t, p.Put(b.ID, nil, 0))
	assert.Equal(t, []Class{
		{Bytes: 1 << 10, Gets: 10, Live: 8, Free: 1, Prewarm: 6}, // 8/9 in use
		{Bytes: 64, Gets: 1, Free: 1, Prewarm: 1},
		{Gets: 1, Live: 1, Prewarm: 2}, // 1/2 + 2
	}, p.Hot())
	assert.Equal(t, 2, (&Class{Live: 3, Free: 2}).prewarm())
}

func TestReport(t *testing.T) {
	p := New(&fakeSource{}, Options{})
	p.Track(true)
	b := get(t, p, 1000, nil)
	p.SetTag(b.ID, "weights")
	text := p.Report()
	for _, want := range []string{"1.0 KiB in 1 blocks, 1000 B asked for", "soft 1.0 GiB, hard none; pressure 0.000",
		"1 allocations, 0 frees, 0 retries", "internal 0.023", "holders", "(weights)", "pool_test.go:"} {
		assert.Contains(t, text, want)
	}
	assert.Zero(t, p.Stats().Leaks)
	p.mu.Lock()
	p.find(b.ID).history.born = time.Now().Add(-2 * LeakAge)
	p.mu.Unlock()
	assert.EqualValues(t, 1, p.Stats().Leaks)
	assert.ErrorIs(t, p.Put(NoID, nil, 0), driver.ErrInvalidArgument)
}
