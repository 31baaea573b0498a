package tensor

// Operations that are kernels of the catalog, one or several launches each.

import (
	"context"
	"slices"

	"github.com/concord-compute/concord/runtime"
	"github.com/concord-compute/concord/runtime/cluster"
)

// callOp computes a tensor, and possibly others, by kernels that read and write memory.
type callOp struct {
	name string
	// takes reports whether argument i can be read with these strides; otherwise run gets it dense.
	takes func(i int, shape, strides []int) bool
	// run queues the launches. The results in out are dense.
	run func(r *run, out, in []operand) error
	// exchange makes a collective, on the member's stream; nil of all other calls, which run does.
	exchange func(ctx context.Context, m *cluster.Member, dst, src *runtime.Buffer) error
	// back returns the gradient of each argument, for the gradients of the results, of which those that have none are nil.
	back  func(t *Tensor, gs []*Tensor) []*Tensor
	parts []*Tensor // the results after the first
	// epilogue returns the step that also adds a bias for each column and applies an activation, and stores the
	// result elsewhere; nil if there is none.
	epilogue func(s *step, act string, bias operand, to place) *step
}

// partOp is result number i of a call, its argument.
type partOp struct{ i int }

func (o *callOp) String() string { return o.name }
func (o *partOp) String() string { return "part" }

// GradOf takes the gradients of all results of a call together.
func (o *callOp) grad(t, g *Tensor) []*Tensor {
	panic("tensor: the gradient of a call is that of all its results")
}
func (o *partOp) grad(t, g *Tensor) []*Tensor { panic("tensor: the gradient of a part is its call's") }

// withResults adds to tensors the other results of the calls that compute them, so that of a call all results
// are data, or none is.
func withResults(ts []*Tensor) []*Tensor {
	for _, t := range ts {
		if t.kind() == kindResult {
			t = t.args[0]
		}
		if t.kind() != kindCall {
			continue
		}
		for _, r := range append([]*Tensor{t}, t.op.(*callOp).parts...) {
			if r.data == nil && !slices.Contains(ts, r) {
				ts = append(ts, r)
			}
		}
	}
	return ts
}

// onlyDense is a callOp.takes for kernels that read dense memory.
func onlyDense(_ int, shape, strides []int) bool { return isDense(shape, strides) }

func isDense(shape, strides []int) bool {
	for j, s := range rowMajor(shape) {
		if shape[j] > 1 && strides[j] != s {
			return false
		}
	}
	return true
}

// call returns the results of a call.
func call(o *callOp, specs []Spec, args ...*Tensor) []*Tensor {
	t := made(o, specs[0].Type, specs[0].Shape, args...)
	list := []*Tensor{t}
	for i, s := range specs[1:] {
		part := made(&partOp{i + 1}, s.Type, s.Shape, t)
		o.parts = append(o.parts, part)
		list = append(list, part)
	}
	return list
}

// run is the execution of a plan.
type run struct {
	ctx    context.Context
	engine *engine
	stream *runtime.Stream
	// alloc returns memory for n elements, which the run frees.
	alloc     func(t Type, n int) (*runtime.Buffer, error)
	temps     []*runtime.Buffer
	keepTemps bool // what a task needed is not freed after it, since the task is recorded
}

// onMemory returns a callOp.run that gives f the memory of the arguments, and behind that of the results.
func onMemory(f func(r *run, b []*runtime.Buffer, out, in []operand) error) func(r *run, out, in []operand) error {
	return func(r *run, out, in []operand) error {
		b, err := r.buffers(slices.Concat(in, out)...)
		if err != nil {
			return err
		}
		return f(r, b, out, in)
	}
}

// temp returns memory for n elements that the task under way needs besides its operands.
func (r *run) temp(t Type, n int) (*runtime.Buffer, error) {
	b, err := r.alloc(t, n)
	if err == nil {
		r.temps = append(r.temps, b)
	}
	return b, err
}

// at returns the memory of an operand from its first element on, which the task's end frees.
func (r *run) at(o operand) (*runtime.Buffer, error) {
	b := o.v.data.buf
	if o.first == 0 {
		return b, nil
	}
	s, err := b.Slice(o.first, b.Len()-o.first)
	if err == nil {
		r.temps = append(r.temps, s)
	}
	return s, err
}

// buffers is at for several operands.
func (r *run) buffers(os ...operand) ([]*runtime.Buffer, error) {
	list := make([]*runtime.Buffer, len(os))
	for i, o := range os {
		b, err := r.at(o)
		if err != nil {
			return nil, err
		}
		list[i] = b
	}
	return list, nil
}
