package tensor

// Products with ternary weights of 2 bits.

import (
	"fmt"

	"github.com/concord-compute/concord/quant"
	"github.com/concord-compute/concord/runtime"
)

// Ternary is a matrix of ternary weights on a device, with 2 bits for each and a factor for each row. It
// belongs to a scope and ends with it.
type Ternary struct {
	rows, cols     int
	codes, factors *Tensor // as quant.Words has them
}

// NewTernary copies a matrix to the scope's device. Its rows are those of quant.Words, as are the errors for others.
func NewTernary(s *Scope, m quant.Matrix) (*Ternary, error) {
	codes, factors, err := quant.Words(m)
	if err != nil {
		return nil, err
	}
	w := &Ternary{rows: m.Rows, cols: m.Cols, codes: From(s, codes, m.Rows, len(codes)/m.Rows),
		factors: From(s, factors, m.Rows)}
	if m.K > 0 {
		w.cols = m.K
	}
	if err := w.codes.err; err != nil {
		return nil, err
	}
	return w, w.factors.err
}

// Shape returns the numbers of rows and of columns.
func (w *Ternary) Shape() (rows, cols int) { return w.rows, w.cols }

// String is "ternary [512 784]", or "none" of nil.
func (w *Ternary) String() string {
	if w == nil {
		return "none"
	}
	return fmt.Sprintf("ternary [%d %d]", w.rows, w.cols)
}

// MatMulTernary returns the products of the rows of t, which are its last dimension, with those of w: a tensor
// of F32 whose last dimension is the number of rows of w. Each row of t is rounded to 127 numbers of either
// sign and 0, by its largest magnitude, as quant.Activations does it; the sums are exact integers, which are
// scaled. A row with a NaN or an infinity becomes NaN. t is read as F32, and gradients do not pass.
func (t *Tensor) MatMulTernary(w *Ternary) *Tensor {
	const name = "matmul ternary"
	if w == nil {
		return failf(t.scope, name, ErrType, "no weights")
	}
	if bad := check(name, t, w.codes, w.factors); bad != nil {
		return bad
	}
	if t.Dim(-1) != w.cols {
		return failf(t.scope, name, ErrShape, "rows of %v for weights %v", t.shape, w)
	}
	last := len(t.shape) - 1
	shape := append(append([]int{}, t.shape[:last]...), w.rows)
	rows := count(t.shape[:last])
	if rows == 0 {
		return Zeros(inner(t, w.codes), F32, shape...)
	}
	k := w.codes.shape[1] * 16
	o := &callOp{name: name, takes: onlyDense, run: onMemory(func(r *run, b []*runtime.Buffer, _, _ []operand) error {
		words, err := r.temp(U32, rows*k/4)
		if err != nil {
			return err
		}
		bytes, err := words.As(runtime.I8)
		if err != nil {
			return err
		}
		r.temps = append(r.temps, bytes)
		scales, err := r.temp(F32, rows)
		if err != nil {
			return err
		}
		sums, err := r.temp(I32, rows)
		if err != nil {
			return err
		}
		if err := r.catalog("w2a8", "quantize_rows", nil, []int{rows}, b[0], bytes, scales, sums, uint32(rows),
			uint32(w.cols), uint32(k)); err != nil {
			return err
		}
		return r.catalog("w2a8", "w2a8", nil, []int{rows, w.rows}, words, scales, sums, b[1], b[2], b[3], uint32(rows),
			uint32(w.rows), uint32(k))
	})}
	return call(o, []Spec{{F32, []int{rows, w.rows}}}, t.Cast(F32).Reshape(rows, w.cols), w.codes,
		w.factors)[0].Reshape(shape...)
}
