package tree

// The types of OpenCL C as the parser needs them: canonical, with typedefs
// resolved. A Type is immutable once built; qualified variants are copies, so a
// pointer to one can be shared freely. Records are shared by identity.

import (
	"slices"

	"github.com/concord-compute/concord/source/internal/token"
)

// TypeKind is the shape of a type.
type TypeKind uint8

// The shapes of types.
const (
	TUnknown TypeKind = iota // after an error that was already reported
	TScalar                  // void, bool, integers, floating types; enums are integers
	TVector
	TPointer
	TArray
	TRecord // struct or union
	TFunc
	TEvent // event_t: opaque, private
)

// Qual is a set of type qualifiers.
type Qual uint8

// The qualifiers.
const (
	QConst Qual = 1 << iota
	QVolatile
	QRestrict
)

// Type is one type. Which fields count depends on Kind.
type Type struct {
	Kind     TypeKind
	Q        Qual
	Space    Space // where an object of this type lives
	Base     Kind  // TScalar, TVector: the (element) kind
	N        int   // TVector: width; TArray: length, -1 when not given
	Elem     *Type
	Rec      *Record
	Params   []*Type
	Variadic bool
	// the name of a type whose size depends on the device, such as size_t, which kernel parameters must not have
	Alias string
	Align int // from __attribute__((aligned)) on a typedef, 0 otherwise
	Depth int // number of nested pointers and arrays, which is limited
}

// Field is one member of a record. An anonymous struct or union member has an
// empty name; its own members are found through it.
type Field struct {
	Name   string
	CName  string
	Type   *Type
	Index  int // in its record
	Offset int // in its record, in bytes
	Align  int // requested by an attribute; 0: natural
	Packed bool
}

// Record is a struct or union.
type Record struct {
	Tag      string // as written, "" when anonymous
	Typedef  string // the first typedef that names an anonymous one
	CName    string // its name in a rendering
	Union    bool
	Packed   bool
	Complete bool
	ReqAlign int
	Fields   []*Field
	Names    map[string]*Field // by the name of a member: its field, or the anonymous field that contains it
	Unnamed  int               // how deep anonymous members are nested
	Pointers bool              // it holds a pointer or bool, which kernel arguments must not contain
	Size     int
	align    int
	Pos      token.Pos
}

// BigSize is the largest size of an object in bytes. Larger ones are refused, so that sizes never
// overflow an int.
const BigSize = 1 << 40

// Types that are used as they are, without qualifiers and in private memory.
var (
	UnknownType = &Type{Kind: TUnknown}
	VoidType    = Scalar(Void)
	BoolType    = Scalar(Bool)
	CharType    = Scalar(Char)
	IntType     = Scalar(Int)
	UIntType    = Scalar(UInt)
	LongType    = Scalar(Long)
	ULongType   = Scalar(ULong)
	HalfType    = Scalar(Half)
	FloatType   = Scalar(Float)
	DoubleType  = Scalar(Double)
	SizeType    = &Type{Kind: TScalar, Base: ULong, Alias: "size_t"}
	EventType   = &Type{Kind: TEvent}
)

// Scalar returns the type of scalars of kind k.
func Scalar(k Kind) *Type { return &Type{Kind: TScalar, Base: k} }

// Vector returns the type of vectors of n scalars of kind k; for n of 1 it is the scalar type.
func Vector(k Kind, n int) *Type {
	if n == 1 {
		return Scalar(k)
	}
	return &Type{Kind: TVector, Base: k, N: n}
}

// PointerTo returns the type of pointers to objects of type t. t.Space is the address space of the
// objects.
func PointerTo(t *Type) *Type { return &Type{Kind: TPointer, Elem: t, Depth: t.Depth + 1} }

// ArrayOf returns the type of arrays of n objects; n is -1 for an array without a length.
func ArrayOf(t *Type, n int) *Type {
	return &Type{Kind: TArray, Elem: t, N: n, Space: t.Space, Depth: t.Depth + 1}
}

// With returns t with more qualifiers; on an array they belong to the elements.
func (t *Type) With(q Qual) *Type {
	if q == 0 || t.Kind == TUnknown {
		return t
	}
	c := *t
	if t.Kind == TArray {
		c.Elem = t.Elem.With(q)
		return &c
	}
	c.Q |= q
	return &c
}

// In returns the type t for an object in address space s.
func (t *Type) In(s Space) *Type {
	if t.Space == s || t.Kind == TUnknown || t.Kind == TFunc {
		return t
	}
	c := *t
	c.Space = s
	if t.Kind == TArray {
		c.Elem = t.Elem.In(s)
	}
	return &c
}

// Aligned returns t with an alignment of n bytes, or t if n is 0.
func (t *Type) Aligned(n int) *Type {
	if n == 0 {
		return t
	}
	c := *t
	c.Align = n
	return &c
}

// Bare returns t without qualifiers and space: the type of its value.
func (t *Type) Bare() *Type {
	if t.Q == 0 && t.Space == Private && t.Alias == "" && t.Align == 0 || t.Kind == TArray {
		return t
	}
	c := *t
	c.Q, c.Space, c.Alias, c.Align = 0, Private, "", 0
	return &c
}

// IsConst reports whether objects of this type must not be written.
func (t *Type) IsConst() bool {
	if t.Kind == TArray {
		return t.Elem.IsConst()
	}
	return t.Q&QConst != 0 || t.Space == Constant
}

// Is reports whether t is the scalar of kind k.
func (t *Type) Is(k Kind) bool { return t.Kind == TScalar && t.Base == k }

// IsVoid reports whether t is void.
func (t *Type) IsVoid() bool { return t.Is(Void) }

// IsScalar reports whether t is a scalar that has a value.
func (t *Type) IsScalar() bool { return t.Kind == TScalar && t.Base != Void }

// IsVector reports whether t is a vector.
func (t *Type) IsVector() bool { return t.Kind == TVector }

// IsPointer reports whether t is a pointer.
func (t *Type) IsPointer() bool { return t.Kind == TPointer }

// IsArith reports whether t is a scalar that has a value, or a vector.
func (t *Type) IsArith() bool { return t.IsScalar() || t.IsVector() }

// IsInteger reports whether t is bool or a scalar integer.
func (t *Type) IsInteger() bool { return t.IsScalar() && IsIntKind(t.Base) }

// IsUnknown reports whether t is the type of an expression that contains a mistake.
func (t *Type) IsUnknown() bool { return t.Kind == TUnknown }

// IsAggregate reports whether t is an array or a record.
func (t *Type) IsAggregate() bool { return t.Kind == TArray || t.Kind == TRecord }

// IntElem reports whether t is an integer or a vector of integers.
func (t *Type) IntElem() bool { return t.IsArith() && IsIntKind(t.Base) }

// Width is the number of components of an arithmetic type.
func (t *Type) Width() int {
	if t.Kind == TVector {
		return t.N
	}
	return 1
}

// IsIntKind reports whether k is bool or an integer.
func IsIntKind(k Kind) bool { return k >= Bool && k <= ULong }

// KindSize returns the size of a scalar in bytes; for void it is 1, as in GNU C.
func KindSize(k Kind) int {
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

// SignedOf returns the signed integer kind of the size of k, which comparisons of vectors of k
// return.
func SignedOf(k Kind) Kind { return [...]Kind{1: Char, 2: Short, 4: Int, 8: Long}[KindSize(k)] }

// Size returns the size of an object of type t in bytes; ok is false for an incomplete type.
func (t *Type) Size() (n int, ok bool) {
	switch t.Kind {
	case TScalar:
		return KindSize(t.Base), true
	case TVector:
		n := t.N
		if n == 3 {
			n = 4
		}
		return n * KindSize(t.Base), true
	case TPointer, TEvent:
		return 8, true
	case TArray:
		e, ok := t.Elem.Size()
		if !ok || t.N < 0 || e > 0 && t.N > BigSize/e {
			return 0, false
		}
		return e * t.N, true
	case TRecord:
		return t.Rec.Size, t.Rec.Complete
	}
	return 0, false
}

// Alignment is the alignment of t in bytes.
func (t *Type) Alignment() int {
	a := 1
	switch t.Kind {
	case TArray:
		a = t.Elem.Alignment()
	case TRecord:
		a = max(t.Rec.align, 1)
	case TScalar, TVector, TPointer, TEvent:
		a, _ = t.Size()
	}
	return max(a, t.Align)
}

// Layout places the fields of a finished record by the rules of OpenCL C, which
// are those of the x86-64 C ABI with vectors aligned to their size.
func (r *Record) Layout() {
	r.Size, r.align = 0, 1
	for _, f := range r.Fields {
		n, _ := f.Type.Size()
		a := f.Type.Alignment()
		if r.Packed || f.Packed {
			a = 1
		}
		a = max(a, f.Align)
		if !r.Union {
			r.Size = AlignUp(r.Size, a)
			f.Offset = r.Size
			r.Size = min(r.Size+n, BigSize)
		} else {
			r.Size = max(r.Size, n)
		}
		r.align = max(r.align, a)
		e := ArrayBase(f.Type)
		r.Pointers = r.Pointers || e.IsPointer() || e.Is(Bool) || e.Kind == TRecord && e.Rec.Pointers
	}
	r.align = max(r.align, r.ReqAlign)
	r.Size = AlignUp(r.Size, r.align)
	r.Complete = true
}

// AlignUp rounds n up to a multiple of a.
func AlignUp(n, a int) int { return (n + a - 1) / a * a }

// Find looks a member up, also through anonymous members. It returns the path
// of fields that leads to it.
func (r *Record) Find(name string) []*Field {
	var path []*Field
	for {
		f := r.Names[name]
		if f == nil {
			return nil
		}
		path = append(path, f)
		if f.Name == name {
			return path
		}
		r = f.Type.Rec
	}
}

// Add appends a field. Of two members of one name the first is found.
func (r *Record) Add(f *Field) {
	if r.Names == nil {
		r.Names = map[string]*Field{}
	}
	enter := func(name string) {
		if r.Names[name] == nil {
			r.Names[name] = f
		}
	}
	f.Index = len(r.Fields)
	r.Fields = append(r.Fields, f)
	switch {
	case f.Name != "":
		enter(f.Name)
	case f.Type.Kind == TRecord:
		r.Unnamed = max(r.Unnamed, f.Type.Rec.Unnamed+1)
		for name := range f.Type.Rec.Names {
			enter(name)
		}
	}
}

// SameType compares two types without their outermost qualifiers and space.
func SameType(a, b *Type) bool {
	if a == b {
		return true
	}
	if a.Kind != b.Kind {
		return false
	}
	switch a.Kind {
	case TScalar:
		return a.Base == b.Base
	case TVector:
		return a.Base == b.Base && a.N == b.N
	case TPointer:
		return SameObject(a.Elem, b.Elem)
	case TArray:
		return (a.N == b.N || a.N < 0 || b.N < 0) && SameObject(a.Elem, b.Elem)
	case TRecord:
		return a.Rec == b.Rec
	case TFunc:
		return a.Variadic == b.Variadic && SameType(a.Elem, b.Elem) && slices.EqualFunc(a.Params, b.Params, SameType)
	}
	return true
}

// SameObject compares two types including their qualifiers and space, which have to be equal for
// pointers to them to have the same type.
func SameObject(a, b *Type) bool {
	const cv = QConst | QVolatile
	return a.Space == b.Space && a.Q&cv == b.Q&cv && SameType(a, b)
}

// ArrayBase strips every array level.
func ArrayBase(t *Type) *Type {
	for t.Kind == TArray {
		t = t.Elem
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

// LocalAlignment returns the alignment of a local variable in bytes. Large variables get more than
// their type requires, as on OpenCL devices, because programs read arrays of float as vectors.
func LocalAlignment(t *Type) int {
	n, _ := t.Size()
	a := t.Alignment()
	for a < 128 && 2*a <= n {
		a *= 2
	}
	return a
}

// StoresWhole reports whether assigning to an object of type t needs a call, since C++ has no
// assignment to volatile classes.
func StoresWhole(t *Type) bool {
	return t.Q&QVolatile != 0 && (t.Kind == TVector || t.Kind == TRecord || t.Is(Half))
}
