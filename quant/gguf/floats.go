package gguf

// Tensors as numbers.

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"

	"github.com/concord-compute/concord/quant"
	"github.com/concord-compute/concord/runtime/driver"
	"github.com/concord-compute/concord/runtime/half"
)

// Numbers returns how many numbers Floats gives: the elements of the tensor without the padding of rows.
func (f *File) Numbers(t Tensor) int {
	t.Shape = f.Shape(t)
	return t.Len()
}

// Shape returns the shape of what Floats gives: that of the tensor without the padding of rows. It belongs to
// the caller.
func (f *File) Shape(t Tensor) []int {
	shape := slices.Clone(t.Shape)
	if k, ok := f.Value(keyColumns + t.Name).(uint64); ok && len(shape) > 0 && k >= 1 && k <= uint64(shape[len(shape)-1]) {
		shape[len(shape)-1] = int(k)
	}
	return shape
}

// Floats computes the Numbers of a tensor, which may be none: plain numbers as they are, rounded if they have
// more digits than a float32, quantized ones decoded. named and the errors are those of Format. A length of x
// that is not Numbers is driver.ErrDimension, and a finite number that is infinite as a float32 is
// driver.ErrInvalidArgument.
func (f *File) Floats(x []float32, t Tensor, named quant.Format) error {
	if n := f.Numbers(t); len(x) != n {
		return fmt.Errorf("gguf: tensor %.40q: %d numbers needed, %d given: %w", t.Name, n, len(x), driver.ErrDimension)
	}
	format, err := f.Format(t, named)
	if err != nil || len(x) == 0 {
		return err
	}
	if format != 0 {
		m, err := f.Matrix(t, named)
		if err == nil {
			err = quant.Decode(x, m)
		}
		return err
	}
	plain, le := t.Data, binary.LittleEndian
	if want, _, _ := t.Type.size(t.Shape); len(x) != t.Len() || len(plain) != want {
		return fmt.Errorf("gguf: tensor %.40q: plain numbers have no padding: %w", t.Name, driver.ErrFormat)
	}
	for i := range x {
		switch t.Type {
		case F32:
			x[i] = math.Float32frombits(le.Uint32(plain[4*i:]))
		case F16:
			x[i] = half.Float16(le.Uint16(plain[2*i:])).Float32()
		case BF16:
			x[i] = half.BFloat16(le.Uint16(plain[2*i:])).Float32()
		case F64:
			wide := math.Float64frombits(le.Uint64(plain[8*i:]))
			if x[i] = float32(wide); math.IsInf(float64(x[i]), 0) && !math.IsInf(wide, 0) {
				return fmt.Errorf("gguf: tensor %.40q: number %d is %v, which float32 does not hold: %w", t.Name, i, wide,
					driver.ErrInvalidArgument)
			}
		case I8:
			x[i] = float32(int8(plain[i]))
		case I16:
			x[i] = float32(int16(le.Uint16(plain[2*i:])))
		case I32:
			x[i] = float32(int32(le.Uint32(plain[4*i:])))
		case I64:
			x[i] = float32(int64(le.Uint64(plain[8*i:])))
		}
	}
	return nil
}

// Validate checks the codes of a tensor where package quant has its format, and that plain floats are finite.
// What is wrong is driver.ErrCorrupt.
func (f *File) Validate(t Tensor, named quant.Format) error {
	format, err := f.Format(t, named)
	if err != nil || t.Len() == 0 {
		return err
	}
	if format != 0 {
		m, err := f.Matrix(t, named)
		if err != nil {
			return err
		}
		if err := quant.Validate(m); err != nil {
			return fmt.Errorf("gguf: tensor %.40q: %w", t.Name, err)
		}
		return nil
	}
	size := kinds[t.Type].bytes
	exponent := map[Type]struct {
		at   int
		mask uint16
	}{F32: {2, 0x7f80}, F16: {0, 0x7c00}, BF16: {0, 0x7f80}, F64: {6, 0x7ff0}}[t.Type]
	if exponent.mask == 0 {
		return nil
	}
	for i := 0; i < len(t.Data); i += size {
		if binary.LittleEndian.Uint16(t.Data[i+exponent.at:])&exponent.mask == exponent.mask {
			return fmt.Errorf("gguf: tensor %.40q: number %d is not finite: %w", t.Name, i/size, driver.ErrCorrupt)
		}
	}
	return nil
}
