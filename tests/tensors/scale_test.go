package tensors

// Large graphs: deep chains, many roots, and huge shapes. Planning takes about as long for each operation as in
// a small graph.

import (
	"context"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/concord-compute/concord/runtime"
	"github.com/concord-compute/concord/tensor"
)

// shapes of large graphs, each with a number of operations that grows with n, and with an element that it has
// to compute.
var large = map[string]func(x *tensor.Tensor, n int) []*tensor.Tensor{
	"chain of maps": func(x *tensor.Tensor, n int) []*tensor.Tensor {
		for range n {
			x = x.Add(1)
		}
		return []*tensor.Tensor{x}
	},
	"chain of views": func(x *tensor.Tensor, n int) []*tensor.Tensor {
		for range n / 2 {
			x = x.T().Flip(0)
		}
		return []*tensor.Tensor{x}
	},
	"chain of views and maps": func(x *tensor.Tensor, n int) []*tensor.Tensor {
		for range n / 2 {
			x = x.T().Mul(0.5)
		}
		return []*tensor.Tensor{x}
	},
	"chain of sums of many": func(x *tensor.Tensor, n int) []*tensor.Tensor {
		y := x
		for i := range n {
			y = y.Add(tensor.From(x.Scope(), []float64{float64(i), 1}, 2))
		}
		return []*tensor.Tensor{y}
	},
	"chain of softmaxes": func(x *tensor.Tensor, n int) []*tensor.Tensor {
		for range n / 6 {
			x = x.Softmax(0)
		}
		return []*tensor.Tensor{x}
	},
	"chain of products": func(x *tensor.Tensor, n int) []*tensor.Tensor {
		for range n / 2 {
			x = x.MatMul(x).Mul(0.1)
		}
		return []*tensor.Tensor{x}
	},
	"doubling": func(x *tensor.Tensor, n int) []*tensor.Tensor {
		for range n {
			x = x.Add(x)
		}
		return []*tensor.Tensor{x}
	},
	"many roots of one": func(x *tensor.Tensor, n int) []*tensor.Tensor {
		y := x.Exp()
		var roots []*tensor.Tensor
		for i := range n {
			roots = append(roots, y.Add(i))
		}
		return roots
	},
	"many chains": func(x *tensor.Tensor, n int) []*tensor.Tensor {
		var roots []*tensor.Tensor
		for i := range n / 4 {
			roots = append(roots, x.Add(i).Exp().Sum(0).Sqrt())
		}
		return roots
	},
	"each root of the one before": func(x *tensor.Tensor, n int) []*tensor.Tensor {
		var roots []*tensor.Tensor
		for range n {
			x = x.Mul(0.5)
			roots = append(roots, x)
		}
		return roots
	},
	"gradients of many": func(x *tensor.Tensor, n int) []*tensor.Tensor {
		var ws []*tensor.Tensor
		for range n / 10 {
			w := tensor.From(x.Scope(), []float64{1, 2, 3, 4}, 2, 2)
			ws = append(ws, w)
			x = x.MatMul(w).Tanh()
		}
		return tensor.Grad(x.Sum(), ws...)
	},
	"roots that are views": func(x *tensor.Tensor, n int) []*tensor.Tensor {
		y := x.Exp()
		var roots []*tensor.Tensor
		for range n / 2 {
			roots = append(roots, y.T(), y.Index(0, 1))
		}
		return roots
	},
	"parts of one": func(x *tensor.Tensor, n int) []*tensor.Tensor {
		var parts []*tensor.Tensor
		for i := range n / 2 {
			parts = append(parts, x.Mul(i))
		}
		return []*tensor.Tensor{tensor.Concat(0, parts...).Sum(0)}
	},
}

// The time to plan grows about as the graph does: with NODES in the environment, which a busy machine should
// not have, that is demanded.
func TestLargeGraphs(t *testing.T) {
	most := count("NODES", 2000)
	for name, f := range large {
		t.Run(name, func(t *testing.T) {
			s := scope(t, runtime.Config{})
			var took [2]time.Duration
			tasks := 0
			for i, n := range []int{most / 4, most} {
				in := s.Scope()
				roots := f(tensor.From(in, []float64{0.25, 0.5, 0.75, 1}, 2, 2), n)
				took[i] = time.Hour
				for range 2 {
					start := time.Now()
					p, err := tensor.Explain(roots...)
					require.NoError(t, err)
					took[i] = min(took[i], time.Since(start))
					tasks = len(p.Tasks)
				}
				start := time.Now()
				require.NoError(t, tensor.Eval(context.Background(), roots...))
				require.NoError(t, roots[0].Sync(context.Background()))
				t.Logf("%d operations: planned in %v, %d tasks, evaluated in %v", n, took[i], tasks, time.Since(start))
				require.NoError(t, in.Close())
			}
			if os.Getenv("NODES") != "" { // asked for, on a quiet machine
				assert.Less(t, took[1], 10*took[0]+100*time.Millisecond, "planning is quadratic")
			}
			assert.Less(t, took[1], time.Minute, "planning hangs")
		})
	}
}
