package source

import "strconv"

// Entry points of Metal renderings.

// metalIDs are the values that Metal passes to a kernel, in the order of the members that
// cc_program begins with.
var metalIDs = []string{"thread_position_in_threadgroup", "threads_per_threadgroup",
	"threadgroup_position_in_grid", "threadgroups_per_grid"}

// metalSIMDIDs follow where the program uses sub-groups.
var metalSIMDIDs = []string{"thread_index_in_simdgroup", "simdgroup_index_in_threadgroup",
	"threads_per_simdgroup", "simdgroups_per_threadgroup"}

// metalEntry writes the entry point of a kernel, whose form EntryPrefix describes.
func (r *renderer) metalEntry(k *function) {
	buffers, values, blocks := 0, 0, 0
	for _, s := range k.params {
		switch {
		case isLocalPointer(s.typ):
			blocks++
		case s.typ.isPointer():
			buffers++
		default:
			values++
		}
	}
	packed := buffers+values > metalSlots
	if packed && buffers+min(values, 1) > metalSlots || blocks > metalSlots {
		r.refuse(k.pos, "parameters", "kernel '%s' has %d pointers to global and constant memory and %d to local memory: Metal takes %d of each, one less where there are values too",
			k.name, buffers, blocks, metalSlots)
		return
	}
	if packed {
		r.metalValues(k)
	}
	r.at(k.pos)
	if n := k.attrs.reqd; n[0] > 0 {
		r.w("[[max_total_threads_per_threadgroup(", strconv.Itoa(n[0]*n[1]*n[2]), ")]] ")
	}
	r.w("kernel void ", EntryPrefix, k.name, "(")
	args := r.metalParams(k, packed, buffers)
	r.metalIDParams()
	r.w(") {")
	if r.hasLocals(k) {
		r.w(" alignas(128) threadgroup cc_uchar cc_m[sizeof(cc_locals_", k.name, ")];")
	}
	r.w(" cc_program cc_it = {")
	for i := range r.metalIDNames() {
		if i > 0 {
			r.w(", ")
		}
		r.w("cc_i", strconv.Itoa(i))
	}
	r.w("};")
	if r.hasLocals(k) {
		r.w(" cc_it.kc_", k.name, "(*(threadgroup cc_locals_", k.name, " *)cc_m")
	} else {
		r.w(" cc_it.", k.cname, "(")
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
	if r.p.subgroup == nil {
		return metalIDs
	}
	return append(append([]string{}, metalIDs...), metalSIMDIDs...)
}

// metalIDParams writes the parameters that Metal fills in. Those of a position have three
// lanes, those of a SIMD group one.
func (r *renderer) metalIDParams() {
	for i, name := range r.metalIDNames() {
		typ := "uint3"
		if i >= len(metalIDs) {
			typ = "uint"
		}
		if i > 0 {
			r.w(", ")
		}
		r.w(typ, " cc_i", strconv.Itoa(i), " [[", name, "]]")
	}
}

// metalParams writes the parameters with an index and returns what the kernel's function
// is called with.
func (r *renderer) metalParams(k *function, packed bool, buffers int) []string {
	var args []string
	slot, block := 0, 0
	for i, s := range k.params {
		name := "cc_p" + strconv.Itoa(i)
		arg := name
		switch {
		case isLocalPointer(s.typ):
			r.w(r.metalPointer(s.typ, name), " [[threadgroup(", strconv.Itoa(block), ")]], ")
			arg = "(" + r.plain(s.typ) + ")" + name
			block++
		case s.typ.isPointer():
			r.w(r.metalPointer(s.typ, name), " [[buffer(", strconv.Itoa(slot), ")]], ")
			arg = "(" + r.plain(s.typ) + ")" + name
			slot++
		case packed:
			arg = "cc_v." + name
		default:
			r.w("constant ", r.plain(s.typ), " &", name, " [[buffer(", strconv.Itoa(slot), ")]], ")
			slot++
		}
		if !s.typ.isPointer() && isClass(s.typ) {
			arg = "cc_get(" + arg + ")"
		}
		args = append(args, arg)
	}
	if packed && len(k.params) > buffers+block {
		r.w("constant cc_args_", k.name, " &cc_v [[buffer(", strconv.Itoa(buffers), ")]], ")
	}
	return args
}

// metalPointer spells a pointer parameter; one to void as one to bytes.
func (r *renderer) metalPointer(t *ctype, name string) string {
	c := *t
	c.q = 0
	e := *t.elem
	e.q &^= qVolatile
	if e.isVoid() {
		e.base = UChar
	}
	c.elem = &e
	return r.typeText(&c, name)
}

// metalValues writes the struct that holds a kernel's values when its parameters are more
// than Metal has places for.
func (r *renderer) metalValues(k *function) {
	r.at(k.pos)
	r.w("struct cc_args_", k.name, " { ")
	for i, s := range k.params {
		if !s.typ.isPointer() {
			r.w(r.plain(s.typ), " cc_p", strconv.Itoa(i), "; ")
		}
	}
	r.w("};")
}
