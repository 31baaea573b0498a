package tensors

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/concord-compute/concord/runtime"
	"github.com/concord-compute/concord/tensor"
)

// weights returns numbers for the elements of a shape that are all different.
func weights(n int) []float64 {
	list := make([]float64, n)
	for i := range list {
		list[i] = 1.3 + math.Sin(0.37*float64(i))
	}
	return list
}

// loss returns the sum of the root's elements with weights, by the interpreter; NaN if one of them is not known.
func (g *graph) loss() float64 {
	y := 0.0
	root := g.interpret()[g.roots[0]]
	for i, w := range weights(len(root.v)) {
		if y += w * root.v[i].f; !root.v[i].known() {
			return math.NaN()
		}
	}
	return y
}

// with returns the graph with one number of a leaf moved.
func (g *graph) with(leaf, element int, by float64) *graph {
	nodes := slices.Clone(g.nodes)
	nodes[leaf].data = slices.Clone(nodes[leaf].data)
	nodes[leaf].data[element].f += by
	return &graph{nodes: nodes, roots: g.roots}
}

// slope returns the derivative of f at 0 by differences of two steps, of which the error of the second order
// cancels; false if the differences do not agree, since f is not smooth or too steep there.
func slope(f func(by float64) float64, h float64) (d, scale float64, ok bool) {
	near, far := (f(h)-f(-h))/(2*h), (f(2*h)-f(-2*h))/(4*h)
	scale = 1 + math.Abs(f(0)) + math.Abs(near)
	d = near + (near-far)/3
	return d, scale, math.Abs(near-far) <= 1e-5*scale && scale < 1e6
}

// checkGradients compares the gradients of a graph's loss, and with second the gradients of a sum of these,
// with differences.
func (w *way) checkGradients(g *graph, r *rand.Rand, second bool) (compared int, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v", p)
		}
	}()
	for _, a := range g.interpret() {
		// A choice hides an infinite or undefined number, but not its derivative, which is multiplied by 0.
		if slices.ContainsFunc(a.v, func(x num) bool { return !x.known() }) {
			return 0, nil
		}
	}
	ctx := context.Background()
	s := w.scope.Scope()
	defer s.Close()
	var leaves []int
	for i := range g.nodes {
		if n := &g.nodes[i]; n.op == "leaf" && n.typ == tensor.F64 && len(n.data) > 0 {
			leaves = append(leaves, i)
		}
	}
	gradients := func(g *graph) []*tensor.Tensor {
		all := g.build(s, nil)
		y := all[g.roots[0]]
		y = y.Mul(tensor.From(s, weights(y.Len()), y.Shape()...)).Sum()
		return tensor.Grad(y, pick(all, leaves)...)
	}
	norm := func(gs []*tensor.Tensor) *tensor.Tensor {
		y := tensor.Zeros(s, tensor.F64)
		for _, d := range gs {
			y = y.Add(d.Mul(tensor.From(s, weights(d.Len()), d.Shape()...)).Sum())
		}
		return y
	}
	all := g.build(s, nil)
	y := all[g.roots[0]]
	first := tensor.Grad(y.Mul(tensor.From(s, weights(y.Len()), y.Shape()...)).Sum(), pick(all, leaves)...)
	got := first
	f := func(leaf, element int) func(by float64) float64 {
		return func(by float64) float64 { return g.with(leaf, element, by).loss() }
	}
	if second {
		got = tensor.Grad(norm(first), pick(all, leaves)...)
		f = func(leaf, element int) func(by float64) float64 {
			return func(by float64) float64 {
				y, e := tensor.Number(ctx, norm(gradients(g.with(leaf, element, by))))
				if e != nil {
					err = e
				}
				return y
			}
		}
	}
	if err := tensor.Eval(ctx, append(slices.Clone(got), y)...); err != nil {
		return 0, err
	}
	for k, i := range leaves {
		if want := g.nodes[i].shape; got[k].Type() != tensor.F64 || !slices.Equal(got[k].Shape(), want) {
			return 0, fmt.Errorf("the gradient of x%d is %v%v, want f64%v", i, got[k].Type(), got[k].Shape(), want)
		}
		ds, err2 := tensor.Read[float64](ctx, got[k])
		if err2 != nil {
			return 0, err2
		}
		for range 3 {
			j := r.IntN(len(ds))
			want, scale, ok := slope(f(i, j), 1e-4)
			if err != nil {
				return compared, err
			}
			if !ok {
				continue
			}
			compared++
			if !(math.Abs(ds[j]-want) <= 1e-6*scale) {
				return compared, fmt.Errorf("derivative with respect to element %d of x%d is %v, want %v", j, i, ds[j], want)
			}
		}
	}
	return compared, nil
}

// The gradients of random graphs are those of differences, fused and operation by operation, and so are their
// own gradients.
func TestGradients(t *testing.T) {
	total, seed, only := count("GRAPHS", 600)/3, uint64(count("SEED", 1)), count("GRAPH", -1)
	ways := []*way{{name: "fused", scope: scope(t, runtime.Config{})},
		{name: "operation by operation", scope: scope(t, runtime.Config{NoFusion: true})}}
	compared := 0
	for i := range total {
		if only >= 0 && i != only {
			continue
		}
		second := i%4 == 0
		operations := 8
		if second {
			operations = 4
		}
		g, _ := random(rand.New(rand.NewPCG(seed, uint64(i)+1<<32)), operations, true)
		if g = g.pruned(); length(g.interpret()[g.roots[0]].shape) == 0 {
			continue
		}
		w := ways[i/4%2]
		n, err := w.checkGradients(g, rand.New(rand.NewPCG(seed, 0)), second)
		compared += n
		if err == nil {
			continue
		}
		small := shrink(g, func(g *graph) bool {
			_, err := w.checkGradients(g, rand.New(rand.NewPCG(seed, 0)), second)
			return err != nil
		})
		_, why := w.checkGradients(small, rand.New(rand.NewPCG(seed, 0)), second)
		t.Errorf("SEED=%d GRAPH=%d, %s, second %v: %v\nThe smallest graph that fails: %v\n%s", seed, i, w.name, second, err,
			why, small.print(small.interpret()))
		if count("FAILURES", 1) <= failures(t) {
			return
		}
	}
	t.Logf("%d graphs; %d derivatives are compared", total, compared)
	if only < 0 && total > 100 {
		require.Greater(t, compared, total, "nothing is checked")
	}
}
