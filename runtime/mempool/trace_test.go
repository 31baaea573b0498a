package mempool

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/concord-compute/concord/runtime/driver"
)

// recordRandom plays random requests, and returns the trace and the pool, which still
// has blocks live.
func recordRandom(t testing.TB, o Options, events, gets int) (*Trace, *Pool) {
	r := rand.New(rand.NewPCG(3, 4))
	p := New(&fakeSource{}, o)
	early := get(t.(*testing.T), p, 12345, nil)
	rec := NewRecorder(events)
	p.Record(rec, "fake:0")
	ids := []ID{early.ID}
	for range gets {
		b, err := p.Get(logUniform(r), driver.OnDevice, nil)
		require.NoError(t, err)
		ids = append(ids, b.ID)
		if len(ids) > 40 {
			j := r.IntN(len(ids))
			require.NoError(t, p.Put(ids[j], nil, 0))
			ids[j] = ids[len(ids)-1]
			ids = ids[:len(ids)-1]
		}
	}
	p.SetTag(ids[0], "first")
	p.Trim(0)
	p.Coalesce()
	return rec.Trace(), p
}

// A trace agrees with the accounts of the pool, in every mode.
func TestTraceAgreesWithTheAccounts(t *testing.T) {
	for _, mode := range []Mode{Split, Whole, Exact, PassThrough} {
		t.Run(mode.String(), func(t *testing.T) {
			trace, p := recordRandom(t, Options{Mode: mode, SoftLimit: 1 << 40}, 1<<20, 3000)
			s := p.Stats()
			require.Equal(t, []PoolInfo{{"fake:0", mode, 256, 1 << 40, 0}}, trace.Pools)
			arena := trace.Arena()
			last := arena.Samples[len(arena.Samples)-1]
			assert.Equal(t, Sample{last.At, s.Live, s.Requested, s.Reserved, 0, s.Hits, s.Misses - 1}, last)
			assert.Equal(t, s.PeakLive, arena.PeakLive)
			assert.Equal(t, s.PeakReserved, arena.PeakReserved)
			assert.GreaterOrEqual(t, arena.Height, arena.PeakReserved)
			noOverlap(t, arena)
			kinds := map[Kind]int{}
			for _, e := range trace.Events {
				kinds[e.Kind]++
			}
			assert.EqualValues(t, s.Hits, kinds[Hit])
			assert.EqualValues(t, s.Deallocations, kinds[Free])
			assert.EqualValues(t, s.DriverFrees, kinds[Shrink])
			assert.EqualValues(t, s.DriverAllocs, kinds[Grow])
			assert.Equal(t, []int{1, 1, 1, 1}, []int{kinds[Live], kinds[Tagged], kinds[Cleanup], kinds[Coalesced]})

			out, err := trace.Replay(Options{Mode: mode, SoftLimit: 1 << 40}, nil)
			require.NoError(t, err)
			assert.Equal(t, s.Live, out.Stats.Live, "a replay ends with the same live memory")
			assert.Equal(t, s.PeakLive, out.Stats.PeakLive)
			assert.Equal(t, s.Allocations, out.Stats.Allocations)
			if mode != PassThrough {
				assert.Equal(t, s.Hits, out.Stats.Hits, "and so does the same pool")
			}
		})
	}
}

// noOverlap checks that boxes of the same time do not overlap, and that blocks are within slabs.
func noOverlap(t *testing.T, a *Arena) {
	t.Helper()
	for _, list := range [][]Box{a.Slabs, a.Blocks[max(0, len(a.Blocks)-300):]} {
		for i, x := range list {
			for _, y := range list[:i] {
				apartInTime := x.Until <= y.From || y.Until <= x.From
				apart := x.Address+x.Size <= y.Address || y.Address+y.Size <= x.Address
				require.True(t, apart || apartInTime, "%+v %+v", x, y)
			}
		}
	}
	for _, b := range a.Blocks {
		inside := false
		for _, s := range a.Slabs {
			inside = inside || s.Address <= b.Address && b.Address+b.Size <= s.Address+s.Size && s.From <= b.From &&
				b.Until <= s.Until
		}
		require.True(t, inside, "%+v", b)
	}
}

// A ring that is too short keeps the latest events, and the trace is still usable.
func TestRecorderDrops(t *testing.T) {
	trace, _ := recordRandom(t, Options{}, 100, 500)
	assert.Len(t, trace.Events, 100)
	assert.Positive(t, trace.Dropped)
	for i := 1; i < len(trace.Events); i++ {
		assert.LessOrEqual(t, trace.Events[i-1].At, trace.Events[i].At)
	}
	noOverlap(t, trace.Arena())
	assert.Contains(t, AnalyzeFragmentation(trace).Advice[0], "were dropped")
	out, err := trace.Replay(Options{}, nil)
	require.NoError(t, err)
	assert.Positive(t, out.Stats.Allocations)
}

func TestTraceFile(t *testing.T) {
	trace, _ := recordRandom(t, Options{Mode: Exact, HardLimit: 1 << 40}, 0, 300)
	var file bytes.Buffer
	require.NoError(t, trace.Write(&file))
	text := file.String()
	again, err := ReadTrace(&file)
	require.NoError(t, err)
	assert.True(t, trace.Start.Equal(again.Start))
	again.Start = trace.Start
	assert.Equal(t, trace, again)
	head, rest, _ := strings.Cut(text, "\n")
	assert.Contains(t, head, `"mode":"exact"`)
	for wrong, says := range map[string]string{
		"":        "line 1: the file is empty",
		"{}\n":    "line 1: this is not a memory trace",
		"hello\n": "line 1: invalid character",
		strings.Replace(head, `"version":1`, `"version":2`, 1): "version 2",
		head +
			"\n{\"k\":\"hit\",\"n\":1}\n": "line 2: an event with impossible values",
		head + "\n{\"k\":\"hit\",\"n\":9223372036854775807,\"s\":1}": "line 2",
		head + "\n" + strings.Repeat("x", longestLine+1):             "line 2: bufio",
		head + "\n" + rest[:len(rest)-5]:                             "line 3",
		strings.Replace(head, `"exact"`, `"soft"`,
			1): `mode "soft" is not one of`,
		strings.Replace(head, `"align":256`, `"align":1125899906842624`,
			1): "line 1: a pool",
		strings.Replace(head, `"align":256`, `"align":48`,
			1): "line 1: a pool",
		strings.Replace(head, `"align":256`, `"align":-256`,
			1): "line 1: a pool",
		strings.Replace(head, `"soft_limit":1073741824`, `"soft_limit":9223372036854775807`,
			1): "line 1: a pool",
		strings.Replace(head, `"hard_limit":1`, `"hard_limit":-1`,
			1): "line 1: a pool",
		head + strings.Repeat("\n"+`{"k":"miss","n":140737488355328,"s":140737488355328,"slab":1}`,
			1<<14+1): "line 16386: more memory than",
	} {
		_, err := ReadTrace(strings.NewReader(wrong))
		assert.ErrorIs(t, err, driver.ErrInvalidArgument, says)
		if says != "line 3" {
			assert.ErrorContains(t, err, says)
		}
	}
	later, err := ReadTrace(strings.NewReader(head + "\n{\"k\":\"new\",\"x\":7}\n"))
	require.NoError(t, err, "fields of later versions are ignored")
	assert.Len(t, later.Events, 1)
	assert.ErrorIs(t, trace.Write(&full{}), errFull)
}

type full struct{}

var errFull = errors.New("disk full")

func (*full) Write([]byte) (int, error) { return 0, errFull }

// FuzzReadTrace: reading never crashes, and an accepted trace can be replayed, laid out and
// analyzed.
func FuzzReadTrace(f *testing.F) {
	head := `{"format":"concord-memory-trace","version":1,"dropped":3,"pools":[{"device":"d","mode":"whole"}]}` + "\n"
	f.Add([]byte(head + `{"t":5,"d":"d","k":"miss","n":1000,"s":1024,"slab":1,"id":7}` + "\n" +
		`{"t":9,"d":"d","k":"free","n":1000,"s":1024,"slab":1,"id":7}`))
	f.Add([]byte(head + `{"t":5,"k":"grow","n":4096,"s":4096,"slab":1}` + "\n" +
		`{"t":9,"k":"hit","n":10,"s":16,"slab":1,"off":4090,"id":1}` + "\n" + `{"k":"shrink","slab":1}`))
	f.Add([]byte(strings.Replace(head, `"mode"`, `"align":1073741824,"soft_limit":1152921504606846976,"mode"`, 1) +
		`{"d":"d","k":"miss","n":1,"s":70368744177664,"slab":1}`))
	f.Add([]byte("{}"))
	f.Fuzz(func(t *testing.T, data []byte) {
		if bytes.Count(data, []byte("\n")) > 200 {
			return
		}
		trace, err := ReadTrace(bytes.NewReader(data))
		if err != nil {
			return
		}
		for _, d := range trace.Devices() {
			part := trace.Of(d)
			AnalyzeFragmentation(part)
			options := []Options{{Mode: Split}, {Mode: Whole}, {Mode: Exact}, {Mode: PassThrough}}
			for _, p := range part.Pools {
				options = append(options, Options{Mode: p.Mode, Align: p.Align, SoftLimit: p.SoftLimit, HardLimit: p.HardLimit})
			}
			for _, o := range options {
				if _, err := part.Replay(o, NewRecorder(10)); err != nil {
					assert.ErrorIs(t, err, driver.ErrTooLarge)
				}
			}
		}
	})
}

// A replay with a limit refuses requests that would exceed it, and goes on.
func TestReplayRefuses(t *testing.T) {
	trace, _ := recordRandom(t, Options{SoftLimit: 1 << 40}, 0, 500)
	all, err := trace.Replay(Options{Mode: Exact}, nil)
	require.NoError(t, err)
	limit := all.Stats.PeakLive / 2
	out, err := trace.Replay(Options{Mode: Exact, HardLimit: limit}, nil)
	require.NoError(t, err)
	assert.Positive(t, out.Refused)
	assert.LessOrEqual(t, out.Stats.PeakReserved, limit)
	assert.Equal(t, all.Stats.Allocations, out.Stats.Allocations+out.Refused)
	trace.Events[0].Device = "other:0"
	_, err = trace.Replay(Options{}, nil)
	assert.ErrorIs(t, err, driver.ErrInvalidArgument)
}

// The recording of a replay is a trace like any other.
func TestReplayRecords(t *testing.T) {
	trace, _ := recordRandom(t, Options{Mode: Exact, SoftLimit: 1 << 40}, 0, 500)
	r := NewRecorder(1 << 20)
	out, err := trace.Replay(Options{SoftLimit: 1 << 40}, r)
	require.NoError(t, err)
	arena := r.Trace().Arena()
	assert.Equal(t, out.Stats.PeakReserved, arena.PeakReserved)
	assert.Positive(t, arena.Until)
	assert.LessOrEqual(t, arena.Until, trace.Events[len(trace.Events)-1].At, "in the time of the recording")
	noOverlap(t, arena)
}

// One recorder distinguishes two pools of the same device.
func TestRecorderOfTwo(t *testing.T) {
	r := NewRecorder(0)
	a, b := New(&fakeSource{}, Options{}), New(&fakeSource{}, Options{})
	a.Record(r, "cpu:0")
	b.Record(r, "cpu:0")
	get(t, a, 1, nil)
	get(t, b, 2, nil)
	get(t, b, 3, nil)
	a.Record(nil, "")
	get(t, a, 4, nil)
	trace := r.Trace()
	assert.Equal(t, []string{"cpu:0", "cpu:0#2"}, trace.Devices())
	assert.Len(t, trace.Of("cpu:0").Events, 2)
	assert.Len(t, trace.Of("cpu:0#2").Events, 3)
	assert.Len(t, trace.Of("cpu:0#2").Pools, 1)
}

// The advice for traces that each have one problem.
func TestAdvice(t *testing.T) {
	type ask struct {
		n    int64
		free int // ask that ends here, from 1
	}
	for _, tc := range []struct {
		name, says string
		o          Options
		asks       func() []ask
	}{
		{"nothing", "nothing was allocated", Options{}, func() []ask { return nil }},
		{"fine", "no figure is conspicuous", Options{Mode: Exact}, func() (l []ask) {
			for i := range 100 {
				l = append(l, ask{n: 1000}, ask{free: 2*i + 1})
			}
			return l
		}},
		{"no pool", "Preallocate 1 of them", Options{Mode: PassThrough}, func() (l []ask) {
			for i := range 100 {
				l = append(l, ask{n: 1000}, ask{free: 2*i + 1})
			}
			return l
		}},
		{"classes", "was not requested", Options{Mode: Whole}, func() (l []ask) {
			for range 20 {
				l = append(l, ask{n: 1100})
			}
			return l
		}},
		{"phases", "a Trim between phases", Options{Mode: Exact, Slack: 10}, func() (l []ask) {
			for i := range int64(5) {
				l = append(l, ask{n: (100 + i) << 20}, ask{free: int(2*i + 1)})
			}
			return l
		}},
		{"sizes", "nearly as many sizes", Options{Mode: Exact}, func() (l []ask) {
			for i := range int64(20) {
				l = append(l, ask{n: (10 + i) << 10}, ask{free: int(2*i + 1)})
			}
			return l
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			p := New(&fakeSource{}, tc.o)
			r := NewRecorder(0)
			p.Record(r, "d")
			var ids []ID
			for _, a := range tc.asks() {
				if a.free > 0 {
					require.NoError(t, p.Put(ids[a.free-1], nil, 0))
					ids = append(ids, NoID)
					continue
				}
				ids = append(ids, get(t, p, a.n, nil).ID)
			}
			assert.Contains(t, strings.Join(AnalyzeFragmentation(r.Trace()).Advice, "\n"), tc.says)
		})
	}
}

// The fragmentation at the worst moment, compared with values that were computed by hand.
func TestAnalysisByHand(t *testing.T) {
	at := func(n int, e Event) Event { e.At = time.Duration(n); return e }
	block := func(n int, k Kind, id ID, off, size, asked int64) Event {
		return at(n, Event{Kind: k, ID: id, Slab: 1, Offset: off, Size: size, Bytes: asked})
	}
	a := AnalyzeFragmentation(&Trace{Events: []Event{
		at(1, Event{Kind: Grow, Slab: 1, Size: 1000, Bytes: 1000}),
		block(2, Miss, 1, 0, 100, 50), block(3, Hit, 2, 100, 100, 100), block(4, Hit, 3, 300, 200, 150),
		block(5, Free, 1, 0, 100, 50),
		at(6, Event{Kind: Grow, Slab: 2, Size: 500, Bytes: 500}), at(6, Event{Kind: Retry}),
		at(7, Event{Kind: Shrink, Slab: 2}),
	}})
	near := func(want float64, got *float64) { assert.InDelta(t, want, *got, 1e-12); *got = 0 }
	near(1-250.0/300, &a.Worst.Internal)
	near(2.0/4, &a.Worst.TypeDiversity) // 100, 100, 500, 500
	near(1-500.0/1200, &a.Worst.External)
	assert.Equal(t, Moment{At: 6, Live: 300, Requested: 250, Reserved: 1500, LargestFree: 500, FreeRanges: 4}, a.Worst)
	assert.EqualValues(t, []int64{3, 2, 400, 1500}, []int64{a.Gets, a.Hits, a.PeakLive, a.PeakReserved})
	assert.Equal(t, KeyUse{Size: 100, Gets: 2, Misses: 1, Wasted: 50, Most: 2, live: 1}, a.Keys[0])
	assert.Contains(t, fmt.Sprint(a.Advice), "was out of memory 1 times")
}

// Replays follow the model's rules for any requests and settings.
func TestReplayModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		trace := &Trace{}
		live := map[ID]Event{}
		var sum, peak int64
		for i := range rapid.IntRange(0, 200).Draw(t, "events") {
			id := ID(rapid.IntRange(0, 20).Draw(t, "id"))
			e, open := live[id]
			if open {
				delete(live, id)
				e.Kind = Free
				sum -= e.Bytes
			} else {
				n := int64(math.Exp2(rapid.Float64Range(0, 26).Draw(t, "bits")))
				e = Event{Kind: Hit, ID: id, Bytes: n, Size: n, Slab: int64(i + 1)}
				live[id] = e
				sum += n
			}
			e.At = time.Duration(i)
			peak = max(peak, sum)
			trace.Events = append(trace.Events, e)
		}
		out, err := trace.Replay(Options{Mode: Mode(rapid.IntRange(0, 3).Draw(t, "mode"))}, nil)
		require.NoError(t, err)
		assert.Equal(t, sum, out.Stats.Requested)
		assert.EqualValues(t, len(live), out.Stats.LiveBlocks)
		assert.GreaterOrEqual(t, out.Stats.PeakLive, peak)
		for _, s := range out.Samples {
			assert.LessOrEqual(t, s.Requested, s.Live)
			assert.LessOrEqual(t, s.Live, s.Reserved)
			assert.LessOrEqual(t, s.LargestFree, s.Reserved-s.Live)
		}
	})
}

// The ranges of addresses that are in use do not overlap, and all of them can be freed.
func TestSpace(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := newSpace()
		var out []gap
		for range rapid.IntRange(0, 100).Draw(t, "steps") {
			if len(out) > 0 && rapid.Bool().Draw(t, "give") {
				i := rapid.IntRange(0, len(out)-1).Draw(t, "which")
				s.give(out[i].address, out[i].size)
				out = slices.Delete(out, i, i+1)
				continue
			}
			n := rapid.Int64Range(1, 50).Draw(t, "size")
			g := gap{n, s.take(n)}
			for _, other := range out {
				require.True(t, g.address+g.size <= other.address || other.address+other.size <= g.address)
			}
			out = append(out, g)
			sum := int64(0)
			for _, x := range append(slices.Clone(out), s.gaps...) {
				sum += x.size
			}
			require.Equal(t, s.top, sum)
		}
		for _, g := range out {
			s.give(g.address, g.size)
		}
		require.Zero(t, s.top)
		require.Empty(t, s.gaps)
		require.Empty(t, s.starts)
		require.Empty(t, s.ends)
	})
}
