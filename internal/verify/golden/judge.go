package golden

// How a case is computed on a device, and what is wrong with the results.

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"

	"github.com/concord-compute/concord/runtime"
	"github.com/concord-compute/concord/tensor"
)

// request is a case, the type that stands for the data's float64, and how it is computed.
type request struct {
	*Case
	typ     tensor.Type
	make    Layout
	compute Way
}

// Judge computes a case and its gradients on the device of a scope, in a scope within it, with typ, F32 or F64 of
// package tensor, where the data has float64. It returns what is wrong, which may be a panic of package tensor, or why
// the case does not apply: the device or package tensor lacks something. It waits for the device as long as ctx
// allows. Cases may be judged at the same time.
func (c Case) Judge(ctx context.Context, around *tensor.Scope, typ tensor.Type, how Layout,
	by Way) (skip string, err error) {
	f := operations[c.Op]
	if c.Formula {
		f = formulas[c.Op]
	}
	switch {
	case f == nil:
		return fmt.Sprintf("package tensor has no %s yet", c.Op), nil
	case c.Only != "" && c.Only != typ.String():
		return fmt.Sprintf("for %s only", c.Only), nil
	case typ == tensor.F64 && !around.Device().Features().FP64:
		return "the device has no double precision", nil
	}
	s := around.Scope()
	defer func() { err = errors.Join(err, s.Close()) }()
	err = request{&c, typ, how, by}.judge(ctx, s, f)
	if errors.Is(err, errMissing) || errors.Is(err, runtime.ErrUnsupported) {
		return err.Error(), nil
	}
	return "", err
}

var errMissing = errors.New("package tensor lacks this variant")

// judge computes a case and returns what is wrong.
func (c request) judge(ctx context.Context, s *tensor.Scope, f call) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("panic: %v\n%s", r, debug.Stack())
		}
	}()
	var args []*T
	for _, a := range c.Inputs {
		args = append(args, c.from(s, a))
	}
	for _, a := range c.Cotangents {
		if a != nil {
			args = append(args, c.from(s, *a))
		}
	}
	missing := false
	results, err := c.compute(ctx, s, func(args ...*T) []*T {
		n := len(c.Inputs)
		out := f(c, args[:n])
		missing = out == nil
		if len(out) != len(c.Outputs) {
			return nil
		}
		return slices.Concat(out, c.gradients(args[:n], out, args[n:]))
	}, args)
	switch {
	case missing:
		return errMissing
	case err != nil:
		return err
	case len(results) == 0:
		return fmt.Errorf("not %d outputs", len(c.Outputs))
	}
	out, grads := results[:len(c.Outputs)], results[len(c.Outputs):]
	var wrong []error
	for i, want := range c.Outputs {
		if err := c.compare(ctx, out[i], want); err != nil {
			wrong = append(wrong, fmt.Errorf("output %d: %w", i, err))
		}
	}
	for i, want := range c.Grads {
		if want == nil {
			continue
		}
		if err := c.compare(ctx, grads[0], *want); err != nil {
			wrong = append(wrong, fmt.Errorf("gradient %d: %w", i, err))
		}
		grads = grads[1:]
	}
	return errors.Join(wrong...)
}

// gradients returns those of the inputs of f64, with the cotangents of the outputs of f64.
func (c request) gradients(in, out, cotangents []*T) []*T {
	if c.Grads == nil {
		return nil
	}
	var ys, wrt []*T
	for i, a := range c.Cotangents {
		if a != nil {
			ys = append(ys, out[i])
		}
	}
	for i, a := range c.Grads {
		if a != nil {
			wrt = append(wrt, in[i])
		}
	}
	return tensor.GradOf(ys, cotangents, wrt...)
}

// Way computes a function of tensors.
type Way func(ctx context.Context, s *tensor.Scope, f func(...*T) []*T, args []*T) ([]*T, error)

// Evaluated is the Way of Eval, results and gradients together.
func Evaluated(ctx context.Context, _ *tensor.Scope, f func(...*T) []*T, args []*T) ([]*T, error) {
	out := f(args...)
	return out, tensor.Eval(ctx, out...)
}

// Compiled is the Way of the second call of a compiled function.
func Compiled(ctx context.Context, s *tensor.Scope, f func(...*T) []*T, args []*T) ([]*T, error) {
	c := tensor.Compile(s, f)
	if _, err := c.Call(ctx, args...); err != nil {
		return nil, err
	}
	return c.Call(ctx, args...)
}

// typeOf returns the type that stands for one of the data.
func (c request) typeOf(name string) tensor.Type {
	switch name {
	case "i64":
		return tensor.I64
	case "bool":
		return tensor.Bool
	}
	return c.typ
}

// Layout makes a tensor of data.
type Layout func(s *tensor.Scope, typ tensor.Type, data []float64, shape ...int) *T

// Plain is the usual Layout.
func Plain(s *tensor.Scope, typ tensor.Type, data []float64, shape ...int) *T {
	if len(shape) == 0 {
		return vector(s, typ, data).Reshape().Copy() // without a shape it is a vector
	}
	return vector(s, typ, data, shape...)
}

// vector is one if no shape is given.
func vector(s *tensor.Scope, typ tensor.Type, data []float64, shape ...int) *T {
	switch typ {
	case tensor.I64:
		return tensor.From(s, converted[int64](data), shape...)
	case tensor.Bool:
		return tensor.From(s, truths(data), shape...)
	case tensor.F32:
		return tensor.From(s, converted[float32](data), shape...)
	}
	return tensor.From(s, data, shape...)
}

// Reshaped is the Layout of a view of a vector.
func Reshaped(s *tensor.Scope, typ tensor.Type, data []float64, shape ...int) *T {
	return vector(s, typ, data).Reshape(shape...)
}

// Strided is the Layout of a view in which each dimension is a part of a larger one, the first of them the fastest.
func Strided(s *tensor.Scope, typ tensor.Type, data []float64, shape ...int) *T {
	if len(shape) == 0 {
		return Plain(s, typ, data)
	}
	n := len(shape)
	whole, parts, order := make([]int, n), make([]tensor.Range, n), make([]int, n)
	stride, size := make([]int, n), 1
	for i, d := range shape {
		whole[n-1-i], parts[i], order[i] = d+1, tensor.Range{Start: 1, Stop: tensor.End, Step: 1}, n-1-i
		stride[i] = size
		size *= d + 1
	}
	stored := slices.Repeat([]float64{77}, size)
	for k, x := range data {
		at := 0
		for i, d := range slices.Backward(shape) {
			at += (k%d + 1) * stride[i]
			k /= d
		}
		stored[at] = x
	}
	return vector(s, typ, stored, whole...).Slice(parts...).Permute(order...)
}

// from makes a tensor of an input or a cotangent.
func (c request) from(s *tensor.Scope, a Array) *T {
	return c.make(s, c.typeOf(a.Type), a.Data, a.Shape...)
}

func (c request) compare(ctx context.Context, got *T, want Array) error {
	if typ := c.typeOf(want.Type); got.Type() != typ || !slices.Equal(got.Shape(), want.Shape) {
		return fmt.Errorf("%v%v instead of %v%v", got.Type(), got.Shape(), typ, want.Shape)
	}
	switch got.Type() {
	case tensor.I64:
		return check[int64](ctx, got, want, 0)
	case tensor.Bool:
		return check[uint8](ctx, got.Cast(tensor.U8), want, 0)
	case tensor.F32:
		return check[float32](ctx, got, want, F32)
	}
	return check[float64](ctx, got, want, F64)
}

func check[E int64 | uint8 | float32 | float64](ctx context.Context, got *T, want Array, bound float64) error {
	data, err := tensor.Read[E](ctx, got)
	if err != nil {
		return err
	}
	return Check(converted[float64](data), want.Data, bound)
}

func truths(list []float64) []bool {
	out := make([]bool, len(list))
	for i, x := range list {
		out[i] = x != 0
	}
	return out
}

func converted[B, A int64 | uint8 | float32 | float64](list []A) []B {
	out := make([]B, len(list))
	for i, x := range list {
		out[i] = B(x)
	}
	return out
}
