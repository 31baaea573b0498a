package source

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

// class is a set of types that G ranges over.
type class struct {
	name   string
	kinds  [tree.Struct + 1]bool
	widths [17]bool
}

// has reports whether G may be t.
func (c *class) has(t bType) bool { return c.kinds[t.Kind] && c.widths[t.width()] }

// of returns the slot's type for a given G. hint is the argument itself, for the
// slots that keep something of it.
func (s slot) of(g, hint bType) bType {
	t := bType{Kind: g.Kind, Width: g.width()}
	switch s.sym {
	case 's':
		t.Width = 1
	case 'i':
		t.Kind = tree.Int
	case 'n':
		t = bType{Kind: tree.Int, Width: 1}
	case 'u':
		t = bType{Kind: tree.UInt, Width: 1}
	case 'z':
		t = bType{Kind: tree.ULong, Width: 1}
	case 'R':
		t.Kind = tree.Int
		if t.Width > 1 {
			t.Kind = bIntKind(bBytes(g.Kind), true)
		}
	case 'S':
		unsigned := bIsInt(hint.Kind) && hint.Kind == bIntKind(bBytes(hint.Kind), false)
		t.Kind = bIntKind(bBytes(g.Kind), !unsigned)
	case 'U':
		t.Kind = bIntKind(bBytes(g.Kind), false)
	case 'V':
		t.Kind, t.Width = bIntKind(bBytes(g.Kind), false), hint.width()
	case 'M':
		t.Width = hint.width()
	case 'W':
		t.Kind = bIntKind(2*bBytes(g.Kind), g.Kind == bIntKind(bBytes(g.Kind), true))
	case 'F':
		t.Kind = map[int]tree.Kind{2: tree.Half, 4: tree.Float, 8: tree.Double}[bBytes(g.Kind)]
	case 'x':
		t.Width = s.width
	case 'f':
		t = bType{Kind: tree.Float, Width: s.width}
	case 'h':
		t = bType{Kind: tree.Half, Width: 1}
	case 'e':
		t = bType{Event: true}
	case 'v':
		t = bType{None: true}
	case 'p':
		t = bType{Kind: tree.Char, Width: 1, Const: true}
	}
	if s.ptr || s.sym == 'p' {
		t.Ptr, t.Space, t.Const = true, hint.Space, t.Const || hint.Const
	}
	return t
}

// describe writes the form as OpenCL's documentation does.
func (f *form) describe(name string) string {
	var ps []string
	for _, p := range f.params {
		ps = append(ps, p.text(f.class))
	}
	return fmt.Sprintf("%s %s(%s)", f.result.text(f.class), name, strings.Join(ps, ", "))
}

// text names a slot for a message.
func (s slot) text(c *class) string {
	t := map[byte]string{'i': "intn", 'n': "int", 'u': "uint", 'z': "size_t", 'R': "intn", 'S': "igentype",
		'U': "ugentype", 'V': "ugentypem", 'M': "gentypem", 'W': "wide gentype", 'F': "floatn",
		'h': "half", 'e': "event_t", 'v': "void", 'p': "constant char *"}[s.sym]
	switch s.sym {
	case 'G':
		t = c.name
	case 's':
		t = "scalar of " + c.name
	case 'x', 'f':
		t = map[byte]string{'x': "gentype", 'f': "float"}[s.sym]
		if s.width > 1 {
			t = fmt.Sprintf("%s%d", t, s.width)
		}
	}
	if s.ptr {
		t += " *"
	}
	return t
}
