// The predefined macros of OpenCL C, for the features of the target device.

package preprocess

import (
	"slices"
	"strings"
	"sync"

	"github.com/concord-compute/concord/source/internal/token"
)

// predefine defines the predefined macros.
func (p *preprocessor) predefine(f token.Features) {
	known, ok := predefined.Load(f)
	if !ok {
		known, _ = predefined.LoadOrStore(f, p.predefinedFor(f))
		p.charged, p.outBytes = 0, 0 // the limits do not depend on earlier programs
	}
	// A copy, since reading a macro's replacement list marks the macro.
	macros := slices.Clone(known.([]macro))
	p.macros = make(map[string]*macro, 2*len(macros))
	for i := range macros {
		p.macros[macros[i].name] = &macros[i]
	}
}

// predefined has the predefined macros for each set of features that was asked for.
var predefined sync.Map // token.Features -> []macro

func (p *preprocessor) predefinedFor(f token.Features) []macro {
	p.macros = map[string]*macro{}
	p.predefineAll(commonMacros)
	if f.FP64 {
		p.predefineAll(doubleMacros)
	}
	if f.FP16 {
		p.predefineAll(halfMacros)
	}
	if f.Int64Atomic {
		p.predefineAll(atomic64Macros)
	}
	if f.FastFMA {
		p.predefineAll("FP_FAST_FMAF 1\n")
	}
	if f.FastFMA && f.FP64 {
		p.predefineAll("FP_FAST_FMA 1\n")
	}
	if f.Subgroups {
		p.predefineAll(subgroupMacros)
	}
	for name, b := range map[string]builtinMacro{
		"__LINE__": lineMacro, "__FILE__": fileMacro, "__COUNTER__": counterMacro,
	} {
		p.macros[name] = &macro{name: name, builtin: b}
	}
	list := make([]macro, 0, len(p.macros))
	for _, m := range p.macros {
		list = append(list, *m)
	}
	return list
}

// predefineAll defines the macros of a text with one "NAME value" per line.
func (p *preprocessor) predefineAll(text string) {
	pos := token.Pos{File: "<predefined>", Line: 1, Col: 1}
	for def := range strings.Lines(text) {
		if line, _ := p.defineText(pos, def); len(line) > 0 {
			p.define(pos, line, true)
		}
	}
}

// Some macros expand to themselves: #ifdef finds them, as on a device, and for the parser they stay
// names, which are built-in constants there.
const commonMacros = `
__STDC__ 1
__STDC_VERSION__ 199901L
__OPENCL_VERSION__ 120
__OPENCL_C_VERSION__ 120
CL_VERSION_1_0 100
CL_VERSION_1_1 110
CL_VERSION_1_2 120
__ENDIAN_LITTLE__ 1
__ROUNDING_MODE__ rte
cl_khr_byte_addressable_store 1
cl_khr_global_int32_base_atomics 1
cl_khr_global_int32_extended_atomics 1
cl_khr_local_int32_base_atomics 1
cl_khr_local_int32_extended_atomics 1
cl_khr_integer_dot_product 1
__opencl_c_integer_dot_product_input_4x8bit 1
__opencl_c_integer_dot_product_input_4x8bit_packed 1
NULL NULL
INFINITY INFINITY
NAN NAN
HUGE_VALF HUGE_VALF
CLK_LOCAL_MEM_FENCE CLK_LOCAL_MEM_FENCE
CLK_GLOBAL_MEM_FENCE CLK_GLOBAL_MEM_FENCE
MAXFLOAT 0x1.fffffep127f
kernel_exec(n,t) __kernel __attribute__((work_group_size_hint(n,1,1))) __attribute__((vec_type_hint(t)))
__kernel_exec(n,t) kernel_exec(n,t)
CHAR_BIT 8
SCHAR_MAX 127
SCHAR_MIN (-127-1)
CHAR_MAX SCHAR_MAX
CHAR_MIN SCHAR_MIN
UCHAR_MAX 255
SHRT_MAX 32767
SHRT_MIN (-32767-1)
USHRT_MAX 65535
INT_MAX 2147483647
INT_MIN (-2147483647-1)
UINT_MAX 0xffffffffU
LONG_MAX 0x7fffffffffffffffL
LONG_MIN (-0x7fffffffffffffffL-1)
ULONG_MAX 0xffffffffffffffffUL
FP_ILOGB0 (-2147483647-1)
FP_ILOGBNAN 2147483647
FLT_DIG 6
FLT_MANT_DIG 24
FLT_MAX_10_EXP +38
FLT_MAX_EXP +128
FLT_MIN_10_EXP -37
FLT_MIN_EXP -125
FLT_RADIX 2
FLT_MAX 0x1.fffffep127f
FLT_MIN 0x1.0p-126f
FLT_EPSILON 0x1.0p-23f
M_E_F 2.71828182845904523536028747135266250f
M_LOG2E_F 1.44269504088896340735992468100189214f
M_LOG10E_F 0.434294481903251827651128918916605082f
M_LN2_F 0.693147180559945309417232121458176568f
M_LN10_F 2.30258509299404568401799145468436421f
M_PI_F 3.14159265358979323846264338327950288f
M_PI_2_F 1.57079632679489661923132169163975144f
M_PI_4_F 0.785398163397448309615660845819875721f
M_1_PI_F 0.318309886183790671537767526745028724f
M_2_PI_F 0.636619772367581343075535053490057448f
M_2_SQRTPI_F 1.12837916709551257389615890312154517f
M_SQRT2_F 1.41421356237309504880168872420969808f
M_SQRT1_2_F 0.707106781186547524400844362104849039f
`

const doubleMacros = `
cl_khr_fp64 1
HUGE_VAL HUGE_VAL
DBL_DIG 15
DBL_MANT_DIG 53
DBL_MAX_10_EXP +308
DBL_MAX_EXP +1024
DBL_MIN_10_EXP -307
DBL_MIN_EXP -1021
DBL_RADIX 2
DBL_MAX 0x1.fffffffffffffp1023
DBL_MIN 0x1.0p-1022
DBL_EPSILON 0x1.0p-52
M_E 2.71828182845904523536028747135266250
M_LOG2E 1.44269504088896340735992468100189214
M_LOG10E 0.434294481903251827651128918916605082
M_LN2 0.693147180559945309417232121458176568
M_LN10 2.30258509299404568401799145468436421
M_PI 3.14159265358979323846264338327950288
M_PI_2 1.57079632679489661923132169163975144
M_PI_4 0.785398163397448309615660845819875721
M_1_PI 0.318309886183790671537767526745028724
M_2_PI 0.636619772367581343075535053490057448
M_2_SQRTPI 1.12837916709551257389615890312154517
M_SQRT2 1.41421356237309504880168872420969808
M_SQRT1_2 0.707106781186547524400844362104849039
`

const halfMacros = `
cl_khr_fp16 1
HALF_DIG 3
HALF_MANT_DIG 11
HALF_MAX_10_EXP +4
HALF_MAX_EXP +16
HALF_MIN_10_EXP -4
HALF_MIN_EXP -13
HALF_RADIX 2
HALF_MAX 0x1.ffcp15h
HALF_MIN 0x1.0p-14h
HALF_EPSILON 0x1.0p-10h
M_E_H 2.71828182845904523536028747135266250h
M_LOG2E_H 1.44269504088896340735992468100189214h
M_LOG10E_H 0.434294481903251827651128918916605082h
M_LN2_H 0.693147180559945309417232121458176568h
M_LN10_H 2.30258509299404568401799145468436421h
M_PI_H 3.14159265358979323846264338327950288h
M_PI_2_H 1.57079632679489661923132169163975144h
M_PI_4_H 0.785398163397448309615660845819875721h
M_1_PI_H 0.318309886183790671537767526745028724h
M_2_PI_H 0.636619772367581343075535053490057448h
M_2_SQRTPI_H 1.12837916709551257389615890312154517h
M_SQRT2_H 1.41421356237309504880168872420969808h
M_SQRT1_2_H 0.707106781186547524400844362104849039h
`

const subgroupMacros = `
cl_khr_subgroups 1
cl_khr_subgroup_shuffle 1
cl_khr_subgroup_shuffle_relative 1
`

const atomic64Macros = `
cl_khr_int64_base_atomics 1
cl_khr_int64_extended_atomics 1
`
