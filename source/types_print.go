package source

// OpenCL C spelling of types: for messages, for Param.Decl and for the prologue
// that RenderOffsets writes.

import (
	"strconv"
	"strings"
)

var kindNames = [...]string{
	Void: "void", Bool: "bool", Char: "char", UChar: "uchar", Short: "short", UShort: "ushort",
	Int: "int", UInt: "uint", Long: "long", ULong: "ulong", Half: "half", Float: "float",
	Double: "double", Struct: "struct",
}

// String returns the name of the kind in OpenCL C.
func (k Kind) String() string {
	if int(k) < len(kindNames) {
		return kindNames[k]
	}
	return "kind(" + strconv.Itoa(int(k)) + ")"
}

// String returns the address space as OpenCL C spells it.
func (s Space) String() string {
	switch s {
	case Global:
		return "global"
	case Constant:
		return "constant"
	case Local:
		return "local"
	}
	return "private"
}

// String spells the type in OpenCL C.
func (t *ctype) String() string { return clDeclare(t, "") }

func qualWords(q qual) string {
	s := ""
	if q&qConst != 0 {
		s += "const "
	}
	if q&qVolatile != 0 {
		s += "volatile "
	}
	if q&qRestrict != 0 {
		s += "restrict "
	}
	return s
}

// clDeclare spells a declaration of name with type t in OpenCL C. Without a
// name it spells the type alone.
func clDeclare(t *ctype, name string) string {
	return strings.TrimSpace(declare(t, name, clBase, clPointer))
}

func clBase(t *ctype) string {
	s := ""
	if t.space != Private {
		s = t.space.String() + " "
	}
	s += qualWords(t.q)
	switch t.kind {
	case tScalar:
		if t.alias != "" {
			return s + t.alias
		}
		return s + t.base.String()
	case tVector:
		return s + t.base.String() + strconv.Itoa(t.n)
	case tRecord:
		return s + t.rec.spelling()
	case tEvent:
		return s + "event_t"
	}
	return s + "<unknown>"
}

func clPointer(t *ctype) string {
	s := "*"
	if t.space != Private {
		s += " " + t.space.String()
	}
	if w := strings.TrimSpace(qualWords(t.q)); w != "" {
		s += " " + w
	}
	return s
}

func (r *record) spelling() string {
	word := "struct"
	if r.union {
		word = "union"
	}
	switch {
	case r.tag != "":
		return word + " " + r.tag
	case r.typedef != "":
		return r.typedef
	}
	return word + " <anonymous>"
}

// declare builds a C declarator around name from the inside out. base spells
// what is left when pointers, arrays and functions are peeled off; ptr spells
// one pointer level.
func declare(t *ctype, name string, base, ptr func(*ctype) string) string {
	decl := name
	for {
		switch t.kind {
		case tPointer:
			p := ptr(t)
			if decl != "" && decl[0] != '[' && decl[0] != '(' && decl[0] != '*' && len(p) > 1 {
				p += " "
			}
			decl = p + decl
			t = t.elem
			if t.kind == tArray || t.kind == tFunc {
				decl = "(" + decl + ")"
			}
			continue
		case tArray:
			n := ""
			if t.n >= 0 {
				n = strconv.Itoa(t.n)
			}
			decl += "[" + n + "]"
			t = t.elem
			continue
		case tFunc:
			args := make([]string, len(t.params))
			for i, p := range t.params {
				args[i] = declare(p, "", base, ptr)
			}
			decl += "(" + strings.Join(args, ", ") + ")"
			t = t.elem
			continue
		}
		if decl == "" {
			return base(t)
		}
		return base(t) + " " + decl
	}
}
