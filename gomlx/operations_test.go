package gomlx_test

// Operations that GoMLX's suite of backends leaves out, beside what plain Go computes, and what executables
// leave behind.

import (
	"cmp"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"

	"github.com/concord-compute/concord/gomlx"
	"github.com/concord-compute/concord/runtime"
)

// values executes a graph on inputs, and returns what its results are in Go.
func values(t *testing.T, b *gomlx.Backend, f func(x []*Node) []*Node, inputs ...any) []any {
	t.Helper()
	exec := MustNewExec(b, f)
	defer exec.Finalize()
	out, err := exec.Call(inputs...)
	if err != nil {
		t.Fatalf("%+v", err)
	}
	var list []any
	for _, o := range out {
		list = append(list, o.Value())
		o.MustFinalizeAll()
	}
	return list
}

func equal(t *testing.T, want, got any) {
	t.Helper()
	if !reflect.DeepEqual(want, got) {
		t.Errorf("%v, not %v", got, want)
	}
}

// A loop in a loop, which read a value around them, and whose state has one that never changes.
func TestLoops(t *testing.T) {
	f := func(x []*Node) []*Node {
		g := x[0].Graph()
		// GoMLX keeps the first node of a number for the whole graph, so that it has to be one of the main function.
		step, zero, one := MulScalar(x[1], 1), ScalarZero(g, dtypes.Int32), ScalarOne(g, dtypes.Int32)
		// loop returns closures whose state is a number, its end, a sum and a value.
		loop := func(body func(i, end, sum *Node) *Node) (*Function, *Function) {
			state := func(g *Graph) []*Node {
				var list []*Node
				for _, name := range []string{"i", "end", "sum", "kept"} {
					list = append(list, Parameter(g, name, shapes.Scalar[int32]()))
				}
				return list
			}
			return NewClosure(g, func(g *Graph) []*Node {
					s := state(g)
					return []*Node{LessThan(s[0], s[1])}
				}), NewClosure(g, func(g *Graph) []*Node {
					s := state(g)
					return []*Node{Add(s[0], one), s[1], body(s[0], s[1], s[2]), s[3]}
				})
		}
		cond, body := loop(func(i, _, sum *Node) *Node {
			cond, body := loop(func(_, end, sum *Node) *Node { return Add(sum, Mul(end, step)) })
			return While(cond, body, zero, i, sum, sum)[2]
		})
		r := While(cond, body, zero, x[0], zero, x[2])
		return []*Node{r[0], r[2], r[3]}
	}
	onDevices(t, func(t *testing.T, b *gomlx.Backend) {
		equal(t, []any{int32(6), int32(3 * (1 + 4 + 9 + 16 + 25)), int32(7)}, values(t, b, f, int32(6), int32(3), int32(7)))
		equal(t, []any{int32(0), int32(0), int32(8)}, values(t, b, f, int32(0), int32(3), int32(8)))
	})
}

// A comparator of two keys, for which there is no sort but the network; lengths that are no powers of two.
func TestSortByTwoKeys(t *testing.T) {
	f := func(x []*Node) []*Node {
		before := NewClosure(x[0].Graph(), func(g *Graph) []*Node {
			a, b := Parameter(g, "a", shapes.Scalar[int32]()), Parameter(g, "b", shapes.Scalar[int32]())
			c, d := Parameter(g, "c", shapes.Scalar[float32]()), Parameter(g, "d", shapes.Scalar[float32]())
			Parameter(g, "e", shapes.Scalar[int32]())
			Parameter(g, "f", shapes.Scalar[int32]())
			return []*Node{LogicalOr(LessThan(a, b), LogicalAnd(Equal(a, b), GreaterThan(c, d)))}
		})
		return SortFunc(before, 0, true, x...)
	}
	type row struct {
		key    int32
		second float32
		number int32
	}
	onDevices(t, func(t *testing.T, b *gomlx.Backend) {
		random := rand.New(rand.NewPCG(1, 2))
		for _, n := range []int{1, 5, 77} {
			var rows []row
			keys, seconds, numbers := make([]int32, n), make([]float32, n), make([]int32, n)
			for i := range n {
				r := row{random.Int32N(4), float32(random.IntN(3)), int32(i)}
				rows = append(rows, r)
				keys[i], seconds[i], numbers[i] = r.key, r.second, r.number
			}
			got := values(t, b, f, keys, seconds, numbers)
			slices.SortStableFunc(rows, func(x, y row) int {
				return cmp.Or(cmp.Compare(x.key, y.key), cmp.Compare(y.second, x.second))
			})
			want := make([]int32, n)
			for i, r := range rows {
				want[i] = r.number
			}
			equal(t, want, got[2])
		}
	})
}

// The largest and the smallest of several updates of one element, some of which have no element.
func TestScatterOfLimits(t *testing.T) {
	f := func(x []*Node) []*Node {
		return []*Node{ScatterMax(x[0], x[1], x[2], false, false), ScatterMin(x[0], x[1], x[2], false, false),
			ScatterSum(x[0], x[1], x[2], false, false)}
	}
	onDevices(t, func(t *testing.T, b *gomlx.Backend) {
		places := [][]int32{{1}, {3}, {1}, {-1}, {4}, {1}}
		equal(t, []any{[]int32{5, 9, 5, 8}, []int32{5, -2, 5, 5}, []int32{5, 16, 5, 13}},
			values(t, b, f, []int32{5, 5, 5, 5}, places, []int32{4, 8, 9, 100, 100, -2}))
		equal(t, []any{[]float32{5, 9, 5, 8}, []float32{5, -2, 5, 5}, []float32{5, 16, 5, 13}},
			values(t, b, f, []float32{5, 5, 5, 5}, places, []float32{4, 8, 9, 100, 100, -2}))
	})
}

// Random bits are the same on every device, and differ with each word of the state.
func TestRandomBits(t *testing.T) {
	f := func(x []*Node) []*Node {
		next, u := RandomUniform(x[0], shapes.Make(dtypes.Float32, 4))
		_, v := RandomUniform(next, shapes.Make(dtypes.Float32, 4))
		return []*Node{u, v}
	}
	var first []any
	onDevices(t, func(t *testing.T, b *gomlx.Backend) {
		got := values(t, b, f, []uint64{1, 2, 3})
		if first == nil {
			first = got
		}
		equal(t, first, got)
		seen := []any{got[0], got[1]}
		for _, state := range [][]uint64{{2, 2, 3}, {1, 4, 3}, {1, 2, 4}} {
			seen = append(seen, values(t, b, f, state)[0])
		}
		for i, x := range seen {
			for _, y := range seen[:i] {
				if reflect.DeepEqual(x, y) {
					t.Errorf("twice the numbers %v", x)
				}
			}
		}
	})
}

// Executions with other inputs, which are donated or not, have results of their own and leave no memory behind.
func TestMemory(t *testing.T) {
	onDevices(t, func(t *testing.T, b *gomlx.Backend) {
		d, err := runtime.Open(t.Context(), t.Name()[strings.LastIndexByte(t.Name(), 0x2f)+1:])
		if err != nil {
			t.Fatal(err)
		}
		defer d.Close()
		exec := MustNewExec(b, func(x *Node) *Node { return AddScalar(x, 1) })
		var kept []*tensors.Tensor
		var live int64
		for i := range 8 {
			x := tensors.FromFlatDataAndDimensions([]float32{float32(i), float32(-i)}, 2)
			var input any = x
			if i%2 == 1 {
				if input, err = DonateTensorBuffer(x, b, 0); err != nil {
					t.Fatal(err)
				}
			}
			kept = append(kept, exec.MustCall(input)[0])
			x.MustFinalizeAll()
			if now := d.Stats().LiveBuffers - int64(len(kept)); i == 1 {
				live = now
			} else if i > 1 && now > live {
				t.Errorf("%d buffers besides the results, and %d before", now, live)
			}
		}
		for i, y := range kept {
			equal(t, []float32{float32(i + 1), float32(1 - i)}, y.Value())
			y.MustFinalizeAll()
		}
		exec.Finalize()
	})
}

// A mistake that only an execution shows is the error of that execution, whatever operations come behind it,
// and the next one computes.
func TestMistakes(t *testing.T) {
	behind := map[string]func(x *Node) *Node{
		"normalization": func(x *Node) *Node { return BackendFusedLayerNorm(x, []int{1}, 1e-3, nil, nil) },
		"batch normalization": func(x *Node) *Node {
			row := Const(x.Graph(), []float32{1, 2, 3})
			return InternalBatchNormForInference(x, row, row, row, row, 1e-3, 1)
		},
		"running sums":   func(x *Node) *Node { return CumSum(x, 1) },
		"sorting":        func(x *Node) *Node { return Sort(x, 1, true) },
		"a part":         func(x *Node) *Node { return Slice(x, AxisRange(), AxisRange(1, 3)) },
		"places":         func(x *Node) *Node { return ArgMax(x, 1) },
		"rows by number": func(x *Node) *Node { return Gather(x, Const(x.Graph(), [][]int32{{0}})) },
		"a product":      func(x *Node) *Node { return Dot(x, x).General([]int{1}, nil, []int{1}, nil) },
		"several":        func(x *Node) *Node { return Concatenate([]*Node{x, Reverse(x, 0)}, 0) },
	}
	onDevices(t, func(t *testing.T, b *gomlx.Backend) {
		for name, f := range behind {
			exec := MustNewExec(b, func(x *Node) *Node { return f(DynamicReshape(x, InferredDim(), StaticDim(3))) })
			exec.WithDynamicAxes([]string{"n"})
			if _, err := exec.Call([]float32{1, 2, 3, 4}); err == nil || !strings.Contains(err.Error(), "DynamicReshape") {
				t.Errorf("%s: the error is %v", name, err)
			}
			if _, err := exec.Call([]float32{1, 2, 3, 4, 5, 6}); err != nil {
				t.Errorf("%s: %+v", name, err)
			}
			exec.Finalize()
		}
	})
}
