//go:build unix

package ann

import (
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/concord-compute/concord/runtime"
	"github.com/concord-compute/concord/runtime/cluster"
)

// alike returns vectors of 128 components that lie near a plane of 24, as those of pictures or texts do: all components
// at random would have no near neighbours.
func alike(r *rand.Rand, n int) []float32 {
	const dim, plane = 128, 24
	base := make([]float32, plane*dim)
	for i := range base {
		base[i] = float32(r.NormFloat64())
	}
	all := make([]float32, n*dim)
	var at [plane]float32
	for i := range n {
		for j := range at {
			at[j] = float32(r.NormFloat64())
		}
		row := all[i*dim:][:dim]
		for c := range row {
			row[c] = float32(r.NormFloat64()) / 10
			for j, x := range at {
				row[c] += x * base[j*dim+c]
			}
		}
	}
	return all
}

// cost is how long something took, and how much of the processors' time.
type cost struct{ wall, busy float64 }

func costOf(b *testing.B, f func() error) cost {
	busy := func() float64 {
		var u syscall.Rusage
		require.NoError(b, syscall.Getrusage(syscall.RUSAGE_SELF, &u))
		return time.Duration(u.Utime.Nano() + u.Stime.Nano()).Seconds()
	}
	begin, before := time.Now(), busy()
	require.NoError(b, f())
	return cost{time.Since(begin).Seconds(), busy() - before}
}

// BenchmarkShards has two members of one thread each beside one of one thread: how many times as fast they build and
// search together, and the recall of both. What others run on the machine takes one of two threads a processor; so the
// rate is also that of processors of their own: twice the time that one took of a processor, divided by what both took.
// SHARD_ROWS is the number of vectors, SHARD_ROUNDS that of the searches in turn.
func BenchmarkShards(b *testing.B) {
	number := func(name string, usual int) int {
		if n, err := strconv.Atoi(os.Getenv(name)); err == nil {
			return n
		}
		return usual
	}
	n, rounds := number("SHARD_ROWS", 1_000_000), number("SHARD_ROUNDS", 11)
	const dim, nq, k = 128, 500, 10
	single := func(b *testing.B) *runtime.Device {
		s, err := runtime.New(runtime.Config{CPUThreads: 1})
		require.NoError(b, err)
		b.Cleanup(func() { require.NoError(b, s.Close()) })
		dev, err := s.Open(b.Context(), "cpu:0")
		require.NoError(b, err)
		return dev
	}
	vectors := alike(rand.New(rand.NewPCG(1, 8)), n+nq)
	vectors, queries := vectors[:n*dim], vectors[n*dim:]
	var truth [][]Result
	for _, kind := range []string{"flat", "ivf", "hnsw"} {
		b.Run(kind, func(b *testing.B) {
			for range b.N {
				o := Options{IVF: IVFOptions{Lists: 1024, Probes: 32}}
				one, err := o.on([]*runtime.Device{single(b)}, kind, dim, L2Squared)
				require.NoError(b, err)
				g, err := cluster.Of(single(b), single(b))
				require.NoError(b, err)
				both, err := NewSharded(b.Context(), g, kind, dim, "l2sq", o)
				require.NoError(b, err)
				ids := counted(n)
				second := costOf(b, func() error { return both.Add(b.Context(), ids, vectors) })
				first := costOf(b, func() error { return one.Add(b.Context(), ids, vectors) })
				b.ReportMetric(0, "ns/op")
				b.ReportMetric(first.busy, "s-build-one")
				b.ReportMetric(first.wall/second.wall, "×-build")
				b.ReportMetric(2*first.busy/second.busy, "×-build-own")
				var times, walls, busy []float64
				var x, y [][]Result
				for range rounds {
					first := costOf(b, func() (err error) { x, err = one.SearchBatch(b.Context(), queries, k, nil); return err })
					second := costOf(b, func() (err error) { y, err = both.SearchBatch(b.Context(), queries, k, nil); return err })
					times, walls = append(times, first.busy), append(walls, first.wall/second.wall)
					busy = append(busy, 2*first.busy/second.busy)
				}
				middle := func(x []float64) float64 { slices.Sort(x); return x[len(x)/2] }
				b.ReportMetric(middle(times)/nq*1e6, "µs-query-one")
				b.ReportMetric(middle(walls), "×-search")
				b.ReportMetric(middle(busy), "×-search-own")
				if truth == nil { // flat, which comes first
					truth = x
				}
				share := func(lists [][]Result) float64 {
					right := 0
					for q, list := range lists {
						for _, r := range list {
							if slices.ContainsFunc(truth[q], func(t Result) bool { return t.ID == r.ID }) {
								right++
							}
						}
					}
					return float64(right) / float64(nq*k)
				}
				b.ReportMetric(share(x), "recall-one")
				b.ReportMetric(share(y), "recall-both")
				require.NoError(b, both.Close())
				require.NoError(b, one.Close())
				require.NoError(b, g.Close())
			}
		})
	}
}
