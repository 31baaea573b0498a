package source

import (
	"fmt"
	"strings"
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
	kinds  [Struct + 1]bool
	widths [17]bool
}

// has reports whether G may be t.
func (c *class) has(t bType) bool { return c.kinds[t.Kind] && c.widths[t.width()] }

// nearest returns the kind of the class that a scalar of kind k becomes where the
// class lacks k: what a C compiler would pick, or the single-precision form where
// OpenCL's overloads leave sqrt(2) ambiguous.
func (c *class) nearest(k Kind) Kind {
	if c.kinds[k] {
		return k
	}
	try := []Kind{Float, Double}
	if bIsInt(k) {
		try = []Kind{Int, bIntKind(bBytes(k), false), bIntKind(bBytes(k), true), UInt, Float}
	}
	for _, t := range try {
		if c.kinds[t] {
			return t
		}
	}
	return k
}

// of returns the slot's type for a given G. hint is the argument itself, for the
// slots that keep something of it.
func (s slot) of(g, hint bType) bType {
	t := bType{Kind: g.Kind, Width: g.width()}
	switch s.sym {
	case 's':
		t.Width = 1
	case 'i':
		t.Kind = Int
	case 'n':
		t = bType{Kind: Int, Width: 1}
	case 'u':
		t = bType{Kind: UInt, Width: 1}
	case 'z':
		t = bType{Kind: ULong, Width: 1}
	case 'R':
		t.Kind = Int
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
		t.Kind = map[int]Kind{2: Half, 4: Float, 8: Double}[bBytes(g.Kind)]
	case 'x':
		t.Width = s.width
	case 'f':
		t = bType{Kind: Float, Width: s.width}
	case 'h':
		t = bType{Kind: Half, Width: 1}
	case 'e':
		t = bType{Event: true}
	case 'v':
		t = bType{None: true}
	case 'p':
		t = bType{Kind: Char, Width: 1, Const: true}
	}
	if s.ptr || s.sym == 'p' {
		t.Ptr, t.Space, t.Const = true, hint.Space, t.Const || hint.Const
	}
	return t
}

// invert finds G from an argument (or pointee) in this slot, where that is possible.
func (s slot) invert(t bType) (bType, bool) {
	t = bType{Kind: t.Kind, Width: t.width()}
	switch s.sym {
	case 'G':
		return t, true
	case 's':
		return t, s.ptr // a pointer to lanes; a scalar value binds with the others
	}
	return bType{}, false
}

// accept converts an argument to the slot's type, or refuses it.
func (s slot) accept(g, arg bType) (bType, int, bool) {
	want := s.of(g, arg)
	switch {
	case !arg.known():
		return want, 0, true
	case s.sym == 'e' || arg.Event:
		return want, 0, (s.sym == 'e') == (arg.Event || bIsInt(arg.Kind)) && want.Ptr == arg.Ptr
	case want.Ptr != arg.Ptr:
		return want, 0, false
	case want.Ptr:
		same := arg.Kind == want.Kind && arg.width() == want.width()
		if s.sym == 'p' {
			same = arg.Kind == Char || arg.Kind == UChar
		}
		return want, 0, same || arg.Kind == Void
	case arg.Kind == Struct || arg.None:
		return want, 0, false
	case arg.width() > 1 && (arg.Kind != want.Kind || arg.width() != want.width()):
		return want, 0, false // vectors never convert implicitly
	case arg.Kind == want.Kind && arg.width() == want.width():
		return want, 0, true
	case bIsFloat(arg.Kind) && bIsInt(want.Kind):
		return want, 0, false // abs(1.5f) is a mistake
	case want.width() > 1:
		return want, costSplat, true
	}
	return want, costConvert, true
}

// resultHint returns the argument that the result keeps something of: the mask
// of a shuffle.
func resultHint(f *form, args []bType) bType {
	for i, p := range f.params {
		if p.sym == 'V' {
			return args[i]
		}
	}
	return bType{}
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
