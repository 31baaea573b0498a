package source

import (
	"math"
	"strconv"
)

// constant values of OpenCL C come in two kinds: macros whose value a
// preprocessor has to see (INT_MAX), and names that the renderers translate
// (INFINITY, NULL), since their spelling differs by target.

// builtinConst is a constant that stays a name until it is rendered.
type builtinConst struct {
	Type bType
	Host string // C++ of the host, CUDA and HIP preludes
}

// lookupConst finds a named constant. true and false are C++ keywords too, but
// of type int in OpenCL C.
func lookupConst(name string) (builtinConst, bool) {
	c, ok := builtinConsts[name]
	return c, ok
}

var builtinConsts = map[string]builtinConst{
	"INFINITY":             {bType{Kind: Float, Width: 1}, "CC_INFINITY"},
	"NAN":                  {bType{Kind: Float, Width: 1}, "CC_NAN"},
	"HUGE_VALF":            {bType{Kind: Float, Width: 1}, "CC_INFINITY"},
	"HUGE_VAL":             {bType{Kind: Double, Width: 1}, "CC_HUGE_VAL"},
	"MAXFLOAT":             {bType{Kind: Float, Width: 1}, "CC_MAXFLOAT"},
	"NULL":                 {bType{Kind: Void, Ptr: true}, "CC_NULL"},
	"CLK_LOCAL_MEM_FENCE":  {bType{Kind: UInt, Width: 1}, "CC_LOCAL_MEM_FENCE"},
	"CLK_GLOBAL_MEM_FENCE": {bType{Kind: UInt, Width: 1}, "CC_GLOBAL_MEM_FENCE"},
	"true":                 {bType{Kind: Int, Width: 1}, "1"},
	"false":                {bType{Kind: Int, Width: 1}, "0"},
}

// constMacros returns the limits and mathematical constants of OpenCL C 6.12 as
// macros, for a device with those features.
func constMacros(f Features) []Define {
	ds := []Define{
		{"CHAR_BIT", "8"}, {"SCHAR_MAX", "127"}, {"SCHAR_MIN", "(-128)"},
		{"CHAR_MAX", "127"}, {"CHAR_MIN", "(-128)"}, {"UCHAR_MAX", "255"},
		{"SHRT_MAX", "32767"}, {"SHRT_MIN", "(-32768)"}, {"USHRT_MAX", "65535"},
		{"INT_MAX", "2147483647"}, {"INT_MIN", "(-2147483647-1)"}, {"UINT_MAX", "0xffffffffU"},
		{"LONG_MAX", "0x7fffffffffffffffL"}, {"LONG_MIN", "(-0x7fffffffffffffffL-1)"},
		{"ULONG_MAX", "0xffffffffffffffffUL"},
		{"FLT_DIG", "6"}, {"FLT_MANT_DIG", "24"}, {"FLT_MAX_10_EXP", "38"}, {"FLT_MAX_EXP", "128"},
		{"FLT_MIN_10_EXP", "(-37)"}, {"FLT_MIN_EXP", "(-125)"}, {"FLT_RADIX", "2"},
		{"FLT_MAX", "0x1.fffffep127f"}, {"FLT_MIN", "0x1.0p-126f"}, {"FLT_EPSILON", "0x1.0p-23f"},
		{"FP_ILOGB0", "(-2147483647-1)"}, {"FP_ILOGBNAN", "2147483647"},
	}
	if f.FP64 {
		ds = append(ds, []Define{
			{"DBL_DIG", "15"}, {"DBL_MANT_DIG", "53"}, {"DBL_MAX_10_EXP", "308"}, {"DBL_MAX_EXP", "1024"},
			{"DBL_MIN_10_EXP", "(-307)"}, {"DBL_MIN_EXP", "(-1021)"}, {"DBL_RADIX", "2"},
			{"DBL_MAX", "0x1.fffffffffffffp1023"}, {"DBL_MIN", "0x1.0p-1022"}, {"DBL_EPSILON", "0x1.0p-52"},
		}...)
	}
	if f.FP16 {
		ds = append(ds, []Define{
			{"HALF_DIG", "3"}, {"HALF_MANT_DIG", "11"}, {"HALF_MAX_10_EXP", "4"}, {"HALF_MAX_EXP", "16"},
			{"HALF_MIN_10_EXP", "(-4)"}, {"HALF_MIN_EXP", "(-13)"}, {"HALF_RADIX", "2"},
			{"HALF_MAX", "0x1.ffcp15h"}, {"HALF_MIN", "0x1.0p-14h"}, {"HALF_EPSILON", "0x1.0p-10h"},
		}...)
	}
	for _, c := range []struct {
		name string
		v    float64
	}{
		{"M_E", math.E}, {"M_LOG2E", math.Log2E}, {"M_LOG10E", math.Log10E}, {"M_LN2", math.Ln2},
		{"M_LN10", math.Ln10}, {"M_PI", math.Pi}, {"M_PI_2", math.Pi / 2}, {"M_PI_4", math.Pi / 4},
		{"M_1_PI", 1 / math.Pi}, {"M_2_PI", 2 / math.Pi}, {"M_2_SQRTPI", 2 / math.SqrtPi},
		{"M_SQRT2", math.Sqrt2}, {"M_SQRT1_2", math.Sqrt2 / 2},
	} {
		if f.FP64 {
			ds = append(ds, Define{c.name, strconv.FormatFloat(c.v, 'g', 17, 64)})
		}
		ds = append(ds, Define{c.name + "_F", strconv.FormatFloat(float64(float32(c.v)), 'g', 9, 32) + "f"})
	}
	return ds
}
