package tensor

// Gradients of your own, computation that is repeated rather than kept, and kernels of your own.

import (
	"fmt"
	"slices"

	"github.com/concord-compute/concord/runtime"
	"github.com/concord-compute/concord/source"
)

// WithGradient returns y as a tensor whose gradient with respect to args is what back makes of the gradient of
// y: a tensor of the shape and type of each arg, or nil for none. Gradients take no other way from it to what y
// was computed from.
func WithGradient(y *Tensor, args []*Tensor, back func(g *Tensor) []*Tensor) *Tensor {
	const name = "with gradient"
	if bad := check(name, append([]*Tensor{y}, args...)...); bad != nil {
		return bad
	}
	checked := func(g *Tensor) []*Tensor {
		list := slices.Clone(back(g))
		if len(list) != len(args) {
			return slices.Repeat([]*Tensor{failf(y.scope, name, ErrShape, "%d gradients for %d tensors", len(list), len(args))},
				len(args))
		}
		for i, d := range list {
			if d != nil && d.err == nil && (d.typ != args[i].typ || !slices.Equal(d.shape, args[i].shape)) {
				list[i] = failf(y.scope, name, ErrShape, "gradient %d is %v%v for a tensor %v%v", i, d.typ, d.shape, args[i].typ,
					args[i].shape)
			}
		}
		return list
	}
	return made(&viewOp{name: name, same: true, back: checked}, y.typ, y.shape, append([]*Tensor{y}, args...)...)
}

// Rematerialize returns f of args. For their gradients f is computed again, so that what it computes on the way
// is not kept in memory.
func Rematerialize(f func(args ...*Tensor) *Tensor, args ...*Tensor) *Tensor {
	if len(args) == 0 {
		return failf(nil, "rematerialize", ErrShape, "no tensor")
	}
	if bad := check("rematerialize", args...); bad != nil {
		return bad
	}
	y := f(args...)
	if y.err != nil {
		return y
	}
	return WithGradient(y, args, func(g *Tensor) []*Tensor {
		ends := again(args)
		var wrt []*Tensor
		for _, a := range ends {
			if IsFloat(a.typ) {
				wrt = append(wrt, a)
			}
		}
		list, ds := make([]*Tensor, len(args)), GradOf([]*Tensor{f(ends...)}, []*Tensor{g}, wrt...)
		for i, a := range ends {
			if IsFloat(a.typ) {
				list[i], ds = ds[0], ds[1:]
			}
		}
		return list
	})
}

// Spec is the type and the shape of a tensor.
type Spec struct {
	Type  Type
	Shape []int
}

// String returns type and shape: "f32[2 3]".
func (s Spec) String() string { return fmt.Sprintf("%v%v", s.Type, s.Shape) }

// Out stands for a result among the arguments of a Kernel: Out(0) is the first.
type Out int

// Kernel is a kernel of your own as an operation.
type Kernel struct {
	Unit    *source.Unit // portable text, or native text beside it
	Name    string       // of the kernel in it
	Grid    runtime.Grid
	Results []Spec
	// Gradient returns the gradients of the tensors among the arguments, in their order, from the arguments, the
	// results, and the gradients of the results, of which those that have none are nil. A nil result is none;
	// without the function the kernel has no gradient.
	Gradient func(args, results, gs []*Tensor) []*Tensor
}

// Launch returns the results of a kernel. Its arguments are in the order of its parameters. A pointer to global memory
// takes a *Tensor or an Out, whose elements are in order and of the parameter's type; other parameters take what
// [runtime.Stream.Launch] does.
func Launch(k Kernel, args ...any) []*Tensor {
	var ts []*Tensor
	for _, a := range args {
		if t, ok := a.(*Tensor); ok {
			ts = append(ts, t)
		}
	}
	failed := func(t *Tensor) []*Tensor { return slices.Repeat([]*Tensor{t}, max(len(k.Results), 1)) }
	if len(ts) == 0 {
		return failed(failf(nil, k.Name, ErrShape, "a kernel without a tensor among its arguments"))
	}
	if bad := check(k.Name, ts...); bad != nil {
		return failed(bad)
	}
	if k.Unit == nil || len(k.Results) == 0 {
		return failed(failf(ts[0].scope, k.Name, ErrShape, "a kernel without a text or without results"))
	}
	var specs []Spec
	for _, r := range k.Results {
		if err := checkShape(r.Shape); err != nil {
			return failed(fail(ts[0].scope, k.Name, err))
		}
		specs = append(specs, Spec{r.Type, slices.Clone(r.Shape)})
	}
	args = slices.Clone(args)
	o := &callOp{name: k.Name, takes: onlyDense, run: func(r *run, out, in []operand) error {
		p, err := r.engine.program(r.ctx, programKey{definitions: fmt.Sprintf("%x", k.Unit.Hash())},
			func() (*source.Unit, error) { return k.Unit, nil })
		if err != nil {
			return err
		}
		f, err := p.kernel(k.Name)
		if err != nil {
			return err
		}
		given := make([]any, len(args))
		next := 0
		for i, a := range args {
			given[i] = a
			switch a := a.(type) {
			case *Tensor:
				given[i], err = r.at(in[next])
				next++
			case Out:
				if int(a) < 0 || int(a) >= len(out) {
					return fmt.Errorf("%w: result %d of %d", ErrShape, a, len(out))
				}
				given[i], err = r.at(out[a])
			}
			if err != nil {
				return err
			}
		}
		return r.stream.Launch(f, k.Grid, given...)
	}}
	if k.Gradient != nil {
		o.back = func(t *Tensor, gs []*Tensor) []*Tensor {
			return k.Gradient(t.args, append([]*Tensor{t}, o.parts...), gs)
		}
	}
	return call(o, specs, ts...)
}
