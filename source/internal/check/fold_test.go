package check_test

// Constants that are folded, compared with a second evaluation: integers as math/big has them, floating numbers as
// math/big rounds them. It shares nothing with package tree but the names of the types.

import (
	"context"
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/concord-compute/concord/source/internal/check"
	"github.com/concord-compute/concord/source/internal/preprocess"
	"github.com/concord-compute/concord/source/internal/token"
	"github.com/concord-compute/concord/source/internal/tree"
)

var allFeatures = token.Features{FP16: true, FP64: true}

func parse(t *testing.T, text string) (*tree.Program, error) {
	t.Helper()
	m := token.NewMeter(context.Background())
	pp, err := preprocess.Expand(m, text, preprocess.Options{Features: allFeatures})
	require.NoError(t, err)
	return check.Parse(m, pp.Tokens, allFeatures)
}

// bitsOf folds the constant x of a program and returns the bits of its lanes.
func bitsOf(t *testing.T, text string) []uint64 {
	t.Helper()
	p, err := parse(t, text)
	require.NoError(t, err, text)
	var f tree.Folder
	g := p.Globals[len(p.Globals)-1]
	v, ok := f.Lanes(g.Init.Value)
	require.True(t, ok, text)
	var bits []uint64
	for _, c := range v {
		bits = append(bits, c.Bits&(^uint64(0)>>(64-8*tree.KindSize(c.Kind))))
	}
	return bits
}

// number is a value of the second evaluation: an integer, or a floating number that is not a NaN.
type number struct {
	k string
	i *big.Int
	f *big.Float
}

// ranks has the types in the order of the usual arithmetic conversions.
var ranks = []string{"char", "uchar", "short", "ushort", "int", "uint", "long", "ulong", "half", "float", "double"}

func rank(k string) int {
	for i, name := range ranks {
		if name == k {
			return i
		}
	}
	panic(k)
}

func width(k string) int { return []int{8, 8, 16, 16, 32, 32, 64, 64, 16, 32, 64}[rank(k)] }
func isFloat(k string) bool {
	return rank(k) >= rank("half")
}
func isSigned(k string) bool { return k[0] != 'u' }

// wrapped returns i modulo 2^width, as a value of integer type k.
func wrapped(k string, i *big.Int) number {
	m := new(big.Int).Lsh(big.NewInt(1), uint(width(k)))
	r := new(big.Int).Mod(i, m)
	if isSigned(k) && r.Bit(width(k)-1) == 1 {
		r.Sub(r, m)
	}
	return number{k: k, i: r}
}

// rounded returns f in floating type k, to nearest, ties to even; subnormal numbers have fewer digits.
func rounded(k string, f *big.Float) number {
	digits, least, most := map[string]uint{"half": 11, "float": 24, "double": 53}[k],
		map[string]int{"half": -14, "float": -126, "double": -1022}[k],
		map[string]int{"half": 15, "float": 127, "double": 1023}[k]
	if f.IsInf() || f.Sign() == 0 {
		return number{k: k, f: f}
	}
	prec := int(digits)
	if exp := f.MantExp(nil) - 1; exp < least {
		prec -= least - exp
	}
	r := new(big.Float).SetMode(big.ToNearestEven)
	switch half := new(big.Float).SetMantExp(big.NewFloat(0.5), least-int(digits)+1); {
	case prec < 0 || prec == 0 && new(big.Float).Abs(f).Cmp(half) <= 0: // half of the smallest number is a tie with 0
		r.SetFloat64(0)
		if f.Signbit() {
			r.Neg(r)
		}
		return number{k: k, f: r}
	case prec == 0:
		r.SetMantExp(big.NewFloat(1), least-int(digits)+1)
		if f.Signbit() {
			r.Neg(r)
		}
		return number{k: k, f: r}
	}
	r.SetPrec(uint(prec)).Set(f)
	if r.MantExp(nil)-1 > most {
		r.SetInf(f.Signbit())
	}
	return number{k: k, f: r}
}

// to converts n; ok is false where C leaves the result open.
func (n number) to(k string) (out number, ok bool) {
	switch {
	case n.i != nil && isFloat(k):
		return rounded(k, new(big.Float).SetPrec(64).SetInt(n.i)), true
	case n.i != nil:
		return wrapped(k, n.i), true
	case isFloat(k):
		return rounded(k, n.f), true
	case n.f.IsInf():
		return out, false
	}
	i, _ := n.f.Int(nil)
	out = wrapped(k, i)
	return out, out.i.Cmp(i) == 0
}

func (n number) bits() uint64 {
	if n.i != nil {
		return new(big.Int).And(n.i, new(big.Int).SetUint64(^uint64(0)>>(64-width(n.k)))).Uint64()
	}
	f, _ := n.f.Float64()
	switch n.k {
	case "double":
		return math.Float64bits(f)
	case "float":
		return uint64(math.Float32bits(float32(f)))
	}
	sign := uint64(math.Float64bits(f) >> 63 << 15)
	switch f = math.Abs(f); {
	case math.IsInf(f, 0):
		return sign | 0x7c00
	case f < 0x1p-14:
		return sign | uint64(f*0x1p24)
	}
	frac, exp := math.Frexp(f)
	return sign | uint64(exp+14)<<10 + uint64(frac*0x1p11) - 0x400
}

func (n number) isZero() bool { return n.i != nil && n.i.Sign() == 0 || n.f != nil && n.f.Sign() == 0 }

// promoted is the integer promotion.
func promoted(k string) string {
	if rank(k) < rank("int") {
		return "int"
	}
	return k
}

func common(a, b string) string {
	return ranks[max(rank(promoted(a)), rank(promoted(b)))]
}

func truth(b bool) number {
	if b {
		return number{k: "int", i: big.NewInt(1)}
	}
	return number{k: "int", i: new(big.Int)}
}

var (
	arithmetic = []string{"+", "-", "*", "/", "%", "&", "|", "^", "<<", ">>"}
	relations  = []string{"<", ">", "<=", ">=", "==", "!=", "&&", "||"}
)

// binary evaluates a op b; ok is false where the language has no value, or a NaN.
func binary(a number, op string, b number) (out number, ok bool) {
	switch op {
	case "&&":
		return truth(!a.isZero() && !b.isZero()), true
	case "||":
		return truth(!a.isZero() || !b.isZero()), true
	case "<<", ">>":
		if a.i == nil || b.i == nil {
			return out, false
		}
		k := promoted(a.k)
		n := uint(new(big.Int).And(b.i, big.NewInt(int64(width(k)-1))).Uint64())
		if op == "<<" {
			return wrapped(k, new(big.Int).Lsh(a.i, n)), true
		}
		return wrapped(k, new(big.Int).Rsh(a.i, n)), true
	}
	k := common(a.k, b.k)
	a, _ = a.to(k)
	b, _ = b.to(k)
	order := 0
	if a.i != nil {
		order = a.i.Cmp(b.i)
	} else {
		order = a.f.Cmp(b.f)
	}
	switch op {
	case "<":
		return truth(order < 0), true
	case ">":
		return truth(order > 0), true
	case "<=":
		return truth(order <= 0), true
	case ">=":
		return truth(order >= 0), true
	case "==":
		return truth(order == 0), true
	case "!=":
		return truth(order != 0), true
	}
	if a.f != nil {
		return floats(k, a.f, op, b.f)
	}
	r := new(big.Int)
	switch op {
	case "+":
		r.Add(a.i, b.i)
	case "-":
		r.Sub(a.i, b.i)
	case "*":
		r.Mul(a.i, b.i)
	case "&":
		r.And(a.i, b.i)
	case "|":
		r.Or(a.i, b.i)
	case "^":
		r.Xor(a.i, b.i)
	case "/", "%":
		if b.i.Sign() == 0 {
			return out, false
		}
		q, m := new(big.Int).QuoRem(a.i, b.i, new(big.Int))
		if r = q; op == "%" {
			r = m
		}
	}
	return wrapped(k, r), true
}

func floats(k string, a *big.Float, op string, b *big.Float) (out number, ok bool) {
	if a.IsInf() || b.IsInf() || strings.Contains("%&|^", op) || op == "/" && b.Sign() == 0 {
		return out, false
	}
	r := new(big.Float).SetPrec(4200) // exact for sums and products of doubles
	switch op {
	case "+":
		r.Add(a, b)
	case "-":
		r.Sub(a, b)
	case "*":
		r.Mul(a, b)
	case "/":
		r.Quo(a, b)
	}
	if r.Sign() == 0 && (op == "+" || op == "-") && !(a.Sign() == 0 && b.Sign() == 0) {
		r.Abs(r)
	}
	return rounded(k, r), true
}

// literals are numbers near the limits of all types.
func literal(r *rand.Rand) (string, number) {
	n := new(big.Int).SetUint64(r.Uint64() >> r.IntN(64))
	if r.IntN(3) == 0 { // near a power of two
		n.Lsh(big.NewInt(1), uint(r.IntN(64))).Add(n, big.NewInt(int64(r.IntN(3)-1)))
	}
	switch r.IntN(6) {
	case 0:
		k, suffix := "float", "f"
		if r.IntN(2) == 0 {
			k, suffix = "double", ""
		} else if r.IntN(2) == 0 {
			k, suffix = "half", "h"
		}
		text := strconv.FormatFloat(math.Ldexp(float64(r.IntN(1<<14)), r.IntN(40)-20)+float64(r.IntN(3)), 'e', -1, 64)
		if r.IntN(3) == 0 { // in digits that are half way between two halves, and beyond
			text = fmt.Sprintf("%d.%s", 2049+2*r.IntN(900), strings.Repeat("0", r.IntN(30))+strconv.Itoa(r.IntN(2)))
		}
		f, _, err := big.ParseFloat(text, 10, 2000, big.ToNearestEven)
		if err != nil {
			panic(err)
		}
		return text + suffix, rounded(k, f)
	case 1:
		return fmt.Sprintf("%#xul", n), number{k: "ulong", i: n}
	case 2:
		return fmt.Sprintf("%#xu", new(big.Int).And(n, big.NewInt(math.MaxUint32))), wrapped("uint", n)
	case 3:
		n.And(n, big.NewInt(math.MaxInt64))
		return n.String() + "L", number{k: "long", i: n}
	case 4:
		k := ranks[r.IntN(4)]
		w := wrapped(k, n)
		return fmt.Sprintf("(%s)(%s)", k, w.i), w
	}
	n.And(n, big.NewInt(math.MaxInt32))
	return n.String(), number{k: "int", i: n}
}

// expression makes a constant expression and evaluates it.
func expression(r *rand.Rand, depth int) (string, number) {
	for {
		if depth == 0 {
			return literal(r)
		}
		a, x := expression(r, depth-1)
		b, y := expression(r, r.IntN(depth))
		switch r.IntN(8) {
		case 0:
			k := ranks[r.IntN(len(ranks))]
			if z, ok := x.to(k); ok {
				return fmt.Sprintf("(%s)(%s)", k, a), z
			}
		case 1:
			k := promoted(x.k)
			p, _ := x.to(k)
			switch op := "-+!~"[r.IntN(4)]; {
			case op == '!':
				return "!(" + a + ")", truth(x.isZero())
			case op == '+':
				return "+(" + a + ")", p
			case op == '-' && p.f != nil:
				return "-(" + a + ")", number{k: k, f: new(big.Float).Neg(p.f)}
			case op == '-':
				return "-(" + a + ")", wrapped(k, new(big.Int).Neg(p.i))
			case p.i != nil:
				return "~(" + a + ")", wrapped(k, new(big.Int).Not(p.i))
			}
		case 2:
			c, z := expression(r, r.IntN(depth))
			k := common(y.k, z.k)
			chosen := z
			if !x.isZero() {
				chosen = y
			}
			chosen, _ = chosen.to(k)
			return fmt.Sprintf("((%s) ? (%s) : (%s))", a, b, c), chosen
		case 3:
			op := relations[r.IntN(len(relations))]
			if z, ok := binary(x, op, y); ok {
				return fmt.Sprintf("((%s) %s (%s))", a, op, b), z
			}
		default:
			op := arithmetic[r.IntN(len(arithmetic))]
			if z, ok := binary(x, op, y); ok {
				return fmt.Sprintf("((%s) %s (%s))", a, op, b), z
			}
		}
	}
}

// TestFoldedConstants: random constant expressions of every type, as scalars and as lanes.
func TestFoldedConstants(t *testing.T) {
	r := rand.New(rand.NewPCG(34, 6))
	for range 6000 {
		text, n := expression(r, 1+r.IntN(4))
		k := ranks[r.IntN(len(ranks))]
		want, ok := n.to(k)
		if !ok {
			continue
		}
		text = fmt.Sprintf("constant %s x = %s;", k, text)
		require.Equal(t, []uint64{want.bits()}, bitsOf(t, text), text)
	}
	for range 2000 {
		k, n := ranks[r.IntN(len(ranks))], 2
		var lanes [2][]string
		var of [2][]number
		for i := range lanes {
			for range n {
				text, x := literal(r)
				v, ok := x.to(k)
				for !ok {
					text, x = literal(r)
					v, ok = x.to(k)
				}
				lanes[i], of[i] = append(lanes[i], fmt.Sprintf("(%s)(%s)", k, text)), append(of[i], v)
			}
		}
		op := append(arithmetic[:len(arithmetic):len(arithmetic)], relations...)[r.IntN(len(arithmetic)+len(relations))]
		out := k
		compares := strings.ContainsAny(op, "<>=!&|") && op != "<<" && op != ">>" && op != "&" && op != "|"
		if compares {
			out = map[int]string{8: "char", 16: "short", 32: "int", 64: "long"}[width(k)]
		}
		var want []uint64
		for i := range n {
			x, y := of[0][i], of[1][i]
			if (op == "<<" || op == ">>") && y.i != nil { // the count is taken modulo the width of the lane
				y = number{k: "int", i: new(big.Int).And(y.i, big.NewInt(int64(width(k)-1)))}
			}
			z, ok := binary(x, op, y)
			if ok && compares {
				z.i.Neg(z.i)
			}
			if ok {
				z, ok = z.to(out)
			}
			if !ok {
				want = nil
				break
			}
			want = append(want, z.bits())
		}
		if want == nil {
			continue
		}
		text := fmt.Sprintf("constant %s2 x = (%s2)(%s) %s (%s2)(%s);", out, k, strings.Join(lanes[0], ", "), op, k,
			strings.Join(lanes[1], ", "))
		require.Equal(t, want, bitsOf(t, text), text)
	}
}

// TestIntegerConstants: the places where C wants an integer constant have the value of the expression.
func TestIntegerConstants(t *testing.T) {
	r := rand.New(rand.NewPCG(34, 7))
	for range 2000 {
		text, n := expression(r, 1+r.IntN(4))
		want, ok := n.to("ulong")
		if !ok || n.f != nil {
			continue
		}
		small := new(big.Int).And(want.i, big.NewInt(63)).Int64()
		text = fmt.Sprintf("enum { E = (%s) & 63, F }; constant int a[((%[1]s) & 63) + 1] = {1}; constant ulong y = "+
			"sizeof(a) / 4, z = F;", text)
		assert.Equal(t, []uint64{uint64(small + 1)}, bitsOf(t, text), text)
		assert.Equal(t, []uint64{uint64(small + 1)}, bitsOf(t, strings.Replace(text, ", z = F", "", 1)), text)
	}
}

// TestEnumerationTypes: constants that int does not hold have the type of the enumeration, as with clang.
func TestEnumerationTypes(t *testing.T) {
	for text, want := range map[string]uint64{
		"enum e { A = ULONG_MAX }; constant ulong x = A / 2;":                          math.MaxInt64,
		"enum e { A = 1UL << 63 }; constant int x = A > 0;":                            1,
		"enum e { A = INT_MAX, B }; constant long x = B;":                              1 << 31,
		"enum e { A = UINT_MAX, B }; constant long x = B;":                             1 << 32,
		"enum e { A = UINT_MAX }; constant int x = sizeof(enum e) + sizeof(A);":        8,
		"enum e { A = -1, B = UINT_MAX }; constant int x = 100 * (A < B) + sizeof(B);": 108,
		"enum e { A = 1L << 40, B = 1 }; constant int x = sizeof(A) + 16 * sizeof(B);": 72,
		"enum e { A = -1, B = 5 }; constant uint x = A / 2 + B;":                       5,
	} {
		assert.Equal(t, []uint64{want}, bitsOf(t, text), text)
	}
}

// TestNaNBits: the bits of a NaN survive what copies it.
func TestNaNBits(t *testing.T) {
	for text, want := range map[string][]uint64{
		"constant float x = as_float(0xffffffffu);": {
			0xffffffff},
		"constant float2 x = -(float2)(as_float(0x7fc12345u), NAN);": {
			0xffc12345, 0xffc00000},
		"constant double x = as_double(0xfff0000000000001ul);": {
			0xfff0000000000001},
		"constant double x = as_float(0xffc12345u);": {
			0xfff82468a0000000},
		"constant half x = as_half((ushort)0x7c01);": {
			0x7c01},
		"constant uint x = as_uint(as_float(0x7fa00001u));": {
			0x7fa00001},
		"constant float t[2] = {1, as_float(0xff812345u)}; constant float x = t[1];": {
			0xff812345},
		"union u { float f; uint i; }; constant union u t = {.i = 0x7fc12345u}; constant uint x = t.i + 1;": {
			0x7fc12346},
		"constant int x = NAN == NAN || NAN < 1 || 1 >= NAN || !(NAN != NAN);": {
			0},
		"constant int2 x = ((float2)(NAN, 1) < 2) ? (int2)(5, 6) : 7;": {
			7, 6},
		"constant uchar2 x = (uchar2)(128, 127) ? (uchar2)(1, 2) : (uchar2)(3, 4);": {
			1, 4},
		"constant int4 v = {1, 2, 3, 4}; constant int x = v[2] + v.s3 + (int4){5, 6, 7, 8}.y;": {
			13},
		"constant int x = (1 ?: 2) + (0 ?: 3) + (int){};": {
			4},
		"constant int4 x = (int4)(true) + (int4)((bool)5);": {
			0, 0, 0, 0},
		"constant uint x = vec_step(float3) + sizeof(double3) + sizeof('a') + 'a' + '\\377' + (char)200 + (bool)0.1f + 07;": {
			4 + 32 + 4 + 97 - 1 - 56 + 1 + 7},
		"constant int x = INT_MIN / -1 == INT_MIN && INT_MIN % -1 == 0 && LONG_MIN / -1 == LONG_MIN;": {
			1},
	} {
		assert.Equal(t, want, bitsOf(t, text), text)
	}
}

// TestConstantsByZero: a constant that divides an integer by zero is refused; a branch that is not taken may.
func TestConstantsByZero(t *testing.T) {
	for _, text := range []string{
		"constant int x = 1 / 0;", "constant int x = 1 % (2 - 2);", "constant int2 x = (int2)(1, 2) / (int2)(1, 0);",
		"constant int z = 0; constant long x = 1UL % z;", "enum { E = 1 / 0 };", "constant int x[1 / 0] = {1};",
		"constant struct { int a[2]; } x = {{1, 2 / 0}};",
	} {
		_, err := parse(t, text)
		var list token.ErrorList
		assert.ErrorAs(t, err, &list, text)
	}
	assert.Equal(t, []uint64{2}, bitsOf(t, "constant int x = 1 ? 2 : 1 / 0;"))
	assert.Equal(t, []uint64{0x7f800000}, bitsOf(t, "constant float x = 1 / 0.0f;"))
}
