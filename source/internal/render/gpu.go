package render

// What only GPUs' renderings have: entry points, and constants that CUDA's and HIP's
// compilers take. Metal's entry points are in metal_entry.go.

import (
	"maps"
	"slices"
	"strconv"

	"github.com/concord-compute/concord/source/internal/tree"
)

// EntryPrefix stands before a kernel's name in CUDA, HIP and Metal renderings. Package source
// says what such an entry point takes.
const EntryPrefix = "cc_kernel_"

// entries writes the entry points, which call the kernels.
func (r *renderer) entries(kernels []*tree.Function) {
	for _, k := range kernels {
		r.at(k.Pos)
		r.w("extern \"C\" __global__ ")
		if n := k.Attrs.Reqd; n[0] > 0 {
			r.w("__launch_bounds__(", strconv.Itoa(n[0]*n[1]*n[2]), ") ")
		}
		r.w("void ", EntryPrefix, k.Name, "(")
		for i, s := range k.Params {
			if i > 0 {
				r.w(", ")
			}
			if isLocalPointer(s.Type) {
				r.w("cc_uint cc_p", strconv.Itoa(i))
			} else {
				r.w(r.typeText(s.Type, "cc_p"+strconv.Itoa(i)))
			}
		}
		r.w(") { cc_program::", k.CName, "(")
		for i, s := range k.Params {
			if i > 0 {
				r.w(", ")
			}
			if isLocalPointer(s.Type) {
				r.w("(", r.plain(s.Type), ")(cc_dynamic + cc_p", strconv.Itoa(i), ")")
			} else {
				r.w("cc_p", strconv.Itoa(i))
			}
		}
		r.w("); }")
	}
	r.raw("")
}

func isLocalPointer(t *tree.Type) bool { return t.IsPointer() && t.Elem.Space == tree.Local }

// constantBank is how much goes into the memory for constants, which is fast when
// all items read the same and has 64 KiB. The rest lies in global memory.
const constantBank = 48 << 10

// placeConstants says where the constants of a program live on a GPU. One that
// another points to must be in global memory: NVRTC 11.8 takes an address that it
// reads from a constant for a global one.
func (r *renderer) placeConstants(globals []*tree.Symbol) map[*tree.Symbol]string {
	where := map[*tree.Symbol]string{}
	for _, g := range globals {
		eachValue(g.Init, func(e *tree.Expr) {
			if _, ok := r.lanes(e); ok {
				return
			}
			eachPointedTo(e, func(s *tree.Symbol) { where[s] = "__device__ " })
		})
	}
	room := constantBank
	for _, g := range globals {
		if n, _ := g.Type.Size(); where[g] == "" && n <= room {
			where[g] = "__constant__ "
			room -= n + tree.LocalAlignment(g.Type)
		} else {
			where[g] = "__device__ "
		}
	}
	return where
}

// eachValue visits the values of an initializer, in order.
func eachValue(n *tree.Init, visit func(*tree.Expr)) {
	if n == nil {
		return
	}
	if n.Value != nil {
		visit(n.Value)
	}
	for _, i := range slices.Sorted(maps.Keys(n.Kids)) {
		eachValue(n.Kids[i], visit)
	}
}

// eachPointedTo visits the constants that e, which is in the initializer of another,
// needs the address of. Where it needs the value the renderer writes that.
func eachPointedTo(e *tree.Expr, visit func(*tree.Symbol)) {
	if e == nil {
		return
	}
	if e.Op == tree.OpSym && e.Sym.Inst && !writtenOut(e.Sym) {
		visit(e.Sym)
	}
	if e.Op == tree.OpUnary && e.Text == "&" && e.A.Op == tree.OpSym {
		visit(e.A.Sym)
	}
	for _, k := range [...]*tree.Expr{e.A, e.B, e.C} {
		eachPointedTo(k, visit)
	}
	for _, k := range e.Args {
		eachPointedTo(k, visit)
	}
}

// writtenOut tells whether a constant's value stands for its name in the
// initializer of another: a constant's value is no constant to C++.
func writtenOut(s *tree.Symbol) bool { return s.Inst && s.Init != nil && s.Init.Value != nil }
