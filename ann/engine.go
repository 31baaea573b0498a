package ann

// The kernels of an index on its device, which find the nearest of rows in the device's memory.

import (
	"cmp"
	"context"
	"fmt"
	goruntime "runtime"
	"strconv"
	"sync"
	"sync/atomic"

	"github.com/concord-compute/concord/kernels"
	"github.com/concord-compute/concord/kernels/expr"
	"github.com/concord-compute/concord/runtime"
	"github.com/concord-compute/concord/source"
)

// mostK is the largest k that the kernel nearest selects, and manyK the largest with its usual memory.
const mostK, manyK = 1024, 128

// engine has the programs for one device, metric and precision. They are built when they are first needed.
type engine struct {
	dev    *runtime.Device // a handle of its own, so that the memory that the host sees stays while the index is open
	dim    int
	metric Metric
	code   coding
	host   bool           // the host sees the device's memory
	ranker kernels.Ranker // nil if the device has none, or not for the metric
	units  int            // of the device

	cpuThreads int // of the session's configuration

	mu       sync.Mutex
	programs map[string]*runtime.Program
	found    [2]atomic.Pointer[[2]kernel] // nearest and nearest_merge, for up to manyK and up to mostK
	others   sync.Map                     // other kernels of the catalog, by family
}

func newEngine(dev *runtime.Device, dim int, m Metric, p Precision) (*engine, error) {
	if err := m.check(); err != nil {
		return nil, err
	}
	probe, err := dev.Alloc(runtime.F32, 1)
	if err != nil {
		return nil, err
	}
	defer probe.Close()
	_, err = runtime.Host[float32](probe)
	host := err == nil
	if m.kind == custom && !host {
		return nil, fmt.Errorf("ann: %v on %v, whose memory the host does not see: %w", m, dev, runtime.ErrUnsupported)
	}
	if dev, err = dev.Session().Open(context.Background(), dev.String()); err != nil {
		return nil, err
	}
	e := &engine{dev: dev, dim: dim, metric: m, code: p.scaleOf(nil), host: host, units: dev.Info().ComputeUnits,
		cpuThreads: dev.Session().Config().CPUThreads, programs: map[string]*runtime.Program{}}
	if r, ok := dev.Driver().(kernels.Ranker); ok && host && m.onNearest() != "" && r.Rank(&kernels.Ranking{}) {
		e.ranker = r
	}
	return e, nil
}

func (e *engine) close() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, p := range e.programs {
		p.Close()
	}
	e.programs = nil
	return e.dev.Close()
}

// threads returns the number of threads for work of the host: as many as the device has, if it is the host's processor.
func (e *engine) threads() int {
	return cmp.Or(e.cpuThreads, goruntime.GOMAXPROCS(0))
}

// program returns the program of a name, which unit makes if it is not there yet.
func (e *engine) program(ctx context.Context, name string,
	unit func() (*source.Unit, error)) (*runtime.Program, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if p := e.programs[name]; p != nil {
		return p, nil
	}
	u, err := unit()
	if err != nil {
		return nil, err
	}
	p, err := e.dev.Program(ctx, u)
	if err != nil {
		return nil, err
	}
	e.programs[name] = p
	return p, nil
}

// kernel is a kernel, its program's unit, and whether it divides its work among the device's threads by itself.
type kernel struct {
	*runtime.Kernel
	unit   *source.Unit
	itself bool
}

func kernelOf(p *runtime.Program, name string) (kernel, error) {
	k, err := p.Kernel(name)
	return kernel{k, p.Unit(), p.Built().From == "native"}, err
}

// grid returns the grid of a launch from the sizes of what it computes.
func (k kernel) grid(sizes ...int) (runtime.Grid, error) {
	items, group, err := kernels.Geometry(k.unit, k.Name(), sizes...)
	return runtime.Grid{Items: items, Group: group}, err
}

// nearest returns the kernels that find up to k vectors, and merge lists of them.
func (e *engine) nearest(ctx context.Context, k int) (find, merge kernel, err error) {
	i, most := 0, manyK
	if k > manyK {
		i, most = 1, mostK
	}
	if known := e.found[i].Load(); known != nil {
		return known[0], known[1], nil
	}
	p, err := e.program(ctx, "nearest "+strconv.Itoa(most), func() (*source.Unit, error) {
		return kernels.Unit("nearest", e.dev.Features(), e.typeDefine(),
			source.Define{Name: "METRIC", Value: e.metric.onNearest()},
			source.Define{Name: "MAX_K", Value: strconv.Itoa(most)})
	})
	if err != nil {
		return kernel{}, kernel{}, err
	}
	if find, err = kernelOf(p, "nearest"); err == nil {
		merge, err = kernelOf(p, "nearest_merge")
	}
	if err == nil {
		e.found[i].Store(&[2]kernel{find, merge})
	}
	return find, merge, err
}

// catalog returns the kernel of a family of the catalog that has the family's name.
func (e *engine) catalog(ctx context.Context, family string, defines ...source.Define) (kernel, error) {
	if k, ok := e.others.Load(family); ok {
		return k.(kernel), nil
	}
	p, err := e.unit(ctx, family, defines...)
	if err != nil {
		return kernel{}, err
	}
	k, err := kernelOf(p, family)
	if err == nil {
		e.others.Store(family, k)
	}
	return k, err
}

// unit returns the program of a family of the catalog.
func (e *engine) unit(ctx context.Context, family string, defines ...source.Define) (*runtime.Program, error) {
	return e.program(ctx, family, func() (*source.Unit, error) {
		return kernels.Unit(family, e.dev.Features(), defines...)
	})
}

// typeDefine defines the type of stored components.
func (e *engine) typeDefine() source.Define {
	return source.Define{Name: "T", Value: e.code.typ().String()}
}

// distances returns the launch of the metric's expression for a number of queries and rows: every distance, a
// row for each query.
func (e *engine) distances(ctx context.Context, queries,
	rows int) (k kernel, grid runtime.Grid, layout any, err error) {
	m, err := expr.New(e.expression())
	if err != nil {
		return k, grid, nil, err
	}
	l, err := m.Layout(expr.Layout{Dims: []int{queries, rows, e.dim}, Operands: []expr.Operand{
		{Steps: []int{e.dim, 0, 1}}, {Steps: []int{0, e.dim, 1}}, {Steps: []int{rows, 1, 0}}}})
	if err != nil {
		return k, grid, nil, err
	}
	p, err := e.program(ctx, "distances "+strconv.Itoa(l.Rank()), func() (*source.Unit, error) {
		return m.Unit(e.dev.Features(), l.Rank())
	})
	if err != nil {
		return k, grid, nil, err
	}
	name, size := m.Entry(&l)
	if k, err = kernelOf(p, name); err != nil {
		return k, grid, nil, err
	}
	grid, err = k.grid(size)
	return k, grid, l.Argument(), err
}

// expression returns the metric as a reduction of a row: of the components of a query and a vector.
func (e *engine) expression() *expr.Expr {
	t := e.code.typ()
	x, y := expr.Input(0, t), expr.Input(1, t)
	if t == expr.I8 {
		x, y = x.Cast(expr.F32), y.Cast(expr.F32)
		if e.code.Precision == INT8 {
			x, y = x.Div(x.Number(127)), y.Div(y.Number(127))
		} else {
			x, y = x.Mul(x.Number(e.code.scale)), y.Mul(y.Number(e.code.scale))
		}
	}
	far := x.Sub(y).Abs()
	zero, one := far.Number(0), far.Number(1)
	switch e.metric.kind {
	case manhattan:
		return far.Sum()
	case chebyshev:
		return far.Largest()
	case minkowski:
		most := far.Largest()
		powers := far.Div(most).Pow(far.Number(e.metric.p)).Sum().Pow(far.Number(1 / e.metric.p))
		return most.Eq(zero).Select(zero, most.Eq(most.Number(inf)).Select(most, most.Mul(powers)))
	case hamming:
		return far.Number(apart).Lt(far).Select(one, zero).Sum()
	case jaccard:
		half := far.Number(0.5)
		both := half.Lt(x.Min(y)).Select(one, zero).Sum()
		any := expr.Apply(expr.Or, half.Lt(x), half.Lt(y)).Select(one, zero).Sum()
		return any.Eq(zero).Select(zero, one.Sub(both.Div(any)))
	}
	sizes := x.Abs().Add(y.Abs()) // canberra
	return sizes.Eq(zero).Select(zero, far.Div(sizes)).Sum()
}
