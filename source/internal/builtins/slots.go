package builtins

import (
	"fmt"
	"strings"

	"github.com/concord-compute/concord/source/internal/tree"
)

// A slot's symbol says how its type follows from the generic type G:
//
//	G  G itself                       s  the scalar of G's lanes
//	i  int, as many lanes as G        n  int        u  uint        z  size_t
//	R  the result of a comparison: int for scalars, else signed lanes of G's size
//	S  signed or unsigned integer lanes of G's size, as many as G
//	U  unsigned lanes of G's size, as many as G
//	V  unsigned lanes of G's size, any number of them (a shuffle's mask)
//	M  lanes of G's kind, as many as V has (a shuffle's result)
//	W  integer lanes of twice G's size, of G's signedness
//	F  floating lanes of G's size, as many as G
//	x  lanes of G's kind, the slot's own number   f  float, the slot's own number
//	h  half        e  event_t        v  void        p  the format of printf
//
// A star before the symbol makes it a pointer to it, in any address space.
const slotNames = "GsinuzRSUVMWFxfhevp"

// Class is a set of types that G may stand for.
type Class struct {
	name   string
	kinds  [tree.Struct + 1]bool
	widths [17]bool
}

// Has reports whether G may be t.
func (c *Class) Has(t Type) bool { return c.kinds[t.Kind] && c.widths[t.Lanes()] }

// Of returns the slot's type for a given G. hint is the argument's type, for slots whose type
// depends on it.
func (s Slot) Of(g, hint Type) Type {
	t := Type{Kind: g.Kind, Width: g.Lanes()}
	switch s.Sym {
	case 's':
		t.Width = 1
	case 'i':
		t.Kind = tree.Int
	case 'n':
		t = Type{Kind: tree.Int, Width: 1}
	case 'u':
		t = Type{Kind: tree.UInt, Width: 1}
	case 'z':
		t = Type{Kind: tree.ULong, Width: 1}
	case 'R':
		t.Kind = tree.Int
		if t.Width > 1 {
			t.Kind = tree.SignedOf(g.Kind)
		}
	case 'S':
		if t.Kind = tree.SignedOf(g.Kind); isInt(hint.Kind) && hint.Kind == unsignedOf(hint.Kind) {
			t.Kind = unsignedOf(g.Kind)
		}
	case 'U':
		t.Kind = unsignedOf(g.Kind)
	case 'V':
		t.Kind, t.Width = unsignedOf(g.Kind), hint.Lanes()
	case 'M':
		t.Width = hint.Lanes()
	case 'W':
		t.Kind = map[tree.Kind]tree.Kind{tree.Char: tree.Short, tree.UChar: tree.UShort, tree.Short: tree.Int,
			tree.UShort: tree.UInt, tree.Int: tree.Long, tree.UInt: tree.ULong}[g.Kind]
	case 'F':
		t.Kind = map[int]tree.Kind{2: tree.Half, 4: tree.Float, 8: tree.Double}[tree.KindSize(g.Kind)]
	case 'x':
		t.Width = s.width
	case 'f':
		t = Type{Kind: tree.Float, Width: s.width}
	case 'h':
		t = Type{Kind: tree.Half, Width: 1}
	case 'e':
		t = Type{Event: true}
	case 'v':
		t = Type{None: true}
	case 'p':
		t = Type{Kind: tree.Char, Width: 1, Const: true}
	}
	if s.Ptr || s.Sym == 'p' {
		t.Ptr, t.Space, t.Const = true, hint.Space, t.Const || hint.Const
	}
	return t
}

// describe writes the form as OpenCL's documentation does.
func (f *Form) describe(name string) string {
	var ps []string
	for _, p := range f.Params {
		ps = append(ps, p.text(f.Class))
	}
	return fmt.Sprintf("%s %s(%s)", f.Result.text(f.Class), name, strings.Join(ps, ", "))
}

// text names a slot for a message.
func (s Slot) text(c *Class) string {
	t := map[byte]string{'i': "intn", 'n': "int", 'u': "uint", 'z': "size_t", 'R': "intn", 'S': "igentype",
		'U': "ugentype", 'V': "ugentypem", 'M': "gentypem", 'W': "wide gentype", 'F': "floatn",
		'h': "half", 'e': "event_t", 'v': "void", 'p': "constant char *"}[s.Sym]
	switch s.Sym {
	case 'G':
		t = c.name
	case 's':
		t = "scalar of " + c.name
	case 'x', 'f':
		t = map[byte]string{'x': "gentype", 'f': "float"}[s.Sym]
		if s.width > 1 {
			t = fmt.Sprintf("%s%d", t, s.width)
		}
	}
	if s.Ptr {
		t += " *"
	}
	return t
}
