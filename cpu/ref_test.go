package cpu

// Compares the references with values computed by hand and with formulas other than those that
// they use.

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/concord-compute/concord/kernels"
	"github.com/concord-compute/concord/runtime/driver"
	"github.com/concord-compute/concord/runtime/half"
	"github.com/concord-compute/concord/source"
)

// arg is one argument of callReference: a buffer with numbers of a type, or, if value is set, one
// number.
type arg struct {
	typ   string
	x     []float64
	value bool
}

func buf(typ string, x ...float64) arg { return arg{typ, x, false} }
func val(typ string, x float64) arg    { return arg{typ, []float64{x}, true} }
func zeros(typ string, n int) arg      { return arg{typ, make([]float64, n), false} }
func uints(v ...int) (args []arg)      { return numbersOf("u32", v) }
func counts(v ...int) (args []arg)     { return numbersOf("u64", v) }
func define(kv ...string) (d []source.Define) {
	for i := 0; i < len(kv); i += 2 {
		d = append(d, source.Define{Name: kv[i], Value: kv[i+1]})
	}
	return d
}

func numbersOf(typ string, v []int) (args []arg) {
	for _, n := range v {
		args = append(args, val(typ, float64(n)))
	}
	return args
}

// callReference runs a reference and returns the numbers in argument out after the launch.
func callReference(t *testing.T, family, kernel string, defs []source.Define, out int, args ...arg) []float64 {
	t.Helper()
	d := openIndex(t, referenceIndex)
	u, err := kernels.Unit(family, nil, defs...)
	require.NoError(t, err)
	k, ok := d.Native(u, kernel)
	require.True(t, ok, kernel)
	l := &driver.Launch{Kernel: k, Dim: 1, Global: [3]int{1, 1, 1}, Local: [3]int{1, 1, 1}}
	var result []byte
	for i, a := range args {
		data := kernels.Encode(a.typ, a.x)
		if a.value {
			for len(l.Data)%8 != 0 {
				l.Data = append(l.Data, 0)
			}
			l.Args = append(l.Args, driver.Arg{Kind: driver.ArgValue, Offset: len(l.Data), Size: len(data)})
			l.Data = append(l.Data, data...)
			continue
		}
		m := allocBytes(t, d, int64(len(data)))
		b, err := d.memory.bytes(m)
		require.NoError(t, err)
		copy(b, data)
		if i == out {
			result = b
		}
		l.Args = append(l.Args, driver.Arg{Kind: driver.ArgMemory, Memory: m})
	}
	s := openStream(t, d)
	require.NoError(t, s.Launch(l))
	require.NoError(t, s.Sync(background(t)))
	return kernels.Decode(args[out].typ, result)
}

func TestReferenceArith(t *testing.T) {
	for _, c := range []struct {
		kernel, typ string
		a, b        arg
		want        []float64
	}{
		{"add", "f32", buf("f32", 1, 0x1p24), buf("f32", 0.5, 1), []float64{1.5, 0x1p24}},
		{"div", "f32", buf("f32", 1, -1, 0), buf("f32", 3, 0, 0),
			[]float64{float64(float32(1) / 3), math.Inf(-1), math.NaN()}},
		{"mul", "f16", buf("f16", 300, 0.1), buf("f16", 300, 3),
			[]float64{math.Inf(1), half.ToFloat16(half.ToFloat16(0.1).Float64() * 3).Float64()}},
		{"add", "bf16", buf("bf16", 256), buf("bf16", 1), []float64{256}}, // the tie goes to even
		{"add", "i8", buf("i8", 127, -128), buf("i8", 1, -1), []float64{-128, 127}},
		{"sub", "u16", buf("u16", 0, 5), buf("u16", 1, 5), []float64{65535, 0}},
		{"mul", "i32", buf("i32", 65536, -3), buf("i32", 65536, 7), []float64{0, -21}},
		{"mul", "u64", buf("u64", 0x1p63), buf("u64", 2), []float64{0}},
		{"sub_scalar", "i16", buf("i16", -32768), val("i32", 1), []float64{32767}},
		{"scalar_sub", "f32", val("f32", 10), buf("f32", 1, 2), []float64{9, 8}},
		{"scalar_div", "f64", val("f64", 1), buf("f64", 4), []float64{0.25}},
	} {
		n := len(c.want)
		args := append([]arg{c.a, c.b, zeros(c.typ, n)}, counts(n)...)
		got := callReference(t, "arith", c.kernel, define("T", c.typ), 2, args...)
		assert.True(t, same(c.want, got), "%s %s: got %v, want %v", c.kernel, c.typ, got, c.want)
	}
	// A column of 2 times a row of 3.
	args := append([]arg{buf("f32", 2, 3), buf("f32", 1, 10, 100), zeros("f32", 6)},
		uints(1, 1, 2, 3, 0, 0, 1, 0, 0, 0, 0, 1)...)
	assert.Equal(t, []float64{2, 20, 200, 3, 30, 300}, callReference(t, "arith", "mul_broadcast", nil, 2, args...))
}

// same compares numbers; NaN equals NaN.
func same(a, b []float64) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i] != b[i] && (a[i] == a[i] || b[i] == b[i]) {
			return false
		}
	}
	return true
}

func TestReferenceElementwise(t *testing.T) {
	args := append([]arg{val("f32", 2), buf("f32", 1, 2, 3), buf("f32", 10, 20, 30)}, counts(2)...)
	assert.Equal(t, []float64{12, 24, 30}, callReference(t, "saxpy", "saxpy", nil, 2, args...), "the third is beyond n")
	args = append([]arg{zeros("i8", 3), val("i32", -7)}, counts(2)...)
	assert.Equal(t, []float64{-7, -7, 0}, callReference(t, "fill", "fill", define("T", "i8"), 0, args...))
	args = append([]arg{buf("f32", 1, math.Inf(1), 3), zeros("f32", 3)}, counts(3)...)
	assert.Equal(t, []float64{1, math.Inf(1), 3}, callReference(t, "copy", "copy", nil, 1, args...))
	args = append([]arg{buf("f32", 1, 2, 3, 4, 5, 6), zeros("f32", 6)}, uints(2, 3)...)
	assert.Equal(t, []float64{1, 4, 2, 5, 3, 6}, callReference(t, "transpose", "transpose", nil, 1, args...))
}

func TestReferenceCast(t *testing.T) {
	inf, nan := math.Inf(1), math.NaN()
	for _, c := range []struct {
		from, to string
		x, want  []float64
	}{
		{"f32", "i8", []float64{1.9, -1.9, 127.9, 300, -300, inf, -inf, nan}, []float64{1, -1, 127, 127, -128, 127, -128, 0}},
		{"f32", "u8", []float64{-1, 255.9, 256}, []float64{0, 255, 255}},
		{"f64", "i32", []float64{2147483647.9, -2147483649}, []float64{2147483647, -2147483648}},
		{"i32", "u8", []float64{-5, 300, 7}, []float64{0, 255, 7}},
		{"i16", "i8", []float64{-200, 200}, []float64{-128, 127}},
		{"f32", "f16", []float64{65519, 65520, 1 + 0x1p-11, 1 + 3*0x1p-11, 0x1p-24, 0x1p-26},
			[]float64{65504, inf, 1, 1 + 0x1p-9, 0x1p-24, 0}},
		{"f32", "bf16", []float64{257, 259, 1e30}, []float64{256, 260, half.ToBFloat16(1e30).Float64()}},
		{"f64", "f16", []float64{1 + 0x1p-11 + 0x1p-40}, []float64{1 + 0x1p-10}}, // through float it would be 1
		{"i64", "bf16", []float64{0x1p40 + 0x1p32 + 1}, []float64{0x1p40 + 0x1p33}},
		{"u64", "f32", []float64{0x1p63 + 0x1p39 + 0x1p11}, []float64{0x1p63 + 0x1p40}},
		{"f16", "f64", []float64{65504, 0x1p-24}, []float64{65504, 0x1p-24}},
	} {
		n := len(c.x)
		args := append([]arg{buf(c.from, c.x...), zeros(c.to, n)}, counts(n)...)
		got := callReference(t, "cast", "cast", define("FROM", c.from, "TO", c.to), 1, args...)
		assert.True(t, same(c.want, got), "%s to %s: got %v, want %v", c.from, c.to, got, c.want)
	}
}

func TestReferenceActivations(t *testing.T) {
	x := []float64{-2, -1, 0, 1, 2}
	for kernel, want := range map[string][]float64{ // to 6 places, from tables
		"relu":      {0, 0, 0, 1, 2},
		"sigmoid":   {0.119203, 0.268941, 0.5, 0.731059, 0.880797},
		"tanh_act":  {-0.964028, -0.761594, 0, 0.761594, 0.964028},
		"gelu":      {-0.045500, -0.158655, 0, 0.841345, 1.954500},
		"gelu_tanh": {-0.045402, -0.158808, 0, 0.841192, 1.954598},
		"swish":     {-0.238406, -0.268941, 0, 0.731059, 1.761594},
	} {
		args := append([]arg{buf("f64", x...), zeros("f64", len(x))}, counts(len(x))...)
		got := callReference(t, "activation", kernel, define("T", "f64"), 1, args...)
		assert.InDeltaSlice(t, want, got, 1e-6, kernel)
	}
}

func TestReferenceReductions(t *testing.T) {
	x := buf("f32", 1, 5, 3, 4, 5, 2, -1, -5, -3, -4, -5, -2) // 2×3×2
	for op, want := range map[string][]float64{
		"sum": {9, 11, -9, -11}, "mean": {3, float64(float32(11) / 3), -3, float64(float32(-11) / 3)},
		"max": {5, 5, -1, -2}, "min": {1, 2, -5, -5}, "argmax": {2, 0, 0, 2},
	} {
		typ := "f32"
		if op == "argmax" {
			typ = "u32"
		}
		for _, form := range []string{"", "_columns"} {
			args := append([]arg{x, zeros(typ, 4)}, uints(2, 3, 2)...)
			assert.Equal(t, want, callReference(t, "reduce", "reduce_"+op+form, nil, 1, args...), op+form)
		}
	}
	args := append([]arg{buf("f64", 1, 1e100, 1, -1e100), zeros("f64", 1)}, uints(1, 4, 1)...)
	assert.Equal(t, []float64{2}, callReference(t, "reduce", "reduce_sum", define("T", "f64"), 1, args...), "compensated")
}

func TestReferenceReductionsOfIntegers(t *testing.T) {
	x := buf("i8", 100, 3, -7, -128, 50, 2)
	for op, want := range map[string][]float64{"sum": {96, -76}, "prod": {-52, 0}, "max": {100, 50}, "min": {-7, -128},
		"argmin": {2, 0}} {
		out := zeros("i8", 2)
		args := append([]arg{x, out}, uints(2, 3, 1)...)
		assert.Equal(t, want, callReference(t, "reduce", "reduce_"+op, define("T", "i8", "INDEX", "i8"), 1, args...), op)
	}
	for op, want := range map[string]float64{"sum": 0, "prod": 1, "max": 0, "min": 255} {
		assert.Equal(t, []float64{want}, callReference(t, "reduce", "reduce_"+op, define("T", "u8"), 1,
			append([]arg{zeros("u8", 1), zeros("u8", 1)}, uints(1, 0, 1)...)...), op)
	}
	nan := buf("f32", 1, math.NaN(), 2, math.NaN())
	assert.Equal(t, []float64{1}, callReference(t, "reduce", "reduce_argmax", nil, 1,
		append([]arg{nan, zeros("u32", 1)}, uints(1, 4, 1)...)...))
	assert.Equal(t, []float64{4}, callReference(t, "reduce", "reduce_mean", define("T", "f16"), 1,
		append([]arg{buf("f16", 1, 2, 3, 4, 5, 6, 7), zeros("f16", 1)}, uints(1, 7, 1)...)...))
}

func TestReferenceIndices(t *testing.T) {
	x, index := buf("f32", 1, 2, 3, 4, 5, 6), buf("i16", 1, -1, 300, 0)
	args := append([]arg{x, index, zeros("f32", 8)}, uints(3, 4, 2)...)
	assert.Equal(t, []float64{3, 4, 0, 0, 0, 0, 1, 2}, callReference(t, "gather", "gather", define("INDEX", "i16"), 2,
		args...))
	assert.Equal(t, []float64{3, 4, 1, 2, 5, 6, 1, 2},
		callReference(t, "gather", "gather", define("INDEX", "i16", "CLAMP", "1"), 2, args...))
	args = append([]arg{x, buf("u32", 2, 0, 1, 1), zeros("f32", 4)}, uints(1, 3, 2, 2)...)
	assert.Equal(t, []float64{5, 2, 3, 4}, callReference(t, "take_along", "take_along", nil, 2, args...))
}

func TestReferenceSort(t *testing.T) {
	nan := math.NaN()
	for _, c := range []struct {
		kernel, descending string
		keys, want, places []float64
		width              int
	}{
		{"sort_blocks", "0", []float64{3, nan, 1, 3, -1}, []float64{-1, 1, 3, 3, nan}, []float64{4, 2, 0, 3, 1}, 0},
		{"sort_blocks", "1", []float64{3, nan, 1, 3, -1}, []float64{nan, 3, 3, 1, -1}, []float64{1, 0, 3, 2, 4}, 0},
		{"sort_merge", "0", []float64{1, 3, 1, 2, 0}, []float64{1, 1, 2, 3, 0}, []float64{0, 2, 3, 1, 4}, 2},
	} {
		args := append([]arg{buf("f32", c.keys...), buf("u32", 0, 1, 2, 3, 4), zeros("f32", 5), zeros("u32", 5)},
			uints(1, 5)...)
		if c.width > 0 {
			args = append(args, val("u32", float64(c.width)))
		}
		assert.True(t, same(c.want, callReference(t, "sort_pairs", c.kernel, define("DESCENDING", c.descending), 2, args...)),
			"%+v", c)
		assert.Equal(t, c.places, callReference(t, "sort_pairs", c.kernel, define("DESCENDING", c.descending), 3, args...),
			"%+v", c)
	}
}

func TestReferenceScan(t *testing.T) {
	// in parts of three and two
	args := append([]arg{buf("f16", 1, 2, 3, 4, 5), buf("f32", 3, 7), zeros("f16", 5)}, uints(1, 5, 2)...)
	assert.Equal(t, []float64{1, 3, 6, 7, 12}, callReference(t, "scan", "scan_sum", define("T", "f16"), 2, args...))
	args = append([]arg{buf("i8", 100, 100, 100, 1, -2, -3), zeros("i8", 2), zeros("i8", 6)}, uints(2, 3, 1)...)
	assert.Equal(t, []float64{100, -56, 44, 1, -1, -4}, callReference(t, "scan", "scan_sum", define("T", "i8"), 2,
		args...))
}

func TestReferenceSegment(t *testing.T) {
	in, id, order := buf("i32", 1, 2, 10, 20, 100, -200), buf("u32", 0, 0, 2, 9), buf("u32", 1, 2, 0, 0)
	for kernel, want := range map[string][]float64{"segment_add": {111, -179, 1, 1, 2, 3},
		"segment_max": {100, 20, 1, 1, 1, 2}, "segment_min": {1, -200, 1, 1, 1, 1}} {
		args := append([]arg{in, id, order, buf("i32", 1, 1, 1, 1, 1, 1)}, uints(3, 4, 3, 2)...)
		assert.Equal(t, want, callReference(t, "segment", kernel, define("T", "i32"), 3, args...), kernel)
	}
}

func TestReferenceSoftmax(t *testing.T) {
	args := append([]arg{buf("f64", 0, math.Log(3), 1000, 1000), zeros("f64", 4)}, uints(2, 2)...)
	assert.InDeltaSlice(t, []float64{0.25, 0.75, 0.5, 0.5}, callReference(t, "softmax", "softmax", define("T", "f64"), 1,
		args...), 1e-15)
}

func TestReferenceTopK(t *testing.T) {
	x := buf("f32", 3, math.NaN(), 1, 2, 1, math.Inf(1), math.Copysign(0, -1), 0)
	args := append([]arg{x, zeros("f32", 8), zeros("u32", 8)}, uints(1, 8, 8)...)
	assert.True(t, same([]float64{0, 0, 1, 1, 2, 3, math.Inf(1), math.NaN()},
		callReference(t, "topk", "topk", nil, 1, args...)))
	assert.Equal(t, []float64{6, 7, 2, 4, 3, 0, 5, 1}, callReference(t, "topk", "topk", nil, 2, args...))
}

func TestReferenceGemm(t *testing.T) {
	// [1 2; 3 4]·[5 6; 7 8] and its transposes.
	for trans, want := range map[string][]float64{
		"00": {19, 22, 43, 50}, "10": {26, 30, 38, 44}, "01": {17, 23, 39, 53}, "11": {23, 31, 34, 46},
	} {
		args := []arg{val("u32", 2), val("u32", 2), val("u32", 2), val("f32", 2), buf("f32", 1, 2, 3, 4), val("u32", 2),
			buf("f32", 5, 6, 7, 8), val("u32", 2), val("f32", 1), buf("f32", 1, 1, 1, 1), val("u32", 2)}
		for i := range want {
			want[i] = 2*want[i] + 1
		}
		defs := define("TRANS_A", trans[:1], "TRANS_B", trans[1:])
		assert.Equal(t, want, callReference(t, "gemm", "gemm", defs, 9, args...), trans)
	}
}

// Rows of A and B may have elements in common, rows of C may not.
func TestReferenceGemmRows(t *testing.T) {
	args := func(m, lda, ldb, ldc uint32) []any {
		return []any{m, uint32(2), uint32(2), float32(1), kernels.Encode("f32", []float64{1, 2, 3, 4}), lda,
			kernels.Encode("f32", []float64{5, 6, 7, 8}), ldb,
			float32(0), make([]byte, 16), ldc}
	}
	d := openIndex(t, referenceIndex)
	for _, c := range []struct {
		m, lda, ldb, ldc uint32
		want             []float64
	}{
		{2, 2, 2, 2, []float64{19, 22, 43, 50}},
		{2, 1, 2, 2, []float64{19, 22, 31, 36}}, // rows 1 2 and 2 3
		{2, 0, 1, 2, []float64{17, 20, 17, 20}},
		{1, 0, 2, 0, []float64{19, 22, 0, 0}},
		{2, 2, 2, 1, nil},
		{2, 2, 2, 0, nil},
		{math.MaxUint32, 0, 0, 0, nil},
	} {
		a := args(c.m, c.lda, c.ldb, c.ldc)
		err := invoke(t, d, "gemm", "gemm", nil, [3]int{1, 1, 1}, a...)
		if c.want == nil {
			assert.ErrorIs(t, err, driver.ErrInvalidArgument, "%+v", c)
			continue
		}
		require.NoError(t, err)
		assert.Equal(t, c.want, kernels.Decode("f32", a[9].([]byte)), "%+v", c)
	}
}

// TestReferenceGemmLoop checks that the loop for infinite elements has the results of gonum for finite
// ones.
func TestReferenceGemmLoop(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	m, n, k := 5, 7, 9
	data := func(n int) []float64 {
		x := make([]float64, n)
		for i := range x {
			x[i] = r.NormFloat64()
		}
		return x
	}
	a, b, c := data(m*k), data(k*n), data(m*n)
	for _, last := range []float64{1, math.NaN()} { // with a NaN in the last row of A the loop is used
		a[m*k-1] = last
		args := []arg{val("u32", 5), val("u32", 7), val("u32", 9), val("f64", 0.5), buf("f64", a...), val("u32", 9),
			buf("f64", b...), val("u32", 7), val("f64", 3), buf("f64", c...), val("u32", 7)}
		got := callReference(t, "gemm", "gemm", define("T", "f64"), 9, args...)
		for i := range m - 1 {
			for j := range n {
				want := 3 * c[i*n+j]
				for p := range k {
					want += 0.5 * a[i*k+p] * b[p*n+j]
				}
				assert.InDelta(t, want, got[i*n+j], 1e-14, fmt.Sprint(last, i, j))
			}
		}
		assert.Equal(t, math.IsNaN(last), math.IsNaN(got[m*n-1]))
	}
}

func TestReferenceL2(t *testing.T) {
	args := append([]arg{buf("f32", 0, 0, 1, 2), buf("f32", 3, 4, 1, 2, 0, 0), zeros("f32", 6)}, uints(2, 3, 2)...)
	assert.Equal(t, []float64{25, 5, 0, 8, 0, 5}, callReference(t, "l2_distance", "l2_distance_fp32", nil, 2, args...))
	args[0].typ, args[1].typ = "f16", "f16"
	assert.Equal(t, []float64{25, 5, 0, 8, 0, 5}, callReference(t, "l2_distance", "l2_distance_fp16", nil, 2, args...))
	args = append([]arg{buf("i8", 127, -128), buf("i8", -128, 127, 0, 0), zeros("f32", 2)}, uints(1, 2, 2)...)
	want := []float64{float64(float32(2.0 * 255 * 255 / 16129)), float64(float32((127.0*127 + 128*128) / 16129))}
	assert.Equal(t, want, callReference(t, "l2_distance", "l2_distance_int8", nil, 2, args...))
}
