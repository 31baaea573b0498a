package expr_test

// Benchmarks of fused expressions against the same operations launched one by one, as ratios of medians. The two are
// measured in turn. Run them with make bench-expr.

import (
	"context"
	"fmt"
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

// fused is a launch of an expression: inputs are buffers 0 and on, the output is buffer 4.
func (t *bench) fused(e *Expr) func() {
	m, err := New(e)
	require.NoError(t.b, err)
	u, err := m.Unit(t.dev.Features(), 0)
	k := t.kernel(u, err, Kernel)
	var args []any
	for i := range m.Inputs() {
		args = append(args, t.bufs[i])
	}
	args = append(args, t.bufs[4], uint64(t.n))
	return func() { t.launch(k, args...) }
}

func (t *bench) launch(k *runtime.Kernel, args ...any) {
	require.NoError(t.b, t.s.Launch(k, runtime.Items(t.n), args...))
}

// catalog is a launch of a kernel of the catalog on buffers or numbers, to buffer 4.
func (t *bench) catalog(family, name string, args ...any) func() {
	u, err := kernels.Unit(family, t.dev.Features())
	k := t.kernel(u, err, name)
	args = append(args, t.bufs[4], uint64(t.n))
	return func() { t.launch(k, args...) }
}

// compare reports the ratio of the time of the second function to that of the first.
func (t *bench) compare(first func(), others ...func()) {
	ctx := context.Background()
	run := func(list ...func()) float64 {
		start := time.Now()
		for _, f := range list {
			f()
		}
		require.NoError(t.b, t.s.Sync(ctx))
		return time.Since(start).Seconds()
	}
	run(first)
	run(others...)
	var a, c []float64
	for range max(t.b.N, 15) {
		a, c = append(a, run(first)), append(c, run(others...))
	}
	slices.Sort(a)
	slices.Sort(c)
	t.b.ReportMetric(a[len(a)/2]*1e6, "µs-fused")
	t.b.ReportMetric(c[len(c)/2]*1e6, "µs-apart")
	t.b.ReportMetric(c[len(c)/2]/a[len(a)/2], "ratio")
}

func BenchmarkFused(b *testing.B) {
	const n = 16 << 20
	t := newBench(b, n)
	v, w := Input(0, F32), Input(1, F32)
	a := v.Mul(v.Number(1.5)).Add(v.Number(0.25)).Mul(v).Sub(v.Number(0.5))
	out, in := t.bufs[4], t.bufs[0]
	one := func(family, name string, args ...any) func() { return t.catalog(family, name, args...) }
	chain := []func(){one("arith", "mul_scalar", in, float32(1.5)), one("arith", "add_scalar", out, float32(0.25)),
		one("arith", "mul", out, in), one("arith", "sub_scalar", out, float32(0.5))}
	relu, tanh, double := one("activation", "relu", out), one("activation", "tanh_act", out), one("arith", "mul_scalar", out, float32(2))
	b.Run("A", func(b *testing.B) {
		t.b = b
		t.compare(t.fused(a.Relu().Mul(v.Number(2))), append(slices.Clone(chain), relu, double)...)
	})
	b.Run("B", func(b *testing.B) {
		t.b = b
		w, z := t.bufs[1], t.bufs[2]
		t.compare(t.fused(v.Mul(Input(1, F32)).Add(Input(2, F32)).Sub(v).Mul(Input(1, F32)).Add(Input(2, F32)).Mul(v)), one("arith", "mul", in, w),
			one("arith", "add", out, z), one("arith", "sub", out, in), one("arith", "mul", out, w), one("arith", "add", out, z), one("arith", "mul", out, in))
	})
	b.Run("C", func(b *testing.B) {
		t.b = b
		t.compare(t.fused(a.Tanh().Mul(v.Number(2))), append(slices.Clone(chain), tanh, double)...)
	})
	b.Run("A beside a copy", func(b *testing.B) {
		t.b = b
		t.compare(t.fused(a.Relu().Mul(v.Number(2))), one("copy", "copy", in))
	})
	for _, f := range []struct {
		name         string
		e            *Expr
		family, kern string
		args         []any
	}{
		{"add", v.Add(w), "arith", "add", []any{in, t.bufs[1]}},
		{"mul_scalar", v.Mul(v.Number(2)), "arith", "mul_scalar", []any{in, float32(2)}},
		{"relu", v.Relu(), "activation", "relu", []any{in}},
		{"sigmoid", v.Sigmoid(), "activation", "sigmoid", []any{in}},
		{"tanh", v.Tanh(), "activation", "tanh_act", []any{in}},
		{"copy", v, "copy", "copy", []any{in}},
	} {
		for _, size := range []int{1024, n} {
			b.Run(fmt.Sprintf("one %s %d", f.name, size), func(b *testing.B) {
				t.b, t.n = b, size
				t.compare(t.fused(f.e), t.catalog(f.family, f.kern, f.args...))
				t.n = n
			})
		}
	}
}
