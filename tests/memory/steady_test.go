package memory

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	catalog "github.com/concord-compute/concord/kernels"
	"github.com/concord-compute/concord/kernels/expr"
	"github.com/concord-compute/concord/runtime"
	"github.com/concord-compute/concord/source"
)

// steadyCall is a call that a program repeats.
type steadyCall struct {
	name string
	call func(ctx context.Context) error
}

// steadyCalls opens cpu:0 and returns calls with all that they need. Without vector instructions the kernels of the
// catalog are Go functions, which allocate; then no call launches them.
func steadyCalls(t testing.TB) (list []steadyCall) {
	ctx := t.Context()
	session, err := runtime.New(runtime.Config{Fallback: runtime.Require})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, session.Close()) })
	d, err := session.Open(ctx, "cpu:0")
	require.NoError(t, err)
	s := d.Stream()
	add := func(name string, call func(ctx context.Context) error) { list = append(list, steadyCall{name, call}) }
	const few, many = 1 << 10, 1 << 20
	x, err := runtime.Upload(ctx, d, make([]float32, many))
	require.NoError(t, err)
	y, err := runtime.Upload(ctx, d, make([]float32, many))
	require.NoError(t, err)
	a := float32(0)
	launch := func(name, kernel string, u *source.Unit, err error, launch func(k *runtime.Kernel, n int) error) {
		require.NoError(t, err)
		p, err := d.Program(ctx, u)
		if errors.Is(err, runtime.ErrUnsupported) {
			return
		}
		require.NoError(t, err)
		k, err := p.Kernel(kernel)
		require.NoError(t, err)
		if k.Info().Implementation == "go" {
			return
		}
		for n, how := range map[int]string{few: "", many: " on threads"} {
			add(name+how, func(ctx context.Context) error {
				a++
				return errors.Join(launch(k, n), s.Sync(ctx))
			})
		}
	}
	u, err := catalog.Unit("saxpy", d.Features())
	launch("native", "saxpy", u, err, func(k *runtime.Kernel, n int) error {
		return s.Launch(k, runtime.Items(n), a, x, y, uint64(n))
	})
	u, err = source.Parse(`kernel void scale(global float *x, float a) { x[get_global_id(0)] *= a; }`, source.Options{})
	launch("compiled", "scale", u, err, func(k *runtime.Kernel, n int) error {
		return s.Launch(k, runtime.Items(n), x, a)
	})
	m, err := expr.New(expr.Input(0, expr.F32).Mul(expr.Param(0, expr.F32)).Relu())
	require.NoError(t, err)
	u, err = m.Unit(d.Features(), 0)
	launch("expression", expr.Kernel, u, err, func(k *runtime.Kernel, n int) error {
		return s.Launch(k, runtime.Items(n), x, y, a, uint64(n))
	})
	u, err = m.Unit(d.Features(), 2)
	layouts := map[int][]byte{}
	for _, n := range []int{few, many} {
		l, err := m.Layout(expr.Layout{
			Dims: []int{8, n / 8}, Operands: []expr.Operand{{Steps: []int{1, 8}}, expr.Rows(8, n/8)}})
		require.NoError(t, err)
		layouts[n] = l.Bytes()
	}
	launch("strided expression", expr.Kernel, u, err, func(k *runtime.Kernel, n int) error {
		return s.Launch(k, runtime.Items(n), x, y, a, layouts[n])
	})
	v := expr.Input(0, expr.F32)
	exp := v.Sub(v.Largest()).Exp()
	for name, e := range map[string]*expr.Expr{"softmax": exp.Div(exp.Sum()), "sum": v.Sum(),
		"mean": v.Sum().Div(expr.Length().Cast(expr.F32))} {
		for _, columns := range []bool{false, true} {
			m, err := expr.New(e)
			require.NoError(t, err)
			u, err := m.Unit(d.Features(), 2)
			require.NoError(t, err)
			layouts, grids, kernel := map[int][]byte{}, map[int]runtime.Grid{}, ""
			for n, rows := range map[int]int{few: 8, many: 1024} {
				at, to := expr.Rows(rows, n/rows), expr.Rows(rows, n/rows)
				if columns {
					at.Steps, to.Steps = []int{1, rows}, []int{1, rows}
				}
				if m.OncePerRow(0) {
					to.Steps = []int{1, 0}
				}
				l, err := m.Layout(expr.Layout{Dims: []int{rows, n / rows}, Operands: []expr.Operand{at, to}})
				require.NoError(t, err)
				name, size := m.Entry(&l)
				items, group, err := catalog.Geometry(u, name, size)
				require.NoError(t, err)
				layouts[n], grids[n], kernel = l.Bytes(), runtime.Grid{Items: items, Group: group}, name
			}
			launch(fmt.Sprint(name, " of columns: ", columns), kernel, u, err, func(k *runtime.Kernel, n int) error {
				return s.Launch(k, grids[n], x, y, layouts[n])
			})
		}
	}
	short, long := make([]float32, few), make([]float32, many)
	add("write", func(ctx context.Context) error { return runtime.Write(ctx, x, short) })
	add("write of 4 MiB", func(ctx context.Context) error { return runtime.Write(ctx, x, long) })
	add("write behind work", func(ctx context.Context) error {
		return errors.Join(s.Copy(y, x), runtime.Write(ctx, y, short), s.Sync(ctx))
	})
	add("read", func(ctx context.Context) error { return runtime.Read(ctx, x, short) })
	add("read of 4 MiB", func(ctx context.Context) error { return runtime.Read(ctx, x, long) })
	add("read behind work", func(ctx context.Context) error {
		return errors.Join(s.Copy(y, x), runtime.Read(ctx, y, short))
	})
	add("fill", func(ctx context.Context) error { return errors.Join(s.Fill(x, a), s.Sync(ctx)) })
	g, err := s.Capture(func(s *runtime.Stream) error { return errors.Join(s.Fill(x, a), s.Copy(y, x)) })
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, g.Close()) })
	add("graph", func(ctx context.Context) error { return errors.Join(g.Launch(s), s.Sync(ctx)) })
	var start, end runtime.Event
	add("events", func(ctx context.Context) error {
		err := errors.Join(s.RecordIn(&start), s.Copy(y, x), s.RecordIn(&end), end.Wait(ctx))
		_, late := end.Elapsed(&start)
		return errors.Join(err, late)
	})
	arena, err := d.NewArena()
	require.NoError(t, err)
	add("arena", func(context.Context) error { // 1 allocation for 64 buffers
		_, err := arena.Alloc(runtime.F32, 16)
		return err
	})
	return list
}

// What a program repeats allocates nothing on the CPU.
func TestSteadyStateAllocatesNothing(t *testing.T) {
	if instrumented {
		t.Skip("the checker's own allocations would be counted")
	}
	for _, c := range steadyCalls(t) {
		assert.Zero(t, testing.AllocsPerRun(200, func() {
			if err := c.call(t.Context()); err != nil {
				t.Fatal(c.name, err)
			}
		}), c.name)
	}
}

func BenchmarkSteadyState(b *testing.B) {
	for _, c := range steadyCalls(b) {
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if err := c.call(b.Context()); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
