package render

// Parts of renderings for GPUs only: the entry points, and constants, in forms that CUDA's and
// HIP's compilers accept. Metal's entry points are in metal_entry.go.

import (
	"maps"
	"slices"
	"strconv"

	"github.com/concord-compute/concord/source/internal/tree"
)

// EntryPrefix stands before a kernel's name in CUDA, HIP and Metal renderings. Package source
// documents the arguments of the entry points.
const EntryPrefix = "cc_kernel_"

// entry writes an entry point, which calls the kernel.
func (r *renderer) entry(k *tree.Function) {
	r.at(k.Pos)
	r.w("extern \"C\" __global__ ")
	if n := k.Attrs.Reqd; n[0] > 0 {
		r.w("__launch_bounds__(", n[0]*n[1]*n[2], ") ")
	}
	r.w("void ", EntryPrefix, k.Name, "(")
	for i, s := range k.Params {
		r.comma(i)
		if isLocalPointer(s.Type) {
			r.w("cc_uint cc_p", i)
		} else {
			r.w(r.typeText(s.Type, "cc_p"+strconv.Itoa(i)))
		}
	}
	r.w(") { cc_program::", k.CName, "(")
	for i, s := range k.Params {
		r.comma(i)
		if isLocalPointer(s.Type) {
			r.w("(", r.plain(s.Type), ")(cc_dynamic + cc_p", i, ")")
		} else {
			r.w("cc_p", i)
		}
	}
	r.w("); }")
}

func isLocalPointer(t *tree.Type) bool { return t.IsPointer() && t.Elem.Space == tree.Local }

// constantBank is the number of bytes that are placed in constant memory, which has 64 KiB and is
// fast if all items read the same address. The rest is in global memory.
const constantBank = 48 << 10

// placeConstants chooses the memory for each constant of a program on a GPU. A constant that
// another one points to must be in global memory, because NVRTC 11.8 treats an address that it
// reads from a constant as one of global memory.
func (r *renderer) placeConstants(globals []*tree.Symbol) map[*tree.Symbol]string {
	where := map[*tree.Symbol]string{}
	for _, g := range globals {
		eachValue(g.Init, func(e *tree.Expr) {
			if _, ok := r.Lanes(e); ok {
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

// eachPointedTo visits the constants whose addresses e, a part of another constant's initializer,
// needs. Where e needs a value, the renderer writes the value itself.
func eachPointedTo(e *tree.Expr, visit func(*tree.Symbol)) {
	if e.Op == tree.OpSym && e.Sym.Inst && !writtenOut(e.Sym) {
		visit(e.Sym)
	}
	if e.Op == tree.OpUnary && e.Text == "&" && e.A.Op == tree.OpSym {
		visit(e.A.Sym)
	}
	for k := range e.Operands {
		eachPointedTo(k, visit)
	}
}

// writtenOut reports whether a constant's name is replaced by its value in the initializer of
// another one. It has to be, because the name of a constant is not a constant expression in C++.
func writtenOut(s *tree.Symbol) bool { return s.Inst && s.Init != nil && s.Init.Value != nil }
