package tensor

// Reductions over any axes, of any type, on each device and with and without fusion, against float64 on the host: what
// lies between the steps of a reduction must be seen in the last bits of its result alone.

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/concord-compute/concord/runtime"
)

// everywhere calls f with scopes on cpu:0 and, if there is one, on opencl:0, with and without fusion.
func everywhere(t *testing.T, f func(t *testing.T, s *Scope)) {
	for _, name := range []string{"cpu:0", "opencl:0"} {
		for _, noFusion := range []bool{false, true} {
			t.Run(map[bool]string{false: name, true: name + " without fusion"}[noFusion], func(t *testing.T) {
				session, err := runtime.New(runtime.Config{NoFusion: noFusion})
				require.NoError(t, err)
				defer session.Close()
				dev, err := session.Open(t.Context(), name)
				if err != nil {
					t.Skip(err)
				}
				defer dev.Close()
				s := NewScope(dev)
				defer s.Close()
				f(t, s)
			})
		}
	}
}

// few returns how many random cases a test computes: less where each of them is compiled.
func few(s *Scope, cases int) int {
	if s.engine.groups {
		cases /= 30
	}
	if testing.Short() {
		cases /= 4
	}
	return max(cases, 1)
}

// rounding returns the largest relative error of a number that is rounded to t.
func rounding(t Type) float64 {
	return map[Type]float64{F16: 0x1p-11, BF16: 0x1p-8, F32: 0x1p-24, F64: 0x1p-53}[t]
}

// reduction is a reduction and its definition: the result for all elements that become one, and what the error of a
// step is relative to.
type reduction struct {
	name string
	f    func(x *Tensor, axes []int) *Tensor
	want func(x []float64) (y, scale float64)
	low  float64 // elements are low·high^u, with u from -1 to 1 and any sign if low is positive
	high float64
}

func folded(x []float64, first float64, f func(a, b float64) float64) float64 {
	for _, v := range x {
		first = f(first, v)
	}
	return first
}

func powers(p float64) func(x []float64) (y, scale float64) {
	return func(x []float64) (float64, float64) {
		y := math.Pow(folded(x, 0, func(a, b float64) float64 { return a + math.Pow(math.Abs(b), p) }), 1/p)
		return y, 8 * y
	}
}

func variance(correction int) func(x []float64) float64 {
	return func(x []float64) float64 {
		mean := folded(x, 0, func(a, b float64) float64 { return a + b }) / float64(len(x))
		sum := folded(x, 0, func(a, b float64) float64 { return a + (b-mean)*(b-mean) })
		return sum / float64(max(len(x)-correction, 0))
	}
}

var reductions = []reduction{
	{"sum", func(x *Tensor, axes []int) *Tensor { return x.Sum(axes...) }, func(x []float64) (float64, float64) {
		return folded(x, 0, func(a, b float64) float64 { return a + b }), folded(x, 0, func(a, b float64) float64 {
			return a + math.Abs(b)
		})
	}, 500, 100},
	{"mean", func(x *Tensor, axes []int) *Tensor { return x.Mean(axes...) }, func(x []float64) (float64, float64) {
		n := float64(len(x))
		return folded(x, 0, func(a, b float64) float64 { return a + b }) / n, folded(x, 0, func(a, b float64) float64 {
			return a + math.Abs(b)
		}) / n
	}, 500, 100},
	{"prod", func(x *Tensor, axes []int) *Tensor { return x.Prod(axes...) }, func(x []float64) (float64, float64) {
		y := folded(x, 1, func(a, b float64) float64 { return a * b })
		return y, y * float64(len(x))
	}, -1, 1.4},
	{"max", func(x *Tensor, axes []int) *Tensor { return x.Max(axes...) }, func(x []float64) (float64, float64) {
		return slices.Max(x), 0
	}, 10, 1000},
	{"min", func(x *Tensor, axes []int) *Tensor { return x.Min(axes...) }, func(x []float64) (float64, float64) {
		return slices.Min(x), 0
	}, 10, 1000},
	{"var", func(x *Tensor, axes []int) *Tensor { return x.Var(1, axes...) }, func(x []float64) (float64, float64) {
		v := variance(1)(x)
		return v, v * 8
	}, 20, 30},
	{"std", func(x *Tensor, axes []int) *Tensor { return x.Std(0, axes...) }, func(x []float64) (float64, float64) {
		v := math.Sqrt(variance(0)(x))
		return v, v * 8
	}, 400, 30},
	{"norm 1", func(x *Tensor, axes []int) *Tensor { return x.Norm(1, axes...) }, powers(1), 400, 30},
	{"norm 2", func(x *Tensor, axes []int) *Tensor { return x.Norm(2, axes...) }, powers(2), 400, 30},
	{"norm 3", func(x *Tensor, axes []int) *Tensor { return x.Norm(3, axes...) }, powers(3), 400, 10},
	{"norm inf", func(x *Tensor, axes []int) *Tensor { return x.Norm(math.Inf(1), axes...) },
		func(x []float64) (float64, float64) {
			return folded(x, 0, func(a, b float64) float64 { return max(a, math.Abs(b)) }), 0
		}, 10, 1000},
	{"log sum exp", func(x *Tensor, axes []int) *Tensor { return x.LogSumExp(axes...) },
		func(x []float64) (float64, float64) {
			m := slices.Max(x)
			y := m + math.Log(folded(x, 0, func(a, b float64) float64 { return a + math.Exp(b-m) }))
			return y, 8 * (math.Abs(m) + 10)
		}, 1, 10},
	{"einsum", func(x *Tensor, axes []int) *Tensor {
		all := "abcdefgh"[:x.Rank()]
		var kept []byte
		for i := range all {
			if !slices.Contains(axes, i) {
				kept = append(kept, all[i])
			}
		}
		return Einsum(all+"->"+string(kept), x)
	}, func(x []float64) (float64, float64) {
		return folded(x, 0, func(a, b float64) float64 { return a + b }), folded(x, 0, func(a, b float64) float64 {
			return a + math.Abs(b)
		})
	}, 500, 100},
	{"einsum of products", func(x *Tensor, axes []int) *Tensor {
		all := "abcdefgh"[:x.Rank()]
		var kept []byte
		for i := range all {
			if !slices.Contains(axes, i) {
				kept = append(kept, all[i])
			}
		}
		return Einsum(all+","+all+"->"+string(kept), x, x)
	}, func(x []float64) (float64, float64) {
		y := folded(x, 0, func(a, b float64) float64 { return a + b*b })
		return y, y * 2
	}, 30, 30},
}

// grouped returns the elements that become one, for each element of the result.
func grouped(shape, axes []int, x []float64) [][]float64 {
	var kept []int
	for j, d := range shape {
		if !slices.Contains(axes, j) {
			kept = append(kept, d)
		}
	}
	out := make([][]float64, count(kept))
	each(shape, func(at []int) {
		i := 0
		for j, d := range shape {
			if !slices.Contains(axes, j) {
				i = i*d + at[j]
			}
		}
		out[i] = append(out[i], x[flat(shape, at)])
	})
	return out
}

// someAxes returns a random shape, and some of its axes, which often are no neighbours.
func someAxes(r *rand.Rand) (shape, axes []int) {
	for range 1 + r.IntN(5) {
		shape = append(shape, 1+r.IntN(6))
	}
	if r.IntN(3) == 0 {
		shape[r.IntN(len(shape))] *= 40
	}
	for len(axes) == 0 {
		for j := range shape {
			if r.IntN(2) == 0 {
				axes = append(axes, j)
			}
		}
	}
	return shape, axes
}

func TestReductionsOverAnyAxes(t *testing.T) {
	largest := map[Type]float64{F16: 65520, BF16: math.MaxFloat32, F32: math.MaxFloat32, F64: math.MaxFloat64}
	everywhere(t, func(t *testing.T, s *Scope) {
		r := rand.New(rand.NewPCG(34, 3))
		for i := range few(s, 400) {
			c := reductions[i%len(reductions)]
			typ := []Type{F16, F16, BF16, F32, F64, I8, I16, I32, I64, U8, U16, U32, U64}[r.IntN(13)]
			shape, axes := someAxes(r)
			data := make([]float64, count(shape))
			for k := range data {
				switch data[k] = math.Abs(c.low) * math.Pow(c.high, 2*r.Float64()-1); {
				case c.name == "prod":
					// large parts of a product that is none
					if data[k] = math.Pow(c.high, float64(1-2*(k%2))); typ == F16 && k/2%2 == 0 {
						data[k] = math.Pow(30, float64(1-2*(k%2)))
					}
				case r.IntN(4) == 0 && c.low > 0:
					data[k] = -data[k]
				}
			}
			x := From(s, data, shape...).Cast(typ)
			if !IsFloat(typ) {
				x = From(s, data, shape...).Rem(100).Cast(typ)
			}
			got, elements := c.f(x, axes), grouped(shape, axes, values[float64](t, x.Cast(F64)))
			require.NoError(t, got.Err())
			result := got.Type()
			y := values[float64](t, got.Cast(F64))
			require.Len(t, y, len(elements))
			for k, list := range elements {
				if len(list) == 1 && c.name == "var" { // the variance of one number
					continue
				}
				want, scale := c.want(list)
				switch {
				case !IsFloat(result) && (c.name == "prod" || c.name == "einsum of products" || c.name == "einsum"):
					// these wrap, and are tried elsewhere
				case !IsFloat(result):
					require.Equal(t, want, y[k], "%s of %v%v over %v, element %d", c.name, typ, shape, axes, k)
				case math.Abs(want) >= largest[result]:
					require.True(t, math.Abs(y[k]) > 0.99*largest[result], "%s of %v%v over %v, element %d: %v, not %v", c.name, typ,
						shape, axes, k, y[k], want)
				default:
					sum := rounding(result.Computed()) * math.Abs(scale) * float64(8+len(list)/64)
					bound := 2*rounding(result)*math.Abs(want) + sum + map[Type]float64{F16: 0x1p-24}[result]
					require.InDelta(t, want, y[k], bound, "%s of %v%v over %v, element %d", c.name, typ, shape, axes, k)
				}
			}
		}
	})
}

// Equal elements share the gradient of an extreme, over how many axes ever.
func TestTiesOverAnyAxes(t *testing.T) {
	everywhere(t, func(t *testing.T, s *Scope) {
		r := rand.New(rand.NewPCG(34, 4))
		for i := range few(s, 120) {
			shape, axes := someAxes(r)
			typ := []Type{F16, BF16, F32, F64}[r.IntN(4)]
			data := make([]float64, count(shape))
			for k := range data {
				data[k] = float64(r.IntN(3))
			}
			x := From(s, data, shape...).Cast(typ)
			f := []func() (y *Tensor, sign float64){func() (*Tensor, float64) { return x.Max(axes...), 1 },
				func() (*Tensor, float64) { return x.Min(axes...), -1 },
				func() (*Tensor, float64) { return x.Norm(math.Inf(1), axes...), 1 }}[i%3]
			y, sign := f()
			got := values[float64](t, Grad(y.Cast(F64).Sum(), x)[0].Cast(F64))
			numbers := make([]float64, len(data))
			for k := range numbers {
				numbers[k] = float64(k)
			}
			for _, list := range grouped(shape, axes, numbers) {
				best, n := math.Inf(-1), 0
				for _, k := range list {
					if v := sign * data[int(k)]; v > best {
						best, n = v, 1
					} else if v == best {
						n++
					}
				}
				for _, k := range list {
					want := 0.0
					if sign*data[int(k)] == best && !(i%3 == 2 && best == 0) { // |x| is flat at 0
						want = 1 / float64(n)
					}
					require.InDelta(t, want, got[int(k)], rounding(typ)*want, "%d of %v%v over %v", i%3, typ, shape, axes)
				}
			}
		}
		// There may be more of them than their type counts.
		types := []Type{F16, BF16}
		if testing.Short() {
			types = types[:1]
		}
		for _, typ := range types {
			x := Full(s, typ, 0.5, 7, 2, 5000)
			for _, g := range []*Tensor{Grad(x.Max().Cast(F32), x)[0], Grad(x.Min(0, 2).Cast(F32).Sum(), x)[0].Mul(0.5),
				Grad(x.Flatten().Max().Cast(F32), x)[0]} {
				list := values[float32](t, g.Cast(F32))
				require.InEpsilon(t, 1./70000, slices.Min(list), 0.01, typ)
				require.InEpsilon(t, 1./70000, slices.Max(list), 0.01, typ)
			}
		}
	})
}

// What is made of sums is rounded once, so that sums may be beyond what their type holds.
func TestSumsBeyondTheirType(t *testing.T) {
	everywhere(t, func(t *testing.T, s *Scope) {
		x := Full(s, F16, 100, 3, 2, 1000)
		ones := Ones(s, F16, 2, 70000)
		for name, c := range map[string]struct {
			y    *Tensor
			want float32
		}{
			"mean": {x.Mean(0, 2), 100}, "var": {x.Mul(Iota(s, F16, 3, 1, 1)).Var(0, 0, 2), 6666.6665},
			"std":  {x.Mul(6).Mul(Iota(s, F16, 3, 1, 1)).Std(0, 0, 2), 489.8979},
			"norm": {x.Norm(2, 0, 2), 5477.2256}, "softmax": {ones.Softmax(1).Mul(70000), 1},
			"log softmax": {ones.LogSoftmax(1), -11.15625},
			"log sum exp": {ones.Sub(1).LogSumExp(1), 11.15625},
			"einsum":      {Einsum("ijk,ijk->j", x.Mul(3), Full(s, F16, 1e-3, 3, 2, 1000)), 900.5},
		} {
			if testing.Short() && s.engine.groups && name != "mean" && name != "softmax" {
				continue
			}
			for _, v := range values[float32](t, c.y.Cast(F32)) {
				assert.InEpsilon(t, c.want, v, 0.002, name)
			}
		}
	})
}
