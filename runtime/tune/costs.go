package tune

// The costs by which package tensor plans. They are measured, and not searched for: what a launch, an element and an
// operation take on the device, whatever the choices are.

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/concord-compute/concord/kernels"
	"github.com/concord-compute/concord/kernels/expr"
	"github.com/concord-compute/concord/runtime"
	"github.com/concord-compute/concord/runtime/choice"
)

// costsName is the subject of the costs.
const costsName = "costs"

// The costs by their names. Those of moves are measured with tensors of a part of the size up to which they hold.
const (
	launchCost  = "launch"
	uploadCost  = "upload"
	copyCost    = "copy"
	addCost     = "add"
	productCost = "product"
)

// moves are the costs of an element of a tensor, and the bytes of the tensors that are measured.
var moves = []struct {
	name  string
	bytes int
}{{"move.1m", 512 << 10}, {"move.4m", 2 << 20}, {"move.16m", 8 << 20}, {"move.more", 64 << 20}}

// costFunctions are the operations that stand for all whose effort package expr knows.
var costFunctions = []expr.Op{expr.Exp, expr.Log, expr.Tanh, expr.Sin}

const (
	additions   = 64 // of the map that adds
	repetitions = 8  // of a function in its map
	queued      = 64 // launches at least whose mean is one sample of a launch
	someWork    = 1 << 20
)

// costNames returns the costs in the order in which they are measured.
func costNames() (list []string) {
	list = []string{launchCost, uploadCost, copyCost, addCost}
	for _, m := range moves {
		list = append(list, m.name)
	}
	for _, f := range costFunctions {
		list = append(list, f.String())
	}
	return append(list, productCost)
}

func init() {
	s := Subject{Name: costsName, Reads: []string{"tensor.task", "tensor.move", "tensor.functions", "tensor.many"},
		measured: true}
	for _, name := range costNames() {
		s.Points = append(s.Points, Point{Name: name})
	}
	Register(s)
}

// planning returns the values of the planner's choices that follow from costs: those among the values of each choice
// that are nearest in proportion, so that measuring again mostly gives the same plans. Efforts are in the time of an
// addition.
func planning(costs []choice.Cost, choices []*choice.Choice) map[string]int {
	ns := map[string]float64{}
	for _, c := range costs {
		ns[c.Name] = c.Ns
	}
	// Other work on the machine makes times longer, and never shorter, and smaller tensors lie in nearer caches.
	for i := len(moves) - 2; i >= 0; i-- {
		ns[moves[i].name] = min(ns[moves[i].name], ns[moves[i+1].name])
	}
	add := ns[addCost]
	want := map[string]float64{
		"tensor.task": ns[launchCost] / add,
		// So many elements are read in the time of a launch.
		"tensor.many": ns[launchCost] / ns[moves[0].name],
	}
	for _, m := range moves {
		want["tensor."+m.name] = ns[m.name] / add
	}
	sum := 0.0
	for _, f := range costFunctions {
		sum += math.Log(ns[f.String()] / add / float64(f.Effort()))
	}
	want["tensor.functions"] = 100 * math.Exp(sum/float64(len(costFunctions)))
	values := map[string]int{}
	for _, c := range choices {
		if w, ok := want[c.Name]; ok && w > 0 && !math.IsInf(w, 0) {
			values[c.Name] = slices.MinFunc(c.Values, func(a, b int) int {
				return cmp.Compare(math.Abs(math.Log(float64(a)/w)), math.Abs(math.Log(float64(b)/w)))
			})
		}
	}
	return values
}

// costs measures all costs, on a stream of its own and with the defaults of all choices.
func (m *measurement) costs(ctx context.Context) (list []choice.Cost, err error) {
	m.dev.Choices().Try(nil)
	c := &coster{m: m, ctx: ctx, ns: map[string]float64{}}
	if c.stream, err = m.dev.NewStream(); err != nil {
		return nil, err
	}
	defer func() {
		for _, f := range slices.Backward(c.closers) {
			err = errors.Join(err, f())
		}
	}()
	c.closers = append(c.closers, c.stream.Close)
	info := m.dev.Info()
	c.elements, c.largest = 1<<17, moves[len(moves)-1].bytes/4
	c.side = 512
	if info.IsGPU() {
		c.elements, c.side = 1<<22, 2048
	}
	for info.TotalMemory > 0 && c.largest > c.elements && int64(c.largest) > info.TotalMemory/64 {
		c.largest /= 2
	}
	n := max(c.largest, c.elements)
	c.host = make([]byte, 0, 4*n)
	for i := range n { // between 0.1 and 1, where all functions are numbers
		c.host = binary.NativeEndian.AppendUint32(c.host, math.Float32bits(0.1+0.9*float32(i%1021)/1021))
	}
	if c.x, err = c.alloc(n); err != nil {
		return nil, err
	}
	if c.y, err = c.alloc(n); err != nil {
		return nil, err
	}
	if err := c.stream.Write(ctx, c.x, 0, c.host); err != nil {
		return nil, err
	}
	if err := c.stream.Fill(c.y, float32(0)); err != nil {
		return nil, err
	}
	for _, name := range costNames() {
		if err := m.doing(name); err != nil {
			return nil, err
		}
		cost, err := c.measure(name)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		c.ns[name] = cost.Ns
		list = append(list, cost)
	}
	return list, nil
}

// coster is the measurement of costs under way.
type coster struct {
	m        *measurement
	ctx      context.Context
	stream   *runtime.Stream
	x, y     *runtime.Buffer
	host     []byte // what x has
	elements int    // of maps that compute, which stay in caches
	largest  int    // elements of the largest tensor
	side     int    // of the matrices that are multiplied
	ns       map[string]float64
	closers  []func() error
}

func (c *coster) alloc(n int) (*runtime.Buffer, error) {
	b, err := c.m.dev.Alloc(runtime.F32, n)
	if err == nil {
		c.closers = append(c.closers, b.Close)
	}
	return b, err
}

// measure measures one cost, for which those before it are known.
func (c *coster) measure(name string) (choice.Cost, error) {
	x := expr.Input(0, expr.F32)
	switch name {
	case launchCost:
		return c.mapped(name, "launch", x.Neg(), 1, func(ns float64) float64 { return ns })
	case uploadCost, copyCost:
		return c.sampled(name, "byte", 1, func() error {
			if name == uploadCost {
				return c.stream.Write(c.ctx, c.x, 0, c.host)
			}
			return c.stream.Copy(c.y, c.x)
		}, func(ns float64) float64 { return ns / float64(len(c.host)) })
	case addCost:
		y := x
		for range additions {
			y = y.Add(x)
		}
		return c.mapped(name, "operation", y, c.elements, func(ns float64) float64 {
			return c.beyondLaunch(ns) / float64(additions*c.elements)
		})
	case productCost:
		return c.product()
	}
	for _, m := range moves {
		if m.name == name {
			n := min(m.bytes/4, c.largest)
			return c.mapped(name, "element", x.Neg(), n, func(ns float64) float64 {
				each := c.beyondLaunch(ns) / float64(2*n) // one is read, and one is stored
				return max(each-c.ns[addCost]/2, each/10)
			})
		}
	}
	for _, f := range costFunctions {
		if f.String() == name {
			y := expr.Apply(f, x.Mul(x.Number(0.9)))
			for i := 1; i < repetitions; i++ {
				y = y.Add(expr.Apply(f, x.Mul(x.Number(0.9-float64(i)/20))))
			}
			return c.mapped(name, "operation", y, c.elements, func(ns float64) float64 {
				each := c.beyondLaunch(ns) / float64(repetitions*c.elements)
				return max(each-2*c.ns[addCost], each/10) // a product and a sum come with it
			})
		}
	}
	return choice.Cost{}, fmt.Errorf("tune: no cost %q: %w", name, runtime.ErrInvalidArgument)
}

// beyondLaunch returns the part of a launch's time that is not that of any launch. It is not less than a quarter: a
// device may queue a launch while the last one runs.
func (c *coster) beyondLaunch(ns float64) float64 { return max(ns-c.ns[launchCost], ns/4) }

// mapped measures launches of a map of n elements, after its results were judged.
func (c *coster) mapped(name, of string, y *expr.Expr, n int, cost func(ns float64) float64) (r choice.Cost,
	err error) {
	m, err := expr.New(y)
	if err != nil {
		return r, err
	}
	l, err := m.Layout(expr.Layout{Dims: []int{n}, Operands: []expr.Operand{expr.Rows(n), expr.Rows(n)}})
	if err != nil {
		return r, err
	}
	u, err := m.Unit(c.m.dev.Features(), l.Rank())
	if err != nil {
		return r, err
	}
	p, err := c.m.dev.Program(c.ctx, u)
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, p.Close()) }()
	entry, size := m.Entry(&l)
	k, err := p.Kernel(entry)
	if err != nil {
		return r, err
	}
	items, group, err := kernels.Geometry(u, entry, size)
	if err != nil {
		return r, err
	}
	args := []any{nil, nil, l.Argument()}
	for i, b := range []*runtime.Buffer{c.x, c.y} {
		some, err := b.Slice(0, n)
		if err != nil {
			return r, err
		}
		defer func() { err = errors.Join(err, some.Close()) }()
		args[i] = some
	}
	launch := func() error { return c.stream.Launch(k, runtime.Grid{Items: items, Group: group}, args...) }
	if err := c.m.judge(launch, someWork); err != nil {
		return r, err
	}
	batch := 1
	if name == launchCost {
		batch = queued
	}
	return c.sampled(name, of, batch, launch, cost)
}

// product measures a product of square matrices by the device's fastest kernel.
func (c *coster) product() (r choice.Cost, err error) {
	point := product(runtime.F32, c.side, c.side, c.side)
	b, err := c.m.build(c.ctx, &point, nil)
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, b.program.Close()) }()
	args, buffers, err := c.m.arguments(c.ctx, &point)
	for _, b := range buffers {
		c.closers = append(c.closers, b.Close)
	}
	if err != nil {
		return r, err
	}
	launch := func() error { return c.stream.Launch(b.kernel, b.grid, args...) }
	if err := c.m.judge(launch, someWork); err != nil {
		return r, err
	}
	return c.sampled(productCost, "multiply-add", 1, launch, func(ns float64) float64 {
		return c.beyondLaunch(ns) / (point.Flops / 2)
	})
}

// sampled measures work, of which at least batch are queued at a time.
func (c *coster) sampled(name, of string, batch int, work func() error, cost func(ns float64) float64) (choice.Cost,
	error) {
	r := choice.Cost{Name: name, Of: of}
	run := func(n int) (float64, error) {
		start := time.Now()
		for range n {
			if err := work(); err != nil {
				return 0, err
			}
		}
		err := c.stream.Sync(c.ctx)
		return float64(time.Since(start).Nanoseconds()) / float64(n), err
	}
	if _, err := run(1); err != nil { // what is done once
		return r, err
	}
	first, err := run(batch)
	if err != nil {
		return r, err
	}
	n := max(batch, int(float64(tick.Nanoseconds())/max(first, 1)))
	var all []float64
	for start := time.Now(); len(all) < enoughSamples &&
		(len(all) < fewest || time.Since(start).Seconds() < c.m.Seconds); {
		ns, err := run(n)
		if err != nil {
			return r, err
		}
		all = append(all, cost(max(ns, 1e-3)))
	}
	slices.Sort(all)
	r.Ns, r.Low, r.High = all[len(all)/2], all[len(all)/4], all[len(all)*3/4]
	return r, nil
}
