package tensors

// Attacks: many goroutines, cancelled contexts, small memory, failing kernels, closed scopes, aliases, and what
// is used again after an error.

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	goruntime "runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/concord-compute/concord/runtime"
	"github.com/concord-compute/concord/source"
	"github.com/concord-compute/concord/tensor"
)

// held returns the bytes of the buffers that are open, after the work that uses closed ones.
func held(t testing.TB, s *tensor.Scope) int64 {
	t.Helper()
	stats := s.Device().Stats()
	for range 200 {
		if stats.Deferred == 0 {
			break
		}
		time.Sleep(5 * time.Millisecond)
		stats = s.Device().Stats()
	}
	return stats.Live
}

func floats(n int) []float64 {
	list := make([]float64, n)
	for i := range list {
		list[i] = float64(i%17) / 17
	}
	return list
}

// Goroutines that build, compute, read and close scopes at the same time, on tensors of their own and on shared ones.
func TestManyGoroutines(t *testing.T) {
	s := scope(t, runtime.Config{})
	ctx := context.Background()
	shared := tensor.From(s, floats(120), 4, 5, 6)
	lazy := shared.Add(1).Exp()
	want, err := tensor.Read[float64](ctx, shared.Add(1).Exp())
	require.NoError(t, err)
	before := held(t, s)
	var wg sync.WaitGroup
	for n := range 8 {
		wg.Go(func() {
			r := rand.New(rand.NewPCG(uint64(n), 3))
			w := &way{scope: s}
			for range 25 {
				g, values := random(r, 6, false)
				w.compile = r.IntN(3) == 0
				if _, err := w.check(g, values); err != nil {
					assert.NoError(t, err)
					return
				}
				got, err := tensor.Read[float64](ctx, lazy)
				assert.NoError(t, err)
				assert.Equal(t, want, got)
				in := s.Scope()
				y := tensor.Grad(lazy.Mul(tensor.Iota(in, tensor.F64, 6)).Sum(), shared)[0]
				k, err := y.Keep(ctx)
				assert.NoError(t, err)
				if k != nil {
					assert.True(t, s == k.Scope(), "what is kept belongs to the scope around")
				}
				assert.NoError(t, in.Close())
			}
		})
	}
	wg.Wait()
	require.GreaterOrEqual(t, held(t, s), before)
}

// Readers and a scope that is closed under them: an error of a known kind, or the result.
func TestCloseWhileReading(t *testing.T) {
	s := scope(t, runtime.Config{})
	before := held(t, s)
	for range 30 {
		in := s.Scope()
		x := tensor.From(in, floats(600), 20, 30)
		y := x.Exp().MatMul(x.T()).Softmax(0)
		var wg sync.WaitGroup
		for range 3 {
			wg.Go(func() {
				got, err := tensor.Read[float64](context.Background(), y.T().Add(1))
				if err != nil {
					assert.True(t, errors.Is(err, tensor.ErrScope) || errors.Is(err, runtime.ErrClosed), err)
					return
				}
				assert.Len(t, got, 400)
			})
		}
		time.Sleep(time.Duration(rand.IntN(300)) * time.Microsecond)
		assert.NoError(t, in.Close())
		wg.Wait()
	}
	require.Equal(t, before, held(t, s))
}

// What belongs to a scope that is closed cannot be computed, nor can what is made of it in another scope.
func TestClosedScopes(t *testing.T) {
	ctx := context.Background()
	s := scope(t, runtime.Config{})
	before := held(t, s)
	in, other := s.Scope(), s.Scope()
	x := tensor.From(in, floats(6), 2, 3)
	y := tensor.From(other, floats(6), 2, 3)
	lazy, sum, product := x.Exp(), y.Add(x), y.MatMul(x.T())
	require.NoError(t, tensor.Eval(ctx, y.Neg()))
	require.NoError(t, in.Close())
	for _, z := range []*tensor.Tensor{x, lazy, sum, product, sum.Sum(), tensor.Concat(0, y, x)} {
		_, err := tensor.Read[float64](ctx, z)
		require.ErrorIs(t, err, tensor.ErrScope)
		_, err = z.Keep(ctx)
		require.ErrorIs(t, err, tensor.ErrScope)
	}
	require.ErrorIs(t, tensor.From(in, floats(2)).Err(), tensor.ErrScope)
	require.NoError(t, in.Close())
	nested := in.Scope()
	_, err := tensor.Read[float64](ctx, tensor.Ones(nested, tensor.F64, 2))
	require.ErrorIs(t, err, tensor.ErrScope)
	got, err := tensor.Read[float64](ctx, y.Add(y))
	require.NoError(t, err)
	require.Len(t, got, 6)
	require.NoError(t, other.Close())
	require.Equal(t, before, held(t, s))
}

// Tensors of other devices, and of scopes of another engine on the same device.
func TestOtherDevices(t *testing.T) {
	a, b := scope(t, runtime.Config{}), scope(t, runtime.Config{})
	x, y := tensor.From(a, floats(4)), tensor.From(b, floats(4))
	for _, z := range []*tensor.Tensor{x.Add(y), tensor.Concat(0, x, y), tensor.Where(x.Gt(0), x, y), x.MatMul(y),
		tensor.Stack(0, x, y)} {
		require.ErrorIs(t, z.Err(), tensor.ErrDevice)
		require.ErrorIs(t, tensor.Eval(context.Background(), z), tensor.ErrDevice)
	}
	require.ErrorIs(t, tensor.Eval(context.Background(), x.Neg(), y.Neg()), tensor.ErrDevice)
	require.ErrorIs(t, tensor.Grad(x.Sum(), y)[0].Err(), tensor.ErrDevice)
}

// A limit of memory that a computation exceeds: a typed error, nothing leaked, and less is computed afterwards.
func TestMemoryLimit(t *testing.T) {
	ctx := context.Background()
	goroutines := 0
	for _, fusion := range []bool{true, false} {
		s := scope(t, runtime.Config{MemoryLimit: 1 << 20, NoFusion: !fusion})
		x := tensor.From(s, floats(256*64), 256, 64) // 128 KiB
		require.NoError(t, x.Sync(ctx))
		before := held(t, s)
		goroutines = max(goroutines, goruntime.NumGoroutine())
		for k := range 20 {
			in := s.Scope()
			big := tensor.Ones(in, tensor.F64, 1).Mul(x).Exp().MatMul(x.T().Exp()) // 512 KiB
			roots := []*tensor.Tensor{big, big.T().Copy(), x.Exp(), big.Sum(k % 2)}
			err := tensor.Eval(ctx, roots...)
			require.ErrorIs(t, err, runtime.ErrBudget)
			for _, r := range roots {
				require.Contains(t, r.String(), "not computed")
			}
			_, err = tensor.Read[float64](ctx, roots[1])
			require.ErrorIs(t, err, runtime.ErrBudget)
			f := tensor.Compile(in, func(args ...*tensor.Tensor) []*tensor.Tensor {
				y := args[0].MatMul(args[0].T())
				return []*tensor.Tensor{y.Exp(), y.MatMul(y)}
			})
			_, err = f.Call(ctx, x)
			require.ErrorIs(t, err, runtime.ErrBudget)
			require.Equal(t, before, held(t, s), "after failures")
			got, err := tensor.Read[float64](ctx, roots[3].Mul(0).Sum())
			require.NoError(t, err)
			require.Equal(t, []float64{0}, got)
			require.NoError(t, in.Close())
			require.Equal(t, before, held(t, s), "after the scope is closed")
		}
		require.ErrorIs(t, tensor.From(s, floats(1<<18)).Err(), runtime.ErrBudget)
		require.Equal(t, before, held(t, s))
	}
	require.LessOrEqual(t, goruntime.NumGoroutine(), goroutines+2)
}

// expiring is a context that is done after it has been asked a number of times.
type expiring struct {
	context.Context
	left atomic.Int64
}

func (c *expiring) Err() error {
	if c.left.Add(-1) < 0 {
		return context.Canceled
	}
	return nil
}

// Contexts that end in the middle of a computation: nothing is computed, nothing is leaked, and it can be
// computed again.
func TestCancelled(t *testing.T) {
	s := scope(t, runtime.Config{})
	x := tensor.From(s, floats(60), 6, 10)
	require.NoError(t, x.Sync(context.Background()))
	before := held(t, s)
	failed := 0
	for n := range int64(40) {
		in := s.Scope()
		y := tensor.Ones(in, tensor.F64).Mul(x)
		a := y.Exp().MatMul(y.T()).Softmax(0)
		b := tensor.Concat(1, a, a.T().Neg()).Sum(0)
		roots := []*tensor.Tensor{b, a, a.T(), y.Sum(0)}
		ctx := &expiring{Context: context.Background()}
		ctx.left.Store(n)
		if err := tensor.Eval(ctx, roots...); err != nil {
			failed++
			require.ErrorIs(t, err, context.Canceled)
			require.Equal(t, before, held(t, s))
		}
		got, err := tensor.Read[float64](context.Background(), b)
		require.NoError(t, err)
		require.Len(t, got, 12)
		require.InDelta(t, 1, got[0], 1e-9, "a column of a softmax")
		require.NoError(t, in.Close())
		require.Equal(t, before, held(t, s))
	}
	require.Greater(t, failed, 3)
	require.Less(t, failed, 40)
}

// A kernel that cannot be built, and one that is launched with wrong arguments, fail the computation that needs
// them and no other.
func TestFailingKernels(t *testing.T) {
	ctx := context.Background()
	s := scope(t, runtime.Config{})
	x := tensor.From(s, floats(12), 3, 4)
	require.NoError(t, x.Sync(ctx))
	unit, err := source.Parse(`kernel void twice(global const double *x, global double *y, uint n) {
	uint i = get_global_id(0);
	if (i < n) y[i] = 2 * x[i];
}`, source.Options{Name: "twice.cl", Features: s.Device().Features()})
	require.NoError(t, err)
	before := held(t, s)
	bad := func(k tensor.Kernel, args ...any) {
		t.Helper()
		in := s.Scope()
		k.Unit, k.Grid, k.Results = unit, runtime.Items(12), []tensor.Spec{{Type: tensor.F64, Shape: []int{3, 4}}}
		z := tensor.Launch(k, append([]any{tensor.Ones(in, tensor.F64).Mul(x).Exp()}, args...)...)[0]
		require.NoError(t, z.Err())
		ok := tensor.Ones(in, tensor.F64).Mul(x).Exp()
		require.Error(t, tensor.Eval(ctx, ok, z.Neg(), z.Sum(0)))
		require.Equal(t, before, held(t, s))
		require.Contains(t, ok.String(), "not computed")
		_, err := tensor.Read[float64](ctx, ok.Add(1))
		require.NoError(t, err)
		require.NoError(t, in.Close())
		require.Equal(t, before, held(t, s))
	}
	bad(tensor.Kernel{Name: "thrice"}, tensor.Out(0), uint32(12))
	bad(tensor.Kernel{Name: "twice"}, tensor.Out(1), uint32(12))
	bad(tensor.Kernel{Name: "twice"}, tensor.Out(0))
	bad(tensor.Kernel{Name: "twice"}, tensor.Out(0), "twelve")
}

// A tensor and its views asked for together, the same one twice, and views of views of what is computed.
func TestAliases(t *testing.T) {
	ctx := context.Background()
	for _, fusion := range []bool{true, false} {
		s := scope(t, runtime.Config{NoFusion: !fusion})
		before := held(t, s)
		in := s.Scope()
		deep := in.Scope()
		x := tensor.From(in, floats(24), 4, 6)
		y := x.Mul(2)
		inner := tensor.Ones(deep, tensor.F64).Mul(0).Add(y) // of the inner scope
		row := tensor.Zeros(deep, tensor.F64).Expand(6).Add(0)
		roots := []*tensor.Tensor{y.T(), y, y, y.T(), y.Flip().Slice(tensor.Range{Start: 1, Stop: 3, Step: 1}), inner.T(),
			inner, y.Index(0, 1).Add(row), y.Index(0, 1), x.T(), x}
		require.NoError(t, tensor.Eval(ctx, roots...))
		require.NoError(t, tensor.Eval(ctx, roots...))
		view := roots[0].Flip(1).Reshape(3, 2, 4)
		require.NoError(t, tensor.Eval(ctx, view, roots[4]))
		kept, err := inner.T().Keep(ctx)
		require.NoError(t, err)
		again, err := inner.Keep(ctx)
		require.NoError(t, err)
		require.NoError(t, deep.Close())
		for _, z := range []*tensor.Tensor{roots[0], roots[4], view, kept, again, roots[8]} {
			got, err := elements(ctx, z)
			require.NoError(t, err)
			require.Len(t, got, z.Len())
		}
		_, err = tensor.Read[float64](ctx, inner)
		require.ErrorIs(t, err, tensor.ErrScope)
		up, err := kept.Keep(ctx)
		require.NoError(t, err)
		top, err := up.Keep(ctx)
		require.NoError(t, err)
		require.NoError(t, in.Close())
		got, err := tensor.Read[float64](ctx, top)
		require.NoError(t, err)
		require.InDelta(t, 2*6.0/17, got[1], 1e-15)
		require.Equal(t, before+24*8, held(t, s))
	}
}

// Gradients pass through tensors that have been computed, and errors stay with what has them.
func TestGradientsOfComputed(t *testing.T) {
	ctx := context.Background()
	s := scope(t, runtime.Config{})
	x := tensor.From(s, floats(6))
	y := x.Exp()
	z := y.Square().Sum()
	require.NoError(t, tensor.Eval(ctx, y, z))
	g, err := tensor.Read[float64](ctx, tensor.Grad(z, x)[0])
	require.NoError(t, err)
	want, err := tensor.Read[float64](ctx, x.Mul(2).Exp().Mul(2))
	require.NoError(t, err)
	require.InDeltaSlice(t, want, g, 1e-12)
	bad := x.Reshape(5)
	for _, e := range []*tensor.Tensor{bad, bad.Add(1).Sum(), tensor.Grad(bad.Sum(), x)[0], tensor.Concat(0, x, bad),
		tensor.Where(bad.Gt(0), x, 0), bad.T(), bad.Softmax(0),
		bad.MatMul(x), x.KeepDims(bad), x.KeepDims(x.Sum(), 3), bad.Copy(), bad.StopGradient(), bad.Cast(tensor.I8),
		bad.Bits(tensor.U32),
		bad.Split(0, 2, 3)[1], bad.Unsqueeze(0), bad.Var(0)} {
		require.ErrorIs(t, e.Err(), tensor.ErrShape)
		require.ErrorIs(t, tensor.Eval(ctx, x, e), tensor.ErrShape)
	}
}

// Shapes beyond what there can be, and such as a device has no memory for.
func TestHugeShapes(t *testing.T) {
	ctx := context.Background()
	s := scope(t, runtime.Config{})
	before := held(t, s)
	x := tensor.Ones(s, tensor.F64, 1)
	const most = 1 << 47
	wide := x.Expand(most)
	for name, y := range map[string]*tensor.Tensor{
		"full": tensor.Ones(s, tensor.F64, 1<<40, 1<<40), "expand": x.Expand(1<<62, 1<<62, 1),
		"concat": tensor.Concat(0, wide, wide, wide, wide),
		"stack":  tensor.Stack(0, wide, wide, wide, wide), "pad": wide.Pad(0, [2]int{1 << 62, 1 << 62}),
		"reshape": x.Reshape(1<<40, 1<<40, -1),
		"product": x.Expand(1<<30, 1).MatMul(x.Expand(1, 1<<30)), "outer": x.Expand(1<<30, 1).Add(x.Expand(1, 1<<30)),
		"one hot": x.Cast(tensor.I32).Expand(1<<30).OneHot(1<<30, tensor.F64),
		"batches": x.Expand(1<<26, 1, 1).MatMul(x.Expand(1, 1, 1<<26)),
		"where":   tensor.Where(x.Expand(1<<30, 1).Gt(0), x.Expand(1<<30), 0),
		"rank":    x.Expand(1, 1, 1, 1, 1, 1, 1, 1, 1), "tile": wide.Tile(1 << 60), "repeat": wide.Repeat(0, 1<<60),
		"take": wide.Reshape(1<<20, -1).Take(0, tensor.Iota(s, tensor.I64, 1<<30)),
	} {
		assert.ErrorIs(t, y.Err(), tensor.ErrShape, name)
	}
	for name, y := range map[string]*tensor.Tensor{"copy": wide.Copy(), "map": wide.Exp(),
		"iota": tensor.Iota(s, tensor.I64, most), "concat": tensor.Concat(0, wide.Exp(), x),
		"product": x.Expand(1<<22, 1).MatMul(x.Expand(1, 1<<22))} {
		require.NoError(t, y.Err())
		err := tensor.Eval(ctx, y)
		assert.True(t, errors.Is(err, runtime.ErrOutOfMemory) || errors.Is(err, runtime.ErrTooLarge) ||
			errors.Is(err, tensor.ErrShape), "%s: %v", name, err)
		require.Equal(t, before, held(t, s), name)
	}
	got, err := tensor.Read[float64](ctx, wide.Slice(tensor.Range{Start: 5, Stop: 1 << 46, Step: 1 << 44}).Add(1))
	require.NoError(t, err)
	require.Equal(t, []float64{2, 2, 2, 2}, got)
}

// Views that divide the dimensions of a loop into more than a kernel has, and expressions of more operands than that.
func TestManyDimensions(t *testing.T) {
	ctx := context.Background()
	s := scope(t, runtime.Config{})
	x := tensor.From(s, floats(256), 2, 2, 2, 2, 2, 2, 2, 2)
	flat := x.Permute(7, 6, 5, 4, 3, 2, 1, 0).Reshape(256, 1)
	y := flat.Add(tensor.From(s, floats(3)))
	z := flat.Flip(0).Mul(flat.Reshape(2, 128).T().Reshape(256, 1)).Sum(0)
	got, err := tensor.Read[float64](ctx, y)
	require.NoError(t, err)
	for i := range 256 {
		r := 0
		for b := range 8 {
			r |= i >> b & 1 << (7 - b)
		}
		for j := range 3 {
			require.InDelta(t, floats(256)[r]+floats(3)[j], got[3*i+j], 1e-15)
		}
	}
	_, err = tensor.Read[float64](ctx, z)
	require.NoError(t, err)
}

// Compiled functions whose arguments are one tensor, views, constants of theirs, and results of calls before.
func TestCompiledAliases(t *testing.T) {
	ctx := context.Background()
	s := scope(t, runtime.Config{})
	x, y := tensor.From(s, floats(12), 3, 4), tensor.From(s, floats(24)[12:], 3, 4)
	f := func(args ...*tensor.Tensor) []*tensor.Tensor {
		a, b := args[0], args[1]
		c := a.Mul(0.5).Sub(b.Softmax(1))
		return []*tensor.Tensor{b, c, c.T().Copy(), a, c.Mul(x), x.T().Copy(), c}
	}
	compiled := tensor.Compile(s, f)
	compare := func(args []*tensor.Tensor, want []*tensor.Tensor) []*tensor.Tensor {
		t.Helper()
		got, err := compiled.Call(ctx, args...)
		require.NoError(t, err)
		for i := range want {
			w, err := tensor.Read[float64](ctx, want[i])
			require.NoError(t, err)
			g, err := tensor.Read[float64](ctx, got[i])
			require.NoError(t, err)
			require.Equal(t, w, g, "result %d", i)
		}
		return got
	}
	compare([]*tensor.Tensor{x, y}, f(x, y))
	compare([]*tensor.Tensor{x, x}, f(x, x))
	compare([]*tensor.Tensor{y, x}, f(y, x))
	compare([]*tensor.Tensor{tensor.Concat(0, x, y).Slice(tensor.Range{Start: 2, Stop: 5}), y},
		f(tensor.Concat(0, x, y).Slice(tensor.Range{Start: 2, Stop: 5}), y))
	a, b := []*tensor.Tensor{x, y}, []*tensor.Tensor{x, y}
	for i := range 10 {
		a = compare(a, f(b...))
		want := f(b...)
		if a, b = []*tensor.Tensor{a[1], a[0]}, []*tensor.Tensor{want[1], want[0]}; i%3 == 2 {
			a, b = []*tensor.Tensor{a[0], a[0]}, []*tensor.Tensor{b[0], b[0]}
		}
	}
	in := s.Scope()
	constant := tensor.From(in, floats(4))
	g := tensor.Compile(s, func(args ...*tensor.Tensor) []*tensor.Tensor {
		return []*tensor.Tensor{args[0].Add(constant)}
	})
	_, err := g.Call(ctx, x)
	require.NoError(t, err)
	require.NoError(t, in.Close())
	// the graph keeps what it reads, but its results belong to the scope of the constant
	if out, err := g.Call(ctx, x); err == nil {
		_, err = tensor.Read[float64](ctx, out[0])
		require.ErrorIs(t, err, tensor.ErrScope)
	}
	_, err = g.Call(ctx, y.Slice(tensor.Range{Start: 1, Stop: 3}).Copy())
	require.ErrorIs(t, err, tensor.ErrScope)
}

// Methods with arguments that make no sense return tensors with mistakes; they do not panic.
func TestMisuse(t *testing.T) {
	ctx := context.Background()
	s := scope(t, runtime.Config{MemoryLimit: 64 << 20})
	broken := tensor.Concat(0)
	require.Error(t, broken.Err())
	ts := []*tensor.Tensor{broken, tensor.From(s, floats(6), 2, 3).Reshape(7), nil, tensor.From(s, floats(6), 2, 3),
		tensor.From(s, []int32{1, 2, 3}), tensor.Ones(s, tensor.Bool, 3),
		tensor.Zeros(s, tensor.F32, 0, 2), tensor.From(s, floats(1)), tensor.From(s, floats(24), 2, 3, 4),
		tensor.Ones(s, tensor.U8, 1, 1, 1, 1, 1, 1, 1, 1)}
	numbers := []int{-1 << 63, -9, -3, -2, -1, 0, 1, 2, 3, 4, 9, 1 << 40, 1<<63 - 1}
	r := rand.New(rand.NewPCG(uint64(count("SEED", 1)), 9))
	value := func(typ reflect.Type) (reflect.Value, bool) {
		switch typ {
		case reflect.TypeFor[*tensor.Tensor]():
			return reflect.ValueOf(ts[r.IntN(len(ts))]), true
		case reflect.TypeFor[any]():
			list := []any{1, -1, 0.5, true, "x", nil, 1 << 40, uint64(1 << 63), math.NaN(), ts[r.IntN(len(ts))],
				ts[r.IntN(len(ts))]}
			if x := list[r.IntN(len(list))]; x != nil {
				return reflect.ValueOf(x), true
			}
			return reflect.Zero(typ), true
		case reflect.TypeFor[tensor.Type]():
			return reflect.ValueOf(tensor.Type(r.IntN(16))), true
		case reflect.TypeFor[tensor.Range]():
			return reflect.ValueOf(tensor.Range{Start: numbers[r.IntN(len(numbers))], Stop: numbers[r.IntN(len(numbers))],
				Step: numbers[r.IntN(len(numbers))]}), true
		case reflect.TypeFor[[2]int]():
			return reflect.ValueOf([2]int{numbers[r.IntN(len(numbers))], numbers[r.IntN(len(numbers))]}), true
		case reflect.TypeFor[context.Context]():
			return reflect.ValueOf(ctx), true
		case reflect.TypeFor[*tensor.Scope]():
			return reflect.ValueOf(s), true
		}
		switch typ.Kind() {
		case reflect.Int:
			return reflect.ValueOf(numbers[r.IntN(len(numbers))]).Convert(typ), true
		case reflect.Float64:
			return reflect.ValueOf([]float64{0, 1, -1, math.NaN(), math.Inf(1)}[r.IntN(5)]), true
		case reflect.Bool:
			return reflect.ValueOf(r.IntN(2) == 0), true
		}
		return reflect.Value{}, false
	}
	methods := reflect.TypeFor[*tensor.Tensor]()
	tried := 0
	for i := range methods.NumMethod() {
		m := methods.Method(i)
		for range 300 {
			in := []reflect.Value{reflect.ValueOf(ts[r.IntN(len(ts))])}
			if in[0].IsNil() {
				in[0] = reflect.ValueOf(ts[0])
			}
			fits := true
			for j := 1; j < m.Type.NumIn() && fits; j++ {
				typ, n := m.Type.In(j), 1
				if m.Type.IsVariadic() && j == m.Type.NumIn()-1 {
					typ, n = typ.Elem(), r.IntN(4)
				}
				for range n {
					v, ok := value(typ)
					fits = fits && ok
					in = append(in, v)
				}
			}
			if !fits {
				break
			}
			text := m.Name
			for _, x := range in {
				if x.Kind() == reflect.Pointer {
					for k, y := range ts {
						if x.Interface() == y {
							text += fmt.Sprint(" ts", k)
						}
					}
					continue
				}
				text += fmt.Sprintf(" %v", x)
			}
			func() {
				defer func() {
					if p := recover(); p != nil {
						t.Errorf("%s: panic: %v", text, p)
					}
				}()
				for _, out := range m.Func.Call(in) {
					if y, ok := out.Interface().(*tensor.Tensor); ok && y != nil && y.Len() < 1<<20 {
						if err := tensor.Eval(ctx, y); err != nil && y.Err() == nil {
							t.Errorf("%s: no mistake in the description, but %v", text, err)
						}
						tried++
					}
				}
			}()
		}
	}
	require.Greater(t, tried, 10000)
}

// More programs than an engine keeps loaded: compiled functions keep theirs.
func TestManyPrograms(t *testing.T) {
	ctx := context.Background()
	s := scope(t, runtime.Config{})
	x := tensor.From(s, floats(6), 2, 3)
	f := tensor.Compile(s, func(args ...*tensor.Tensor) []*tensor.Tensor {
		return []*tensor.Tensor{args[0].Exp().Mul(0.123), args[0].MatMul(args[0].T())}
	})
	call := func() []float64 {
		out, err := f.Call(ctx, x)
		require.NoError(t, err)
		got, err := tensor.Read[float64](ctx, out[0])
		require.NoError(t, err)
		return got
	}
	want := call()
	for i := range 5 {
		in := s.Scope()
		var roots []*tensor.Tensor
		for k := range 500 {
			roots = append(roots, tensor.Zeros(in, tensor.F64).Add(x).Mul(float64(500*i+k)+0.5).Copy().Sum(0))
		}
		require.NoError(t, tensor.Eval(ctx, roots...))
		got, err := tensor.Read[float64](ctx, roots[499])
		require.NoError(t, err)
		require.InDelta(t, (0+3/17.0)*(float64(500*i+499)+0.5), got[0], 1e-9)
		require.NoError(t, in.Close())
		require.Equal(t, want, call())
	}
}
