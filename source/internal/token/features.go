package token

// Features says what the device that a program is compiled for can do. It determines the extension
// macros (cl_khr_fp64 ...) during preprocessing, and a program that uses an absent feature is
// refused with a position.
type Features struct {
	FP64        bool // double and its built-ins (cl_khr_fp64)
	FP16        bool // arithmetic on half (cl_khr_fp16); storage always works
	Int64Atomic bool // cl_khr_int64_base_atomics and _extended_
	FastFMA     bool // fma is as fast as a product: FP_FAST_FMAF is defined, and FP_FAST_FMA with FP64
	Subgroups   bool // cl_khr_subgroups and its shuffles; every item of a sub-group has to reach each call
}
