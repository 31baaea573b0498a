package tensors

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/concord-compute/concord/runtime"
	_ "github.com/concord-compute/concord/runtime/all"
	"github.com/concord-compute/concord/tensor"
)

// count is a number from the environment.
func count(name string, usual int) int {
	if n, err := strconv.Atoi(os.Getenv(name)); err == nil {
		return n
	}
	return usual
}

// open returns a device.
func open(t testing.TB, cfg runtime.Config, name string) *runtime.Device {
	s, err := runtime.New(cfg)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	dev, err := s.Open(context.Background(), name)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, dev.Close()) })
	return dev
}

// scope returns a scope on cpu:0.
func scope(t testing.TB, cfg runtime.Config) *tensor.Scope {
	s := tensor.NewScope(open(t, cfg, "cpu:0"))
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s
}

// elements reads a tensor as elements of the interpreter.
func elements(ctx context.Context, x *tensor.Tensor) ([]num, error) {
	switch x.Type() {
	case tensor.F32:
		return read(ctx, x, func(x float32) num { return num{f: float64(x)} })
	case tensor.F64:
		return read(ctx, x, func(x float64) num { return num{f: x} })
	case tensor.F16:
		return read(ctx, x, func(x runtime.Float16) num { return num{f: x.Float64()} })
	case tensor.BF16:
		return read(ctx, x, func(x runtime.BFloat16) num { return num{f: x.Float64()} })
	case tensor.I8:
		return read(ctx, x, func(x int8) num { return num{i: int64(x)} })
	case tensor.I16:
		return read(ctx, x, func(x int16) num { return num{i: int64(x)} })
	case tensor.I32:
		return read(ctx, x, func(x int32) num { return num{i: int64(x)} })
	case tensor.I64:
		return read(ctx, x, func(x int64) num { return num{i: x} })
	case tensor.U8:
		return read(ctx, x, func(x uint8) num { return num{i: int64(x)} })
	case tensor.U16:
		return read(ctx, x, func(x uint16) num { return num{i: int64(x)} })
	case tensor.U32:
		return read(ctx, x, func(x uint32) num { return num{i: int64(x)} })
	case tensor.U64:
		return read(ctx, x, func(x uint64) num { return num{i: int64(x)} })
	}
	return read(ctx, x, truth)
}

func read[T tensor.Element](ctx context.Context, x *tensor.Tensor, as func(x T) num) ([]num, error) {
	list, err := tensor.Read[T](ctx, x)
	if err != nil {
		return nil, err
	}
	out := make([]num, len(list))
	for i, v := range list {
		out[i] = as(v)
	}
	return out, nil
}

// differ compares a tensor with what the interpreter computed. It returns how many elements it has compared.
func differ(ctx context.Context, x *tensor.Tensor, want *array) (compared int, err error) {
	if x.Type() != want.typ || !slices.Equal(x.Shape(), want.shape) {
		return 0, fmt.Errorf("%v%v, want %v%v", x.Type(), x.Shape(), want.typ, want.shape)
	}
	got, err := elements(ctx, x)
	if err != nil {
		return 0, err
	}
	for i, w := range want.v {
		if !w.known() {
			continue
		}
		compared++
		// The device's result is rounded once more where it is stored.
		e := w.e + formats[want.typ].unit*math.Abs(w.f)
		if g := got[i]; tensor.IsFloat(want.typ) && !(math.Abs(g.f-w.f) <= e) {
			return compared, fmt.Errorf("element %d is %v, want %v ± %v", i, g.f, w.f, e)
		} else if !tensor.IsFloat(want.typ) && g.i != w.i {
			return compared, fmt.Errorf("element %d is %d, want %d", i, g.i, w.i)
		}
	}
	return compared, nil
}

// way is one way to compute graphs.
type way struct {
	name    string
	scope   *tensor.Scope
	compile bool
}

// check computes a graph in one way and compares its roots with values.
func (w *way) check(g *graph, values []*array) (compared int, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v", p)
		}
	}()
	ctx := context.Background()
	s := w.scope.Scope()
	defer s.Close()
	var roots []*tensor.Tensor
	if w.compile {
		var leaves []*tensor.Tensor
		for i := range g.nodes {
			if g.nodes[i].op == "leaf" {
				leaves = append(leaves, leaf(s, &g.nodes[i]))
			}
		}
		f := tensor.Compile(s, func(args ...*tensor.Tensor) []*tensor.Tensor { return pick(g.build(s, args), g.roots) })
		for range 3 { // both sets of results, and the first one again
			if roots, err = f.Call(ctx, leaves...); err != nil {
				return 0, err
			}
		}
	} else {
		all := g.build(s, nil)
		for i, x := range all {
			if x.Err() != nil {
				return 0, fmt.Errorf("x%d: %w", i, x.Err())
			}
		}
		roots = pick(all, g.roots)
		if len(g.first) > 0 {
			if err := tensor.Eval(ctx, pick(all, g.first)...); err != nil {
				return 0, fmt.Errorf("what is computed first: %w", err)
			}
		}
		if err := tensor.Eval(ctx, roots...); err != nil {
			return 0, err
		}
	}
	for k, x := range roots {
		n, err := differ(ctx, x, values[g.roots[k]])
		compared += n
		if err != nil {
			return compared, fmt.Errorf("x%d: %w", g.roots[k], err)
		}
	}
	return compared, nil
}

// Random graphs have the results of the interpreter, however they are computed.
func TestRandom(t *testing.T) {
	total, operations, seed, only := count("GRAPHS", 600), count("OPERATIONS", 12), uint64(count("SEED", 1)),
		count("GRAPH", -1)
	ways := []*way{{name: "fused", scope: scope(t, runtime.Config{})},
		{name: "operation by operation", scope: scope(t, runtime.Config{NoFusion: true})}}
	ways = append(ways, &way{name: "compiled", scope: ways[0].scope, compile: true})
	for _, name := range strings.Fields(os.Getenv("DEVICES")) {
		s := tensor.NewScope(open(t, runtime.Config{}, name))
		t.Cleanup(func() { require.NoError(t, s.Close()) })
		ways = append(ways, &way{name: name, scope: s})
	}
	compared, all := 0, 0
	for i := range total {
		if only >= 0 && i != only {
			continue
		}
		g, values := random(rand.New(rand.NewPCG(seed, uint64(i))), operations, false)
		for _, r := range g.roots {
			all += len(ways) * len(values[r].v)
		}
		for _, w := range ways {
			n, err := w.check(g, values)
			compared += n
			if err == nil {
				continue
			}
			small := shrink(g.pruned(), func(g *graph) bool {
				_, err := w.check(g, g.interpret())
				return err != nil
			})
			list := small.interpret()
			_, why := w.check(small, list)
			t.Errorf("SEED=%d GRAPH=%d, %s: %v\nThe smallest graph that fails: %v\n%s", seed, i, w.name, err, why,
				small.print(list))
			if count("FAILURES", 1) <= failures(t) {
				return
			}
			break
		}
	}
	t.Logf("%d graphs in %d ways; %d of %d elements are compared", total, len(ways), compared, all)
	if only < 0 && total > 100 {
		require.Greater(t, compared, all/2, "too many elements have no bound, so that nothing is checked")
	}
}

// failed counts the graphs that have failed.
var failed int

func failures(t *testing.T) int {
	failed++
	return failed
}
