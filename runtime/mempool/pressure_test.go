package mempool

import (
	"math"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/concord-compute/concord/runtime/driver"
)

// Every threshold is reported once when live memory rises above it, and once when it falls to it or
// below.
func TestThresholds(t *testing.T) {
	p := New(&fakeSource{}, Options{Mode: Exact, SoftLimit: 100})
	var told []string
	require.NoError(t, p.Watch(Thresholds{}, func(e Pressure) { told = append(told, e.String()) }))
	says := func(want ...string) {
		t.Helper()
		assert.Equal(t, want, told)
		told = nil
	}
	a := get(t, p, 70, nil)
	says()
	b := get(t, p, 1, nil)
	says("warn: 71 B of 100 B")
	c := get(t, p, 10, nil)
	says("high: 81 B of 100 B")
	require.NoError(t, p.Put(c.ID, nil, 0))
	says("high no more: 71 B of 100 B")
	c = get(t, p, 40, nil) // above the other thresholds at once, and above the limit
	says("high: 111 B of 100 B", "coalesce: 111 B of 100 B", "critical: 111 B of 100 B")
	s := p.Stats()
	assert.Equal(t, 1.11, s.Pressure())
	assert.Positive(t, s.Coalesces)
	require.NoError(t, p.Put(a.ID, nil, 0))
	says("critical no more: 41 B of 100 B", "coalesce no more: 41 B of 100 B", "high no more: 41 B of 100 B",
		"warn no more: 41 B of 100 B")
	require.NoError(t, p.SetLimits(50, 0))
	says("warn: 41 B of 50 B", "high: 41 B of 50 B")
	require.NoError(t, p.Put(c.ID, nil, 0))
	says("high no more: 1 B of 50 B", "warn no more: 1 B of 50 B")
	id, err := p.Reserve(49)
	require.NoError(t, err)
	says("warn: 50 B of 50 B", "high: 50 B of 50 B", "coalesce: 50 B of 50 B", "critical: 50 B of 50 B")
	require.NoError(t, p.Release(id))
	assert.Len(t, told, 4)
	require.NoError(t, p.Watch(Thresholds{Warn: 0.01, High: 0.02}, nil))
	require.NoError(t, p.Put(b.ID, nil, 0))
	for _, bad := range []Thresholds{{Warn: 0.9, High: 0.8}, {Warn: -1}, {Critical: math.NaN()}, {Device: math.Inf(1)},
		{LowWater: 0.9, HighWater: 0.8}} {
		assert.ErrorIs(t, p.Watch(bad, nil), driver.ErrInvalidArgument)
	}
}

// For all thresholds, the comparison is that of the formula.
func TestThresholdFormula(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		limit := rapid.Int64Range(1, 1<<rapid.IntRange(1, 45).Draw(t, "bits")).Draw(t, "limit")
		part := rapid.Float64Range(1e-6, 3).Draw(t, "part")
		p := New(&fakeSource{}, Options{
			SoftLimit: limit, Thresholds: Thresholds{Warn: part, High: part, Coalesce: part, Critical: part}})
		line := p.lines[0]
		assert.LessOrEqual(t, float64(line)/float64(limit), part)
		assert.Greater(t, float64(line+1)/float64(limit), part)
	})
	for _, tc := range []struct {
		limit int64
		part  float64
	}{{math.MaxInt64, 0.7}, {math.MaxInt64, 1}, {1 << 30, 1e10}, {1, math.MaxFloat64}, {1 << 62, 1}, {1<<62 - 1, 1},
		{1 << 61, 0.3}} {
		n := line(tc.limit, tc.part)
		if n < never {
			assert.Greater(t, float64(n+1)/float64(tc.limit), tc.part, tc)
			assert.LessOrEqual(t, float64(n)/float64(tc.limit), tc.part, tc)
		}
		assert.Positive(t, n)
		assert.LessOrEqual(t, n, int64(never))
	}
	p := New(&fakeSource{}, Options{SoftLimit: math.MaxInt64})
	require.NoError(t, p.SetLimits(math.MaxInt64, math.MaxInt64))
	require.NoError(t, p.Watch(Thresholds{Warn: 1e10, High: 1e10, Coalesce: 1e10, Critical: 1e300}, nil))
	get(t, p, 1, nil)
}

// The callback may use the pool; thresholds that it crosses are reported after it returns.
func TestTellMayUseThePool(t *testing.T) {
	src := &fakeSource{}
	p := New(src, Options{Mode: Exact, SoftLimit: 100})
	var told []Pressure
	var inner Block
	require.NoError(t, p.Watch(Thresholds{}, func(e Pressure) {
		told = append(told, e)
		if e.Threshold == Warn && e.Up {
			inner = get(t, p, 100, nil)
			assert.Len(t, told, 1)
			p.Trim(0)
			p.Stats()
		}
	}))
	a := get(t, p, 71, nil)
	assert.Len(t, told, 4)
	require.NoError(t, p.Put(inner.ID, nil, 0))
	require.NoError(t, p.Put(a.ID, nil, 0))
	assert.Len(t, told, 8)
}

// Memory that is put back while a Get waits for it is reported after that Get.
func TestTellAfterReclaim(t *testing.T) {
	src := &fakeSource{room: 100}
	var p *Pool
	var a Block
	told := 0
	p = New(src, Options{Mode: Exact, SoftLimit: 100, Drain: func() { _ = p.Put(a.ID, nil, 0) }})
	require.NoError(t, p.Watch(Thresholds{}, func(Pressure) {
		if told++; told == 1 {
			get(t, p, 1, nil) // which takes the lock for calls to the driver
		}
	}))
	a = get(t, p, 90, nil)
	get(t, p, 50, nil)
	assert.Positive(t, told)
}

func TestAutoEmergency(t *testing.T) {
	src := &fakeSource{}
	p := New(src, Options{Mode: Exact, SoftLimit: 1000, AutoEmergency: true})
	a := get(t, p, 50, nil)
	require.NoError(t, p.Put(a.ID, nil, 0))
	b := get(t, p, 900, nil)
	assert.EqualValues(t, 950, src.held)
	c := get(t, p, 1, nil)
	assert.EqualValues(t, 901, src.held, "kept memory is freed, live memory stays")
	require.NoError(t, p.Put(b.ID, nil, 0))
	require.NoError(t, p.Put(c.ID, nil, 0))
	assert.EqualValues(t, 901, p.Stats().Cached, "and is counted as ever")
}

func TestDeviceFull(t *testing.T) {
	used := int64(90)
	p := New(&fakeSource{}, Options{Device: func() (int64, int64, bool) { return used, 100, true }})
	var told []string
	require.NoError(t, p.Watch(Thresholds{}, func(e Pressure) { told = append(told, e.String()) }))
	get(t, p, 1, nil)
	assert.Empty(t, told)
	used = 91
	get(t, p, 4<<20, nil)
	get(t, p, 8<<20, nil)
	assert.Equal(t, []string{"device: 91 B of 100 B"}, told)
	used = 1
	get(t, p, 16<<20, nil)
	assert.Equal(t, "device no more: 1 B of 100 B", told[1])
}

// From the high water mark on, a request that no kept block fits frees all kept memory, if that
// brings the pool below the low water mark.
func TestWaterMarks(t *testing.T) {
	for _, tc := range []struct {
		kept, want int64
	}{{849, 849 + 1}, {850, 1}} {
		src := &fakeSource{}
		p := New(src, Options{Mode: Exact, SoftLimit: 1000})
		a := get(t, p, tc.kept, nil)
		require.NoError(t, p.Put(a.ID, nil, 0))
		get(t, p, 1, nil)
		assert.Equal(t, tc.want, p.Stats().Reserved)
	}
}

// The low water mark is compared with the memory that is left after checking the progress of work.
func TestLowWater(t *testing.T) {
	for _, tc := range []struct {
		waiting, kept, want int64
	}{{100, 800, 1}, {300, 600, 601}} {
		p := New(&fakeSource{}, Options{Mode: Exact, SoftLimit: 1000})
		q := &queue{queued: 1}
		q.lane = p.NewLane(q)
		a := get(t, p, tc.kept, nil)
		b, err := p.Get(tc.waiting, driver.Pinned, nil) // not kept, once its work is done
		require.NoError(t, err)
		require.NoError(t, p.Put(a.ID, nil, 0))
		require.NoError(t, p.Put(b.ID, q.lane, 1))
		q.passed = 1
		get(t, p, 1, nil)
		assert.Equal(t, tc.want, p.Stats().Reserved)
	}
}

// Thresholds are reported in order and in pairs, also for concurrent allocations.
func TestThresholdsConcurrent(t *testing.T) {
	p := New(&fakeSource{}, Options{SoftLimit: 1 << 20})
	level := 0
	// reports come one at a time; otherwise the race detector reports a race
	require.NoError(t, p.Watch(Thresholds{}, func(e Pressure) {
		if e.Up {
			assert.Equal(t, level, int(e.Threshold))
			level++
		} else {
			level--
			assert.Equal(t, level, int(e.Threshold))
		}
	}))
	var wg sync.WaitGroup
	for g := range 4 {
		wg.Go(func() {
			for i := range 500 {
				b, err := p.Get(int64(1+(i*7919+g)%(400<<10)), driver.OnDevice, nil)
				if assert.NoError(t, err) {
					assert.NoError(t, p.Put(b.ID, nil, 0))
				}
			}
		})
	}
	wg.Wait()
	p.mu.Lock()
	p.leave()
	assert.Zero(t, level)
}

// The callback after a Get that failed may call Get, too.
func TestTellAfterFailure(t *testing.T) {
	for name, fails := range map[string]func(*Pool) error{
		"out of memory": func(p *Pool) error { _, err := p.Get(150, driver.OnDevice, nil); return err },
		"budget":        func(p *Pool) error { _, err := p.Get(250, driver.OnDevice, nil); return err },
		"reserve":       func(p *Pool) error { _, err := p.Reserve(250); return err },
	} {
		t.Run(name, func(t *testing.T) {
			var p *Pool
			var a Block
			told := 0
			p = New(&fakeSource{room: 100}, Options{Mode: Exact, SoftLimit: 100, HardLimit: 200, Drain: func() {
				_ = p.Put(a.ID, nil, 0)
			}})
			a = get(t, p, 90, nil)
			require.NoError(t, p.Watch(Thresholds{}, func(e Pressure) {
				if told++; !e.Up {
					p.Trim(0)
					b := get(t, p, 1, nil) // takes the lock for calls to the driver
					assert.NoError(t, p.Put(b.ID, nil, 0))
				}
			}))
			told = 0
			assert.Error(t, fails(p))
			assert.Positive(t, told)
		})
	}
}

// A panic of the callback does not end the reports.
func TestTellPanics(t *testing.T) {
	p := New(&fakeSource{}, Options{Mode: Exact, SoftLimit: 100})
	told := 0
	require.NoError(t, p.Watch(Thresholds{}, func(Pressure) {
		if told++; told == 1 {
			panic("in the program")
		}
	}))
	assert.Panics(t, func() { get(t, p, 75, nil) })
	get(t, p, 10, nil)
	assert.Equal(t, 2, told)
}
