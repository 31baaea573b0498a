package tensor

import (
	"math"
	"math/big"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// entries are the operations that take a number of Go, with a tensor x of some type. The result has x's type, or is a
// Bool.
var entries = map[string]func(x *Tensor, number any) *Tensor{
	"add": (*Tensor).Add, "sub": (*Tensor).Sub, "mul": (*Tensor).Mul, "div": (*Tensor).Div, "quo": (*Tensor).Quo,
	"rem": (*Tensor).Rem, "pow": (*Tensor).Pow,
	"maximum": (*Tensor).Maximum, "minimum": (*Tensor).Minimum, "eq": (*Tensor).Eq, "ne": (*Tensor).Ne, "lt": (*Tensor).Lt,
	"le": (*Tensor).Le, "gt": (*Tensor).Gt,
	"ge": (*Tensor).Ge, "and": (*Tensor).And, "or": (*Tensor).Or, "xor": (*Tensor).Xor, "shl": (*Tensor).Shl,
	"shr":          (*Tensor).Shr,
	"where":        func(x *Tensor, n any) *Tensor { return Where(x.Eq(x), x, n) },
	"where not":    func(x *Tensor, n any) *Tensor { return Where(x.Eq(x), n, x) },
	"clamp below":  func(x *Tensor, n any) *Tensor { return x.Clamp(n, x) },
	"clamp above":  func(x *Tensor, n any) *Tensor { return x.Clamp(x, n) },
	"pad":          func(x *Tensor, n any) *Tensor { return x.Pad(n, [2]int{0, 1}) },
	"full":         func(x *Tensor, n any) *Tensor { return Full(x.Scope(), x.Type(), n, 2) },
	"full of none": func(x *Tensor, n any) *Tensor { return Full(x.Scope(), x.Type(), n, 0) },
}

// integersOf returns an integer as each type of Go that holds it, also as floats if these are exact.
func integersOf(i *big.Int) (list []any) {
	f, _ := new(big.Float).SetInt(i).Float64()
	if exact, _ := big.NewFloat(f).Int(nil); exact.Cmp(i) == 0 {
		list = append(list, f)
		if float64(float32(f)) == f {
			list = append(list, float32(f))
		}
	}
	if v := i.Int64(); i.IsInt64() {
		list = append(list, v, int(v))
		for _, x := range []any{int8(v), int16(v), int32(v)} {
			if n, _ := number(x); n.float == float64(v) {
				list = append(list, x)
			}
		}
	}
	if v := i.Uint64(); i.IsUint64() {
		list = append(list, v, uint(v))
		for _, x := range []any{uint8(v), uint16(v), uint32(v)} {
			if n, _ := number(x); n.float == float64(v) {
				list = append(list, x)
			}
		}
	}
	return list
}

// A number of Go that the type of a tensor does not hold is a mistake wherever it is given, and one that it holds
// arrives as it is.
func TestNumbersThatDoNotFit(t *testing.T) {
	s := scope(t)
	one := big.NewInt(1)
	for _, typ := range []Type{I8, I16, I32, I64, U8, U16, U32, U64} {
		low, high := new(big.Int), new(big.Int).Sub(new(big.Int).Lsh(one, uint(8*size(typ))), one)
		if isSigned(typ) {
			high = high.Rsh(high, 1)
			low = low.Sub(low.Neg(high), one)
		}
		x := Ones(s, typ, 1)
		check := func(i *big.Int, fits bool) {
			for _, n := range integersOf(i) {
				_, float := n.(float64)
				if _, short := n.(float32); short {
					float = true
				}
				for name, f := range entries {
					if float && name != "full" && name != "full of none" && name != "pad" { // with integers, these compute in F64
						continue
					}
					y := f(x, n)
					if fits {
						require.NoError(t, y.Err(), "%s of %v and %T(%v)", name, typ, n, n)
					} else {
						require.ErrorIs(t, y.Err(), ErrType, "%s of %v and %T(%v)", name, typ, n, n)
					}
				}
				if fits {
					raw := make([]byte, 2*size(typ))
					require.NoError(t, Full(s, typ, n, 2).readBytes(t.Context(), raw))
					got := big.NewInt(integer(typ, raw))
					if typ == U64 {
						got.SetUint64(uint64(integer(typ, raw)))
					}
					require.Zero(t, got.Cmp(i), "%v of %T(%v) is %v", typ, n, n, got)
				}
			}
		}
		for _, i := range []*big.Int{low, new(big.Int).Add(low, one), big.NewInt(0), one, new(big.Int).Sub(high, one), high} {
			check(i, true)
		}
		for _, shift := range []uint{0, 1, 7, 8, 15, 16, 31, 32, 40} { // all that a wrap would make small
			check(new(big.Int).Add(high, new(big.Int).Lsh(one, shift)), false)
			check(new(big.Int).Sub(low, new(big.Int).Lsh(one, shift)), false)
		}
		for _, n := range []any{0.5, -1.25, math.NaN(), math.Inf(1), math.Inf(-1), float32(0.5), 1e300, "1", nil, []int{1},
			1i} {
			assert.ErrorIs(t, Full(s, typ, n).Err(), ErrType, "%v of %v", typ, n)
			assert.ErrorIs(t, x.Pad(n, [2]int{1, 0}).Err(), ErrType, "%v of %v", typ, n)
		}
	}
	assert.ErrorIs(t, From(s, []int8{1, 2}).Add(uint64(300)).Err(), ErrType)
	assert.Equal(t, []float32{math.MaxUint64, 0x1.000002p+60},
		values[float32](t, Concat(0, Full(s, F32, uint64(math.MaxUint64), 1), Full(s, F32, uint64(1<<60+1<<36+1), 1))),
		"rounded once")
}

// The last of the numbers that Iota returns has to fit, as that of Full.
func TestIotaThatDoesNotFit(t *testing.T) {
	s := scope(t)
	for typ, n := range map[Type]int{I8: 1 << 7, U8: 1 << 8, I16: 1 << 15, U16: 1 << 16, I32: 1 << 31, U32: 1 << 32} {
		assert.NoError(t, Iota(s, typ, n).Err(), typ)
		assert.NoError(t, Iota(s, typ, 0, 1<<40).Err(), typ)
		assert.ErrorIs(t, Iota(s, typ, n+1).Err(), ErrType, typ)
		assert.ErrorIs(t, Iota(s, typ, 2, n/2, 2).Err(), ErrType, typ)
	}
	assert.Equal(t, uint8(255), values[uint8](t, Iota(s, U8, 256))[255])
}

// FromBytes takes the bytes of elements of any type, and refuses what is no type or has another length.
func TestFromBytes(t *testing.T) {
	s := scope(t)
	assert.Equal(t, []int16{-2, 258}, values[int16](t, FromBytes(s, I16, []byte{0xfe, 0xff, 2, 1}, 2)))
	assert.Equal(t, []bool{true, false}, values[bool](t, FromBytes(s, Bool, []byte{1, 0}, 1, 2)))
	assert.ErrorIs(t, FromBytes(s, I16, []byte{1, 2, 3}, 1).Err(), ErrShape)
	assert.ErrorIs(t, FromBytes(s, 0, nil, 0).Err(), ErrType)
	assert.ErrorIs(t, FromBytes(s, Bool+1, nil, 0).Err(), ErrType)
}
