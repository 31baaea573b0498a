package tensor

import (
	"errors"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/concord-compute/concord/runtime"
)

// TestDonate makes steps that store their results in the memory of their arguments, beside the same steps that do not.
func TestDonate(t *testing.T) {
	s := scope(t)
	f := Compile(s, func(a ...*Tensor) []*Tensor {
		p, m, g := a[0], a[1], a[2].MatMul(a[0])
		next := m.Mul(0.9).Add(g.Mul(0.1))
		return []*Tensor{p.Sub(next.Mul(0.01)), next, g.Sum()}
	})
	x := gaussian(s, 1, 0.1, 37, 37)
	start := []*Tensor{gaussian(s, 2, 1, 37, 5), gaussian(s, 3, 1, 37, 5)}
	require.NoError(t, Eval(t.Context(), append(start, x)...))
	var want [][]float32
	p, m := start[0], start[1]
	for range 5 {
		out, err := f.Call(t.Context(), p, m, x)
		require.NoError(t, err)
		p, m = out[0], out[1]
		want = append(want, values[float32](t, p), values[float32](t, out[2]))
	}
	p, m = start[0].Copy(), start[1].Copy()
	require.NoError(t, Eval(t.Context(), p, m))
	mine := []*Tensor{p, m}
	for i := range 5 {
		out, err := f.CallDonating(t.Context(), []bool{true, true}, p, m, x)
		require.NoError(t, err)
		assert.ElementsMatch(t, mine, out[:2], "results lie where the arguments were")
		p, m = out[0], out[1]
		assert.Equal(t, want[2*i], values[float32](t, p))
		assert.Equal(t, want[2*i+1], values[float32](t, out[2]))
	}
	plan, err := f.Plan(t.Context(), start[0], start[1], x)
	require.NoError(t, err)
	assert.EqualValues(t, (2*37*5+1)*4, plan.Memory.Results, "of the calls that donate nothing")

	// An argument that is donated has to be apart from the others, and stays as it is if it is not.
	before := values[float32](t, p)
	_, err = f.CallDonating(t.Context(), []bool{true, true}, p, p, x)
	require.ErrorIs(t, err, ErrShape)
	assert.Equal(t, before, values[float32](t, p))
	constant := Compile(s, func(a ...*Tensor) []*Tensor { return []*Tensor{a[0].Add(p)} })
	_, err = constant.CallDonating(t.Context(), []bool{true}, p)
	require.ErrorIs(t, err, ErrShape)
	assert.Equal(t, before, values[float32](t, p))
	out, err := f.CallDonating(t.Context(), []bool{false, true}, p, m, x)
	require.NoError(t, err)
	assert.Equal(t, before, values[float32](t, p), "it was not donated")
	assert.NotContains(t, out, p)
	assert.Contains(t, out, m)
}

// TestDonateParts donates parts of one buffer, which are refused exactly if they overlap, however they are made.
func TestDonateParts(t *testing.T) {
	s := scope(t)
	dev, err := runtime.Open(t.Context(), "cpu:0")
	require.NoError(t, err)
	defer dev.Close()
	b, err := runtime.Upload(t.Context(), dev, numbers(12))
	require.NoError(t, err)
	defer b.Close()
	f := Compile(s, func(a ...*Tensor) []*Tensor { return []*Tensor{a[0].Add(100), a[1].Add(200)} })
	whole := Wrap(s, b, F32, 12)
	require.NoError(t, Eval(t.Context(), whole))
	for _, c := range []struct {
		first, second int
		apart         bool
	}{{0, 4, true}, {4, 0, true}, {0, 3, false}, {3, 0, false}, {2, 2, false}, {8, 4, true}} {
		for name, part := range map[string]func(first int) *Tensor{
			"tensor": func(first int) *Tensor { return whole.Narrow(0, first, 4) },
			"buffer": func(first int) *Tensor {
				p, err := b.Slice(first, 4)
				require.NoError(t, err)
				t.Cleanup(func() { _ = p.Close() })
				return Wrap(s, p, F32, 4)
			},
		} {
			before := values[float32](t, whole.Copy())
			x, y := part(c.first), part(c.second)
			_, err := f.CallDonating(t.Context(), []bool{true, true}, x, y)
			if !c.apart {
				require.ErrorIs(t, err, ErrShape, "%s %v", name, c)
				assert.Equal(t, before, values[float32](t, whole.Copy()))
				continue
			}
			require.NoError(t, err, "%s %v", name, c)
			for i := range 4 {
				before[c.first+i] += 100
				before[c.second+i] += 200
			}
			assert.Equal(t, before, values[float32](t, whole.Copy()), "%s %v", name, c)
			_, err = f.CallDonating(t.Context(), []bool{true}, x, y)
			require.NoError(t, err, "one is donated")
			for i := range 4 {
				before[c.first+i] += 100
			}
			assert.Equal(t, before, values[float32](t, whole.Copy()), "%s %v", name, c)
		}
	}
}

// TestNotDonated has functions that read an argument after, or elsewhere than where, they could store a result.
func TestNotDonated(t *testing.T) {
	s := scope(t)
	x := gaussian(s, 1, 1, 8, 8)
	require.NoError(t, Eval(t.Context(), x))
	before := values[float32](t, x)
	for name, f := range map[string]func(a ...*Tensor) []*Tensor{
		"transposed": func(a ...*Tensor) []*Tensor { return []*Tensor{a[0].Add(a[0].T())} },
		"reduced":    func(a ...*Tensor) []*Tensor { return []*Tensor{a[0].Softmax(-1)} },
		"flipped":    func(a ...*Tensor) []*Tensor { return []*Tensor{a[0].Flip(0)} },
		"product":    func(a ...*Tensor) []*Tensor { return []*Tensor{a[0].MatMul(a[0])} },
		"as another": func(a ...*Tensor) []*Tensor { return []*Tensor{a[0].Cast(I32)} },
		"itself":     func(a ...*Tensor) []*Tensor { return []*Tensor{a[0].Exp(), a[0]} },
		"slice":      func(a ...*Tensor) []*Tensor { return []*Tensor{a[0].Slice(Range{Start: 1}).Exp()} },
	} {
		y := x.Copy()
		require.NoError(t, Eval(t.Context(), y))
		want := f(x)
		require.NoError(t, Eval(t.Context(), want...))
		out, err := Compile(s, f).CallDonating(t.Context(), []bool{true}, y)
		require.NoError(t, err)
		for i := range want {
			assert.Equal(t, values[float64](t, want[i].Cast(F64)), values[float64](t, out[i].Cast(F64)), name)
		}
	}
	assert.Equal(t, before, values[float32](t, x))
}

// TestDonateAnotherShape has results that have as many bytes as the donated argument, but another shape or type.
func TestDonateAnotherShape(t *testing.T) {
	s := scope(t)
	for range 2 {
		x := From(s, []uint8{1, 2, 3, 4, 5, 6}, 6)
		for name, f := range map[string]func(a ...*Tensor) []*Tensor{
			"shape": func(a ...*Tensor) []*Tensor { return []*Tensor{a[0].Reshape(2, 3).Add(1)} },
			"type":  func(a ...*Tensor) []*Tensor { return []*Tensor{a[0].Gt(3)} },
		} {
			want := f(x)[0]
			out, err := Compile(s, f).CallDonating(t.Context(), []bool{true}, x.Copy())
			require.NoError(t, err)
			assert.Equal(t, want.Type(), out[0].Type(), name)
			assert.Equal(t, want.Shape(), out[0].Shape(), name)
			assert.Equal(t, values[float32](t, want.Cast(F32)), values[float32](t, out[0].Cast(F32)), name)
		}
	}
}

// TestDonateForResultsTwice has a result that is returned twice, for arguments other than that of the first call.
func TestDonateForResultsTwice(t *testing.T) {
	s := scope(t)
	f := Compile(s, func(a ...*Tensor) []*Tensor { b := a[0].Add(1); return []*Tensor{b, b} })
	for i := range 4 {
		out, err := f.CallDonating(t.Context(), []bool{true}, From(s, []float32{float32(i), 10}, 2))
		require.NoError(t, err)
		for _, b := range out {
			assert.Equal(t, []float32{float32(i + 1), 11}, values[float32](t, b))
		}
	}
}

// TestDonateOwned has a result that is the buffer of an argument.
func TestDonateOwned(t *testing.T) {
	s := scope(t)
	dev, err := runtime.Open(t.Context(), "cpu:0")
	require.NoError(t, err)
	defer dev.Close()
	b, err := runtime.Upload(t.Context(), dev, numbers(6))
	require.NoError(t, err)
	defer b.Close()
	f := Compile(s, func(a ...*Tensor) []*Tensor { return []*Tensor{a[0].Add(1)} })
	for _, want := range [][]float32{{1, 2, 3, 4, 5, 6}, {2, 3, 4, 5, 6, 7}} {
		out, _, err := f.CallOwned(t.Context(), []bool{true}, Wrap(s, b, F32, 2, 3))
		require.NoError(t, err)
		require.Same(t, b, out[0])
		assert.Equal(t, want, values[float32](t, Wrap(s, b, F32, 6)))
	}
	out, _, err := f.CallOwned(t.Context(), nil, Wrap(s, b, F32, 2, 3))
	require.NoError(t, err)
	assert.NotSame(t, b, out[0])
	require.NoError(t, out[0].Close())
}

// Kernels that reduce rows or columns store their elements over what they read, and the results are those of
// single operations.
func TestReducedInPlace(t *testing.T) {
	for name, f := range map[string]func(x *Tensor) []*Tensor{
		"softmax": func(x *Tensor) []*Tensor { return []*Tensor{x.Exp().Softmax(0).Softmax(-1).Softmax(0)} },
		"norm": func(x *Tensor) []*Tensor {
			return []*Tensor{x.Softmax(0).LayerNorm(nil, nil, 1e-5).Softmax(0)}
		},
		"sum beside elements": func(x *Tensor) []*Tensor {
			y := x.Softmax(0)
			return []*Tensor{y.Exp().Softmax(0), y.Sum(-1)}
		},
		"elements of two sums": func(x *Tensor) []*Tensor {
			y := x.Softmax(0)
			return []*Tensor{y.Sub(y.Mean(-1).Unsqueeze(-1)).Softmax(0)}
		},
		"numbers of rows": func(x *Tensor) []*Tensor {
			y := x.Softmax(0)
			r := y.Sum(-1)
			return []*Tensor{y.Mul(r.Unsqueeze(-1)).Sum(-1).Sub(r), r.Exp()}
		},
		"other rows and itself": func(x *Tensor) []*Tensor {
			y := x.Softmax(0)
			return []*Tensor{y.Add(y.Flip(0)).Softmax(0)}
		},
	} {
		for _, shape := range [][]int{{37, 130}, {5, 40000}, {300, 256}} {
			var got [2][]*Tensor
			for i, s := range []*Scope{scope(t), unfused(t)} {
				x := gaussian(s, 1, 1, shape...)
				require.NoError(t, Eval(t.Context(), x))
				c := Compile(s, func(a ...*Tensor) []*Tensor { return f(a[0]) })
				out, err := c.Call(t.Context(), x)
				require.NoError(t, err)
				got[i] = out
				if i == 0 && name == "softmax" {
					plan, err := c.Plan(t.Context(), x)
					require.NoError(t, err)
					assert.Less(t, plan.Memory.Planned, int64(4*shape[0]*shape[1]*5/4+4096), "one tensor lies between the tasks")
				}
			}
			for k := range got[0] {
				assert.InDeltaSlice(t, values[float32](t, got[1][k]), values[float32](t, got[0][k]), 2e-5, "%s of %v", name, shape)
			}
		}
	}
}

// TestOwnedIsRead: what a compiled function returns in buffers, and what another stream stores in one, is read as it
// was computed, by the host and by tensors.
func TestOwnedIsRead(t *testing.T) {
	for _, name := range []string{"cpu:0", "opencl:0"} {
		t.Run(name, func(t *testing.T) {
			dev, err := runtime.Open(t.Context(), name)
			if name != "cpu:0" && (errors.Is(err, runtime.ErrNoDevice) || errors.Is(err, runtime.ErrUnsupported)) {
				t.Skip(err)
			}
			require.NoError(t, err)
			defer dev.Close()
			s := NewScope(dev)
			defer s.Close()
			const n = 300 // products of matrices, which take longer than the way to the read
			f := Compile(s, func(a ...*Tensor) []*Tensor {
				x := a[0]
				for range 8 {
					x = x.MatMul(a[0]).Mul(1.0 / n)
				}
				return []*Tensor{x}
			})
			got, want := make([]float32, n*n), slices.Repeat([]float32{1}, n*n)
			for range 3 {
				out, specs, err := f.CallOwned(t.Context(), nil, Ones(s, F32, n, n))
				require.NoError(t, err)
				require.Equal(t, []Spec{{F32, []int{n, n}}}, specs)
				clear(got)
				require.NoError(t, runtime.Read(t.Context(), out[0], got))
				assert.InDeltaSlice(t, want, got, 1e-4)

				out2, _, err := f.CallOwned(t.Context(), nil, Ones(s, F32, n, n))
				require.NoError(t, err)
				other := NewScope(dev) // with a stream of its own
				assert.InDelta(t, n*n, values[float32](t, Wrap(other, out2[0], F32, n, n).Sum())[0], 1)
				require.NoError(t, other.Close())
				require.NoError(t, out[0].Close())
				require.NoError(t, out2[0].Close())
			}
		})
	}
}
