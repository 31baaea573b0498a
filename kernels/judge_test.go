package kernels

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestJudge(t *testing.T) {
	nan, inf := math.NaN(), math.Inf(1)
	tenth := []float64{0.1, 0.1}
	for _, typ := range []string{"f32", "f64"} {
		for _, c := range []struct {
			bound    []float64
			ref, got []float64
			ok       bool
		}{
			{nil, []float64{1, nan}, []float64{1, nan}, true},
			{nil, []float64{1, 2}, []float64{1, 2.000001}, false},
			{nil, []float64{0, 0}, []float64{0, math.Copysign(0, -1)}, false},
			{nil, []float64{1, inf}, []float64{1, inf}, true},
			{nil, []float64{1}, []float64{1, 1}, false},
			{tenth, []float64{1, 2}, []float64{1.05, 1.95}, true},
			{tenth, []float64{1, 2}, []float64{1, 2.2}, false},
			{tenth, []float64{0, 2}, []float64{math.Copysign(0, -1), 2}, true},
			{tenth, []float64{1, nan}, []float64{1, 2}, false},
			{tenth, []float64{1, 2}, []float64{1, nan}, false},
			{tenth, []float64{1, inf}, []float64{1, -inf}, false},
			{tenth, []float64{1, 2}, []float64{1, inf}, false},
			{[]float64{0.1, inf}, []float64{1, 2}, []float64{1, nan}, true},
		} {
			assert.Equal(t, c.ok, Judge(typ, Encode(typ, c.ref), Encode(typ, c.got), c.bound).OK, "%s %v %v", typ, c.ref, c.got)
		}
	}
	assert.Panics(t, func() { Judge("float", nil, nil, nil) })
}

// TestJudgeSeesBits checks that NaNs with different bits are equal, and that integers which float64 cannot tell
// apart differ.
func TestJudgeSeesBits(t *testing.T) {
	assert.True(t, Judge("f32", []byte{0, 0, 0xc0, 0x7f}, []byte{1, 0, 0xc0, 0xff}, nil).OK)
	for _, typ := range []string{"i64", "u64"} {
		want := Encode(typ, []float64{1, 1 << 62})
		got := append([]byte(nil), want...)
		assert.True(t, Judge(typ, want, got, nil).OK)
		got[8]++
		assert.Equal(t, Verdict{MaxError: 1, At: 1, Got: 1 << 62, Want: 1 << 62}, Judge(typ, want, got, nil))
		assert.False(t, Judge(typ, got, want, []float64{0, 0.5}).OK)
		assert.True(t, Judge(typ, want, got, []float64{0, 1}).OK)
	}
	assert.Equal(t, 0x1p64, Judge("i64", Encode("i64", []float64{-0x1p63}), []byte{255, 255, 255, 255, 255, 255, 255, 127},
		nil).MaxError)
}

// TestBadBounds checks that unusable bounds fail with a reason, even if the result is right.
func TestBadBounds(t *testing.T) {
	for _, c := range []struct {
		bound []float64
		want  string
	}{
		{[]float64{0.1, -1}, "the bound of element 1 is -1, which is not 0 or more"},
		{[]float64{math.NaN(), 0.1}, "the bound of element 0 is NaN, which is not 0 or more"},
		{[]float64{0.1}, "there are bounds for 1 elements of 2"},
		{[]float64{}, "there are bounds for 0 elements of 2"},
		{[]float64{0.1, 0.1, 0.1}, "there are bounds for 3 elements of 2"},
		{[]float64{0, math.Inf(1)}, ""},
		{nil, ""},
	} {
		x := Encode("f32", []float64{1, 2})
		v := Judge("f32", x, x, c.bound)
		assert.Equal(t, c.want == "", v.OK, "%v", c.bound)
		if c.want != "" {
			assert.Equal(t, c.want, v.String())
		}
	}
}

// TestCaseJudge checks which output the verdict on a launch is about, and the inputs that the bound is given.
func TestCaseJudge(t *testing.T) {
	c := Case{Args: []Arg{
		{Dir: Value, Type: "f16", V: 1.0001}, {Dir: Out, Type: "f32", Len: 2}, {Bytes: []byte{1}, Dir: Value},
		{Dir: In, Type: "i8", Len: 1, Fill: constant(1, -3)}, {Dir: InOut, Type: "f64", Len: 1, Fill: constant(1, 4)},
	}}
	assert.Equal(t, [][]float64{{1}, {0, 0}, nil, {-3}, {4}}, c.Inputs())
	launch := func(a, b, x float64) [][]byte {
		return [][]byte{1: Encode("f32", []float64{a, b}), 4: Encode("f64", []float64{x})}
	}
	arg, v := c.Judge(launch(1, 2, 3), launch(1, 2, 3))
	assert.Equal(t, 1, arg)
	assert.Equal(t, Verdict{OK: true}, v)
	arg, v = c.Judge(launch(1, 2, 3), launch(1, 2, 3.5))
	assert.Equal(t, 4, arg)
	assert.Equal(t, Verdict{MaxError: 0.5, Got: 3.5, Want: 3}, v)

	c.Bound = func(arg int, in [][]float64, ref []float64) []float64 {
		require.Equal(t, c.Inputs(), in)
		return []float64{1, 1}[:len(ref)]
	}
	arg, v = c.Judge(launch(1, 2, 3), launch(1, 2.5, 3.25))
	assert.Equal(t, 1, arg, "the output that is nearest to its bound")
	assert.Equal(t, Verdict{OK: true, MaxError: 0.5, Tolerance: 1, At: 1, Got: 2.5, Want: 2}, v)
	arg, v = c.Judge(launch(1, 2, 3), launch(4, 2, 5))
	assert.Equal(t, 1, arg, "the first that is wrong")
	assert.False(t, v.OK)

	c.Args = c.Args[:1]
	_, v = c.Judge(nil, nil)
	assert.False(t, v.OK, "a case without outputs judges nothing")
}

// TestEncode checks the bytes of every element type, that floating types round, and that Decode is the inverse.
func TestEncode(t *testing.T) {
	for typ, want := range map[string][]byte{
		"f32": {0, 0, 0xc0, 0xbf}, "f64": {0, 0, 0, 0, 0, 0, 0xf8, 0xbf}, "f16": {0, 0xbe}, "bf16": {0xc0, 0xbf},
		"i8": {0xfe}, "i16": {0xfe, 0xff}, "i32": {0xfe, 0xff, 0xff, 0xff},
		"i64": {0xfe, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff},
		"u8":  {200}, "u16": {200, 0}, "u32": {200, 0, 0, 0}, "u64": {200, 0, 0, 0, 0, 0, 0, 0},
	} {
		x := map[byte]float64{'f': -1.5, 'b': -1.5, 'i': -2, 'u': 200}[typ[0]]
		assert.Equal(t, want, Encode(typ, []float64{x}), typ)
		assert.Equal(t, []float64{x}, Decode(typ, want), typ)
		if !IsFloat(typ) {
			lo, hi := rangeOf(typ)
			assert.Equal(t, []float64{lo, hi}, Decode(typ, Encode(typ, []float64{lo, hi})), typ)
		}
	}
	assert.Equal(t, Encode("f16", []float64{1}), Encode("f16", []float64{1.0001}))
	assert.Equal(t, []float64{1}, Decode("f32", append(Encode("f32", []float64{1}), 7)))
	assert.Panics(t, func() { Encode("half", nil) })
}
