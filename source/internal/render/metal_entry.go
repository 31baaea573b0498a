package render

import (
	"strconv"

	"github.com/concord-compute/concord/source/internal/tree"
)

// Entry points of Metal renderings.

// metalIDs are the values that Metal passes to a kernel, in the order of the first members of
// cc_program.
var metalIDs = []string{"thread_position_in_threadgroup", "threads_per_threadgroup",
	"threadgroup_position_in_grid", "threadgroups_per_grid"}

// metalSIMDIDs follow them if the program uses sub-groups.
var metalSIMDIDs = []string{"thread_index_in_simdgroup", "simdgroup_index_in_threadgroup",
	"threads_per_simdgroup", "simdgroups_per_threadgroup"}

// metalEntry writes the entry point of a kernel, whose form EntryPrefix describes.
func (r *renderer) metalEntry(k *tree.Function) {
	buffers, values, blocks := 0, 0, 0
	for _, s := range k.Params {
		switch {
		case isLocalPointer(s.Type):
			blocks++
		case s.Type.IsPointer():
			buffers++
		default:
			values++
		}
	}
	packed := buffers+values > metalSlots
	if packed && buffers+min(values, 1) > metalSlots || blocks > metalSlots {
		r.refuse(k.Pos, "parameters", "kernel '%s' has %d pointers to global and constant memory and %d to local memory: "+
			"Metal takes %d of each, one less where there are values too",
			k.Name, buffers, blocks, metalSlots)
		return
	}
	if packed {
		r.metalValues(k)
	}
	r.at(k.Pos)
	if n := k.Attrs.Reqd; n[0] > 0 {
		r.w("[[max_total_threads_per_threadgroup(", n[0]*n[1]*n[2], ")]] ")
	}
	r.w("kernel void ", EntryPrefix, k.Name, "(")
	args := r.metalParams(k, packed, buffers)
	r.metalIDParams()
	r.w(") {")
	if r.hasLocals(k) {
		r.w(" alignas(128) threadgroup cc_uchar cc_m[sizeof(cc_locals_", k.Name, ")];")
	}
	r.w(" cc_program cc_it = {")
	for i := range r.metalIDNames() {
		r.comma(i)
		r.w("cc_i", i)
	}
	r.w("};")
	if r.hasLocals(k) {
		r.w(" cc_it.kc_", k.Name, "(*(threadgroup cc_locals_", k.Name, " *)cc_m")
	} else {
		r.w(" cc_it.", k.CName, "(")
	}
	for i, a := range args {
		if i > 0 || r.hasLocals(k) {
			r.w(", ")
		}
		r.w(a)
	}
	r.w("); }")
}

func (r *renderer) metalIDNames() []string {
	if r.p.Subgroup == nil {
		return metalIDs
	}
	return append(append([]string{}, metalIDs...), metalSIMDIDs...)
}

// metalIDParams writes the parameters for these values. Positions and sizes are vectors of three,
// the values of SIMD groups scalars.
func (r *renderer) metalIDParams() {
	for i, name := range r.metalIDNames() {
		typ := "uint3"
		if i >= len(metalIDs) {
			typ = "uint"
		}
		r.comma(i)
		r.w(typ, " cc_i", i, " [[", name, "]]")
	}
}

// metalParams writes the parameters that have an index, and returns the arguments for the kernel's
// function.
func (r *renderer) metalParams(k *tree.Function, packed bool, buffers int) []string {
	var args []string
	slot, block := 0, 0
	for i, s := range k.Params {
		name := "cc_p" + strconv.Itoa(i)
		arg := name
		switch {
		case isLocalPointer(s.Type):
			r.w(r.metalPointer(s.Type, name), " [[threadgroup(", block, ")]], ")
			arg = "(" + r.plain(s.Type) + ")" + name
			block++
		case s.Type.IsPointer():
			r.w(r.metalPointer(s.Type, name), " [[buffer(", slot, ")]], ")
			arg = "(" + r.plain(s.Type) + ")" + name
			slot++
		case packed:
			arg = "cc_v." + name
		default:
			r.w("constant ", r.plain(s.Type), " &", name, " [[buffer(", slot, ")]], ")
			slot++
		}
		if !s.Type.IsPointer() && isClass(s.Type) {
			arg = "cc_get(" + arg + ")"
		}
		args = append(args, arg)
	}
	if packed && len(k.Params) > buffers+block {
		r.w("constant cc_args_", k.Name, " &cc_v [[buffer(", buffers, ")]], ")
	}
	return args
}

// metalPointer writes a pointer parameter; a pointer to void becomes one to bytes.
func (r *renderer) metalPointer(t *tree.Type, name string) string {
	c := *t
	c.Q = 0
	e := *t.Elem
	e.Q &^= tree.QVolatile
	if e.IsVoid() {
		e.Base = tree.UChar
	}
	c.Elem = &e
	return r.typeText(&c, name)
}

// metalValues writes the struct that holds a kernel's values if the kernel has more parameters than
// Metal has buffers.
func (r *renderer) metalValues(k *tree.Function) {
	r.at(k.Pos)
	r.w("struct cc_args_", k.Name, " { ")
	for i, s := range k.Params {
		if !s.Type.IsPointer() {
			r.w(r.plain(s.Type), " cc_p", i, "; ")
		}
	}
	r.w("};")
}
