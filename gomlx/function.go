package gomlx

// The builder of a computation, which records operations. Shapes are inferred as GoMLX's own backend does.

import (
	"fmt"
	"reflect"
	"slices"
	"sync"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/notimplemented"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/compute/support/sets"
	"github.com/pkg/errors"

	"github.com/concord-compute/concord/tensor"
)

// builder records one computation.
type builder struct {
	notimplemented.Builder
	backend  *Backend
	name     string
	main     *function
	compiled bool
	meshes   []compute.Mesh      // of automatic sharding
	members  int                 // devices that run the computation together; 0 and 1 are one
	assigned []compute.DeviceNum // the devices; none if that is for the caller of Execute to say
	named    map[string]bool
	axes     sets.Set[string] // names of dynamic axes of parameters
}

func newBuilder(b *Backend, name string) *builder {
	w := &builder{backend: b, name: name, named: map[string]bool{compute.MainName: true}, axes: sets.Make[string]()}
	w.Builder.ErrFn = notImplemented
	w.main = w.function(compute.MainName, nil)
	return w
}

func notImplemented(op compute.OpType) error {
	return errors.Wrapf(compute.ErrNotImplemented, "%s by the backend %q", op, Name)
}

func (w *builder) function(name string, parent *function) *function {
	return &function{Function: notimplemented.Function{ErrFn: notImplemented}, builder: w, name: name, parent: parent}
}

// Name returns the name of the computation.
func (w *builder) Name() string { return w.name }

// Main returns the main function.
func (w *builder) Main() compute.Function { return w.main }

// NewFunction returns a function with a name, which others can call.
func (w *builder) NewFunction(name string) (compute.Function, error) {
	if w.compiled {
		return nil, errors.Errorf("%s is compiled already", w.name)
	}
	if w.named[name] || name == "" {
		return nil, errors.Errorf("a function named %q in %s, which has one", name, w.name)
	}
	w.named[name] = true
	return w.function(name, nil), nil
}

// OpShape returns the shape of a value.
func (w *builder) OpShape(op compute.Value) (shapes.Shape, error) {
	v, ok := op.(*value)
	if !ok {
		return shapes.Invalid(), errors.Errorf("a %T is no value of the backend %q", op, Name)
	}
	return v.shape, nil
}

// Compile returns the main function as an executable.
func (w *builder) Compile() (compute.Executable, error) {
	if w.compiled {
		return nil, errors.Errorf("%s is compiled already", w.name)
	}
	if !w.main.returned {
		return nil, errors.Errorf("%s: the main function has not returned", w.name)
	}
	w.compiled = true
	return &executable{backend: w.backend, main: w.main, assigned: w.assigned}, nil
}

// function records operations.
type function struct {
	notimplemented.Function
	builder  *builder
	name     string
	parent   *function
	nodes    []*node // in the order of their creation, so that each comes after its operands
	params   []*value
	names    []string // of params
	captured []*value // of enclosing functions
	outputs  []*value
	returned bool
	prepare  sync.Once
	program  *program // made when it is first needed
}

// value is a result of a node.
type value struct {
	node  *node
	shape shapes.Shape
}

// node is an operation. It has either emit or host; a parameter and a captured value have neither.
type node struct {
	function *function
	op       compute.OpType
	in       []*value
	out      []*value
	emit     func(tr *trace, in []array) []array
	host     func(r *run, in []array) ([]array, error)

	order []int // of a transposition
	// of a product: one of exchanged operands, whose result has its dimensions in that order
	exchanged func(order []int) (n *node, ok bool)
}

// trace is what operations need besides their operands while they are traced.
type trace struct {
	maxima map[string]array // of windows, by what and which
	scope  *tensor.Scope
	axes   shapes.AxisBindings // lengths of dynamic axes
}

// mistake is what a trace panics with, so that it ends at the first node that has one: what the nodes behind it
// would compute of a tensor that has no shape is not defined. compile recovers.
type mistake struct{ error }

// shape returns a shape with the lengths of its dynamic axes.
func (tr *trace) shape(s shapes.Shape) shapes.Shape {
	r, err := s.Resolve(tr.axes)
	if err != nil {
		panic(mistake{errors.WithStack(err)})
	}
	return r
}

// Name returns the function's name, "" for a closure.
func (f *function) Name() string { return f.name }

// Builder returns the function's builder.
func (f *function) Builder() compute.Builder { return f.builder }

// Parent returns the function around a closure, or nil.
func (f *function) Parent() compute.Function {
	if f.parent == nil {
		return nil
	}
	return f.parent
}

// Closure returns a function that can use the values of this one.
func (f *function) Closure() (compute.Function, error) {
	if err := f.open(); err != nil {
		return nil, err
	}
	return f.builder.function("", f), nil
}

func (f *function) open() error {
	switch {
	case f.builder.compiled:
		return errors.Errorf("%s is compiled already", f.builder.name)
	case f.returned:
		return errors.Errorf("function %q has returned already", f.name)
	}
	return nil
}

// Shape returns the shape of a value.
func (f *function) Shape(v compute.Value) (shapes.Shape, error) { return f.builder.OpShape(v) }

// Parameter adds a parameter.
func (f *function) Parameter(name string, shape shapes.Shape, sharding *compute.ShardingSpec) (compute.Value, error) {
	if err := f.open(); err != nil {
		return nil, err
	}
	if _, err := typeOf(shape.DType); err != nil {
		return nil, err
	}
	parts, err := f.builder.parts(sharding, shape)
	if err != nil {
		return nil, errors.WithMessagef(err, "parameter %q", name)
	}
	for i, d := range shape.Dimensions {
		if d == shapes.DynamicDim {
			f.builder.axes.Insert(shape.AxisName(i))
		}
	}
	v := f.add(&node{op: compute.OpTypeParameter}, parts.of(shape))[0]
	f.params, f.names = append(f.params, v), append(f.names, name)
	if parts == nil {
		return v, nil
	}
	return f.single(compute.OpTypeAllGather, shape, []*value{v}, func(_ *trace, in []array) array {
		return parts.gather(in[0])
	})
}

// add adds a node with results of the given shapes.
func (f *function) add(n *node, results ...shapes.Shape) []*value {
	n.function = f
	for _, s := range results {
		if !slices.ContainsFunc(s.AxisNames, func(name string) bool { return name != "" }) {
			s.AxisNames = nil // GoMLX compares shapes with such that have no names
		}
		n.out = append(n.out, &value{n, s})
	}
	f.nodes = append(f.nodes, n)
	return n.out
}

// operands returns values as operands of an operation, and captures those of enclosing functions.
func (f *function) operands(what fmt.Stringer, values ...compute.Value) ([]*value, error) {
	if err := f.open(); err != nil {
		return nil, errors.WithMessage(err, what.String())
	}
	list := make([]*value, len(values))
	for i, x := range values {
		v, ok := x.(*value)
		if !ok || v == nil {
			return nil, errors.Errorf("%v: operand %d, a %T, is no value of the backend %q", what, i, x, Name)
		}
		if err := f.capture(v); err != nil {
			return nil, errors.WithMessagef(err, "%v: operand %d", what, i)
		}
		list[i] = v
	}
	return list, nil
}

func (f *function) capture(v *value) error {
	if v.node.function == f || slices.Contains(f.captured, v) {
		return nil
	}
	for p := f.parent; p != nil; p = p.parent {
		if p == v.node.function {
			f.captured = append(f.captured, v)
			return nil
		}
	}
	return errors.Errorf("a value of another function")
}

// single adds a node of one result, which emit computes.
func (f *function) single(op compute.OpType, shape shapes.Shape, in []*value,
	emit func(tr *trace, in []array) array) (compute.Value, error) {
	if shape.Rank() > tensor.MaxRank {
		return nil, errors.Wrapf(compute.ErrNotImplemented, "%s: shape %s of more than %d dimensions", op, shape,
			tensor.MaxRank)
	}
	return one(f.several(&node{op: op, in: in, emit: func(tr *trace, in []array) []array {
		return []array{emit(tr, in)}
	}}, shape))
}

// inference returns the shape of the result of an operation on operands of some shapes.
type inference func(operands []shapes.Shape) (shapes.Shape, error)

// same is the inference of operations that keep the shape.
func same(operands []shapes.Shape) (shapes.Shape, error) { return operands[0], nil }

// of returns a shape with another data type.
func of(s shapes.Shape, dtype dtypes.DType) shapes.Shape {
	s = s.Clone()
	s.DType = dtype
	return s
}

// floating returns an error unless the elements of an operand are floating-point numbers.
func floating(op compute.OpType, s shapes.Shape) error {
	if !s.DType.IsFloat() {
		return errors.Errorf("%s of %s, which has no floating-point numbers", op, s)
	}
	return nil
}

// inferred adds a node of one result, whose shape infer finds, and which emit computes.
func (f *function) inferred(op compute.OpType, operands []compute.Value, infer inference,
	emit func(tr *trace, in []array) array) (compute.Value, error) {
	in, err := f.operands(op, operands...)
	if err != nil {
		return nil, err
	}
	shape, err := infer(shapesOf(in))
	if err != nil {
		return nil, err
	}
	return f.single(op, shape, in, emit)
}

// several adds a node of several results.
func (f *function) several(n *node, results ...shapes.Shape) ([]compute.Value, error) {
	for _, s := range results {
		if _, err := typeOf(s.DType); err != nil {
			return nil, errors.WithMessage(err, n.op.String())
		}
	}
	var list []compute.Value
	for _, v := range f.add(n, results...) {
		list = append(list, v)
	}
	return list, nil
}

// one returns the result of a node that has one.
func one(list []compute.Value, err error) (compute.Value, error) {
	if err != nil {
		return nil, err
	}
	return list[0], nil
}

// three returns the results of a node that has three.
func three(list []compute.Value, err error) (a, b, c compute.Value, _ error) {
	if err != nil {
		return nil, nil, nil, err
	}
	return list[0], list[1], list[2], nil
}

// dtypeAndLen returns the data type and the length of a slice.
func dtypeAndLen(flat any) (dtypes.DType, int) {
	v := reflect.ValueOf(flat)
	if v.Kind() != reflect.Slice {
		return dtypes.InvalidDType, 0
	}
	return dtypes.FromGoType(v.Type().Elem()), v.Len()
}

// Constant adds an array with the elements of a slice.
func (f *function) Constant(flat any, dims ...int) (compute.Value, error) {
	if err := f.open(); err != nil {
		return nil, err
	}
	dtype, _ := dtypeAndLen(flat)
	if _, err := typeOf(dtype); err != nil {
		return nil, errors.WithMessage(err, "Constant")
	}
	shape := shapes.Make(dtype, dims...)
	raw, err := bytesOf(flat, shape)
	if err != nil {
		return nil, errors.WithMessage(err, "Constant")
	}
	raw = slices.Clone(raw)
	return f.single(compute.OpTypeConstant, shape, nil, func(tr *trace, _ []array) array {
		return constant(tr.scope, raw, shape)
	})
}

// Return sets the results.
func (f *function) Return(outputs []compute.Value, shardings []*compute.ShardingSpec) error {
	if len(outputs) == 0 {
		return errors.Errorf("function %q returns nothing", f.name)
	}
	list, err := f.operands(returns{}, outputs...)
	if err != nil {
		return err
	}
	for i, s := range shardings {
		if i >= len(list) {
			return errors.Errorf("%d shardings of %d results", len(shardings), len(list))
		}
		parts, err := f.builder.parts(s, list[i].shape)
		if err != nil {
			return errors.WithMessagef(err, "result %d", i)
		}
		if parts == nil && f.builder.meshes != nil && !f.builder.backend.alike() { // devices that round otherwise
			same, err := f.single(compute.OpTypeCollectiveBroadcast, list[i].shape, []*value{list[i]},
				func(_ *trace, in []array) array { return in[0].Broadcast(0) })
			if err != nil {
				return err
			}
			list[i] = same.(*value)
		}
		if parts != nil {
			part, err := f.single(compute.OpTypeSlice, parts.of(list[i].shape), []*value{list[i]},
				func(_ *trace, in []array) array { return parts.cut(in[0]) })
			if err != nil {
				return err
			}
			list[i] = part.(*value)
		}
	}
	f.outputs, f.returned = list, true
	return nil
}

type returns struct{}

func (returns) String() string { return "Return" }

// Identity returns x.
func (f *function) Identity(x compute.Value) (compute.Value, error) {
	in, err := f.operands(compute.OpTypeIdentity, x)
	if err != nil {
		return nil, err
	}
	return in[0], nil
}

// OptimizationBarrier returns its operands.
func (f *function) OptimizationBarrier(operands ...compute.Value) ([]compute.Value, error) {
	if _, err := f.operands(compute.OpTypeOptimizationBarrier, operands...); err != nil {
		return nil, err
	}
	return operands, nil
}

// SchedulingBarrier returns its operand, after which nothing can go wrong for want of an order: a function's
// operations have no effects.
func (f *function) SchedulingBarrier(operand compute.Value, dependencies ...compute.Value) (compute.Value, error) {
	if _, err := f.operands(compute.OpTypeSchedulingBarrier,
		append([]compute.Value{operand}, dependencies...)...); err != nil {
		return nil, err
	}
	return operand, nil
}
