package expr_test

// Benchmarks of fused expressions against the same operations launched one by one, as ratios of medians. The two are
// measured in turn. Run them with make bench-expr.

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/concord-compute/concord/kernels"
	. "github.com/concord-compute/concord/kernels/expr"
	"github.com/concord-compute/concord/runtime"
	"github.com/concord-compute/concord/source"
)

// bench is a device with buffers of n floats.
type bench struct {
	b    *testing.B
	dev  *runtime.Device
	s    *runtime.Stream
	n    int
	bufs []*runtime.Buffer
}

func newBench(b *testing.B, n int) *bench {
	s, err := runtime.Default()
	require.NoError(b, err)
	dev, err := s.Open(context.Background(), "cpu:0")
	require.NoError(b, err)
	b.Cleanup(func() { dev.Close() })
	stream, err := dev.NewStream()
	require.NoError(b, err)
	b.Cleanup(func() { stream.Close() })
	t := &bench{b: b, dev: dev, s: stream, n: n}
	x := make([]float32, n)
	for i := range x {
		x[i] = float32(i%1000)/500 - 1
	}
	for range 5 {
		buf, err := runtime.Upload(context.Background(), dev, x)
		require.NoError(b, err)
		b.Cleanup(func() { buf.Close() })
		t.bufs = append(t.bufs, buf)
	}
	return t
}

func (t *bench) kernel(u *source.Unit, err error, name string) *runtime.Kernel {
	require.NoError(t.b, err)
	p, err := t.dev.Program(context.Background(), u)
	require.NoError(t.b, err)
	t.b.Cleanup(func() { p.Close() })
	k, err := p.Kernel(name)
	require.NoError(t.b, err)
	return k
}

// fused is a launch of an expression with the given parameters: inputs are buffers 0 and on, the output is buffer 4.
func (t *bench) fused(e *Expr, numbers ...any) func() {
	m, err := New(e)
	require.NoError(t.b, err)
	u, err := m.Unit(t.dev.Features(), 0)
	k := t.kernel(u, err, Kernel)
	var args []any
	for i := range m.Inputs() {
		args = append(args, t.bufs[i])
	}
	args = append(append(append(args, t.bufs[4]), numbers...), uint64(t.n))
	return func() { t.launch(k, args...) }
}

func (t *bench) launch(k *runtime.Kernel, args ...any) {
	if err := t.s.Launch(k, runtime.Items(t.n), args...); err != nil {
		t.b.Fatal(err)
	}
}

// catalog is a launch of a kernel of the catalog on buffers or numbers, to buffer 4.
func (t *bench) catalog(family, name string, defines []source.Define, args ...any) func() {
	u, err := kernels.Unit(family, t.dev.Features(), defines...)
	k := t.kernel(u, err, name)
	args = append(args, t.bufs[4], uint64(t.n))
	return func() { t.launch(k, args...) }
}

// compare reports the ratio of the time of the others to that of the first function.
func (t *bench) compare(first func(), others ...func()) {
	as, cs := t.times(max(t.b.N, 15), []func(){first}, others)
	a, c := as[len(as)/2], cs[len(cs)/2]
	t.b.ReportMetric(a*1e6, "µs-fused")
	t.b.ReportMetric(c*1e6, "µs-apart")
	t.b.ReportMetric(c/a, "ratio")
	t.b.ReportMetric(cs[0]/as[0], "ratio-of-shortest")
}

// times returns the sorted times in seconds of two lists of launches, which are run in turn.
func (t *bench) times(times int, first, second []func()) (as, cs []float64) {
	repeat := max(1, 1<<18/t.n) // of few elements, the time of many launches, each with its wait
	run := func(list []func()) float64 {
		start := time.Now()
		for range repeat {
			for _, f := range list {
				f()
			}
			if err := t.s.Sync(context.Background()); err != nil {
				t.b.Fatal(err)
			}
		}
		return time.Since(start).Seconds() / float64(repeat)
	}
	run(first)
	run(second)
	for range times {
		as, cs = append(as, run(first)), append(cs, run(second))
	}
	slices.Sort(as)
	slices.Sort(cs)
	return as, cs
}

func BenchmarkFused(b *testing.B) {
	const n = 16 << 20
	t := newBench(b, n)
	v := Input(0, F32)
	a := v.Mul(v.Number(1.5)).Add(v.Number(0.25)).Mul(v).Sub(v.Number(0.5))
	out, in := t.bufs[4], t.bufs[0]
	one := func(family, name string, args ...any) func() { return t.catalog(family, name, nil, args...) }
	chain := []func(){one("arith", "mul_scalar", in, float32(1.5)), one("arith", "add_scalar", out, float32(0.25)),
		one("arith", "mul", out, in), one("arith", "sub_scalar", out, float32(0.5))}
	relu, tanh, double := one("activation", "relu", out), one("activation", "tanh_act", out),
		one("arith", "mul_scalar", out, float32(2))
	b.Run("A", func(b *testing.B) {
		t.b = b
		t.compare(t.fused(a.Relu().Mul(v.Number(2))), append(slices.Clone(chain), relu, double)...)
	})
	b.Run("B", func(b *testing.B) {
		t.b = b
		w, z := t.bufs[1], t.bufs[2]
		t.compare(t.fused(v.Mul(Input(1, F32)).Add(Input(2, F32)).Sub(v).Mul(Input(1, F32)).Add(Input(2, F32)).Mul(v)),
			one("arith", "mul", in, w),
			one("arith", "add", out, z), one("arith", "sub", out, in), one("arith", "mul", out, w), one("arith", "add", out, z),
			one("arith", "mul", out, in))
	})
	b.Run("C", func(b *testing.B) {
		t.b = b
		t.compare(t.fused(a.Tanh().Mul(v.Number(2))), append(slices.Clone(chain), tanh, double)...)
	})
	b.Run("A beside a copy", func(b *testing.B) {
		t.b = b
		t.compare(t.fused(a.Relu().Mul(v.Number(2))), one("copy", "copy", in))
	})
}

// Functions of 1 Mi elements from -4 to 4, one after the other.
func BenchmarkFunctions(b *testing.B) {
	const n = 1 << 20
	for _, typ := range []Type{F32, F64} {
		t := newBench(b, n)
		for i := range t.bufs {
			var err error
			t.bufs[i], err = t.dev.Alloc(typ, n)
			require.NoError(b, err)
			require.NoError(b, t.s.Write(context.Background(), t.bufs[i], 0,
				kernels.Encode(typ.String(), kernels.Uniform(typ.String(), n, uint64(i), -4, 4)())))
		}
		v := Input(0, typ)
		half, one := v.Number(0.5), v.Number(1)
		functions := []struct {
			name string
			e    *Expr
		}{{"neg", v.Neg()}, {"gelu", v.Mul(half).Mul(one.Add(v.Mul(v.Number(0.70710678118654752)).Erf()))},
			{"softplus", Apply(Log1p, v.Abs().Neg().Exp()).Add(v.Relu())}, {"pow", v.Pow(Input(1, typ))},
			{"atan2", Apply(Atan2, v, Input(1, typ))}}
		for _, op := range []Op{Sqrt, Rsqrt, Exp, Exp2, Expm1, Log, Log2, Log1p, Sin, Cos, Tan, Sinh, Cosh, Tanh, Atan, Erf,
			Erfc, Sigmoid} {
			functions = append(functions, struct {
				name string
				e    *Expr
			}{op.String(), Apply(op, v)})
		}
		for _, f := range functions {
			b.Run(fmt.Sprintf("%v %s", typ, f.name), func(b *testing.B) {
				t.b = b
				launch := t.fused(f.e)
				times, _ := t.times(max(b.N, 15), []func(){launch}, nil)
				b.ReportMetric(times[len(times)/2]*1e9/n, "ns/element")
			})
		}
	}
}

// First use: from the definition of an expression that is new to the process to its queued launch.
func BenchmarkFusedFirst(b *testing.B) {
	t := newBench(b, 1024)
	v := Input(0, F32)
	var times []float64
	for i := range max(b.N, 500) {
		start := time.Now()
		m, err := New(v.Mul(v.Number(1.5)).Add(v.Number(float64(i))).Mul(v).Sub(v.Number(0.5)).Relu().Mul(v.Number(2)))
		require.NoError(b, err)
		u, err := m.Unit(t.dev.Features(), 0)
		require.NoError(b, err)
		p, err := t.dev.Program(context.Background(), u)
		require.NoError(b, err)
		k, err := p.Kernel(Kernel)
		require.NoError(b, err)
		t.launch(k, t.bufs[0], t.bufs[4], uint64(t.n))
		times = append(times, time.Since(start).Seconds())
		require.NoError(b, t.s.Sync(context.Background()))
		require.NoError(b, p.Close())
	}
	slices.Sort(times)
	total := 0.0
	for _, x := range times {
		total += x
	}
	b.ReportMetric(times[len(times)/2]*1e6, "µs-median")
	b.ReportMetric(total/float64(len(times))*1e6, "µs-mean")
}

// Random chains of two to eight operations of up to three inputs, beside launches of their operations one by
// one. The metrics are the smallest and the median ratio.
func BenchmarkFusedChains(b *testing.B) {
	const n = 16 << 20
	t := newBench(b, n)
	r := rand.New(rand.NewPCG(1, 2))
	one := map[Op]string{Add: "add", Sub: "sub", Mul: "mul", Div: "div"}
	few := map[Op]string{Sigmoid: "sigmoid", Tanh: "tanh_act", Max: "relu"}
	type chain struct {
		ratio float64
		text  string
	}
	var chains []chain
	for range 200 {
		e := Input(0, F32)
		at, inputs := t.bufs[0], 1
		var apart []func()
		text := ""
		for range 2 + r.IntN(7) {
			switch op := []Op{Add, Sub, Mul, Div, Add, Mul, Sigmoid, Tanh, Max}[r.IntN(9)]; {
			case few[op] != "":
				apart = append(apart, t.catalog("activation", few[op], nil, at))
				if text += " " + few[op]; op == Max {
					e = e.Relu()
				} else {
					e = Apply(op, e)
				}
			case r.IntN(2) == 0:
				apart = append(apart, t.catalog("arith", one[op]+"_scalar", nil, at, float32(1.5)))
				e = Apply(op, e, e.Number(1.5))
				text += " " + one[op] + "_scalar"
			default:
				slot := r.IntN(min(inputs+1, 3))
				inputs = max(inputs, slot+1)
				apart = append(apart, t.catalog("arith", one[op], nil, at, t.bufs[slot]))
				e = Apply(op, e, Input(slot, F32))
				text += fmt.Sprint(" ", one[op], slot)
			}
			at = t.bufs[4]
		}
		fused := t.fused(e)
		as, cs := t.times(7, []func(){fused}, apart)
		a, c := as[0], cs[0] // the shortest, since other programs delay single launches by more than a chain takes
		chains = append(chains, chain{c / a, text})
	}
	slices.SortFunc(chains, func(x, y chain) int { return cmp.Compare(x.ratio, y.ratio) })
	for _, c := range chains[:5] {
		b.Logf("%.2f%s", c.ratio, c.text)
	}
	b.ReportMetric(chains[0].ratio, "ratio-least")
	b.ReportMetric(chains[len(chains)/2].ratio, "ratio-median")
}

// launchOf is a launch of a kernel whose grid follows from sizes.
func (t *bench) launchOf(k *runtime.Kernel, sizes []int, args ...any) func() {
	items, group, err := kernels.Geometry(k.Unit(), k.Name(), sizes...)
	require.NoError(t.b, err)
	grid := runtime.Grid{Items: items, Group: group}
	return func() {
		if err := t.s.Launch(k, grid, args...); err != nil {
			t.b.Fatal(err)
		}
	}
}

// reduced is a launch of a map with reductions of rows of n elements. steps has for each operand its step from
// row to row and within a row.
func (t *bench) reduced(e *Expr, rows, n int, steps [][2]int, args ...any) func() {
	m, err := New(e)
	require.NoError(t.b, err)
	l := Layout{Dims: []int{rows, n}}
	for _, s := range steps {
		l.Operands = append(l.Operands, Operand{Steps: s[:]})
	}
	l, err = m.Layout(l)
	require.NoError(t.b, err)
	u, err := m.Unit(t.dev.Features(), l.Rank())
	name, size := m.Entry(&l)
	return t.launchOf(t.kernel(u, err, name), []int{size}, append(args, l.Argument())...)
}

// Reductions as expressions beside the built-in kernels that compute the same.
func BenchmarkReduced(b *testing.B) {
	t := newBench(b, 16<<20)
	in, out := t.bufs[0], t.bufs[4]
	v := Input(0, F32)
	builtIn := func(family, name string, sizes []int, args ...any) func() {
		u, err := kernels.Unit(family, t.dev.Features())
		return t.launchOf(t.kernel(u, err, name), sizes, args...)
	}
	for _, s := range [][2]int{{1, 1 << 10}, {32, 64}, {1000, 3}, {1, 1 << 16}, {1 << 10, 1 << 10}, {1 << 14, 1 << 10},
		{1 << 20, 16}, {4, 4 << 20}, {1, 16 << 20}} {
		rows, n := s[0], s[1]
		dense, once := [2]int{n, 1}, [2]int{1, 0}
		for name, f := range map[string][2]func(){
			"sum": {t.reduced(v.Sum(), rows, n, [][2]int{dense, once}, in, out),
				builtIn("reduce", "reduce_sum", []int{rows, 1}, in, out, uint32(rows), uint32(n), uint32(1))},
			"max": {t.reduced(v.Largest(), rows, n, [][2]int{dense, once}, in, out),
				builtIn("reduce", "reduce_max", []int{rows, 1}, in, out, uint32(rows), uint32(n), uint32(1))},
		} {
			b.Run(fmt.Sprintf("%s %d×%d", name, rows, n), func(b *testing.B) {
				t.b, t.n = b, rows*n
				t.compare(f[0], f[1])
			})
		}
	}
	// over axis 0
	for _, s := range [][2]int{{1 << 10, 1 << 14}, {1 << 14, 1 << 10}, {32, 64}, {1000, 1000}, {1000000, 4}, {1000000, 1},
		{4 << 20, 3}} {
		rows, n := s[1], s[0]
		for name, e := range map[string]*Expr{"sum": v.Sum(), "max": v.Largest()} {
			f := t.reduced(e, rows, n, [][2]int{{1, rows}, {1, 0}}, in, out)
			g := builtIn("reduce", "reduce_"+name+"_columns", []int{rows}, in, out, uint32(1), uint32(n), uint32(rows))
			b.Run(fmt.Sprintf("%s of columns of %d×%d", name, n, rows), func(b *testing.B) {
				t.b, t.n = b, rows*n
				t.compare(f, g)
			})
		}
	}
}
