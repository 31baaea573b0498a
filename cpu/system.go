package cpu

// The name, features and memory of the machine, as the operating system reports them.

import (
	"fmt"
	goruntime "runtime"
	"strings"
	"unsafe"

	"github.com/klauspost/cpuid/v2"
)

// address returns the address of a slice as a number.
func address(b []byte) uint64 { return uint64(uintptr(unsafe.Pointer(unsafe.SliceData(b)))) }

// cpuName returns the processor's brand name, or the architecture if it has none.
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

// usefulFeatures are the instruction sets that Info.Arch names, widest last.
var usefulFeatures = []cpuid.FeatureID{
	cpuid.SSE42, cpuid.AVX, cpuid.F16C, cpuid.FMA3, cpuid.AVX2, cpuid.AVXVNNI,
	cpuid.AVX512F, cpuid.AVX512DQ, cpuid.AVX512BW, cpuid.AVX512VL, cpuid.AVX512VNNI, cpuid.AVX512BF16, cpuid.AVX512FP16,
	cpuid.AMXTILE, cpuid.AMXINT8, cpuid.AMXBF16,
	cpuid.ASIMD, cpuid.FPHP, cpuid.ASIMDHP, cpuid.ASIMDDP, cpuid.SVE,
}

// cpuArch returns the architecture and its instruction sets, such as "amd64 avx2 fma3 avx512f".
func cpuArch() string {
	words := []string{goruntime.GOARCH}
	for _, f := range usefulFeatures {
		if cpuid.CPU.Has(f) {
			words = append(words, strings.ToLower(f.String()))
		}
	}
	return strings.Join(words, " ")
}

// cpuFeatures returns all properties of the processor on which the output of -march=native can depend.
func cpuFeatures() string {
	return fmt.Sprintf("%s %s %d.%d.%d %s", goruntime.GOOS+"/"+goruntime.GOARCH, cpuVendor(),
		cpuid.CPU.Family, cpuid.CPU.Model, cpuid.CPU.Stepping, strings.Join(cpuid.CPU.FeatureSet(), ","))
}

// targetFeatures returns the properties of the processor that compiled code can require: all
// instruction sets, as -march=native uses them, but not the model, for which code is only tuned.
func targetFeatures() string {
	return goruntime.GOOS + "/" + goruntime.GOARCH + " " + strings.Join(cpuid.CPU.FeatureSet(), ",")
}

func cpuClockMHz() int { return int(cpuid.CPU.Hz / 1e6) }

// caches are the bytes of a cache of each level, of the first one for data, and of a line. known says that a level of 0
// bytes is not there; otherwise it is unknown.
type caches struct {
	l1, l2, l3 int64
	line       int
	known      bool
}

// cpuCaches returns the caches of the first core: as the system reports them, or else the processor itself.
func cpuCaches() caches {
	if c := systemCaches(); c.known {
		return c
	}
	has, told := cpuid.CPU.Cache, caches{line: max(cpuid.CPU.CacheLine, 0)}
	told.l1, told.l2, told.l3 = max(int64(has.L1D), 0), max(int64(has.L2), 0), max(int64(has.L3), 0) // -1 is unknown
	return told
}
