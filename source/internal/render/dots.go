package render

// Sums with dot products of bytes. The instructions of CUDA's and HIP's devices add a dot product to a number,
// and their compilers do not find that by themselves.

import (
	"strings"

	"github.com/concord-compute/concord/source/internal/tree"
)

// addsDot writes a + dot or a += dot as a call of the function that adds a dot product, if e is that. Integers
// wrap, so that the result is the same.
func (r *renderer) addsDot(e *tree.Expr) bool {
	if r.d.target != CUDA && r.d.target != HIP || e.A.Acts || e.B.Acts {
		return false
	}
	to, dot := e.A, tree.Unparen(e.B)
	if e.Op == tree.OpBinary && !isByteDot(dot) {
		to, dot = e.B, tree.Unparen(e.A)
	}
	t := to.Type
	if !isByteDot(dot) || !t.IsScalar() || t.Base != dot.Type.Base || t.Q&tree.QVolatile != 0 {
		return false
	}
	if e.Op == tree.OpAssign { // nothing happens twice, since nothing acts
		r.object(e.A)
		r.w(" = ")
	}
	r.w(strings.Replace(dot.Text, "dot_", "dot_add_", 1), "(")
	for _, a := range append(dot.Args[:2:2], to) {
		if a != dot.Args[0] {
			r.w(", ")
		}
		r.expr(a)
	}
	r.w(")")
	return true
}

func isByteDot(e *tree.Expr) bool {
	return e.Op == tree.OpBuiltin && strings.HasPrefix(e.Text, "cc_dot_4x8packed_")
}
