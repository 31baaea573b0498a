package tensor

// Results and gradients compared with PyTorch's, of tests/golden.

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/concord-compute/concord/tests/golden"
)

// goldens has a function for each operation of package golden: the results for its attributes and inputs.
var goldens = map[string]func(a golden.Attrs, x []*Tensor) []*Tensor{}

// one makes an entry of goldens of a function with one result.
func one(f func(a golden.Attrs, x []*Tensor) *Tensor) func(golden.Attrs, []*Tensor) []*Tensor {
	return func(a golden.Attrs, x []*Tensor) []*Tensor { return []*Tensor{f(a, x)} }
}

// pairs returns lists of two numbers.
func pairs(rows [][]*int) (list [][2]int) {
	for _, r := range rows {
		list = append(list, [2]int{*r[0], *r[1]})
	}
	return list
}

// oneAxis makes an entry of an operation along an axis.
func oneAxis(f func(t *Tensor, axis int) *Tensor) func(golden.Attrs, []*Tensor) []*Tensor {
	return one(func(a golden.Attrs, x []*Tensor) *Tensor { return f(x[0], a.Int("axis")) })
}

func init() {
	scatter := func(f func(t *Tensor, axis int, index, src *Tensor) *Tensor) func(golden.Attrs, []*Tensor) []*Tensor {
		return one(func(a golden.Attrs, x []*Tensor) *Tensor { return f(x[0], a.Int("axis"), x[1], x[2]) })
	}
	for name, f := range map[string]func(golden.Attrs, []*Tensor) []*Tensor{
		"take":        one(func(a golden.Attrs, x []*Tensor) *Tensor { return x[0].Take(a.Int("axis"), x[1]) }),
		"take_along":  one(func(a golden.Attrs, x []*Tensor) *Tensor { return x[0].TakeAlong(a.Int("axis"), x[1]) }),
		"embedding":   one(func(_ golden.Attrs, x []*Tensor) *Tensor { return Embedding(x[0], x[1]) }),
		"scatter_add": scatter((*Tensor).ScatterAdd),
		"scatter":     scatter((*Tensor).Scatter),
		"index_add":   scatter((*Tensor).IndexAdd),
		"index_set":   scatter((*Tensor).IndexSet),
		"one_hot":     one(func(a golden.Attrs, x []*Tensor) *Tensor { return x[0].OneHot(a.Int("n"), F64) }),
		"argmax":      oneAxis((*Tensor).ArgMax),
		"argmin":      oneAxis((*Tensor).ArgMin),
		"cumsum":      oneAxis((*Tensor).CumSum),
		"sort": func(a golden.Attrs, x []*Tensor) []*Tensor {
			v, i := x[0].Sort(a.Int("axis"), a.Bool("descending"))
			return []*Tensor{v, i}
		},
		"argsort": one(func(a golden.Attrs, x []*Tensor) *Tensor { return x[0].ArgSort(a.Int("axis"), a.Bool("descending")) }),
		"topk": func(a golden.Attrs, x []*Tensor) []*Tensor {
			v, i := x[0].TopK(a.Int("k"), a.Int("axis"), a.Bool("largest"))
			return []*Tensor{v, i}
		},
		"einsum": one(func(a golden.Attrs, x []*Tensor) *Tensor { return Einsum(a.String("spec"), x...) }),
		"concat": one(func(a golden.Attrs, x []*Tensor) *Tensor { return Concat(a.Int("axis"), x...) }),
		"stack":  one(func(a golden.Attrs, x []*Tensor) *Tensor { return Stack(a.Int("axis"), x...) }),
		"split":  func(a golden.Attrs, x []*Tensor) []*Tensor { return x[0].Split(a.Int("axis"), a.Ints("lengths")...) },
		"pad": one(func(a golden.Attrs, x []*Tensor) *Tensor {
			margins := pairs(a.Rows("margins"))
			for m := Replicate; m <= Circular; m++ {
				if m.String() == a.String("mode") {
					return x[0].PadWith(m, margins...)
				}
			}
			if IsFloat(x[0].typ) {
				return x[0].Pad(a.Float("value"), margins...)
			}
			return x[0].Pad(a.Int("value"), margins...)
		}),
		"tile": one(func(a golden.Attrs, x []*Tensor) *Tensor { return x[0].Tile(a.Ints("repeats")...) }),
		"roll": one(func(a golden.Attrs, x []*Tensor) *Tensor {
			axes, y := a.Ints("axes"), x[0]
			for i, n := range a.Ints("shifts") {
				y = y.Roll(axes[i], n)
			}
			return y
		}),
	} {
		goldens[name] = f
	}
}

// TestGolden computes the cases of goldens in F64 and in F32.
func TestGolden(t *testing.T) {
	s := scope(t)
	cases, err := golden.Load()
	require.NoError(t, err)
	missing := map[string]int{}
	for _, c := range cases {
		f := goldens[c.Op]
		if f == nil {
			missing[c.Op]++
			continue
		}
		for _, typ := range []Type{F64, F32} {
			if typ == F32 && c.Only == "f64" {
				continue
			}
			bound := map[Type]float64{F64: golden.F64, F32: golden.F32}[typ]
			tensor := func(a *golden.Array) *Tensor {
				to := map[string]Type{"f64": typ, "i64": I64, "bool": Bool}[a.Type]
				return From(s, []float64(a.Data), a.Shape...).Cast(to)
			}
			compare := func(what string, got *Tensor, want *golden.Array) {
				require.NoError(t, got.Err(), "%s %v", c.Name, typ)
				assert.Equal(t, want.Shape, append([]int{}, got.shape...), "%s %v, %s", c.Name, typ, what)
				assert.NoError(t, golden.Check(values[float64](t, got.Cast(F64)), want.Data, bound), "%s %v, %s", c.Name, typ, what)
			}
			var x []*Tensor
			for i := range c.Inputs {
				x = append(x, tensor(&c.Inputs[i]))
			}
			y := f(c.Attrs, x)
			require.Len(t, y, len(c.Outputs), c.Name)
			for i, o := range y {
				compare(fmt.Sprintf("result %d", i), o, &c.Outputs[i])
			}
			var from, gs, wrt []*Tensor
			for i, g := range c.Cotangents {
				if g != nil {
					from, gs = append(from, y[i]), append(gs, tensor(g))
				}
			}
			var want []*golden.Array
			for i, g := range c.Grads {
				if g != nil {
					wrt, want = append(wrt, x[i]), append(want, g)
				}
			}
			if len(from) > 0 && len(wrt) > 0 {
				for i, g := range GradOf(from, gs, wrt...) {
					compare(fmt.Sprintf("gradient %d", i), g, want[i])
				}
			}
		}
	}
	t.Logf("without a function: %v", missing)
}
