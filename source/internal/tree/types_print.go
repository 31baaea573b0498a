package tree

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
	return [...]string{Private: "private", Global: "global", Constant: "constant", Local: "local"}[s]
}

// String spells the type in OpenCL C.
func (t *Type) String() string { return CLDeclare(t, "") }

// Words returns the qualifiers as C spells them, each with a space after it.
func (q Qual) Words() string {
	s := ""
	if q&QConst != 0 {
		s += "const "
	}
	if q&QVolatile != 0 {
		s += "volatile "
	}
	if q&QRestrict != 0 {
		s += "restrict "
	}
	return s
}

// CLDeclare spells a declaration of name with type t in OpenCL C. Without a
// name it spells the type alone.
func CLDeclare(t *Type, name string) string {
	return strings.TrimSpace(Declare(t, name, clBase, clPointer))
}

func clBase(t *Type) string {
	s := ""
	if t.Space != Private {
		s = t.Space.String() + " "
	}
	s += t.Q.Words()
	switch t.Kind {
	case TScalar:
		if t.Alias != "" {
			return s + t.Alias
		}
		return s + t.Base.String()
	case TVector:
		return s + t.Base.String() + strconv.Itoa(t.N)
	case TRecord:
		return s + t.Rec.spelling()
	case TEvent:
		return s + "event_t"
	}
	return s + "<unknown>"
}

func clPointer(t *Type) string {
	s := "*"
	if t.Space != Private {
		s += " " + t.Space.String()
	}
	return strings.TrimSpace(s + " " + t.Q.Words())
}

func (r *Record) spelling() string {
	word := "struct"
	if r.Union {
		word = "union"
	}
	switch {
	case r.Tag != "":
		return word + " " + r.Tag
	case r.Typedef != "":
		return r.Typedef
	}
	return word + " <anonymous>"
}

// Declare builds a C declarator around name from the inside out. base returns the text of the
// innermost type, without pointers, arrays and functions; ptr returns the text of one pointer
// level.
func Declare(t *Type, name string, base, ptr func(*Type) string) string {
	decl := name
	for {
		switch t.Kind {
		case TPointer:
			p := ptr(t)
			if decl != "" && decl[0] != '[' && decl[0] != '(' && decl[0] != '*' && len(p) > 1 {
				p += " "
			}
			decl = p + decl
			t = t.Elem
			if t.Kind == TArray || t.Kind == TFunc {
				decl = "(" + decl + ")"
			}
			continue
		case TArray:
			n := ""
			if t.N >= 0 {
				n = strconv.Itoa(t.N)
			}
			decl += "[" + n + "]"
			t = t.Elem
			continue
		case TFunc:
			args := make([]string, len(t.Params))
			for i, p := range t.Params {
				args[i] = Declare(p, "", base, ptr)
			}
			decl += "(" + strings.Join(args, ", ") + ")"
			t = t.Elem
			continue
		}
		if decl == "" {
			return base(t)
		}
		return base(t) + " " + decl
	}
}
