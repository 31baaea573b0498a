package rocm

// The properties of a device that follow from the name of its architecture.

import (
	"math"
	"strconv"
	"strings"

	"github.com/concord-compute/concord/runtime/driver"
	"github.com/concord-compute/concord/source"
)

// generation splits the name of an architecture: 9, 0, "a" for "gfx90a:xnack-"; 10, 3, "0" for
// "gfx1030". major is 0 for an invalid name.
func generation(arch string) (major, minor int, step string) {
	base, _, _ := strings.Cut(arch, ":")
	digits, found := strings.CutPrefix(base, "gfx")
	if !found || len(digits) < 3 {
		return 0, 0, ""
	}
	n := len(digits)
	major, err := strconv.Atoi(digits[:n-2])
	minor, err2 := strconv.Atoi(digits[n-2 : n-1])
	if err != nil || err2 != nil || major < 1 || strings.Trim(digits[n-1:], "0123456789abcdef") != "" {
		return 0, 0, ""
	}
	return major, minor, digits[n-1:]
}

// features returns the features that portable programs may use on an architecture. Before
// generation 8 half arithmetic is done in float.
func features(arch string) source.Features {
	major, _, _ := generation(arch)
	return source.Features{FP64: major >= 6, FP16: major >= 8, Int64Atomic: major >= 6, FastFMA: major >= 9,
		Subgroups: major >= 8}
}

// describe sets the flags that follow from the architecture, and the peak rate that follows from
// clocks and counts.
func describe(info *driver.Info) {
	info.MaxItems = math.MaxUint32 // the field of a launch packet has 32 bits
	major, minor, step := generation(info.Arch)
	cdna3 := major == 9 && minor == 4
	cdna4 := major == 9 && minor == 5
	mfma := cdna3 || cdna4 || major == 9 && minor == 0 && (step == "8" || step == "a")
	wmma := major == 11 || major == 12
	info.SupportsFP16 = major >= 8
	info.FastFP16 = major >= 9 // packed: two per instruction
	info.SupportsDP4A = mfma || wmma || major == 9 && minor == 0 && step == "6" ||
		major == 10 && (minor == 3 || minor == 1 && (step == "1" || step == "2"))
	info.HasTensorCores = mfma || wmma
	info.SupportsInt8TensorCores = mfma || wmma
	info.SupportsBF16 = mfma || wmma
	info.SupportsTF32 = cdna3
	info.SupportsFP8 = cdna3 || cdna4 || major == 12
	// A lane starts a fused multiply-add, two operations, per clock.
	info.PeakGFLOPS = 2 * float64(lanes(major, minor, step)*info.ComputeUnits) * float64(info.ClockMHz) / 1000
}

// lanes returns the number of float operations that one compute unit starts per clock. It is 0
// (unknown) for generations 10 and later, since HIP does not say whether it counts compute units or
// pairs of them.
func lanes(major, minor int, step string) int {
	switch {
	case major == 9 && (minor >= 4 || step == "a"):
		return 128
	case major >= 6 && major <= 9:
		return 64
	}
	return 0
}
