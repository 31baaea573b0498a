package simd

import (
	goruntime "runtime"

	"github.com/klauspost/cpuid/v2"
)

// Supports reports whether this processor has the instruction set of that name: "avx512", "avx2" or "neon". Whether
// its functions are in this build says Here.
func Supports(name string) bool {
	switch goruntime.GOARCH + " " + name {
	case "amd64 avx512":
		return cpuid.CPU.Supports(cpuid.AVX512F, cpuid.AVX512BW, cpuid.AVX512DQ, cpuid.AVX512VL, cpuid.FMA3, cpuid.F16C)
	case "amd64 avx2":
		return cpuid.CPU.Supports(cpuid.AVX2, cpuid.FMA3, cpuid.F16C)
	case "arm64 neon":
		return cpuid.CPU.Supports(cpuid.ASIMD)
	}
	return false
}
