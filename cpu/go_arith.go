package cpu

// add, sub, mul, div and a·x + y in Go: block programs of expressions.

import (
	"strings"
	"sync"

	"github.com/concord-compute/concord/kernels/expr"
)

func init() {
	for op := range arithOps {
		native("arith", op, goArith)
		native("arith", op+"_scalar", goArith)
		native("arith", op+"_broadcast", goArith)
	}
	native("arith", "scalar_sub", goArith)
	native("arith", "scalar_div", goArith)
	native("saxpy", "saxpy", goSaxpy)
}

var arithOps = map[string]expr.Op{"add": expr.Add, "sub": expr.Sub, "mul": expr.Mul, "div": expr.Div}

// blockOf has the block program for each kernel and type that was used.
var blockOf sync.Map // [2]string -> *expr.Block

// runBlock runs the expression that define returns for the type T. Of the arguments, operands are its inputs
// and its output, and param is its parameter if it is not negative.
func runBlock(c *call, define func(t expr.Type) *expr.Expr, l expr.Layout, operands []int, param int) error {
	t, _ := expr.TypeOf(c.Type("T"))
	known, ok := blockOf.Load([2]string{c.Kernel, t.String()})
	if !ok {
		m, err := expr.New(define(t).Output(t))
		if err != nil {
			return err
		}
		b, err := m.Block()
		if err != nil {
			return err
		}
		known, _ = blockOf.LoadOrStore([2]string{c.Kernel, t.String()}, b)
	}
	memory := make([][]byte, len(operands))
	for k, i := range operands {
		memory[k] = c.Bytes(i)
	}
	var params []uint64
	if param >= 0 {
		params = append(params, t.Argument(&c.Call, param))
	}
	n := l.Len()
	return c.Parallel((n+expr.Tile-1)/expr.Tile, grain/expr.Tile, func(lo, hi int) {
		known.(*expr.Block).Run(&l, memory, params, lo*expr.Tile, min(hi*expr.Tile, n))
	})
}

// dense returns the layout of n adjacent elements of each operand.
func dense(n, operands int) expr.Layout {
	l := expr.Layout{Dims: []int{n}}
	for range operands {
		l.Operands = append(l.Operands, expr.Rows(n))
	}
	return l
}

// goArith computes out = a op b, as the name of the kernel says.
func goArith(c *call) error {
	op, form, _ := strings.Cut(strings.TrimPrefix(c.Kernel, "scalar_"), "_")
	scalar := -1
	switch {
	case strings.HasPrefix(c.Kernel, "scalar_"):
		scalar = 0
	case form == "scalar":
		scalar = 1
	}
	define := func(t expr.Type) *expr.Expr {
		var operand [2]*expr.Expr
		slot := 0
		for k := range operand {
			if k == scalar {
				operand[k] = expr.Param(0, t.Computed())
			} else {
				operand[k] = expr.Input(slot, t)
				slot++
			}
		}
		return expr.Apply(arithOps[op], operand[0], operand[1])
	}
	switch {
	case scalar >= 0:
		return runBlock(c, define, dense(int(c.Int(3)), 2), []int{1 - scalar, 2}, scalar)
	case form != "broadcast":
		return runBlock(c, define, dense(int(c.Int(3)), 3), []int{0, 1, 2}, -1)
	}
	var v [12]int
	for j := range v {
		v[j] = int(c.Int(3 + j))
	}
	l := expr.Layout{Dims: v[:4], Operands: []expr.Operand{{Steps: v[4:8]}, {Steps: v[8:]}, expr.Rows(v[:4]...)}}
	return runBlock(c, define, l, []int{0, 1, 2}, -1)
}

// goSaxpy computes y = a·x + y.
func goSaxpy(c *call) error {
	define := func(t expr.Type) *expr.Expr {
		return expr.Param(0, t.Computed()).Mul(expr.Input(0, t)).Add(expr.Input(1, t))
	}
	return runBlock(c, define, dense(int(c.Int(3)), 3), []int{1, 2, 2}, 0)
}
