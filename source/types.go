package source

// The types of OpenCL C as the parser needs them: canonical, with typedefs
// resolved. A ctype is immutable once built; qualified variants are copies, so a
// pointer to one can be shared freely. Records are shared by identity.

import "github.com/concord-compute/concord/source/internal/token"

// typeKind is the shape of a type.
type typeKind uint8

const (
	tUnknown typeKind = iota // after an error that was already reported
	tScalar                  // void, bool, integers, floating types; enums are integers
	tVector
	tPointer
	tArray
	tRecord // struct or union
	tFunc
	tEvent // event_t: opaque, private
)

// qual is a set of type qualifiers.
type qual uint8

const (
	qConst qual = 1 << iota
	qVolatile
	qRestrict
)

// ctype is one type. Which fields count depends on kind.
type ctype struct {
	kind     typeKind
	q        qual
	space    Space // where an object of this type lives
	base     Kind  // tScalar, tVector: the (element) kind
	n        int   // tVector: width; tArray: length, -1 when not given
	elem     *ctype
	rec      *record
	params   []*ctype
	variadic bool
	alias    string // size_t and its like: the spelling that kernels may not take
	align    int    // from __attribute__((aligned)) on a typedef, 0 otherwise
	depth    int    // levels of pointers and arrays below, which are limited
}

// field is one member of a record. An anonymous struct or union member has an
// empty name; its own members are found through it.
type field struct {
	name   string
	cname  string
	typ    *ctype
	index  int // in its record
	offset int
	align  int // asked for by an attribute; 0: natural
	packed bool
}

// record is a struct or union.
type record struct {
	tag      string // as written, "" when anonymous
	typedef  string // the first typedef that names an anonymous one
	cname    string // its name in a rendering
	union    bool
	packed   bool
	complete bool
	reqAlign int
	fields   []*field
	names    map[string]*field // the field that a name is, or is a member of without a name of its own
	unnamed  int               // how deep such members are nested
	pointers bool              // it holds a pointer or bool, which no kernel's argument may
	size     int
	align    int
	pos      token.Pos
}

// bigSize caps every object: larger ones are refused, so that sizes never
// overflow an int.
const bigSize = 1 << 40

var (
	unknownType = &ctype{kind: tUnknown}
	voidType    = scalar(Void)
	boolType    = scalar(Bool)
	charType    = scalar(Char)
	intType     = scalar(Int)
	uintType    = scalar(UInt)
	longType    = scalar(Long)
	ulongType   = scalar(ULong)
	halfType    = scalar(Half)
	floatType   = scalar(Float)
	doubleType  = scalar(Double)
	sizeType    = &ctype{kind: tScalar, base: ULong, alias: "size_t"}
	eventType   = &ctype{kind: tEvent}
)

func scalar(k Kind) *ctype { return &ctype{kind: tScalar, base: k} }

func vector(k Kind, n int) *ctype {
	if n == 1 {
		return scalar(k)
	}
	return &ctype{kind: tVector, base: k, n: n}
}

func pointerTo(t *ctype) *ctype { return &ctype{kind: tPointer, elem: t, depth: t.depth + 1} }

func arrayOf(t *ctype, n int) *ctype {
	return &ctype{kind: tArray, elem: t, n: n, space: t.space, depth: t.depth + 1}
}

// with returns t with more qualifiers; on an array they belong to the elements.
func (t *ctype) with(q qual) *ctype {
	if q == 0 || t.kind == tUnknown {
		return t
	}
	c := *t
	if t.kind == tArray {
		c.elem = t.elem.with(q)
		return &c
	}
	c.q |= q
	return &c
}

// in returns t as it is when its object lives in space s.
func (t *ctype) in(s Space) *ctype {
	if t.space == s || t.kind == tUnknown || t.kind == tFunc {
		return t
	}
	c := *t
	c.space = s
	if t.kind == tArray {
		c.elem = t.elem.in(s)
	}
	return &c
}

// bare returns t without qualifiers and space: the type of its value.
func (t *ctype) bare() *ctype {
	if t.q == 0 && t.space == Private && t.alias == "" && t.align == 0 || t.kind == tArray {
		return t
	}
	c := *t
	c.q, c.space, c.alias, c.align = 0, Private, "", 0
	return &c
}

// isConst tells whether an object of this type may not be written.
func (t *ctype) isConst() bool {
	if t.kind == tArray {
		return t.elem.isConst()
	}
	return t.q&qConst != 0 || t.space == Constant
}

func (t *ctype) is(k Kind) bool    { return t.kind == tScalar && t.base == k }
func (t *ctype) isVoid() bool      { return t.is(Void) }
func (t *ctype) isScalar() bool    { return t.kind == tScalar && t.base != Void }
func (t *ctype) isVector() bool    { return t.kind == tVector }
func (t *ctype) isPointer() bool   { return t.kind == tPointer }
func (t *ctype) isArith() bool     { return t.isScalar() || t.isVector() }
func (t *ctype) isInteger() bool   { return t.isScalar() && isIntKind(t.base) }
func (t *ctype) isUnknown() bool   { return t.kind == tUnknown }
func (t *ctype) isAggregate() bool { return t.kind == tArray || t.kind == tRecord }
func (t *ctype) intElem() bool     { return t.isArith() && isIntKind(t.base) }

// width is the number of components of an arithmetic type.
func (t *ctype) width() int {
	if t.kind == tVector {
		return t.n
	}
	return 1
}

func isIntKind(k Kind) bool { return k >= Bool && k <= ULong }

// kindSize is the size in bytes of a scalar; void counts 1, as GNU C has it.
func kindSize(k Kind) int {
	switch k {
	case Short, UShort, Half:
		return 2
	case Int, UInt, Float:
		return 4
	case Long, ULong, Double:
		return 8
	}
	return 1
}

// signedOf is the signed integer kind as wide as k: what comparing vectors of k
// gives.
func signedOf(k Kind) Kind {
	switch kindSize(k) {
	case 1:
		return Char
	case 2:
		return Short
	case 4:
		return Int
	}
	return Long
}

// size is the bytes that an object of type t takes; ok is false for an
// incomplete type.
func (t *ctype) size() (n int, ok bool) {
	switch t.kind {
	case tScalar:
		return kindSize(t.base), true
	case tVector:
		n := t.n
		if n == 3 {
			n = 4
		}
		return n * kindSize(t.base), true
	case tPointer, tEvent:
		return 8, true
	case tArray:
		e, ok := t.elem.size()
		if !ok || t.n < 0 || e > 0 && t.n > bigSize/e {
			return 0, false
		}
		return e * t.n, true
	case tRecord:
		return t.rec.size, t.rec.complete
	}
	return 0, false
}

// alignment is the alignment of t in bytes.
func (t *ctype) alignment() int {
	a := 1
	switch t.kind {
	case tArray:
		a = t.elem.alignment()
	case tRecord:
		a = max(t.rec.align, 1)
	case tScalar, tVector, tPointer, tEvent:
		a, _ = t.size()
	}
	return max(a, t.align)
}

// layout places the fields of a finished record by the rules of OpenCL C, which
// are those of the x86-64 C ABI with vectors aligned to their size.
func (r *record) layout() {
	r.size, r.align = 0, 1
	for _, f := range r.fields {
		n, _ := f.typ.size()
		a := f.typ.alignment()
		if r.packed || f.packed {
			a = 1
		}
		a = max(a, f.align)
		if !r.union {
			r.size = alignUp(r.size, a)
			f.offset = r.size
			r.size = min(r.size+n, bigSize)
		} else {
			r.size = max(r.size, n)
		}
		r.align = max(r.align, a)
		e := arrayBase(f.typ)
		r.pointers = r.pointers || e.isPointer() || e.is(Bool) || e.kind == tRecord && e.rec.pointers
	}
	r.align = max(r.align, r.reqAlign)
	r.size = alignUp(r.size, r.align)
	r.complete = true
}

func alignUp(n, a int) int { return (n + a - 1) / a * a }

// find looks a member up, also through anonymous members. It returns the path
// of fields that leads to it.
func (r *record) find(name string) []*field {
	var path []*field
	for {
		f := r.names[name]
		if f == nil {
			return nil
		}
		path = append(path, f)
		if f.name == name {
			return path
		}
		r = f.typ.rec
	}
}

// add appends a field. Of two members of one name the first is found.
func (r *record) add(f *field) {
	if r.names == nil {
		r.names = map[string]*field{}
	}
	enter := func(name string) {
		if r.names[name] == nil {
			r.names[name] = f
		}
	}
	f.index = len(r.fields)
	r.fields = append(r.fields, f)
	switch {
	case f.name != "":
		enter(f.name)
	case f.typ.kind == tRecord:
		r.unnamed = max(r.unnamed, f.typ.rec.unnamed+1)
		for name := range f.typ.rec.names {
			enter(name)
		}
	}
}

// sameType compares two types without their outermost qualifiers and space.
func sameType(a, b *ctype) bool {
	if a == b {
		return true
	}
	if a.kind != b.kind {
		return false
	}
	switch a.kind {
	case tScalar:
		return a.base == b.base
	case tVector:
		return a.base == b.base && a.n == b.n
	case tPointer:
		return sameObject(a.elem, b.elem)
	case tArray:
		return (a.n == b.n || a.n < 0 || b.n < 0) && sameObject(a.elem, b.elem)
	case tRecord:
		return a.rec == b.rec
	case tFunc:
		if len(a.params) != len(b.params) || a.variadic != b.variadic || !sameType(a.elem, b.elem) {
			return false
		}
		for i := range a.params {
			if !sameType(a.params[i], b.params[i]) {
				return false
			}
		}
	}
	return true
}

// sameObject compares two types with their qualifiers and space: what two
// pointers must agree on to be one type.
func sameObject(a, b *ctype) bool {
	const cv = qConst | qVolatile
	return a.space == b.space && a.q&cv == b.q&cv && sameType(a, b)
}

// arrayBase strips every array level.
func arrayBase(t *ctype) *ctype {
	for t.kind == tArray {
		t = t.elem
	}
	return t
}

// Kind is a scalar type of OpenCL C.
type Kind uint8

// The scalar kinds. Struct stands for a struct or union passed by value.
const (
	Void Kind = iota
	Bool
	Char
	UChar
	Short
	UShort
	Int
	UInt
	Long
	ULong
	Half
	Float
	Double
	Struct
)

// Space is an OpenCL address space.
type Space uint8

// The address spaces of OpenCL C 1.2.
const (
	Private Space = iota
	Global
	Constant
	Local
)

// localAlignment is the alignment of a local variable. Large ones get more than
// their type asks for, as OpenCL devices have it: programs read arrays of float
// as vectors.
func localAlignment(t *ctype) int {
	n, _ := t.size()
	a := t.alignment()
	for a < 128 && 2*a <= n {
		a *= 2
	}
	return a
}

// storesWhole tells whether an object of type t takes a call to be assigned: C++
// has no assignment to volatile classes.
func storesWhole(t *ctype) bool {
	return t.q&qVolatile != 0 && (t.kind == tVector || t.kind == tRecord || t.is(Half))
}
