package cpu

// Maps for which the catalog's loops for rows are faster than the steps of block programs: over dense memory they pass
// over a row several times while it is in the first-level cache, where steps pass over many rows at a time.

import (
	"math"
	"sync"

	"github.com/concord-compute/concord/internal/simd"
	"github.com/concord-compute/concord/kernels/expr"
)

// rowMap is a map that a vector function computes row by row. Its first input has as many elements as the output, the
// others one row.
type rowMap struct {
	pattern *expr.Expr
	elem    expr.Type // of all operands
	norm    bool      // it has parameters
	run     func(l *rowLaunch, c *call, lo, hi int)
}

// rowMaps has the maps as networks have them. Parameters are the length of rows and epsilon.
var rowMaps = func() (list []rowMap) {
	for _, t := range []expr.Type{expr.F32, expr.F64, expr.F16, expr.BF16} {
		x, gamma, beta := expr.Input(0, t), expr.Input(1, t), expr.Input(2, t)
		normalize := func(op expr.Op) *expr.Expr {
			return expr.Apply(op, x, expr.Param(0, t.Computed()), expr.Param(1, t.Computed()))
		}
		exp := x.Sub(x.Largest()).Exp()
		list = append(list,
			rowMap{x.Softmax().Output(t), t, false, (*rowLaunch).softmax},
			rowMap{exp.Div(exp.Sum()).Output(t), t, false, (*rowLaunch).softmax}, // as it is written without the name
			rowMap{normalize(expr.Normalize).Mul(gamma).Add(beta).Output(t), t, true, (*rowLaunch).norm},
			rowMap{normalize(expr.RMSNormalize).Mul(gamma).Output(t), t, true, (*rowLaunch).norm})
	}
	return list
}()

// rowLaunch is one launch of such a map. Later launches reuse it.
type rowLaunch struct {
	expr.Launch
	*rowMatch
	n    int // elements of a row
	part func(c *call, lo, hi int)
}

// rowMatch is a program's map as one of rowMaps.
type rowMatch struct {
	*rowMap
	*expr.Match
}

var rowLaunches = sync.Pool{New: func() any {
	l := new(rowLaunch)
	l.part = func(c *call, lo, hi int) { l.run(l, c, lo, hi) }
	return l
}}

// byRows returns m as one of rowMaps, or nil.
func byRows(m *expr.Map) *rowMatch {
	for i := range rowMaps {
		if found := m.Match(rowMaps[i].pattern); found != nil {
			return &rowMatch{&rowMaps[i], found}
		}
	}
	return nil
}

// launch runs a launch if its memory is dense, and reports whether it did.
func (r *rowMatch) launch(c *call, m *expr.Map) (done bool, err error) {
	l := rowLaunches.Get().(*rowLaunch)
	defer func() { l.rowMatch = nil; rowLaunches.Put(l) }()
	m.Read(&c.Call, &l.Launch)
	if l.rowMatch, l.n = r, l.Layout.Dims[len(l.Layout.Dims)-1]; l.n == 0 || !l.dense(l.out(), false) ||
		r.norm && r.Number(0, &l.Launch) != float64(l.n) && r.Number(0, &l.Launch) != float64(float32(l.n)) {
		return false, nil
	}
	for i, k := range r.Inputs {
		if !l.dense(k, i > 0) {
			return false, nil
		}
	}
	return true, c.spread(l.Layout.Len()/l.n, 4*l.elem.Size()*l.n, l.part)
}

// out returns the operand that is the output.
func (l *rowLaunch) out() int { return len(l.Layout.Operands) - 1 }

// dense reports whether the elements of operand k follow each other in memory, or, if it is one row for all,
// those of that row.
func (l *rowLaunch) dense(k int, row bool) bool {
	step, last := 1, len(l.Layout.Dims)-1
	for j := last; j >= 0; j-- {
		if n := l.Layout.Dims[j]; n != 1 && l.Layout.Operands[k].Steps[j] != step {
			return false
		}
		if step *= l.Layout.Dims[j]; row {
			step = 0
		}
	}
	return true
}

// at returns the address of element i of an operand.
func (l *rowLaunch) at(c *call, k, i int) uint64 {
	return c.at(k) + uint64(l.elem.Size()*(l.Layout.Operands[k].First+i))
}

// typ returns the number of the elements' type in csrc/cpu, whose order is that of package expr.
func (l *rowLaunch) typ() uint64 { return uint64(l.elem) - 1 }

// past returns 1 if the results are so many that they are stored past the caches.
func (l *rowLaunch) past(c *call) uint64 {
	return flag(c.overflows(l.elem.Size()*l.Layout.Len()) && l.elem.Size()*l.n >= c.Choose(rowPast))
}

func (l *rowLaunch) softmax(c *call, lo, hi int) {
	c.device.simd.run(simd.Softmax, l.typ(), uint64(hi-lo), uint64(l.n), l.at(c, 0, lo*l.n), l.at(c, 1, lo*l.n), l.past(c))
}

// norm is layer_norm if there is a beta, and rms_norm otherwise.
func (l *rowLaunch) norm(c *call, lo, hi int) {
	beta := uint64(0)
	if len(l.Inputs) == 3 {
		beta = l.at(c, l.Inputs[2], 0)
	}
	c.device.simd.run(simd.Norm, l.typ(), uint64(hi-lo), uint64(l.n), l.at(c, l.Inputs[0], lo*l.n),
		l.at(c, l.Inputs[1], 0), beta, l.at(c, l.out(), lo*l.n), math.Float64bits(l.Number(1, &l.Launch)), l.past(c))
}
