package memory

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/concord-compute/concord/runtime"
	"github.com/concord-compute/concord/runtime/profile"
	"github.com/concord-compute/concord/source"
)

const spinText = `kernel void spin(global uint *out, uint rounds) {
	uint x = get_global_id(0) + 1;
	for (uint i = 0; i < rounds; i++) { x ^= x << 13; x ^= x >> 17; x ^= x << 5; }
	out[get_global_id(0)] = x;
}`

// observed is a device with a kernel whose launches last as long as the test wants.
type observed struct {
	*runtime.Device
	spin *runtime.Kernel
	out  *runtime.Buffer
}

const spinItems = 64

func observedDevice(t testing.TB, name string) observed {
	t.Helper()
	session, err := runtime.New(runtime.Config{Fallback: runtime.Require})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, session.Close()) })
	d, err := session.Open(t.Context(), name)
	if err != nil {
		t.Skip(err)
	}
	u, err := source.Parse(spinText, source.Options{})
	require.NoError(t, err)
	p, err := d.Program(t.Context(), u)
	if err != nil {
		t.Skip(err)
	}
	k, err := p.Kernel("spin")
	require.NoError(t, err)
	out, err := d.Alloc(runtime.U32, 2*spinItems)
	require.NoError(t, err)
	return observed{d, k, out}
}

// rounds returns how many rounds take a launch about that long, and makes the driver finish the program.
func (d observed) rounds(t testing.TB, long time.Duration) uint32 {
	rounds := uint32(1000)
	for {
		best := time.Hour
		for range 15 { // a processor at rest has a low clock
			r, err := d.Stream().Run(t.Context(), d.spin, runtime.Items(spinItems), d.out, rounds)
			require.NoError(t, err)
			best = min(best, time.Duration(r.DeviceTimeNs))
		}
		if best*2 >= long {
			return uint32(float64(rounds) * float64(long) / float64(best))
		}
		rounds *= 2
	}
}

var observedDevices = []string{"cpu:0", "opencl:0", "sim-cuda:0", "sim-rocm:0"}

// A stream's timeline adds up: no two pieces of its work overlap, so that busy and idle are the whole, which is
// what the host's clock says within 1 %, and the work alone within 5 %: of ten tries one has to be undisturbed.
func TestTimelineOfOneStream(t *testing.T) {
	for _, name := range observedDevices {
		t.Run(name, func(t *testing.T) {
			d := observedDevice(t, name)
			rounds := d.rounds(t, time.Millisecond)
			var busy, idle, wall time.Duration
			for range 10 {
				busy, idle, wall = d.oneStream(t, name, rounds)
				t.Logf("busy %v, idle %v, wall of the host %v", busy, idle, wall)
				if busy+idle >= wall*99/100 && busy >= wall*95/100 {
					break
				}
			}
			if instrumented {
				return // what a checker costs lies between the launches
			}
			assert.GreaterOrEqual(t, busy+idle, wall*99/100)
			assert.GreaterOrEqual(t, busy, wall*95/100)
		})
	}
}

// oneStream returns how a timeline shows launches on the device's stream, and how long they took by the host's clock.
func (d observed) oneStream(t *testing.T, name string, rounds uint32) (busy, idle, wall time.Duration) {
	var r profile.Recording
	stop := d.Session().Observe(&r)
	s, began := d.Stream(), time.Now()
	for i := range 200 {
		require.NoError(t, s.Launch(d.spin, runtime.Items(spinItems), d.out, rounds))
		if i%70 == 0 {
			require.NoError(t, s.Sync(t.Context()))
		}
	}
	require.NoError(t, s.Sync(t.Context()))
	wall = time.Since(began)
	stop()
	events, _ := r.Events()
	var first, last int64
	for _, e := range events {
		if !e.Kind.OnDevice() {
			continue
		}
		require.True(t, e.DeviceTime)
		if last != 0 {
			require.GreaterOrEqual(t, e.Start, last)
			idle += time.Duration(e.Start - last)
		} else {
			first = e.Start
		}
		busy, last = busy+e.Duration(), e.End
	}
	sum := profile.Summarize(profile.Trace{Events: events})
	require.Len(t, sum.Devices, 1)
	assert.Equal(t, time.Duration(last-first), busy+idle)
	assert.Equal(t, profile.DeviceSummary{Device: name, Wall: busy + idle, Busy: busy, Idle: idle}, sum.Devices[0])
	assert.LessOrEqual(t, busy+idle, wall+time.Millisecond, "the clock of the device runs like the host's")
	return busy, idle, wall
}

// Work of two streams that a device runs side by side is shown side by side.
func TestTimelineOfTwoStreams(t *testing.T) {
	for _, name := range []string{"sim-cuda:0", "sim-rocm:0"} {
		t.Run(name, func(t *testing.T) {
			d := observedDevice(t, name)
			rounds := d.rounds(t, 30*time.Millisecond)
			overlap := func(together bool) time.Duration {
				var r profile.Recording
				stop := d.Session().Observe(&r)
				defer stop()
				var streams [2]*runtime.Stream
				for i := range streams {
					s, err := d.NewStream()
					require.NoError(t, err)
					defer s.Close()
					streams[i] = s
				}
				for _, s := range streams {
					require.NoError(t, s.Launch(d.spin, runtime.Items(spinItems), d.out, rounds))
					if !together {
						require.NoError(t, s.Sync(t.Context()))
					}
				}
				require.NoError(t, d.Sync(t.Context()))
				var two []profile.Event
				events, _ := r.Events()
				for _, e := range events {
					if e.Kind == profile.Launch {
						two = append(two, e)
					}
				}
				require.Len(t, two, 2)
				require.NotEqual(t, two[0].Stream, two[1].Stream)
				return time.Duration(min(two[0].End, two[1].End) - max(two[0].Start, two[1].Start))
			}
			assert.Greater(t, overlap(true), 5*time.Millisecond)
			assert.Less(t, overlap(false), time.Millisecond, "the clocks differ by less")
		})
	}
}

// BenchmarkObserved compares launches of 50, 500 and 5,000 µs with and without an observer, in turn. overhead-%
// is the median of the rounds' ratios; which of the two comes first in a round changes from round to round.
func BenchmarkObserved(b *testing.B) {
	for _, name := range observedDevices {
		for _, long := range []time.Duration{50 * time.Microsecond, 500 * time.Microsecond, 5 * time.Millisecond} {
			b.Run(name+"/"+long.String(), func(b *testing.B) {
				d := observedDevice(b, name)
				rounds := d.rounds(b, long)
				var times [2][]time.Duration // off, on
				var r profile.Recording
				batch := max(1, int(20*time.Millisecond/long))
				var ratios []float64
				for b.Loop() {
					for i := range times {
						on := (i + len(ratios)) % 2
						stop := func() {}
						if on == 1 {
							stop = d.Session().Observe(&r)
						}
						start := time.Now()
						for range batch {
							if err := d.Stream().Launch(d.spin, runtime.Items(spinItems), d.out, rounds); err != nil {
								b.Fatal(err)
							}
						}
						if err := d.Stream().Sync(context.Background()); err != nil {
							b.Fatal(err)
						}
						times[on] = append(times[on], time.Since(start))
						stop()
					}
					ratios = append(ratios, float64(times[1][len(ratios)])/float64(times[0][len(ratios)]))
				}
				slices.Sort(ratios)
				b.ReportMetric(float64(median(times[0]))/float64(batch)/1e3, "µs/launch")
				b.ReportMetric(100*(ratios[len(ratios)/2]-1), "overhead-%")
				b.ReportMetric(0, "ns/op")
			})
		}
	}
}

// The operations of a graph are told where the driver knows them: on the CPU.
func TestNodesOfAGraph(t *testing.T) {
	for _, name := range observedDevices {
		t.Run(name, func(t *testing.T) {
			d := observedDevice(t, name)
			rounds := d.rounds(t, 2*time.Millisecond)
			g, err := d.Stream().Capture(func(s *runtime.Stream) error {
				return errors.Join(s.Launch(d.spin, runtime.Items(spinItems), d.out, rounds), s.Fill(d.out, uint32(1)),
					s.Launch(d.spin, runtime.Items(spinItems).Does(5, 6), d.out, rounds))
			})
			require.NoError(t, err)
			defer g.Close()
			var r profile.Recording
			defer d.Session().Observe(&r)()
			for range 3 {
				require.NoError(t, g.Launch(d.Stream()))
				require.NoError(t, d.Sync(t.Context()))
			}
			var graphs, nodes []profile.Event
			events, _ := r.Events()
			for _, e := range events {
				switch e.Kind {
				case profile.Graph:
					graphs = append(graphs, e)
				case profile.Node:
					nodes = append(nodes, e)
				}
			}
			require.Len(t, graphs, 3)
			if name != "cpu:0" {
				assert.Empty(t, nodes)
				return
			}
			require.Len(t, nodes, 9)
			for i, whole := range graphs {
				at := whole.Start
				for j, e := range nodes[3*i : 3*i+3] {
					assert.Equal(t, []string{"spin", "fill", "spin"}[j], e.Name)
					assert.Equal(t, at, e.Start, "one follows the other")
					assert.Equal(t, j != 1, e.End-e.Start > int64(time.Millisecond), "%v", e)
					assert.Equal(t, []float64{0, 0, 5}[j], e.Flops)
					at = e.End
				}
				assert.InDelta(t, whole.End, at, float64(time.Millisecond))
			}
			sum := profile.Summarize(profile.Trace{Events: events})
			require.Len(t, sum.Devices, 1)
			for _, l := range sum.Lines {
				if l.Kind == "graph" {
					assert.InDelta(t, 1, float64(l.Share), 1e-9, "nodes are not counted beside their graphs")
				}
			}
		})
	}
}
