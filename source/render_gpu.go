package source

// What only GPUs' renderings have: entry points, and constants that CUDA's and HIP's
// compilers take. Metal's entry points are in render_metal_entry.go.

import (
	"maps"
	"slices"
	"strconv"

	"github.com/concord-compute/concord/source/internal/tree"
)

// EntryPrefix stands before a kernel's name in CUDA, HIP and Metal renderings.
//
// In CUDA and HIP the entry point of NAME is extern "C" __global__ cc_kernel_NAME. It takes the kernel's
// parameters in order: a pointer to global or constant memory as a device pointer
// of 8 bytes; a pointer to local memory as an unsigned int, the offset in bytes of
// its memory in the launch's dynamic shared memory, which has to be a multiple of
// 128; a value as it is, with OpenCL's size and alignment. Every dimension of the
// grid counts groups. A global offset is not rendered: get_global_offset is 0.
// get_work_dim is the number of dimensions up to the last with more than one item.
//
// In Metal it is kernel void cc_kernel_NAME. Its arguments are buffers and blocks of
// threadgroup memory, each counted from 0 in the order of the portable parameters:
//   - a pointer to global memory is device T *p [[buffer(i)]], one to constant memory
//     constant T *p [[buffer(i)]] (Macs with GPUs of AMD and Intel want the offset of
//     such a binding to be a multiple of 256, Apple's GPUs one of 4; device pointers
//     want no more than the alignment of T);
//   - a value (scalar, vector, struct) is constant T &p [[buffer(i)]], with OpenCL's
//     size and alignment; i counts pointers and values together;
//   - a pointer to local memory is threadgroup T *p [[threadgroup(j)]], whose length is
//     set to a multiple of 16 bytes.
//
// If pointers and values together exceed the 31 buffers, the P pointers are buffers 0 to
// P-1, and all values are the fields, in order and at their natural alignment in OpenCL,
// of one struct in buffer P; if P+1 exceeds 31 too, rendering fails. Static local memory
// is declared in the entry point. A launch consists of whole threadgroups;
// get_global_offset is 0, get_work_dim as above. A required group size becomes
// max_total_threads_per_threadgroup; that it is this very size, the launch has to see to.
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
