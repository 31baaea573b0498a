package tensor

import (
	"context"
	"errors"
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	_ "github.com/concord-compute/concord/cpu"
	"github.com/concord-compute/concord/kernels/expr"
	"github.com/concord-compute/concord/runtime"
	"github.com/concord-compute/concord/source"
)

func scope(t testing.TB) *Scope {
	dev, err := runtime.Open(context.Background(), "cpu:0")
	require.NoError(t, err)
	s := NewScope(dev)
	t.Cleanup(func() {
		assert.NoError(t, s.Close())
		assert.NoError(t, dev.Close())
	})
	return s
}

func values[T Element](t testing.TB, x *Tensor) []T {
	t.Helper()
	out, err := Read[T](context.Background(), x)
	require.NoError(t, err)
	return out
}

// tasks returns what the plan of tensors does.
func tasks(t testing.TB, ts ...*Tensor) []string {
	t.Helper()
	p, err := newPlan(ts, true, nil)
	require.NoError(t, err)
	var list []string
	for _, k := range p.tasks {
		list = append(list, k.String())
	}
	return list
}

func numbers(n int) []float32 {
	out := make([]float32, n)
	for i := range out {
		out[i] = float32(i)
	}
	return out
}

func TestFirst(t *testing.T) {
	s := scope(t)
	x := From(s, numbers(6), 2, 3)
	y := x.Mul(2).Add(From(s, []float32{10, 20, 30})).Relu()
	assert.Len(t, tasks(t, y), 1)
	assert.Equal(t, []float32{10, 22, 34, 16, 28, 40}, values[float32](t, y))
	assert.Equal(t, []float32{0, 3, 1, 4, 2, 5}, values[float32](t, x.T()))
	assert.Equal(t, []float32{3, 12}, values[float32](t, x.Sum(1)))
	assert.Equal(t, []float32{3, 5, 7}, values[float32](t, x.Sum(0)))
	assert.Equal(t, []float32{15}, values[float32](t, x.Sum()))
	assert.Equal(t, []float32{5, 4, 3, 2, 1, 0}, values[float32](t, x.Flip()))
	assert.Equal(t, []float32{0, 2, 3, 5}, values[float32](t, x.Slice(All, Range{0, End, 2})))
	z := x.Softmax(1)
	assert.Len(t, tasks(t, z), 1)
	assert.InDeltaSlice(t, []float32{0.09003057, 0.24472847, 0.66524096, 0.09003057, 0.24472847, 0.66524096},
		values[float32](t, z), 1e-6)
	z = x.Softmax(0)
	assert.Len(t, tasks(t, z), 1)
	values[float32](t, z)
	m := x.MatMul(x.T())
	assert.Len(t, tasks(t, m), 1)
	assert.Equal(t, []float32{5, 14, 14, 50}, values[float32](t, m))
	c := Concat(1, x.Add(1), x.Mul(3))
	assert.Len(t, tasks(t, c), 1)
	assert.Equal(t, []float32{1, 2, 3, 0, 3, 6, 4, 5, 6, 9, 12, 15}, values[float32](t, c))
	assert.Equal(t, []int64{0, 1, 2, 3}, values[int64](t, Iota(s, I64, 2, 2)))
	assert.Equal(t, []float32{1, 0, 0, 1}, values[float32](t, Eye(s, F32, 2)))
	assert.Equal(t, []bool{false, true, false, true, false, true}, values[bool](t, x.Rem(2).Eq(1)))
	assert.Equal(t, []float32{-1, -1, -1, 0, 1, -1, -1, 3, 4, -1, -1, -1}[:0], values[float32](t, x.Slice(Range{0, 0, 1})))
	assert.Equal(t, []float32{-1, -1, -1, -1, -1, 0, 1, 2, -1, 3, 4, 5},
		values[float32](t, x.Pad(-1, [2]int{1, 0}, [2]int{1, 0})))
}

func TestGradients(t *testing.T) {
	s := scope(t)
	x := From(s, []float64{1, 2, 3, 4, 5, 6}, 2, 3)
	w := From(s, []float64{0.1, -0.2, 0.3, 0.4, 0.5, -0.6}, 3, 2)
	loss := x.MatMul(w).Tanh().Square().Mean()
	g := Grad(loss, x, w)
	require.NoError(t, g[1].Err())
	require.NoError(t, Eval(t.Context(), loss, g[0], g[1]))
	got := values[float64](t, g[1])
	const h = 1e-6
	data := values[float64](t, w)
	for i := range data {
		up, down := slices.Clone(data), slices.Clone(data)
		up[i] += h
		down[i] -= h
		f := func(d []float64) float64 {
			return values[float64](t, x.MatMul(From(s, d, 3, 2)).Tanh().Square().Mean())[0]
		}
		assert.InDelta(t, (f(up)-f(down))/(2*h), got[i], 1e-8)
	}
	// Second order.
	v := From(s, []float64{0.5, -1.5}, 2)
	d := Grad(v.Exp().Mul(v.Sin()).Sum(), v)[0]
	dd := Grad(d.Sum(), v)[0]
	want := []float64{2 * math.Exp(0.5) * math.Cos(0.5), 2 * math.Exp(-1.5) * math.Cos(-1.5)}
	assert.InDeltaSlice(t, want, values[float64](t, dd), 1e-12)
}

func TestLayerNorm(t *testing.T) {
	s := scope(t)
	x := From(s, numbers(12), 3, 4)
	m := x.KeepDims(x.Mean(1), 1)
	d := x.Sub(m)
	v := d.KeepDims(d.Square().Mean(1), 1)
	y := d.Mul(v.Add(1e-5).Rsqrt()).Mul(From(s, []float32{1, 2, 3, 4}))
	assert.Len(t, tasks(t, y), 1, tasks(t, y))
	values[float32](t, y)
	g := Grad(y.Square().Sum(), x)[0]
	t.Log(tasks(t, g))
	values[float32](t, g)
	// A loss with a part that is stored.
	require.NoError(t, Eval(t.Context(), y, m, v))
	t.Log(tasks(t, x.Exp(), x.Exp().Sum(1), x.Add(1)))
}

func TestCompile(t *testing.T) {
	s := scope(t)
	w := From(s, []float64{0.1, -0.2, 0.3, 0.4, 0.5, -0.6}, 3, 2)
	step := Compile(s, func(args ...*Tensor) []*Tensor {
		w, x := args[0], args[1]
		loss := x.MatMul(w).Tanh().Square().Mean()
		return []*Tensor{w.Sub(Grad(loss, w)[0].Mul(0.05)), loss}
	})
	x := From(s, []float64{1, 2, 3, 4, 5, 6}, 2, 3)
	eager := w
	var losses []float64
	for range 5 {
		out, err := step.Call(t.Context(), w, x)
		require.NoError(t, err)
		w = out[0]
		loss := eager.Sub(0).MatMul(eager.T()).Sum() // something else on the same stream
		_ = loss
		l := x.MatMul(eager).Tanh().Square().Mean()
		eager = eager.Sub(Grad(l, eager)[0].Mul(0.05))
		require.NoError(t, Eval(t.Context(), eager))
		assert.Equal(t, values[float64](t, eager), values[float64](t, w))
		losses = append(losses, values[float64](t, out[1])[0])
	}
	assert.True(t, slices.IsSortedFunc(losses, func(a, b float64) int { return int(math.Copysign(1, b-a)) }), losses)
	p, err := step.Plan(t.Context(), w, x)
	require.NoError(t, err)
	t.Log(p)
	chain := Compile(s, func(args ...*Tensor) []*Tensor {
		return []*Tensor{args[0].Sub(args[1].T().MatMul(args[1].MatMul(args[0])).Mul(0.01))}
	})
	reduce := Compile(s, func(args ...*Tensor) []*Tensor {
		return []*Tensor{args[0].Softmax(-1).Mul(args[1].Sum(0).Mean()), args[1].Sum(1)}
	})
	for name, f := range map[string]*Func{"product": chain, "reductions": reduce} {
		args := []*Tensor{w, x}
		n := testing.AllocsPerRun(100, func() {
			out, err := f.Call(t.Context(), args...)
			if err != nil {
				t.Fatal(err)
			}
			args[0] = out[0]
		})
		assert.Zero(t, n, name)
	}
	_, err = Compile(s, func(args ...*Tensor) []*Tensor {
		_, err := Read[float64](context.Background(), args[0].Add(1))
		require.ErrorIs(t, err, errTraced)
		return args
	}).Call(t.Context(), x)
	require.NoError(t, err)
}

func TestRematerialize(t *testing.T) {
	s := scope(t)
	x := From(s, []float64{0.3, -0.7, 1.1})
	f := func(args ...*Tensor) *Tensor { return args[0].Sin().Exp().Mul(args[0]).Tanh() }
	want := values[float64](t, Grad(f(x).Sum(), x)[0])
	y := Rematerialize(f, x)
	g := Grad(y.Sum(), x)[0]
	assert.Equal(t, want, values[float64](t, g))
	assert.Equal(t, values[float64](t, f(x)), values[float64](t, y))
	assert.InDeltaSlice(t, values[float64](t, Grad(Grad(f(x).Sum(), x)[0].Sum(), x)[0]),
		values[float64](t, Grad(g.Sum(), x)[0]), 1e-12)
	// In a chain of checkpoints less memory is in use at a time.
	peak := func(block func(f func(args ...*Tensor) *Tensor, args ...*Tensor) *Tensor) int64 {
		in := Full(s, F64, 0.5, 1000)
		y := in.Copy()
		w := From(s, slices.Repeat([]float64{0.1}, 1000))
		for range 6 {
			y = block(func(args ...*Tensor) *Tensor {
				z := args[0]
				for range 4 {
					z = z.Add(args[1]).Tanh().Flip().Sin()
				}
				return z
			}, y, w)
		}
		p, err := newPlan(Grad(y.Sum(), w), true, nil)
		require.NoError(t, err)
		return allocate(p).total
	}
	plain := peak(func(f func(args ...*Tensor) *Tensor, args ...*Tensor) *Tensor { return f(args...) })
	again := peak(Rematerialize)
	assert.Less(t, 3*again, 2*plain)
}

func TestLaunch(t *testing.T) {
	s := scope(t)
	unit, err := source.Parse(`kernel void cube(global const float *x, global float *y, float a, uint n) {
	uint i = get_global_id(0);
	if (i < n) y[i] = a * x[i] * x[i] * x[i];
}`, source.Options{Name: "cube.cl", Features: s.Device().Features()})
	require.NoError(t, err)
	x := From(s, []float32{1, 2, 3})
	k := Kernel{Unit: unit, Name: "cube", Grid: runtime.Items(3), Results: []Spec{{F32, []int{3}}},
		Gradient: func(args, _, gs []*Tensor) []*Tensor { return []*Tensor{args[0].Square().Mul(6).Mul(gs[0])} }}
	y := Launch(k, x.Flip(), Out(0), float32(2), uint32(3))[0]
	out, err := Read[float32](t.Context(), y)
	if errors.Is(err, runtime.ErrUnsupported) {
		t.Skip(err)
	}
	require.NoError(t, err)
	assert.Equal(t, []float32{54, 16, 2}, out)
	assert.Equal(t, []float32{6, 24, 54}, values[float32](t, Grad(y.Sum(), x)[0]))
}

func TestString(t *testing.T) {
	s := scope(t)
	x := From(s, numbers(6), 2, 3).Mul(0.5)
	assert.Equal(t, "f32[2 3] = mul, not computed", x.String())
	require.NoError(t, Eval(t.Context(), x))
	assert.Equal(t, "f32[2 3]\n[[ 0. 0.5  1.]\n [1.5  2. 2.5]]", x.String())
	y := From(s, numbers(200), 20, 10)
	assert.Equal(t, "f32[20 10]\n[[  0.   1.   2. ...   7.   8.   9.]\n [ 10.  11.  12. ...  17.  18.  19.]\n [ 20.  "+
		"21.  22. ...  27.  28.  29.]\n ...\n"+
		" [170. 171. 172. ... 177. 178. 179.]\n [180. 181. 182. ... 187. 188. 189.]\n [190. 191. 192. ... 197. 198. 199.]]",
		y.String())
	assert.Equal(t, "f32[2 1 2]\n[[[0. 1.]]\n\n [[2. 3.]]]", From(s, numbers(4), 2, 1, 2).String())
	assert.Equal(t, "bool[2] [ true false]", From(s, []bool{true, false}).String())
	assert.Equal(t, "f64[] 0.33333", From(s, []float64{1.0 / 3}, []int{}...).String())
	assert.Equal(t, "i8[0] []", From(s, []int8{}).String())
	for name, f := range map[string]func(x *Tensor, axis int) *Tensor{
		"softmax": (*Tensor).Softmax, "log softmax": (*Tensor).LogSoftmax,
		"log sum exp": func(x *Tensor, axis int) *Tensor { return x.LogSumExp(axis) }} {
		assert.Contains(t, f(x, 1).String(), " = "+name+", not computed")
		assert.Contains(t, f(x, 7).String(), "error: "+name+": tensor: shapes do not fit: ")
		assert.Contains(t, f(x.MatMul(x), 7).String(), "error: matmul: ", "the first mistake")
	}
	assert.Contains(t, x.MatMul(x).String(), "error: matmul: tensor: shapes do not fit: [2 3] by [2 3] "+
		"(tensor/tensor_test.go:")
}

func TestTo(t *testing.T) {
	a, b := scope(t), scope(t)
	x := From(a, numbers(6), 2, 3)
	y, err := x.T().To(t.Context(), b)
	require.NoError(t, err)
	assert.Equal(t, []float32{0, 3, 1, 4, 2, 5}, values[float32](t, y))
	_, err = Read[float32](t.Context(), x.Add(y))
	require.ErrorIs(t, err, ErrDevice)
	n, err := Number(t.Context(), y.Sum())
	require.NoError(t, err)
	assert.InDelta(t, 15, n, 0)
}

func TestReshapeOfReshape(t *testing.T) {
	s := scope(t)
	v := From(s, numbers(4)).Reshape(2, 2)
	assert.Equal(t, []float32{0, 2, 4, 6}, values[float32](t, Grad(v.Flatten().Square().Sum(), v)[0]))
	assert.Len(t, tasks(t, v.Exp().Unsqueeze(0).Squeeze(0).Flatten().Log()), 1)
}

// Arguments that the graph does not read may change, also those without elements.
func TestCallWithUnusedArguments(t *testing.T) {
	s := scope(t)
	x, none := From(s, numbers(2)), From(s, []float32{}, 0)
	f := Compile(s, func(a ...*Tensor) []*Tensor { return []*Tensor{a[0].Add(1)} })
	for range 3 {
		out, err := f.Call(t.Context(), x, From(s, numbers(3)), From(s, []float32{}, 0))
		require.NoError(t, err)
		assert.Equal(t, []float32{1, 2}, values[float32](t, out[0]))
	}
	out, err := f.Call(t.Context(), From(s, numbers(4)).Narrow(0, 2, 2).Copy(), x.Flip().Copy().Pad(0, [2]int{1, 0}), none)
	require.NoError(t, err)
	assert.Equal(t, []float32{3, 4}, values[float32](t, out[0]))
}

// A derivative that needs all operands, the gradient and the result would be more than a kernel reads.
func TestGradientOfMany(t *testing.T) {
	s := scope(t)
	var args []*Tensor
	e := expr.Float(F64, 1)
	for i := range mostApplied {
		args = append(args, gaussian(s, uint64(i), 0.1, 3).Cast(F64).Add(1.5))
		x := expr.Input(i, F64)
		e = e.Mul(x).Add(x.Mul(x))
	}
	require.NoError(t, Eval(t.Context(), args...))
	gradients(t, func(a ...*Tensor) *Tensor { return Apply("root", expr.Apply(expr.Sqrt, e), a...).Log() }, args...)
}

func TestApplyOfMany(t *testing.T) {
	s := scope(t)
	var ts []*Tensor
	e := expr.Input(0, F64)
	for i := range mostApplied {
		ts = append(ts, From(s, []float64{float64(i + 1), 2}))
		if i > 0 {
			e = e.Mul(expr.Input(i, F64)).Tanh()
		}
	}
	g := Grad(Apply("many", e, ts...).Sum(), ts...)
	require.NoError(t, Eval(t.Context(), g...))
	require.ErrorIs(t, Apply("more", expr.Input(0, F64), append(ts, ts[0])...).Err(), ErrShape)
}

// TestFromRank: how many dimensions a tensor has does not depend on how many elements there are.
func TestFromRank(t *testing.T) {
	s := scope(t)
	for n := range 3 {
		x := From(s, make([]int32, n))
		assert.Equal(t, []int{n}, x.Shape())
		assert.Equal(t, n, x.Dim(0))
		assert.Equal(t, []int{n, 2}, x.Unsqueeze(1).Expand(n, 2).Shape())
	}
	number := Full(s, I32, 7)
	assert.Equal(t, 0, number.Rank())
	again := From(s, values[int32](t, number), number.Shape()...)
	assert.Equal(t, 0, again.Rank())
	assert.Equal(t, 0, From(s, []bool{true}, []int{}...).Rank())
	assert.ErrorIs(t, From(s, []int32{1, 2}, []int{}...).Err(), ErrShape)
}
