package programs

import "strconv"

// kind is a scalar type. The unsigned kinds are odd.
type kind uint8

const (
	kChar kind = iota
	kUChar
	kShort
	kUShort
	kInt
	kUInt
	kLong
	kULong
	kFloat
	kDouble
	kHalf // only in constants
)

var (
	kindNames = [...]string{"char", "uchar", "short", "ushort", "int", "uint", "long", "ulong", "float", "double", "half"}
	kindSizes = [...]int{1, 1, 2, 2, 4, 4, 8, 8, 4, 8, 2}
	integers  = []kind{kChar, kUChar, kShort, kUShort, kInt, kUInt, kLong, kULong}
	widths    = []int{2, 3, 4, 8, 16}
)

func (k kind) String() string { return kindNames[k] }
func (k kind) size() int      { return kindSizes[k] }
func (k kind) float() bool    { return k >= kFloat }
func (k kind) signed() bool   { return !k.float() && k&1 == 0 }

// unsigned and toSigned return the integer kinds of the same size.
func (k kind) unsigned() kind { return k.toSigned() | 1 }

func (k kind) toSigned() kind {
	switch k {
	case kFloat:
		return kInt
	case kDouble:
		return kLong
	case kHalf:
		return kShort
	}
	return k &^ 1
}

// typ is a scalar, n = 1, or a vector.
type typ struct {
	k kind
	n int
}

func (t typ) String() string {
	if t.n == 1 {
		return t.k.String()
	}
	return t.k.String() + strconv.Itoa(t.n)
}

// size returns sizeof: vectors of three take the space of four.
func (t typ) size() int {
	if t.n == 3 {
		return 4 * t.k.size()
	}
	return t.n * t.k.size()
}

func (t typ) unsigned() typ { return typ{t.k.unsigned(), t.n} }
func (t typ) toSigned() typ { return typ{t.k.toSigned(), t.n} }
func (t typ) scalar() typ   { return typ{t.k, 1} }

// record is a struct or a union that a program declares.
type record struct {
	name   string
	union  bool
	fields []field
}

// field is one member: of type t, or of a record; n > 0 makes it an array.
type field struct {
	name string
	t    typ
	rec  *record
	n    int
}

// place is the offset and type of a scalar or a vector within a record.
type place struct {
	offset int
	t      typ
}

// layout returns size and alignment, as C lays records out, and the places of a struct.
// For a union they are the places of the first member.
func (r *record) layout() (size, align int, places []place) {
	align = 1
	for i, f := range r.fields {
		fsize, falign, inner := f.t.size(), f.t.size(), []place{{0, f.t}}
		if f.rec != nil {
			fsize, falign, inner = f.rec.layout()
		}
		offset := 0
		if !r.union {
			offset = (size + falign - 1) / falign * falign
		}
		if !r.union || i == 0 {
			for e := range max(f.n, 1) {
				for _, p := range inner {
					places = append(places, place{offset + e*fsize + p.offset, p.t})
				}
			}
		}
		size, align = max(size, offset+max(f.n, 1)*fsize), max(align, falign)
	}
	return (size + align - 1) / align * align, align, places
}
