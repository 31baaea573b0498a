package tensor

import (
	"context"
	"errors"
	"fmt"
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

// onAll calls f for each member with a scope of its own.
func onAll(t testing.TB, g *cluster.Group, f func(ctx context.Context, s *Scope) error) error {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	return g.Do(ctx, func(ctx context.Context, m *cluster.Member) error {
		s := NewMemberScope(m)
		return errors.Join(f(ctx, s), s.Close())
	})
}

// collectives are what members may ask for, and what comes of that for a member.
var collectives = []struct {
	name string
	f    func(x *Tensor) *Tensor
	want func(xs [][]float64, rank int) []float64
	back func(gs [][]float64, rank int) []float64 // the gradient, for those of the results
}{
	{"sum", func(x *Tensor) *Tensor { return x.AllReduce(cluster.Sum) },
		func(xs [][]float64, _ int) []float64 { return total(xs) },
		func(gs [][]float64, _ int) []float64 { return total(gs) }},
	{"mean", func(x *Tensor) *Tensor { return x.AllReduce(cluster.Mean) },
		func(xs [][]float64, _ int) []float64 { return scaledBy(total(xs), 1/float64(len(xs))) },
		func(gs [][]float64, _ int) []float64 { return scaledBy(total(gs), 1/float64(len(gs))) }},
	{"gather", (*Tensor).AllGather,
		func(xs [][]float64, _ int) []float64 { return slices.Concat(xs...) },
		func(gs [][]float64, rank int) []float64 { return partOf(total(gs), rank, len(gs)) }},
	{"scatter", func(x *Tensor) *Tensor { return x.ReduceScatter(cluster.Sum) },
		func(xs [][]float64, rank int) []float64 { return partOf(total(xs), rank, len(xs)) },
		func(gs [][]float64, _ int) []float64 { return slices.Concat(gs...) }},
	{"scatter mean", func(x *Tensor) *Tensor { return x.ReduceScatter(cluster.Mean) },
		func(xs [][]float64, rank int) []float64 {
			return scaledBy(partOf(total(xs), rank, len(xs)), 1/float64(len(xs)))
		},
		func(gs [][]float64, _ int) []float64 { return scaledBy(slices.Concat(gs...), 1/float64(len(gs))) }},
	{"broadcast", func(x *Tensor) *Tensor { return x.Broadcast(x.scope.Size() - 1) },
		func(xs [][]float64, _ int) []float64 { return xs[len(xs)-1] },
		func(gs [][]float64, rank int) []float64 {
			if rank == len(gs)-1 {
				return total(gs)
			}
			return make([]float64, len(gs[0]))
		}},
}

func total(xs [][]float64) []float64 {
	out := make([]float64, len(xs[0]))
	for _, x := range xs {
		for i, v := range x {
			out[i] += v
		}
	}
	return out
}

func scaledBy(x []float64, k float64) []float64 {
	for i := range x {
		x[i] *= k
	}
	return x
}

func partOf(x []float64, rank, members int) []float64 {
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
					require.NoError(t, onAll(t, g, func(ctx context.Context, s *Scope) error {
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

// TestCollectiveOrder describes two collectives of different lengths, and asks for both. Which of them has more
// operations behind it differs between a device with groups, where a reduction of a long row is two, and one with
// vector loops, for one of the lengths of the other chain. It fails if members make their calls in the order of their
// plans: then they call different ones.
func TestCollectiveOrder(t *testing.T) {
	members(t, func(t *testing.T, g *cluster.Group) {
		for length := range 5 {
			require.NoError(t, onAll(t, g, func(ctx context.Context, s *Scope) error {
				both := func(a ...*Tensor) []*Tensor {
					chain := Iota(s, F32, 7).Add(a[1])
					for range length {
						chain = chain.Sin()
					}
					first := chain.AllReduce(cluster.Sum)
					return []*Tensor{first.Add(a[0].Sum(1).AllReduce(cluster.Max))}
				}
				args := []*Tensor{From(s, numbers(1<<16), 1, 1<<16), Full(s, F32, s.Rank(), 1)}
				p, err := newPlan(both(args...), true, nil)
				if err != nil {
					return err
				}
				var names []string
				for _, x := range exchanges(p.tasks) {
					names = append(names, x.op.name)
				}
				if s.Size() > 1 {
					assert.Equal(t, []string{"all-reduce sum", "all-reduce max"}, names)
				}
				out, err := Compile(s, both).Call(ctx, args...)
				return errors.Join(err, Eval(ctx, append(out, both(args...)...)...))
			}))
		}
	})
}

// TestCollectiveOnce asks for what several kernels would compute again if it were no collective. It fails if a
// collective is in a plan twice, or what follows it begins before its result is there.
func TestCollectiveOnce(t *testing.T) {
	g := virtual(t, 2)
	require.NoError(t, onAll(t, g, func(ctx context.Context, s *Scope) error {
		x := From(s, numbers(6), 2, 3).Add(1)
		y := x.AllReduce(cluster.Sum)
		list := []*Tensor{y.Add(1), y.Sum(0), y.T().Mul(2), x.Mul(3)}
		p, err := newPlan(list, true, nil)
		if err != nil {
			return err
		}
		var names []string
		for _, k := range p.tasks {
			names = append(names, k.String())
		}
		if assert.Len(t, exchanges(p.tasks), 1) {
			at := slices.Index(names, "all-reduce sum")
			assert.Contains(t, names[:at], "all-reduce sum start")
			in, _ := p.tasks[at].values()
			for _, k := range p.tasks[at+1:] {
				read, _ := k.values()
				assert.NotContains(t, read, in[0], "what needs the operand alone comes before the call: %v", names)
			}
		}
		return Eval(ctx, list...)
	}))
}

// TestCollectiveOverlap looks at when the work of a function is queued and done. It fails if the host waits for the
// other members before it has queued what does not need their results, if the collective waits for that, or if that
// writes to the memory of the collective's operand.
func TestCollectiveOverlap(t *testing.T) {
	g := virtual(t, 2)
	recording := new(profile.Recording)
	var mu sync.Mutex
	own, others := map[int64]int{}, map[int64]int{} // the ranks of streams: of the scopes, and of the collectives
	require.NoError(t, onAll(t, g, func(ctx context.Context, s *Scope) error {
		const n = 512 // so that the independent work takes many times as long as it takes members to meet
		f := Compile(s, func(a ...*Tensor) []*Tensor {
			x := a[0].MatMul(a[0])
			y := x.AllReduce(cluster.Mean)
			for range 30 {
				x = x.MatMul(a[0])
			}
			return []*Tensor{y.Add(1), x}
		})
		x := gaussian(s, uint64(s.Rank()), 0.01, n, n)
		want, err := Read[float32](ctx, x.MatMul(x).AllReduce(cluster.Mean).Add(1))
		if err != nil {
			return err
		}
		if _, err := f.Call(ctx, x); err != nil {
			return err
		}
		m := s.Member()
		if err := m.Barrier(ctx, s.engine.stream); err != nil {
			return err
		}
		mu.Lock()
		own[s.engine.stream.Number()], others[m.Stream().Number()] = s.Rank(), s.Rank()
		mu.Unlock()
		if s.Rank() == 0 {
			defer m.Device().Session().Observe(recording)()
		}
		if err := m.Barrier(ctx, nil); err != nil {
			return err
		}
		out, err := f.Call(ctx, x)
		if err != nil {
			return err
		}
		got, err := Read[float32](ctx, out[0])
		assert.Equal(t, want, got)
		return errors.Join(err, m.Barrier(ctx, s.engine.stream))
	}))
	events, lost := recording.Events()
	require.Zero(t, lost)
	var independent [2]profile.Event
	end, calls, beside := int64(0), 0, 0
	for _, e := range events {
		if rank, ok := own[e.Stream]; ok && e.Kind == profile.Graph && e.Detail == "30 launches" {
			independent[rank], end = e, max(end, e.End)
		}
	}
	for _, e := range events {
		if rank, ok := others[e.Stream]; ok && (e.Kind == profile.Launch || e.Kind == profile.Copy) {
			assert.Greater(t, e.Queued, independent[rank].Queued, "queued first: what does not need it")
			if calls++; e.Start < end {
				beside++
			}
		}
	}
	assert.NotZero(t, independent[1].Queued)
	assert.GreaterOrEqual(t, calls, 4)
	assert.Positive(t, beside, "%+v", events)
}

// TestCollectiveArguments calls a function with other arguments each time, parts of buffers too, that collectives read
// themselves, and donates one in whose memory a result is stored that a collective reads. It fails if a collective uses
// the memory of another call.
func TestCollectiveArguments(t *testing.T) {
	g := virtual(t, 2)
	require.NoError(t, onAll(t, g, func(ctx context.Context, s *Scope) error {
		step := func(a ...*Tensor) []*Tensor {
			next := a[0].Add(a[1].AllReduce(cluster.Sum))
			return []*Tensor{next, next.AllGather()}
		}
		f := Compile(s, step)
		given := make([]float32, 30)
		for i := range given {
			given[i] = float32(i + 100*s.Rank())
		}
		whole := From(s, given, 10, 3)
		w, plain := Ones(s, F32, 2, 3).Copy(), Ones(s, F32, 2, 3)
		for i := range 5 {
			x := whole.Narrow(0, 2*i, 2)
			out, err := f.CallDonating(ctx, []bool{true}, w, x)
			if err != nil {
				return err
			}
			w = out[0]
			want := step(plain, x)
			plain = want[0]
			for j := range out {
				a, err := Read[float32](ctx, out[j])
				b, other := Read[float32](ctx, want[j])
				if err := errors.Join(err, other); err != nil {
					return err
				}
				assert.Equal(t, b, a, "result %d of call %d", j, i)
			}
		}
		return nil
	}))
}

// TestCollectiveMistakes has what is refused when it is described, the same at all members, which go on.
func TestCollectiveMistakes(t *testing.T) {
	g := virtual(t, 2)
	require.NoError(t, onAll(t, g, func(ctx context.Context, s *Scope) error {
		x := From(s, numbers(6), 3, 2)
		for _, c := range []struct {
			got  *Tensor
			want error
		}{
			{x.ReduceScatter(cluster.Sum), ErrShape},
			{x.Sum().AllGather(), ErrShape},
			{Full(s, U8, 0, 1<<47).AllGather().AllGather(), ErrShape},
			{x.Gt(1).AllReduce(cluster.Sum), ErrType},
			{x.Broadcast(2), runtime.ErrInvalidArgument},
			{x.Broadcast(-1), runtime.ErrInvalidArgument},
			{x.AllReduce(99), runtime.ErrInvalidArgument},
			{Grad(x.AllReduce(cluster.Max).Sum(), x)[0], runtime.ErrUnsupported},
			{Grad(x.T().ReduceScatter(cluster.Product).Sum(), x)[0], runtime.ErrUnsupported},
		} {
			assert.ErrorIs(t, c.got.Err(), c.want)
			assert.ErrorIs(t, Eval(ctx, c.got), c.want)
		}
		got, err := Read[bool](ctx, x.Gt(float64(s.Rank())).AllGather().Reshape(-1).Narrow(0, 6, 6))
		assert.Equal(t, []bool{false, false, true, true, true, true}, got)
		empty := From(s, []float32{}, 0, 2).AllGather()
		assert.Equal(t, []int{0, 2}, empty.Shape())
		// the gradient of a gradient: y = (2·sum)^2, whose second derivative sums the members' as well
		w := From(s, []float64{3})
		first := Grad(w.AllReduce(cluster.Sum).Square(), w)[0]
		second, e := Read[float64](ctx, Grad(first, w)[0])
		assert.Equal(t, []float64{8}, second)
		return errors.Join(err, e, Eval(ctx, empty))
	}))
	s := scope(t)
	x := From(s, numbers(4), 4)
	assert.Equal(t, []float32{0, 1, 2, 3},
		values[float32](t, x.AllReduce(cluster.Sum).AllGather().ReduceScatter(cluster.Mean).Broadcast(0)), "without a group")
}

// TestCollectiveFails has a member end in each way while others wait. It fails if they hang, if the error does not name
// the member, or if memory stays.
func TestCollectiveFails(t *testing.T) {
	gone := errors.New("gone")
	for name, c := range map[string]struct {
		fail func(ctx context.Context, f *Func, x *Tensor) error
		want error
	}{
		"does not come": {func(context.Context, *Func, *Tensor) error { return gone }, gone},
		"is cancelled": {func(ctx context.Context, f *Func, x *Tensor) error {
			ctx, cancel := context.WithCancel(ctx)
			time.AfterFunc(20*time.Millisecond, cancel)
			_, err := f.Call(ctx, x)
			return err
		}, nil},
		"cannot load": {func(ctx context.Context, f *Func, x *Tensor) error {
			lazy := &array{strides: rowMajor(x.shape), load: func(context.Context) (*runtime.Buffer, error) { return nil, gone }}
			x = &Tensor{scope: x.scope, typ: x.typ, shape: x.shape, data: lazy}
			err := Eval(ctx, x.AllReduce(cluster.Sum))
			assert.Error(t, x.scope.Member().Group().Err(), "the others are told before the member's goroutine ends")
			return err
		}, gone},
		"calls something else": {func(ctx context.Context, f *Func, x *Tensor) error {
			_, err := Read[float32](ctx, x.Narrow(0, 0, 2).AllReduce(cluster.Sum))
			return err
		}, runtime.ErrInvalidArgument},
		"closes its scope": {func(ctx context.Context, f *Func, x *Tensor) error {
			if err := x.Scope().Close(); err != nil {
				return err
			}
			_, err := f.Call(ctx, x)
			return err
		}, ErrScope},
	} {
		t.Run(name, func(t *testing.T) {
			session, err := runtime.New(runtime.Config{})
			require.NoError(t, err)
			defer session.Close()
			dev, err := session.Open(t.Context(), "cpu:0")
			require.NoError(t, err)
			g, err := cluster.Virtual(dev, 3)
			require.NoError(t, err)
			begin := time.Now()
			err = onAll(t, g, func(ctx context.Context, s *Scope) error {
				f := Compile(s, func(a ...*Tensor) []*Tensor {
					y := a[0].MatMul(a[0])
					return []*Tensor{y.AllReduce(cluster.Sum), y.Sum().AllReduce(cluster.Sum)}
				})
				x := gaussian(s, 1, 1, 40, 40)
				if _, err := f.Call(ctx, x); err != nil {
					return err
				}
				if s.Rank() == 1 {
					return c.fail(ctx, f, x)
				}
				if name == "is cancelled" && s.Rank() == 2 {
					time.Sleep(200 * time.Millisecond)
				}
				_, err := f.Call(ctx, x)
				if err == nil { // the group may have failed behind it
					err = Eval(ctx, x.AllReduce(cluster.Sum))
				}
				var named *cluster.MemberError
				if assert.ErrorAs(t, err, &named, "member %d", s.Rank()) {
					assert.Equal(t, 1, named.Rank)
				}
				return err
			})
			assert.Less(t, time.Since(begin), 10*time.Second)
			require.ErrorIs(t, err, cluster.ErrSync)
			if c.want != nil {
				assert.ErrorIs(t, err, c.want)
			}
			require.NoError(t, g.Close())
			assert.Zero(t, dev.Stats().LiveBuffers)
			assert.NoError(t, dev.Close())
		})
	}
}
