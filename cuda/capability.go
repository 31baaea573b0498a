package cuda

// The properties of a device that follow from its compute capability.

import (
	"github.com/concord-compute/concord/runtime/driver"
	"github.com/concord-compute/concord/source"
)

// features returns the features that portable programs may use on an architecture. Half is always
// among them: programs are rendered so that half arithmetic rounds every result, with or without
// instructions for it.
func features(arch string) source.Features {
	n, _ := capability(arch)
	return source.Features{FP64: n >= 20, FP16: n >= 53, Int64Atomic: n >= 35, FastFMA: n >= 20, Subgroups: n >= 30}
}

// describe sets the flags that follow from the compute capability, and the peak rates that follow
// from clocks and counts.
func describe(info *driver.Info) {
	cc := 10*info.ComputeMajor + info.ComputeMinor
	info.SupportsFP16 = cc >= 53
	info.FastFP16 = cc == 60 || cc == 62 || cc >= 70 // 6.1 has the instructions, at a small fraction of the rate of float
	info.SupportsDP4A = cc >= 61
	info.HasTensorCores = cc >= 70
	info.SupportsInt8TensorCores = cc >= 75
	info.SupportsBF16 = cc >= 80
	info.SupportsTF32 = cc >= 80
	info.SupportsFP8 = cc >= 89
	info.SupportsClusters = cc >= 90
	// A lane starts a fused multiply-add, two operations, per clock.
	info.PeakGFLOPS = 2 * float64(lanes(cc)*info.ComputeUnits) * float64(info.ClockMHz) / 1000
}

// lanes returns the number of float operations that one multiprocessor starts per clock; 0 for
// unknown capabilities.
func lanes(cc int) int {
	switch cc {
	case 30, 32, 35, 37:
		return 192
	case 50, 52, 53, 61, 62, 86, 87, 89, 90, 100, 101, 103, 110, 120, 121:
		return 128
	case 60, 70, 72, 75, 80:
		return 64
	}
	return 0
}
