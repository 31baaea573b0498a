package golden

// Tests of package tensor: every case on every device, forward and backward. On devices that compile
// kernels, one case in four in float32, unless GOLDEN_FULL is set:
//
//	GOLDEN_FULL=1 go test -timeout 0 ./tests/golden

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime/debug"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/concord-compute/concord/runtime"
	_ "github.com/concord-compute/concord/runtime/all"
	"github.com/concord-compute/concord/tensor"
)

// different are cases that are known to differ from PyTorch's, and why.
var different = map[string]string{
	"minimum/ties": "the second of two equal operands has the whole gradient",
	"maximum/ties": "the second of two equal operands has the whole gradient",
}

// request is a case, the type that stands for the data's float64, and how it is computed.
type request struct {
	*Case
	typ     tensor.Type
	make    layout
	compute way
}

// TestOperations: every operation that package tensor has, and every formula, has PyTorch's results
// and gradients on every device.
func TestOperations(t *testing.T) {
	s, err := runtime.New(runtime.Config{Fallback: runtime.Require})
	require.NoError(t, err)
	defer s.Close()
	probes, err := s.Discover(t.Context())
	require.NoError(t, err)
	for _, p := range probes {
		for _, info := range p.Devices {
			if !info.Simulated {
				t.Run(info.ID, func(t *testing.T) { everyCase(t, s, info.ID, plain, evaluated) })
			}
		}
		if len(p.Devices) == 0 {
			t.Run(p.Backend, func(t *testing.T) {
				require.NotContains(t, s.Config().Required, p.Backend, p.Reason)
				t.Skip(p.Reason)
			})
		}
	}
}

// TestOperationsUnfused is the same on the CPU where every operation is a kernel of its own.
func TestOperationsUnfused(t *testing.T) {
	s, err := runtime.New(runtime.Config{Fallback: runtime.Require, NoFusion: true})
	require.NoError(t, err)
	defer s.Close()
	everyCase(t, s, "cpu:0", plain, evaluated)
}

// TestOperationsCompiled is the same on the CPU by compiled functions.
func TestOperationsCompiled(t *testing.T) {
	s, err := runtime.New(runtime.Config{Fallback: runtime.Require})
	require.NoError(t, err)
	defer s.Close()
	everyCase(t, s, "cpu:0", plain, compiled)
}

// TestOperationsOfViews is the same on the CPU where inputs and cotangents are views.
func TestOperationsOfViews(t *testing.T) {
	s, err := runtime.New(runtime.Config{Fallback: runtime.Require})
	require.NoError(t, err)
	defer s.Close()
	t.Run("strided", func(t *testing.T) { everyCase(t, s, "cpu:0", strided, evaluated) })
	t.Run("reshaped", func(t *testing.T) {
		everyCase(t, s, "cpu:0", reshaped, evaluated)
	})
}

// full selects every case on every device.
var full = os.Getenv("GOLDEN_FULL") != ""

func everyCase(t *testing.T, s *runtime.Session, device string, how layout, by way) {
	cases, err := Load()
	require.NoError(t, err)
	for _, c := range cases {
		require.Contains(t, operations, c.Op)
	}
	d, err := s.Open(t.Context(), device)
	require.NoError(t, err)
	defer func() { assert.NoError(t, d.Close()) }()
	scope := tensor.NewScope(d)
	defer func() { assert.NoError(t, scope.Close()) }()
	quick := full || strings.HasPrefix(device, "cpu:") // without a compiler
	for _, typ := range []tensor.Type{tensor.F64, tensor.F32} {
		t.Run(typ.String(), func(t *testing.T) {
			if device == "cpu:reference" && typ == tensor.F32 {
				t.Skip("computes in float64")
			}
			if typ == tensor.F64 && !d.Features().FP64 {
				t.Skip("the device has no double precision")
			}
			if typ == tensor.F64 && !quick {
				t.Skip("slow: GOLDEN_FULL is not set")
			}
			count, every := map[string]int{}, 4
			if testing.Short() {
				every = 16
			}
			for _, c := range cases {
				count[c.Op]++
				if !quick && count[c.Op]%every != 3 {
					continue
				}
				r := request{&c, typ, how, by}
				t.Run(c.Name, func(t *testing.T) { r.run(t, scope, c.Name, operations[c.Op]) })
				if f := formulas[c.Op]; f != nil {
					t.Run("formula/"+c.Name, func(t *testing.T) { r.run(t, scope, "formula/"+c.Name, f) })
				}
			}
		})
	}
}

// run judges a case, which fails if and only if different names it.
func (c request) run(t *testing.T, around *tensor.Scope, name string, f call) {
	if f == nil {
		t.Skipf("package tensor has no %s yet", c.Op)
	}
	if c.Only != "" && c.Only != c.typ.String() {
		t.Skipf("for %s only", c.Only)
	}
	s := around.Scope()
	defer func() { assert.NoError(t, s.Close()) }()
	err := c.judge(t.Context(), s, f)
	reason := different[name]
	switch {
	case errors.Is(err, errMissing) || errors.Is(err, runtime.ErrUnsupported):
		t.Skip(err)
	case reason == "":
		require.NoError(t, err)
	case err == nil:
		t.Errorf("passes, but is listed as different: %s", reason)
	default:
		t.Skipf("known: %s: %v", reason, err)
	}
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

// way computes a function of tensors.
type way func(ctx context.Context, s *tensor.Scope, f func(...*T) []*T, args []*T) ([]*T, error)

// evaluated is by Eval, results and gradients together.
func evaluated(ctx context.Context, _ *tensor.Scope, f func(...*T) []*T, args []*T) ([]*T, error) {
	out := f(args...)
	return out, tensor.Eval(ctx, out...)
}

// compiled is by the second call of a compiled function.
func compiled(ctx context.Context, s *tensor.Scope, f func(...*T) []*T, args []*T) ([]*T, error) {
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

// layout makes a tensor of data.
type layout func(s *tensor.Scope, typ tensor.Type, data []float64, shape ...int) *T

// plain is the usual layout.
func plain(s *tensor.Scope, typ tensor.Type, data []float64, shape ...int) *T {
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

// reshaped is a view of a vector.
func reshaped(s *tensor.Scope, typ tensor.Type, data []float64, shape ...int) *T {
	return vector(s, typ, data).Reshape(shape...)
}

// strided is a view in which each dimension is a part of a larger one, the first of them the fastest.
func strided(s *tensor.Scope, typ tensor.Type, data []float64, shape ...int) *T {
	if len(shape) == 0 {
		return plain(s, typ, data)
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
