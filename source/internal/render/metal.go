package render

// Metal renderings: where the Metal Shading Language differs from C++. Functions are members of one
// struct, which also holds the ids of the work item; every pointer has an address space; objects of
// class types are copied between address spaces by calls.

import (
	"strings"

	"github.com/concord-compute/concord/source/internal/token"
	"github.com/concord-compute/concord/source/internal/tree"
)

// metalSlots is the number of buffers that a Metal kernel can have, and of blocks of
// threadgroup memory.
const metalSlots = 31

// The parts of the prelude that are inside the program's struct.
const metalItemFile, metalSIMDFile = "metal_item", "metal_simd"

var metalSpaces = [...]string{tree.Private: "thread", tree.Global: "device", tree.Constant: "constant",
	tree.Local: "threadgroup"}

// metalItem writes what the C++ targets have in the struct that the program's is derived from.
func (r *renderer) metalItem() {
	r.raw(preludeMarker(metalItemFile) + preludeFile(metalItemFile))
	if r.p.Subgroup != nil {
		r.raw(preludeMarker(metalSIMDFile) + preludeFile(metalSIMDFile))
	}
	r.raw("# 1 \"concord/program\"\n")
}

// metalType writes the declaration of name with a type of the program. Targets of pointers have
// their address space; with placed the named object has its own, too.
func (r *renderer) metalType(t *tree.Type, name string, placed bool) string {
	space := func(t *tree.Type) string {
		if !placed {
			return ""
		}
		return metalSpaces[t.Space] + " "
	}
	quals := func(t *tree.Type) string {
		q := t.Q &^ tree.QRestrict
		if t.Space == tree.Constant {
			q &^= tree.QConst
		}
		return space(t) + q.Words()
	}
	base := func(t *tree.Type) string {
		if t.Base == tree.Double {
			r.metalDouble(token.Pos{})
		}
		return quals(t) + baseName(t)
	}
	pointer := func(t *tree.Type) string {
		s := strings.TrimSpace("* " + quals(t))
		placed = true
		return s
	}
	return tree.Declare(t, name, base, pointer)
}

// metalDouble refuses a double, once per line.
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
		where = "in '" + r.fn.Name + "': "
	}
	r.refuse(pos, "double", "%sMetal has no double", where)
}

// metalLoads reports whether e is the value of an object of a class type outside of private memory,
// which has to be copied by a call.
func metalLoads(e *tree.Expr) bool {
	if !e.LValue || !isClass(e.Type) || e.Type.Q&tree.QVolatile != 0 || e.Op == tree.OpSwizzle {
		return false
	}
	return e.Type.Space != tree.Private || inPacked(e)
}

// metalLoad writes the value of such an object. A member of a packed record may be unaligned: it is
// read byte by byte, without a reference to its type.
func (r *renderer) metalLoad(e *tree.Expr) {
	if inPacked(e) {
		r.w("cc_unpack<", r.plain(e.Type), ">(")
		r.metalBytes(e)
	} else {
		r.w("cc_get(")
		r.place(e)
	}
	r.w(")")
}

// metalBytes writes the address of an object as a pointer to bytes.
func (r *renderer) metalBytes(e *tree.Expr) {
	r.w("(", metalSpaces[e.Type.Space], " cc_uchar *)&(")
	r.place(e)
	r.w(")")
}

// metalStoreTo writes the beginning of a call that assigns to such an object, or to a volatile one,
// up to the comma before the value.
func (r *renderer) metalStoreTo(e *tree.Expr) {
	switch {
	case inPacked(e):
		r.w("cc_pack<", r.plain(e.Type), ">(")
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

// isClass reports whether a type is rendered as a class.
func isClass(t *tree.Type) bool { return t.Kind == tree.TVector || t.Kind == tree.TRecord }

// place writes e where the object, and not its value, is needed.
func (r *renderer) place(e *tree.Expr) {
	r.inPlace = r.d.msl
	r.expr(e)
}

// metalRefuses reports an error for a call of a built-in that Metal does not support, and returns
// whether it did.
func (r *renderer) metalRefuses(e *tree.Expr) bool {
	switch {
	case e.Text == "cc_printf":
		r.refuse(r.p.PosOf(e), "printf", "Metal has no printf")
	case strings.HasPrefix(e.Text, "cc_atom") && tree.KindSize(e.Args[0].Type.Elem.Base) == 8:
		r.refuse(r.p.PosOf(e), "atomics", "'%s': Metal has no atomics of 64 bits", strings.TrimPrefix(e.Text, "cc_"))
	default:
		return false
	}
	return true
}

// longSuffix returns the suffix of a 64-bit literal.
func (r *renderer) longSuffix() string {
	if r.d.msl {
		return "L"
	}
	return "LL"
}
