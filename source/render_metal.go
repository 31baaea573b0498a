package source

// Metal renderings: what the Metal Shading Language asks for beyond C++. Functions are
// members of one struct, which also holds the ids of the work item; an address space
// stands on every pointer; objects of class types are copied between spaces by calls.

import (
	"strconv"
	"strings"

	"github.com/concord-compute/concord/source/internal/token"
)

// metalSlots is the number of buffers that a Metal kernel can have, and of blocks of
// threadgroup memory.
const metalSlots = 31

// metalItem is the prelude's part that stands inside the program's struct.
const metalItemFile = "metal_item.h"

var metalSpaces = [...]string{Private: "thread", Global: "device", Constant: "constant", Local: "threadgroup"}

// metalProgram writes everything behind the prelude.
func (r *renderer) metalProgram() {
	for _, rec := range r.p.tagged {
		r.raw(recordWord(rec) + " " + rec.cname + ";\n")
	}
	for _, rec := range r.p.records {
		r.record(rec)
	}
	for _, g := range r.p.globals {
		r.metalConstant(g)
	}
	done := map[*function]bool{}
	for _, fn := range r.p.funcs {
		if fn.kernel && fn.defined {
			r.locals(fn, done)
		}
	}
	r.raw("struct cc_program {\n")
	r.raw(preludeFile(preludePart{metalItemFile, preludeMetalItem}))
	if s := r.p.subgroup; s != nil {
		r.raw(preludeFile(preludePart{"metal_simd.h", preludeMetalSIMD}))
	}
	r.raw("# 1 \"concord/program\"\n")
	for _, fn := range r.p.funcs {
		if fn.defined {
			r.function(fn)
		}
	}
	r.raw("};\n")
	for _, fn := range r.p.funcs {
		if fn.kernel && fn.defined {
			r.metalEntry(fn)
		}
	}
	r.raw("")
}

// metalConstant writes a constant of program scope.
func (r *renderer) metalConstant(g *symbol) {
	if g.init == nil || g.typ.isUnknown() {
		return
	}
	r.at(g.pos)
	r.w(alignPrefix(g.typ), r.metalType(g.typ.in(Constant), g.cname, true), " = ")
	r.initializer(g.init)
	r.w(";")
}

// metalType spells a type of the program around a name. What a pointer points to says
// where it lives, and with placed the named object itself does so.
func (r *renderer) metalType(t *ctype, name string, placed bool) string {
	space := func(t *ctype) string {
		if !placed {
			return ""
		}
		return metalSpaces[t.space] + " "
	}
	quals := func(t *ctype, s string) string {
		if t.q&qConst != 0 && t.space != Constant {
			s += "const "
		}
		if t.q&qVolatile != 0 {
			s += "volatile "
		}
		return s
	}
	base := func(t *ctype) string {
		s := quals(t, space(t))
		switch t.kind {
		case tScalar, tVector:
			if t.base == Double {
				r.metalDouble(token.Pos{})
			}
			if t.base == Void {
				return s + "void"
			}
			s += "cc_" + t.base.String()
			if t.kind == tVector {
				s += strconv.Itoa(t.n)
			}
			return s
		case tRecord:
			return s + t.rec.cname
		case tEvent:
			return s + "cc_event"
		}
		return s + "cc_unknown"
	}
	pointer := func(t *ctype) string {
		s := strings.TrimSpace("* " + quals(t, space(t)))
		placed = true
		return s
	}
	return declare(t, name, base, pointer)
}

// metalDouble refuses a double, once in a line.
func (r *renderer) metalDouble(pos token.Pos) {
	if pos.Line == 0 {
		pos = token.Pos{File: r.file, Line: r.line, Col: 1}
	}
	for _, e := range r.errs {
		if e.Pos.File == pos.File && e.Pos.Line == pos.Line {
			return
		}
	}
	where := ""
	if r.fn != nil {
		where = "in '" + r.fn.name + "': "
	}
	r.refuse(pos, "double", "%sMetal has no double", where)
}

// metalLoads tells whether the value of e is that of an object of a class in memory that
// is not the item's own, which C++ does not copy by itself everywhere.
func metalLoads(e *expr) bool {
	if !e.lval || !isClass(e.typ) || e.typ.q&qVolatile != 0 || e.op == opSwizzle {
		return false
	}
	return e.typ.space != Private || inPacked(e)
}

// metalLoad writes the value of such an object. A member of a packed record may lie
// anywhere: it is read byte by byte, and no reference to its type is made on the way.
func (r *renderer) metalLoad(e *expr) {
	if inPacked(e) {
		r.w("cc_unpack<", r.plain(e.typ), ">(")
		r.metalBytes(e)
	} else {
		r.w("cc_get(")
		r.place(e)
	}
	r.w(")")
}

// metalBytes writes the address of an object as one of bytes.
func (r *renderer) metalBytes(e *expr) {
	r.w("(", metalSpaces[e.typ.space], " cc_uchar *)&(")
	r.place(e)
	r.w(")")
}

// metalStoreTo writes the beginning of a call that assigns to such an object, or to a
// volatile one: up to the comma before the value.
func (r *renderer) metalStoreTo(e *expr) {
	switch {
	case inPacked(e):
		r.w("cc_pack<", r.plain(e.typ), ">(")
		r.metalBytes(e)
		r.w(", ")
		return
	case metalLoads(e):
		r.w("cc_put(")
	default:
		r.w("cc_store(")
	}
	r.place(e)
	r.w(", ")
}

// isClass tells whether a type is rendered as a class.
func isClass(t *ctype) bool { return t.kind == tVector || t.kind == tRecord }

// place writes what e designates, where the object and not its value is wanted.
func (r *renderer) place(e *expr) {
	r.inPlace = r.d.msl
	r.expr(e)
}

// metalRefuses says what Metal has no way to do in a call of a built-in.
func (r *renderer) metalRefuses(e *expr) bool {
	switch {
	case e.text == "cc_printf":
		r.refuse(r.p.posOf(e), "printf", "Metal has no printf")
	case strings.HasPrefix(e.text, "cc_atom") && kindSize(e.args[0].typ.elem.base) == 8:
		r.refuse(r.p.posOf(e), "atomics", "'%s': Metal has no atomics of 64 bits", strings.TrimPrefix(e.text, "cc_"))
	default:
		return false
	}
	return true
}

// metalHalf spells a constant half.
func (r *renderer) metalHalf(f float64) string {
	return "cc_half(" + r.floatText(halfValue(halfBits(f)), 32) + ")"
}

// longSuffix is what makes a literal 64 bits wide.
func (r *renderer) longSuffix() string {
	if r.d.msl {
		return "L"
	}
	return "LL"
}
