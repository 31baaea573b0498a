package tensor

import (
	"context"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	_ "github.com/concord-compute/concord/opencl"
	"github.com/concord-compute/concord/runtime"
	"github.com/concord-compute/concord/runtime/cluster"
	"github.com/concord-compute/concord/runtime/profile"
)

// members returns groups for tests: virtual ones of cpu:0, and cpu:0 with opencl:0 where that is here.
func members(t *testing.T, f func(t *testing.T, g *cluster.Group)) {
	for _, name := range []string{"1 virtual", "2 virtual", "3 virtual", "4 virtual", "cpu and opencl"} {
		t.Run(name, func(t *testing.T) {
			if name == "cpu and opencl" {
				f(t, mixed(t))
				return
			}
			f(t, virtual(t, int(name[0]-'0')))
		})
	}
}

func virtual(t testing.TB, n int) *cluster.Group {
	dev, err := runtime.Open(t.Context(), "cpu:0")
	require.NoError(t, err)
	g, err := cluster.Virtual(dev, n)
	require.NoError(t, err)
	t.Cleanup(func() {
		assert.NoError(t, g.Close())
		assert.NoError(t, dev.Close())
	})
	return g
}

// mixed is a group of two devices with other costs, so that members have other plans.
func mixed(t testing.TB) *cluster.Group {
	var devs []*runtime.Device
	for _, name := range []string{"cpu:0", "opencl:0"} {
		dev, err := runtime.Open(t.Context(), name)
		if err != nil {
			t.Skip(err)
		}
		t.Cleanup(func() { assert.NoError(t, dev.Close()) })
		devs = append(devs, dev)
	}
	g, err := cluster.Of(devs...)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, g.Close()) })
	return g
}

// all calls f for each member with a scope of its own.
func all2(t testing.TB, g *cluster.Group, f func(ctx context.Context, s *Scope) error) error {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	return g.Do(ctx, func(ctx context.Context, m *cluster.Member) error {
		s := NewMemberScope(m)
		return errors.Join(f(ctx, s), s.Close())
	})
}

// collectives of member r of k are: what it has, what it asks for, and what comes of that.
var collectives = []struct {
	name string
	f    func(x *Tensor) *Tensor
	want func(xs [][]float64, rank int) []float64
	back func(gs [][]float64, rank int) []float64 // the gradient, for those of the results
}{
	{"sum", func(x *Tensor) *Tensor { return x.AllReduce(cluster.Sum) },
		func(xs [][]float64, _ int) []float64 { return added2(xs) },
		func(gs [][]float64, _ int) []float64 { return added2(gs) }},
	{"mean", func(x *Tensor) *Tensor { return x.AllReduce(cluster.Mean) },
		func(xs [][]float64, _ int) []float64 { return times2(added2(xs), 1/float64(len(xs))) },
		func(gs [][]float64, _ int) []float64 { return times2(added2(gs), 1/float64(len(gs))) }},
	{"gather", (*Tensor).AllGather,
		func(xs [][]float64, _ int) []float64 { return slices.Concat(xs...) },
		func(gs [][]float64, rank int) []float64 { return part2(added2(gs), rank, len(gs)) }},
	{"scatter", func(x *Tensor) *Tensor { return x.ReduceScatter(cluster.Sum) },
		func(xs [][]float64, rank int) []float64 { return part2(added2(xs), rank, len(xs)) },
		func(gs [][]float64, _ int) []float64 { return slices.Concat(gs...) }},
	{"scatter mean", func(x *Tensor) *Tensor { return x.ReduceScatter(cluster.Mean) },
		func(xs [][]float64, rank int) []float64 {
			return times2(part2(added2(xs), rank, len(xs)), 1/float64(len(xs)))
		},
		func(gs [][]float64, _ int) []float64 { return times2(slices.Concat(gs...), 1/float64(len(gs))) }},
	{"broadcast", func(x *Tensor) *Tensor { return x.Broadcast(x.scope.Size() - 1) },
		func(xs [][]float64, _ int) []float64 { return xs[len(xs)-1] },
		func(gs [][]float64, rank int) []float64 {
			if rank == len(gs)-1 {
				return added2(gs)
			}
			return make([]float64, len(gs[0]))
		}},
}

func added2(xs [][]float64) []float64 {
	out := make([]float64, len(xs[0]))
	for _, x := range xs {
		for i, v := range x {
			out[i] += v
		}
	}
	return out
}

func times2(x []float64, k float64) []float64 {
	for i := range x {
		x[i] *= k
	}
	return x
}

func part2(x []float64, rank, members int) []float64 {
	n := len(x) / members
	return x[rank*n : (rank+1)*n]
}

// TestCollectives compares each collective and its gradient with their definitions, evaluated and compiled, of data, of
// what is computed, of views and of parts of results. It fails if a collective reads other memory than its operand's,
// or writes elsewhere.
func TestCollectives(t *testing.T) {
	members(t, func(t *testing.T, g *cluster.Group) {
		const rows, columns = 12, 5
		k := g.Size()
		given := func(rank int) []float64 {
			x := make([]float64, rows*columns)
			for i := range x {
				x[i] = float64(i%13) + 100*float64(rank)
			}
			return x
		}
		for _, c := range collectives {
			for _, how := range []string{"data", "computed", "view", "part", "transposed"} {
				shape := func(s *Scope) *Tensor {
					x := From(s, given(s.Rank()), rows, columns)
					switch how {
					case "computed":
						return x.Mul(2).Sub(x)
					case "view": // of some rows of what is longer
						return Concat(0, x.Add(1), x, x.Add(2)).Copy().Narrow(0, rows, rows)
					case "part":
						return From(s, slices.Concat(given(9), given(s.Rank())), 2*rows, columns).Narrow(0, rows, rows)
					case "transposed":
						return x.T().Copy().T()
					}
					return x
				}
				var xs, gs, gots, backs [][]float64 = make([][]float64, k), make([][]float64, k), make([][]float64, k),
					make([][]float64, k)
				for _, compiled := range []bool{false, true} {
					var mu sync.Mutex
					require.NoError(t, all2(t, g, func(ctx context.Context, s *Scope) error {
						f := func(args ...*Tensor) []*Tensor {
							x := args[0]
							y := c.f(x)
							w := Iota(s, F64, y.Shape()...).Mul(0.5).Add(float64(s.Rank() + 1))
							back := GradOf([]*Tensor{y}, []*Tensor{w}, x)[0]
							// in the middle of another result too
							return []*Tensor{y, back, w, Concat(0, y.Narrow(0, 0, 1).Add(1), y)}
						}
						x := shape(s)
						out := f(x)
						if compiled {
							x = x.Copy()
							fn := Compile(s, f)
							for range 3 { // both sets of results
								var err error
								if out, err = fn.Call(ctx, x); err != nil {
									return err
								}
							}
						} else if err := Eval(ctx, out...); err != nil {
							return err
						}
						mu.Lock()
						defer mu.Unlock()
						for i, to := range [][][]float64{gots, backs, gs} {
							v, err := Read[float64](ctx, out[i])
							if err != nil {
								return err
							}
							to[s.Rank()] = v
						}
						xs[s.Rank()] = given(s.Rank())
						whole, err := Read[float64](ctx, out[3])
						if err != nil {
							return err
						}
						assert.Equal(t, gots[s.Rank()], whole[columns:], "%s %s", c.name, how)
						return nil
					}))
					for rank := range k {
						name := fmt.Sprintf("%s of %s, compiled %v, member %d of %d", c.name, how, compiled, rank, k)
						assert.InDeltaSlice(t, c.want(xs, rank), gots[rank], 1e-9, name)
						assert.InDeltaSlice(t, c.back(gs, rank), backs[rank], 1e-9, name)
					}
				}
			}
		}
	})
}

var _ = math.Pi
var _ = filepath.Join
var _ = profile.Copy
