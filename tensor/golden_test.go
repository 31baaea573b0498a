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

// keepDims makes an entry of a reduction of axes.
func keepDims(f func(t *Tensor, a golden.Attrs, axes ...int) *Tensor) func(golden.Attrs, []*Tensor) []*Tensor {
	return one(func(a golden.Attrs, x []*Tensor) *Tensor {
		axes := a.Ints("axes")
		y := f(x[0], a, axes...)
		if a.Bool("keepdims") {
			y = x[0].KeepDims(y, axes...)
		}
		return y
	})
}

func init() {
	for name, f := range map[string]func(t *Tensor) *Tensor{
		"neg": (*Tensor).Neg, "abs": (*Tensor).Abs, "sqrt": (*Tensor).Sqrt, "rsqrt": (*Tensor).Rsqrt, "exp": (*Tensor).Exp, "exp2": (*Tensor).Exp2, "expm1": (*Tensor).Expm1,
		"log": (*Tensor).Log, "log2": (*Tensor).Log2, "log1p": (*Tensor).Log1p, "sin": (*Tensor).Sin, "cos": (*Tensor).Cos, "tan": (*Tensor).Tan, "sinh": (*Tensor).Sinh,
		"cosh": (*Tensor).Cosh, "tanh": (*Tensor).Tanh, "atan": (*Tensor).Atan, "erf": (*Tensor).Erf, "erfc": (*Tensor).Erfc, "sigmoid": (*Tensor).Sigmoid, "floor": (*Tensor).Floor,
		"ceil": (*Tensor).Ceil, "trunc": (*Tensor).Trunc, "round": (*Tensor).Round, "relu": (*Tensor).Relu, "gelu": (*Tensor).GELU, "gelu_tanh": (*Tensor).GELUTanh,
		"silu": (*Tensor).SiLU, "softplus": (*Tensor).Softplus, "mish": (*Tensor).Mish, "hard_sigmoid": (*Tensor).HardSigmoid, "hard_tanh": (*Tensor).HardTanh,
		"square": (*Tensor).Square, "reciprocal": (*Tensor).Reciprocal, "sign": (*Tensor).Sign, "isnan": (*Tensor).IsNaN, "not": (*Tensor).Not,
	} {
		goldens[name] = one(func(_ golden.Attrs, x []*Tensor) *Tensor { return f(x[0]) })
	}
	for name, f := range map[string]func(t *Tensor, x any) *Tensor{
		"add": (*Tensor).Add, "sub": (*Tensor).Sub, "mul": (*Tensor).Mul, "div": (*Tensor).Div, "quo": (*Tensor).Quo, "rem": (*Tensor).Rem, "minimum": (*Tensor).Minimum,
		"maximum": (*Tensor).Maximum, "pow": (*Tensor).Pow, "atan2": (*Tensor).Atan2, "copysign": (*Tensor).CopySign, "eq": (*Tensor).Eq, "ne": (*Tensor).Ne, "lt": (*Tensor).Lt,
		"le": (*Tensor).Le, "gt": (*Tensor).Gt, "ge": (*Tensor).Ge, "and": (*Tensor).And, "or": (*Tensor).Or, "xor": (*Tensor).Xor,
	} {
		goldens[name] = one(func(_ golden.Attrs, x []*Tensor) *Tensor { return f(x[0], x[1]) })
	}
	for name, f := range map[string]func(t *Tensor, axes ...int) *Tensor{
		"sum": (*Tensor).Sum, "prod": (*Tensor).Prod, "mean": (*Tensor).Mean, "max": (*Tensor).Max, "min": (*Tensor).Min, "all": (*Tensor).All, "any": (*Tensor).Any,
		"logsumexp": (*Tensor).LogSumExp,
	} {
		goldens[name] = keepDims(func(t *Tensor, _ golden.Attrs, axes ...int) *Tensor { return f(t, axes...) })
	}
	swapped := func(x *Tensor, swap bool) *Tensor {
		if swap {
			return x.Transpose(-2, -1)
		}
		return x
	}
	for name, f := range map[string]func(golden.Attrs, []*Tensor) []*Tensor{
		"leaky_relu": one(func(a golden.Attrs, x []*Tensor) *Tensor { return x[0].LeakyRelu(a.Float("slope")) }),
		"elu":        one(func(a golden.Attrs, x []*Tensor) *Tensor { return x[0].ELU(a.Float("alpha")) }),
		"pow_scalar": one(func(a golden.Attrs, x []*Tensor) *Tensor { return x[0].Pow(a.Float("exponent")) }),
		"clamp": one(func(a golden.Attrs, x []*Tensor) *Tensor {
			switch {
			case a.Null("lo"):
				return x[0].Minimum(a.Float("hi"))
			case a.Null("hi"):
				return x[0].Maximum(a.Float("lo"))
			}
			return x[0].Clamp(a.Float("lo"), a.Float("hi"))
		}),
		"cast": one(func(a golden.Attrs, x []*Tensor) *Tensor {
			y := x[0]
			for _, name := range a.Strings("through") {
				y = y.Cast(map[string]Type{"f64": x[0].typ, "f32": F32, "f16": F16, "bf16": BF16, "i8": I8, "i16": I16, "i32": I32, "i64": I64, "u8": U8, "bool": Bool}[name])
			}
			return y
		}),
		"where":       one(func(_ golden.Attrs, x []*Tensor) *Tensor { return Where(x[0], x[1], x[2]) }),
		"clamp_by":    one(func(_ golden.Attrs, x []*Tensor) *Tensor { return x[0].Clamp(x[1], x[2]) }),
		"var":         keepDims(func(t *Tensor, a golden.Attrs, axes ...int) *Tensor { return t.Var(a.Int("correction"), axes...) }),
		"std":         keepDims(func(t *Tensor, a golden.Attrs, axes ...int) *Tensor { return t.Std(a.Int("correction"), axes...) }),
		"norm":        keepDims(func(t *Tensor, a golden.Attrs, axes ...int) *Tensor { return t.Norm(a.Float("p"), axes...) }),
		"softmax":     oneAxis((*Tensor).Softmax),
		"log_softmax": oneAxis((*Tensor).LogSoftmax),
		"permute":     one(func(a golden.Attrs, x []*Tensor) *Tensor { return x[0].Permute(a.Ints("order")...) }),
		"transpose":   one(func(a golden.Attrs, x []*Tensor) *Tensor { return x[0].Transpose(a.Int("a"), a.Int("b")) }),
		"reshape":     one(func(a golden.Attrs, x []*Tensor) *Tensor { return x[0].Reshape(a.Ints("shape")...) }),
		"flip":        one(func(a golden.Attrs, x []*Tensor) *Tensor { return x[0].Flip(a.Ints("axes")...) }),
		"expand":      one(func(a golden.Attrs, x []*Tensor) *Tensor { return x[0].Expand(a.Ints("shape")...) }),
		"squeeze":     one(func(a golden.Attrs, x []*Tensor) *Tensor { return x[0].Squeeze(a.Ints("axes")...) }),
		"unsqueeze":   one(func(a golden.Attrs, x []*Tensor) *Tensor { return x[0].Unsqueeze(a.Int("axis")) }),
		"slice": one(func(a golden.Attrs, x []*Tensor) *Tensor {
			var ranges []Range
			for _, row := range a.Rows("ranges") {
				r := Range{0, End, 1}
				if row[2] != nil {
					r.Step = *row[2]
				}
				if r.Step < 0 {
					r.Start = End
				}
				if row[0] != nil {
					r.Start = *row[0]
				}
				if row[1] != nil {
					r.Stop = *row[1]
				}
				ranges = append(ranges, r)
			}
			return x[0].Slice(ranges...)
		}),
		"matmul": one(func(a golden.Attrs, x []*Tensor) *Tensor {
			return swapped(x[0], a.Bool("transpose_a")).MatMul(swapped(x[1], a.Bool("transpose_b")))
		}),
	} {
		goldens[name] = f
	}
}

// otherwise are cases whose gradients are others than PyTorch's, and why.
var otherwise = map[string]string{
	"maximum/ties": "the second of two equal operands has the gradient", "minimum/ties": "likewise",
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
				if !assert.NoError(t, got.Err(), "%s %v", c.Name, typ) {
					return
				}
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
			if len(from) > 0 && len(wrt) > 0 && otherwise[c.Name] == "" {
				for i, g := range GradOf(from, gs, wrt...) {
					compare(fmt.Sprintf("gradient %d", i), g, want[i])
				}
			}
		}
	}
	t.Logf("without a function: %v", missing)
}
