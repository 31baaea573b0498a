package cpu

// What the operating system says about the machine.

import (
	"fmt"
	goruntime "runtime"
	"strings"
	"unsafe"

	"github.com/klauspost/cpuid/v2"
)

// address returns where a slice starts, as a number.
func address(b []byte) uint64 { return uint64(uintptr(unsafe.Pointer(unsafe.SliceData(b)))) }

// cpuName is the processor's own name for itself, or else the architecture.
func cpuName() string {
	if name := strings.Join(strings.Fields(cpuid.CPU.BrandName), " "); name != "" {
		return name
	}
	if name := systemCPUName(); name != "" {
		return name
	}
	return goruntime.GOARCH
}

func cpuVendor() string {
	if v := cpuid.CPU.VendorString; v != "" {
		return v
	}
	if v := cpuid.CPU.VendorID; v != cpuid.VendorUnknown {
		return v.String()
	}
	return ""
}

// usefulFeatures are the instruction sets worth a word in Info.Arch, widest last.
var usefulFeatures = []cpuid.FeatureID{
	cpuid.SSE42, cpuid.AVX, cpuid.F16C, cpuid.FMA3, cpuid.AVX2, cpuid.AVXVNNI,
	cpuid.AVX512F, cpuid.AVX512DQ, cpuid.AVX512BW, cpuid.AVX512VL, cpuid.AVX512VNNI, cpuid.AVX512BF16, cpuid.AVX512FP16,
	cpuid.AMXTILE, cpuid.AMXINT8, cpuid.AMXBF16,
	cpuid.ASIMD, cpuid.FPHP, cpuid.ASIMDHP, cpuid.ASIMDDP, cpuid.SVE,
}

// cpuArch reads "amd64 avx2 fma3 avx512f".
func cpuArch() string {
	words := []string{goruntime.GOARCH}
	for _, f := range usefulFeatures {
		if cpuid.CPU.Has(f) {
			words = append(words, strings.ToLower(f.String()))
		}
	}
	return strings.Join(words, " ")
}

// cpuFeatures names everything that -march=native can depend on.
func cpuFeatures() string {
	return fmt.Sprintf("%s %s %d.%d.%d %s", goruntime.GOOS+"/"+goruntime.GOARCH, cpuVendor(),
		cpuid.CPU.Family, cpuid.CPU.Model, cpuid.CPU.Stepping, strings.Join(cpuid.CPU.FeatureSet(), ","))
}

// targetFeatures names what compiled code can depend on: every instruction set, as
// -march=native uses what is there, but not the model, for which code is only tuned.
func targetFeatures() string {
	return goruntime.GOOS + "/" + goruntime.GOARCH + " " + strings.Join(cpuid.CPU.FeatureSet(), ",")
}

func cpuClockMHz() int { return int(cpuid.CPU.Hz / 1e6) }
