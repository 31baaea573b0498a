package tensor

// Products of matrices.

import (
	"math"
	"slices"
)

// MatMul returns the product of the matrices in the last two dimensions, with NumPy's rules. The dimensions in front of
// them stretch to one shape. A vector on the left is a row, one on the right a column, and the result lacks that
// dimension. Types are those of Promote; half and bfloat16 are summed in F32, integers wrap, and of Bools the result
// says whether a pair is true in both.
func (t *Tensor) MatMul(u *Tensor) *Tensor {
	const name = "matmul"
	if bad := check(name, t, u); bad != nil {
		return bad
	}
	if len(t.shape) == 0 || len(u.shape) == 0 {
		return failf(t.scope, name, ErrShape, "%v and %v, and a number has no matrix", t.shape, u.shape)
	}
	a, b := t, u
	if len(t.shape) == 1 {
		a = a.Unsqueeze(0)
	}
	if len(u.shape) == 1 {
		b = b.Unsqueeze(1)
	}
	m, k, n := a.Dim(-2), a.Dim(-1), b.Dim(-1)
	batch, err := broadcast(a.shape[:len(a.shape)-2], b.shape[:len(b.shape)-2])
	if err != nil || b.Dim(-2) != k {
		return failf(inner(t, u), name, ErrShape, "%v by %v", t.shape, u.shape)
	}
	for _, end := range [][2]int{{m, k}, {k, n}, {m, n}} {
		if err := checkShape(append(slices.Clone(batch), end[0], end[1])); err != nil {
			return fail(inner(t, u), name, err)
		}
	}
	typ := Promote(a.typ, b.typ)
	var c *Tensor
	switch at := productType(typ); {
	case at == typ:
		c = product(typ, a.factor(typ).Expand(append(slices.Clone(batch), m, k)...),
			b.factor(typ).Expand(append(slices.Clone(batch), k, n)...))
	case typ == Bool:
		c = a.Cast(I32).MatMul(b.Cast(I32)).Ne(0)
	default: // the low bits of a product of signed integers, of as many bits or more
		c = a.Cast(typ).signed(at).MatMul(b.Cast(typ).signed(at)).narrow(typ)
	}
	shape := slices.Clone(batch)
	if len(t.shape) > 1 {
		shape = append(shape, m)
	}
	if len(u.shape) > 1 {
		shape = append(shape, n)
	}
	return c.Reshape(shape...)
}

// factor returns t as an operand of a product of type typ. The CPU converts half and bfloat16 to floats while
// it multiplies.
func (t *Tensor) factor(typ Type) *Tensor {
	if t.err == nil && typ == F32 && size(t.typ) == 2 && IsFloat(t.typ) && !t.scope.engine.inGroups() {
		return t
	}
	return t.Cast(typ)
}

// productType returns the type in which products of t are computed.
func productType(t Type) Type {
	switch {
	case IsFloat(t) || t == I64:
		return t
	case t == U64:
		return I64
	}
	return I32
}

// signed returns integers as a signed type of as many bits, with the same bits, or of more.
func (t *Tensor) signed(to Type) *Tensor {
	if t.err == nil && size(t.typ) == size(to) {
		return t.Bits(to)
	}
	return t.Cast(to)
}

// narrow returns the low bits of integers as another type.
func (t *Tensor) narrow(to Type) *Tensor {
	if t.err != nil || t.typ == to {
		return t
	}
	bits := map[Type]Type{I32: U32, I64: U64}[t.typ]
	same := t.Bits(bits)
	if size(to) == size(t.typ) {
		return same
	}
	mask := int64(1)<<(8*size(to)) - 1
	x := same.And(mask)
	if isSigned(to) { // the bits above become those of the sign
		half := int64(1) << (8*size(to) - 1)
		return x.Bits(t.typ).Xor(half).Sub(half).Cast(to)
	}
	return x.Cast(to)
}

// product returns the product of type typ of matrices of one batch shape, which are factors for it.
func product(typ Type, a, b *Tensor) *Tensor {
	batch := a.shape[:len(a.shape)-2]
	m, k, n := a.Dim(-2), a.Dim(-1), b.Dim(-1)
	shape := append(slices.Clone(batch), m, n)
	switch {
	case max(m, n, k) > math.MaxInt32:
		return failf(a.scope, "matmul", ErrShape, "%v by %v: a dimension is beyond 2^31", a.shape, b.shape)
	case count(shape) == 0 || k == 0:
		return filled(a.scope, typ, shape, zero(typ))
	}
	o := &callOp{name: "matmul", takes: takesMatrices, run: runProduct, epilogue: productEpilogue,
		back: func(t *Tensor, gs []*Tensor) []*Tensor {
			g := gs[0]
			if !IsFloat(t.typ) {
				return []*Tensor{nil, nil}
			}
			x, y := t.args[0], t.args[1]
			return []*Tensor{product(typ, g, y.T()).Cast(x.typ), product(typ, x.T(), g).Cast(y.typ)}
		}}
	return call(o, []Spec{{typ, shape}}, a, b)[0]
}

// takesMatrices reports whether matrices have rows or columns of adjacent elements, one matrix evenly after the other.
func takesMatrices(_ int, shape, strides []int) bool {
	r := len(shape) - 2
	if _, _, ok := matrixOf(shape[r:], strides[r:]); !ok {
		return false
	}
	_, stride, ok := even(shape[:r], strides[:r])
	return ok && stride >= 0
}

// matrixOf returns the leading dimension of a matrix, and whether it is stored transposed.
func matrixOf(shape, strides []int) (ld int, across, ok bool) {
	rows, cols := shape[0], shape[1]
	row, col := strides[0], strides[1]
	if rows == 1 {
		row = max(cols, 1)
		if col != 1 && cols > 1 { // a row that lies like a column
			return col, true, col > 0 && col <= math.MaxInt32
		}
	}
	if cols == 1 {
		col = 1
		if rows > 1 && row < 1 {
			return 0, false, false
		}
	}
	switch {
	case col == 1 && row >= cols && row <= math.MaxInt32:
		return row, false, true
	case row == 1 && col >= rows && col <= math.MaxInt32:
		return col, true, true
	}
	return 0, false, false
}

// even returns dimensions as one with even strides: its length and its stride.
func even(shape, strides []int) (n, stride int, ok bool) {
	n = 1
	for j := len(shape) - 1; j >= 0; j-- {
		switch {
		case shape[j] == 1:
		case n == 1:
			n, stride = shape[j], strides[j]
		case strides[j] != n*stride:
			return 0, 0, false
		default:
			n *= shape[j]
		}
	}
	return n, stride, true
}

// productShape is one launch of a product of matrices.
type productShape struct {
	m, n, k, batch         int
	lda, ldb, stepA, stepB int
	transA, transB         bool
}

func productOf(a, b, c operand) productShape {
	last := len(c.shape) - 2
	x := productShape{m: c.shape[last], n: c.shape[last+1], k: a.shape[last+1]}
	x.lda, x.transA, _ = matrixOf(a.shape[last:], a.strides[last:])
	x.ldb, x.transB, _ = matrixOf(b.shape[last:], b.strides[last:])
	x.batch, x.stepA, _ = even(a.shape[:last], a.strides[:last])
	_, x.stepB, _ = even(b.shape[:last], b.strides[:last])
	if x.batch > 1 && x.stepA == x.m*x.lda && x.stepB == 0 && !x.transA { // one B: the matrices A are one
		x.m, x.batch = x.m*x.batch, 1
	}
	return x
}

func runProduct(r *run, out, in []operand) error {
	x := productOf(in[0], in[1], out[0])
	abc := []operand{in[0], in[1], out[0]}
	if x.batch == 1 {
		return x.run(r, "gemm", nil, abc)
	}
	return x.run(r, "gemm_batch", nil, abc, uint32(x.batch), uint64(x.stepA), uint64(x.stepB), uint64(x.m*x.n))
}

// productEpilogue is the callOp.epilogue of products that are one launch of gemm.
func productEpilogue(s *step, act string, bias operand, to place) *step {
	c := operand{to, s.out[0].typ, s.out[0].shape}
	c.strides = rowMajor(c.shape)
	if productOf(s.in[0], s.in[1], c).batch != 1 || bias.shape[0] != c.shape[len(c.shape)-1] {
		return nil
	}
	o := &callOp{name: s.op.name, run: func(r *run, out, in []operand) error {
		x := productOf(in[0], in[1], out[0])
		bufs, err := r.buffers(in[2])
		if err != nil {
			return err
		}
		return x.run(r, "gemm_bias", []string{"ACT=" + act}, []operand{in[0], in[1], out[0]}, bufs[0])
	}}
	return &step{op: o, in: append(slices.Clone(s.in), bias), out: []operand{c}}
}

// run launches a kernel of products of A and B to C, with args after those that all such kernels have.
func (x productShape) run(r *run, family string, definitions []string, abc []operand, args ...any) error {
	bufs, err := r.buffers(abc...)
	if err != nil {
		return err
	}
	typ := abc[2].typ
	for i, name := range []string{"TYPE_A=", "TYPE_B="} {
		if own := abc[i].typ; own != typ {
			definitions = append(definitions, name+own.String())
		}
	}
	definitions = append(definitions, "T="+typ.String(), define("TRANS_A", x.transA), define("TRANS_B", x.transB))
	one, none := scalars(typ)
	sizes := []int{x.batch, x.m, x.n}
	if family != "gemm_batch" {
		sizes = sizes[1:]
	}
	args = append([]any{uint32(x.m), uint32(x.n), uint32(x.k), one, bufs[0], uint32(x.lda), bufs[1], uint32(x.ldb),
		none, bufs[2], uint32(x.n)}, args...)
	return r.catalog(family, family, definitions, sizes, args...)
}

func define(name string, on bool) string {
	if on {
		return name + "=1"
	}
	return name + "=0"
}

// scalars returns 1 and 0 as arguments of a kernel that computes with elements of t.
func scalars(t Type) (one, none any) {
	switch t {
	case F64:
		return float64(1), float64(0)
	case I64:
		return int64(1), int64(0)
	case I32:
		return int32(1), int32(0)
	}
	return float32(1), float32(0)
}
