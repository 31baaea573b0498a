package mempool

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/concord-compute/concord/runtime/driver"
)

// queue is the work of a lane, whose progress the test controls.
type queue struct {
	lane           *Lane
	queued, passed uint64
}

func (q *queue) Finished() uint64 { return q.passed }
func (q *queue) Wait(upTo uint64) { q.passed = max(q.passed, upTo) }

// span is a range of memory that is live, or that work of a lane may still use.
type span struct {
	id        ID
	handle    uint64
	off, size int64
	asked     int64
	reserved  bool // from Reserve: live until Release
	on        *queue
	at        uint64
}

func (a span) meets(b span) bool {
	return a.handle == b.handle && a.off < b.off+b.size && b.off < a.off+a.size
}

// model is the model that a pool is compared with: lists of ranges, with sums that are computed at
// each check.
type model struct {
	src     *fakeSource
	p       *Pool
	o       Options
	queues  [3]*queue
	live    []span
	pending []span
	gone    []ID
	gets    int64
	puts    int64
	peak    int64

	reserving int64 // the size of the reservation that a call is making

	level     int // number of thresholds that were reported as crossed
	cleanups  int64
	emergency bool // whether the last report was an emergency
}

func newModel(o Options, room int64) *model {
	m := &model{src: &fakeSource{room: room}, o: o}
	m.o.SoftLimit = cmp.Or(o.SoftLimit, 1<<30)
	m.p = New(m.src, o)
	m.src.fail = m.within
	m.watch(o.Thresholds)
	for i := range m.queues {
		m.queues[i] = &queue{}
		m.queues[i].lane = m.p.NewLane(m.queues[i])
	}
	return m
}

// get gets a block and checks the conditions that must hold after it.
func (m *model) get(n int64, kind driver.MemoryKind, on *queue) error {
	var lane *Lane
	if on != nil {
		lane = on.lane
	}
	b, err := m.p.Get(n, kind, lane)
	if err != nil {
		return m.refused(err)
	}
	s := span{id: b.ID, handle: b.Memory.Handle, off: b.Memory.Offset, asked: n, size: m.src.open[b.Memory.Handle]}
	if m.o.Mode == Split && kind == driver.OnDevice {
		s.size = (n + 255) / 256 * 256
	}
	switch {
	case b.Memory.Size != n || b.Memory.Kind != kind:
		return fmt.Errorf("got %+v", b.Memory)
	case s.off%256 != 0 || s.off < 0 || s.off+s.size > m.src.open[s.handle] || s.size < n:
		return fmt.Errorf("%+v in an allocation of %d", s, m.src.open[s.handle])
	}
	for _, other := range m.live {
		if s.meets(other) {
			return fmt.Errorf("%+v overlaps %+v", s, other)
		}
	}
	var still []span
	for _, other := range m.pending {
		switch {
		case other.on.passed >= other.at: // nothing uses it
		case !s.meets(other):
			still = append(still, other)
		case other.on != on || !b.Ordered:
			return fmt.Errorf("%+v overlaps %+v, whose work goes on", s, other)
		default: // the new use comes after the old one, and so must the next one
			still = append(still, other)
		}
	}
	m.pending = still
	m.live = append(m.live, s)
	m.gets++
	return nil
}

// put puts back a live block, with or without work on a lane.
func (m *model) put(i int, on *queue) error {
	s := m.live[i]
	m.live = append(m.live[:i], m.live[i+1:]...)
	if s.reserved {
		return m.release(s)
	}
	for _, other := range m.pending { // as package runtime does: memory in stream order is put back in that order
		if other.on.passed < other.at && s.meets(other) {
			on = other.on
		}
	}
	var lane *Lane
	var at uint64
	if on != nil {
		on.queued++
		lane, at = on.lane, on.queued
		s.on, s.at = on, at
		m.pending = append(m.pending, s)
	}
	m.gone = append(m.gone, s.id)
	m.puts++
	return m.p.Put(s.id, lane, at)
}

// check compares the accounts with sums over the lists.
func (m *model) check() error {
	var live, asked int64
	for _, s := range m.live {
		live += s.size
		asked += s.asked
	}
	busy := 0
	for _, s := range m.pending {
		if s.on.passed < s.at {
			busy++
			if _, open := m.src.open[s.handle]; !open {
				return fmt.Errorf("freed while in use: %+v", s)
			}
		}
	}
	m.peak = max(m.peak, live)
	if err := m.pressure(live); err != nil {
		return err
	}
	st := m.p.Counters()
	if (m.gets+m.puts)%3 == 0 { // otherwise warm blocks stay warm
		st = m.p.Stats()
	}
	want := st
	want.Live, want.Requested, want.Reserved = live, asked, m.src.held
	want.Cached = m.src.held - live
	want.LiveBlocks, want.Slabs = int64(len(m.live)), int64(len(m.src.open))
	want.Allocations, want.Deallocations, want.PeakLive = m.gets, m.puts, m.peak
	want.PeakReserved, want.DriverAllocs, want.DriverFrees = m.src.most, m.src.allocs, m.src.frees
	want.SoftLimit, want.HardLimit, want.Cleanups = m.o.SoftLimit, m.o.HardLimit, m.cleanups
	if busy == 0 && (m.gets+m.puts)%3 == 0 {
		want.Waiting = 0
	}
	switch {
	case st != want:
		return fmt.Errorf("accounts\n%+v\nare really\n%+v", st, want)
	case st.Hits+st.Misses != m.gets || st.Waiting < m.waiting() || st.Waiting > st.Cached || st.LargestFree > st.Cached:
		return fmt.Errorf("accounts %+v", st)
	}
	if (m.gets+m.puts)%3 != 0 {
		return m.src.wrong
	}
	return errors.Join(m.src.wrong, m.shape(), m.keepsLittle())
}

// waiting returns the bytes that, at least, must be free and still in use by work.
func (m *model) waiting() (sum int64) {
	var seen []span
	for _, s := range m.pending {
		again := func(other span) bool { return s.meets(other) } // got again
		if s.on.passed < s.at && !slices.ContainsFunc(m.live, again) && !slices.ContainsFunc(seen, again) {
			seen = append(seen, s)
			sum += s.size
		}
	}
	return sum
}

// shape checks the pool's data structures: chains have no gaps, free neighbours are joined, every
// free block is in its sets.
func (m *model) shape() error {
	p := m.p
	p.mu.Lock()
	defer p.mu.Unlock()
	var cached, blocks int64
	ready, slabs := map[*key]int{}, map[*key]int{}
	for _, b := range p.table {
		if b.slab == nil {
			continue
		}
		k := b.slab.key
		if b.prev == nil {
			slabs[k]++
		}
		if b.whole() && !b.live && b.lane == nil {
			ready[k]++
		}
		if !b.live {
			cached += b.size
			blocks++
		}
		if n := b.next; n != nil {
			if n.prev != b || n.off != b.off+b.size || n.slab != b.slab {
				return fmt.Errorf("chain broken at %+v", b)
			}
			if b.slab.kept && !b.live && !n.live && b.lane == n.lane {
				return fmt.Errorf("free neighbours at %+v", b)
			}
		} else if b.off+b.size != b.slab.mem.Size {
			return fmt.Errorf("slab ends early: %+v", b)
		}
	}
	for size, k := range p.keys {
		if k.size != size || k.slabs != slabs[k] || k.ready != ready[k] {
			return fmt.Errorf("%+v, but there are %d slabs, %d of them free", *k, slabs[k], ready[k])
		}
	}
	if len(slabs) != len(p.keys) {
		return fmt.Errorf("%d sizes of slabs, counted %d", len(slabs), len(p.keys))
	}
	if cached != p.n.Cached || blocks != p.n.CachedBlocks {
		return fmt.Errorf("%d bytes in %d free blocks, counted %d in %d", cached, blocks, p.n.Cached, p.n.CachedBlocks)
	}
	return nil
}

// end puts everything back and checks that nothing is left. early means that the pool was closed
// before.
func (m *model) end(early bool) error {
	if early {
		if err := m.closed(); err != nil {
			return err
		}
	}
	for len(m.live) > 0 {
		if err := m.put(0, nil); err != nil {
			return err
		}
	}
	for _, q := range m.queues {
		q.passed = q.queued
		q.lane.Close()
	}
	if early && m.src.held != 0 {
		return fmt.Errorf("%d bytes kept after Close", m.src.held)
	}
	if err := errors.Join(m.p.Close(), m.pressure(0)); err != nil {
		return err
	}
	if m.src.held != 0 || m.p.Stats().Reserved != 0 {
		return fmt.Errorf("%d bytes left, counted %d", m.src.held, m.p.Stats().Reserved)
	}
	return m.src.wrong
}

func TestModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		o := Options{
			Mode:      Mode(rapid.IntRange(0, 3).Draw(t, "mode")),
			SoftLimit: rapid.SampledFrom([]int64{0, 100 << 20, 1 << 40}).Draw(t, "soft"),
			HardLimit: rapid.SampledFrom([]int64{0, 0, 300 << 20}).Draw(t, "hard"),
			SoftCount: rapid.SampledFrom([]int{0, 0, 3}).Draw(t, "soft count"),
			HardCount: rapid.SampledFrom([]int{0, 0, 5}).Draw(t, "hard count"),

			AutoEmergency: rapid.Bool().Draw(t, "emergency"),
		}
		m := newModel(o, rapid.SampledFrom([]int64{0, 500 << 20}).Draw(t, "room"))
		on := func() *queue {
			if i := rapid.IntRange(-1, len(m.queues)-1).Draw(t, "on"); i >= 0 {
				return m.queues[i]
			}
			return nil
		}
		bytes := func(t *rapid.T) int64 {
			return rapid.Int64Range(1, 1<<rapid.IntRange(1, 27).Draw(t, "bits")).Draw(t, "n")
		}
		get := func(t *rapid.T) {
			n := bytes(t)
			kind := rapid.SampledFrom([]driver.MemoryKind{driver.OnDevice, driver.OnDevice, driver.OnDevice,
				driver.Pinned}).Draw(t, "kind")
			require.NoError(t, m.get(n, kind, on()))
		}
		t.Repeat(map[string]func(*rapid.T){
			"get": get, "get more": get,
			"put": func(t *rapid.T) {
				if len(m.live) > 0 {
					require.NoError(t, m.put(rapid.IntRange(0, len(m.live)-1).Draw(t, "which"), on()))
				}
			},
			"put again": func(t *rapid.T) {
				if len(m.gone) > 0 {
					id := rapid.SampledFrom(m.gone).Draw(t, "id")
					require.ErrorIs(t, m.p.Put(id, nil, 0), driver.ErrInvalidArgument)
					require.ErrorIs(t, m.p.Release(id), driver.ErrInvalidArgument)
				}
			},
			"reserve": func(t *rapid.T) { require.NoError(t, m.reserve(bytes(t))) },
			"preallocate": func(t *rapid.T) {
				specs := make([]Spec, rapid.IntRange(1, 2).Draw(t, "sizes"))
				for i := range specs {
					specs[i] = Spec{bytes(t), rapid.IntRange(0, 4).Draw(t, "count")}
				}
				require.NoError(t, m.preallocate(specs))
			},
			"limits": func(t *rapid.T) {
				soft := rapid.SampledFrom([]int64{-1, 0, 1, 1 << 20, 50 << 20, 100 << 20, 1 << 40}).Draw(t, "soft")
				hard := rapid.SampledFrom([]int64{-1, 0, 0, 1, 100 << 20, 300 << 20}).Draw(t, "hard")
				require.NoError(t, m.setLimits(soft, hard))
			},
			"pass": func(t *rapid.T) {
				if q := on(); q != nil {
					q.passed = rapid.Uint64Range(q.passed, q.queued).Draw(t, "passed")
				}
			},
			"another queue": func(t *rapid.T) {
				if q := on(); q != nil {
					q.passed = q.queued
					q.lane.Close()
					q.lane = m.p.NewLane(q)
				}
			},
			"record": func(t *rapid.T) { m.p.Record(NewRecorder(rapid.IntRange(1, 50).Draw(t, "events")), "d") },
			"watch": func(t *rapid.T) {
				parts := rapid.SliceOfN(rapid.Float64Range(0.01, 1.2), 4, 4).Draw(t, "parts")
				slices.Sort(parts)
				m.watch(Thresholds{Warn: parts[0], High: parts[1], Coalesce: parts[2], Critical: parts[3]})
			},
			"name": func(t *rapid.T) {
				m.p.Track(rapid.Bool().Draw(t, "track"))
				if len(m.live) > 0 {
					m.p.SetTag(rapid.SampledFrom(m.live).Draw(t, "block").id, "x")
				}
			},
			"settle":   func(*rapid.T) { m.p.Settle() },
			"coalesce": func(*rapid.T) { m.p.Coalesce() },
			"thin":     func(*rapid.T) { m.cleanups++; m.p.CleanupFragmented() },
			"maintain": func(*rapid.T) { m.cleanups++; m.p.Maintenance(0) },
			"trim":     func(t *rapid.T) { m.trim(rapid.Int64Range(0, 1<<28).Draw(t, "keep")) },
			"":         func(t *rapid.T) { require.NoError(t, m.check()) },
		})
		require.NoError(t, m.end(rapid.Bool().Draw(t, "closed early")))
	})
}

// FuzzPool interprets bytes as operations.
func FuzzPool(f *testing.F) {
	f.Add([]byte{0, 1, 10, 1, 30, 2, 0, 1, 27, 3, 0, 2, 1, 200})
	f.Add([]byte{2, 1, 20, 1, 20, 2, 0, 2, 0, 1, 20, 4, 9})
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) < 2 {
			return
		}
		m := newModel(Options{Mode: Mode(data[0] % 4), HardLimit: 300 << 20}, 0)
		for i := 1; i+1 < len(data); i += 2 {
			arg := int(data[i+1])
			var on *queue
			if k := data[i] >> 4; k < 3 {
				on = m.queues[k]
			}
			switch data[i] & 15 % 5 {
			case 0, 1:
				require.NoError(t, m.get(int64(1)<<(arg%28)+int64(arg), driver.OnDevice, on))
			case 2:
				if len(m.live) > 0 {
					require.NoError(t, m.put(arg%len(m.live), on))
				}
			case 3:
				if on != nil {
					on.passed = min(on.queued, on.passed+uint64(arg))
				}
			case 4:
				m.trim(int64(arg) << 20)
			}
			require.NoError(t, m.check())
		}
		require.NoError(t, m.end(false))
	})
}
