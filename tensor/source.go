package tensor

// Tensors that are computed from nothing, and tensors of data of Go.

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
	"unsafe"

	"github.com/concord-compute/concord/kernels/expr"
	"github.com/concord-compute/concord/runtime"
)

// filled returns a tensor of one number.
func filled(s *Scope, t Type, shape []int, e *expr.Expr) *Tensor {
	return &Tensor{scope: s, typ: t, shape: shape, op: &mapOp{name: "fill", what: kindFill, e: e}}
}

// zero returns the number 0 of the type that t is computed in.
func zero(t Type) *expr.Expr {
	if IsFloat(t) {
		return expr.Float(t.Computed(), 0)
	}
	return expr.Int(t, 0)
}

// Full returns a tensor whose elements are a number of Go, rounded to a floating type. An integer type has to
// hold it, or the result has a mistake that wraps [ErrType].
func Full(s *Scope, t Type, value any, shape ...int) *Tensor {
	if err := checkShape(shape); err != nil {
		return fail(s, "full", err)
	}
	if t < F32 || t > Bool {
		return failf(s, "full", ErrType, "%v", t)
	}
	e, err := constant(t, value)
	if err != nil {
		return fail(s, "full", err)
	}
	return filled(s, t, slices.Clone(shape), e)
}

// Zeros returns a tensor of zeros.
func Zeros(s *Scope, t Type, shape ...int) *Tensor { return Full(s, t, 0, shape...) }

// Ones returns a tensor of ones.
func Ones(s *Scope, t Type, shape ...int) *Tensor { return Full(s, t, 1, shape...) }

// Iota returns the numbers from 0 on, in the order of the elements, rounded to a floating type. An integer type
// has to hold the last one, or the result has a mistake that wraps [ErrType].
func Iota(s *Scope, t Type, shape ...int) *Tensor {
	if err := checkShape(shape); err != nil {
		return fail(s, "iota", err)
	}
	if t < F32 || t >= Bool {
		return failf(s, "iota", ErrType, "%v", t)
	}
	if n := count(shape); !IsFloat(t) && n > 0 && !fits(t, int64(n-1)) {
		return failf(s, "iota", ErrType, "%d is no number of type %v", n-1, t)
	}
	return &Tensor{scope: s, typ: t, shape: slices.Clone(shape),
		op: &mapOp{name: "iota", e: expr.Index().Cast(t.Computed())}}
}

// Eye returns the n×n matrix with ones in the diagonal.
func Eye(s *Scope, t Type, n int) *Tensor {
	i := Iota(s, I64, n)
	return i.Unsqueeze(1).Eq(i).Cast(t)
}

// From returns a tensor with a copy of data, whose elements are in order, the last dimension changing fastest.
// Without a shape it has one dimension, however many elements there are. With the empty shape of another tensor,
// From(s, data, t.Shape()...), it has none, and data is one element; Full makes such a tensor of a number.
func From[T Element](s *Scope, data []T, shape ...int) *Tensor {
	if shape == nil {
		shape = []int{len(data)}
	}
	return FromBytes(s, TypeOf[T](), bytesOf(data), shape...)
}

// FromBytes is From with the bytes of the elements, in the order of the host's memory.
func FromBytes(s *Scope, t Type, raw []byte, shape ...int) *Tensor {
	if err := checkShape(shape); err != nil {
		return fail(s, "from", err)
	}
	if t < F32 || t > Bool {
		return failf(s, "from", ErrType, "%v", t)
	}
	if count(shape)*size(t) != len(raw) {
		return failf(s, "from", ErrShape, "%d elements for shape %v", len(raw)/size(t), shape)
	}
	s.engine.mu.Lock()
	defer s.engine.mu.Unlock()
	if s.engine.standby != nil {
		if s.closed {
			return fail(s, "from", ErrScope)
		}
		raw = slices.Clone(raw)
		a := s.fromHost(shape, func(ctx context.Context) (*runtime.Buffer, error) { return s.upload(ctx, t, raw) })
		return &Tensor{scope: s, typ: t, shape: slices.Clone(shape), data: a}
	}
	b, err := s.upload(context.Background(), t, raw)
	if err != nil {
		return fail(s, "from", err)
	}
	return &Tensor{scope: s, typ: t, shape: slices.Clone(shape), data: dense(b, shape)}
}

// upload returns memory of the scope with these elements. The engine is locked.
func (s *Scope) upload(ctx context.Context, t Type, raw []byte) (*runtime.Buffer, error) {
	if err := s.ready(); err != nil {
		return nil, err
	}
	b, err := s.engine.device.Alloc(t.Stored(), len(raw)/size(t))
	if err != nil {
		return nil, err
	}
	if len(raw) > 0 {
		if err := s.engine.stream.Write(ctx, b, 0, raw); err != nil {
			b.Close()
			return nil, err
		}
	}
	s.buffers[b] = struct{}{}
	return b, nil
}

// bytesOf returns the memory of a slice.
func bytesOf[T Element](data []T) []byte {
	if len(data) == 0 {
		return nil
	}
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(data))), len(data)*int(unsafe.Sizeof(data[0])))
}

// Wrap returns a tensor of the elements of a buffer, in order, without a copy. What is computed of it comes after the
// work queued so far that uses the buffer, on any stream. From then on the caller keeps the buffer open and unchanged
// until the scope is closed. A buffer of U8 may be a tensor of Bool.
func Wrap(s *Scope, b *runtime.Buffer, t Type, shape ...int) *Tensor {
	if err := checkShape(shape); err != nil {
		return fail(s, "wrap", err)
	}
	switch {
	case b == nil || t < F32 || t > Bool || b.Type() != t.Stored():
		return failf(s, "wrap", ErrType, "%v of %v", t, b)
	case b.Len() < count(shape):
		return failf(s, "wrap", ErrShape, "%v for shape %v", b, shape)
	}
	stream, err := s.Stream() // which a scope on a Runner refuses
	if err == nil {
		err = stream.WaitFor(context.Background(), b)
	}
	if err != nil {
		return fail(s, "wrap", err)
	}
	return &Tensor{scope: s, typ: t, shape: slices.Clone(shape), data: dense(b, shape)}
}

// Read computes t and returns its elements in order. T is the Go type of its elements. It waits for the result.
func Read[T Element](ctx context.Context, t *Tensor) ([]T, error) {
	if t.err != nil {
		return nil, t.err
	}
	if want := TypeOf[T](); t.typ != want {
		return nil, fmt.Errorf("read: %w: %v as %v", ErrType, t.typ, want)
	}
	var out []T
	err := t.scope.engine.unit(ctx, "read", func(ctx context.Context) error {
		d := t.dense()
		if err := Eval(ctx, d); err != nil { // before there is memory for elements of which there may be far too many
			return err
		}
		list := make([]T, t.Len())
		if err := d.readComputed(ctx, bytesOf(list)); err != nil {
			return err
		}
		out = list
		return nil
	})
	return out, err
}

// readBytes computes t and copies its elements in order.
func (t *Tensor) readBytes(ctx context.Context, raw []byte) error {
	return t.scope.engine.unit(ctx, "read", func(ctx context.Context) error {
		d := t.dense()
		if err := Eval(ctx, d); err != nil {
			return err
		}
		return d.readComputed(ctx, raw)
	})
}

// readComputed copies the elements of a dense tensor that is computed.
func (t *Tensor) readComputed(ctx context.Context, raw []byte) error {
	e := t.scope.engine
	e.mu.Lock()
	if t.scope.closed {
		e.mu.Unlock()
		return ErrScope
	}
	buf, first, stream := t.data.buf, t.data.first, e.stream
	e.mu.Unlock()
	if len(raw) == 0 {
		return ctx.Err()
	}
	return stream.Read(ctx, buf, int64(first*size(t.typ)), raw)
}

// Number computes a tensor of one element and returns that. It waits for the result.
func Number(ctx context.Context, t *Tensor) (float64, error) {
	if t.err != nil {
		return 0, t.err
	}
	if t.Len() != 1 {
		return 0, fmt.Errorf("number: %w: shape %v has %d elements", ErrShape, t.shape, t.Len())
	}
	var raw [8]byte
	if err := t.readBytes(ctx, raw[:size(t.typ)]); err != nil {
		return 0, err
	}
	return float(t.typ, raw[:]), nil
}

// float returns the first element of raw, to the nearest float64.
func float(t Type, raw []byte) float64 {
	order := binary.NativeEndian
	switch t {
	case F32:
		return float64(math.Float32frombits(order.Uint32(raw)))
	case F64:
		return math.Float64frombits(order.Uint64(raw))
	case F16:
		return runtime.Float16(order.Uint16(raw)).Float64()
	case BF16:
		return runtime.BFloat16(order.Uint16(raw)).Float64()
	case U64:
		return float64(order.Uint64(raw))
	}
	return float64(integer(t, raw))
}

// integer returns the first element of raw, of an integer type or Bool.
func integer(t Type, raw []byte) int64 {
	order := binary.NativeEndian
	switch t {
	case I8:
		return int64(int8(raw[0]))
	case I16:
		return int64(int16(order.Uint16(raw)))
	case I32:
		return int64(int32(order.Uint32(raw)))
	case U16:
		return int64(order.Uint16(raw))
	case U32:
		return int64(order.Uint32(raw))
	case I64, U64:
		return int64(order.Uint64(raw))
	}
	return int64(raw[0])
}

// Sync computes t and waits for it, and returns the error of work that failed.
func (t *Tensor) Sync(ctx context.Context) error {
	if err := Eval(ctx, t); err != nil || t.scope.engine.standby != nil { // whose Eval has waited
		return err
	}
	return t.scope.engine.stream.Sync(ctx)
}

// To returns t in another scope: t itself if both are scopes of one device's memory, else a copy on the other
// device, which is computed at once. The result is data: gradients do not reach what it was computed from.
func (t *Tensor) To(ctx context.Context, s *Scope) (*Tensor, error) {
	if t.err != nil || t.scope.engine == s.engine {
		return t, t.err
	}
	if t.scope.engine.standby != nil || s.engine.standby != nil {
		raw, err := t.bytes(ctx)
		if err != nil {
			return nil, err
		}
		out := FromBytes(s, t.typ, raw, t.shape...)
		return out, out.err
	}
	d := t.dense()
	if err := Eval(ctx, d); err != nil {
		return nil, err
	}
	from, to := t.scope.engine, s.engine
	to.mu.Lock()
	defer to.mu.Unlock()
	if err := s.ready(); err != nil {
		return nil, err
	}
	b, err := to.device.Alloc(t.typ.Stored(), t.Len())
	if err != nil {
		return nil, err
	}
	if t.Len() > 0 {
		if err := from.copyTo(ctx, to, b, d); err != nil {
			return nil, errors.Join(err, b.Close())
		}
	}
	s.buffers[b] = struct{}{}
	return &Tensor{scope: s, typ: t.typ, shape: t.shape, data: dense(b, t.shape)}, nil
}

// copyTo copies a dense tensor into a buffer of another device. The other engine is locked.
func (e *engine) copyTo(ctx context.Context, to *engine, b *runtime.Buffer, d *Tensor) error {
	part, err := d.data.buf.Slice(d.data.first, b.Len())
	if err != nil {
		return err
	}
	defer part.Close()
	after, err := e.stream.Record()
	if err != nil {
		return err
	}
	defer after.Close()
	if err := to.stream.CopyFrom(ctx, b, part, after); err != nil {
		return err
	}
	return to.stream.Sync(ctx)
}
