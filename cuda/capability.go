package cuda

// What follows from the compute capability of a device.

import (
	"github.com/concord-compute/concord/runtime/driver"
	"github.com/concord-compute/concord/source"
)

// features are those that portable programs may use on an architecture. Programs
// are rendered so that half arithmetic rounds every result, whatever instructions
// there are for it.
func features(arch string) source.Features {
	n, _ := capability(arch)
	return source.Features{FP64: n >= 20, FP16: n >= 53, Int64Atomic: n >= 35, FastFMA: n >= 20, Subgroups: n >= 30}
}

// describe sets the flags of a capability, and the rates that follow from
// clocks and counts.
func describe(info *driver.Info) {
	cc := 10*info.ComputeMajor + info.ComputeMinor
	info.SupportsFP16 = cc >= 53
	info.FastFP16 = cc == 60 || cc == 62 || cc >= 70 // 6.1 has it at a small fraction of the rate of float
	info.SupportsDP4A = cc >= 61
	info.HasTensorCores = cc >= 70
	info.SupportsInt8TensorCores = cc >= 75
	info.SupportsBF16 = cc >= 80
	info.SupportsTF32 = cc >= 80
	info.SupportsFP8 = cc >= 89
	info.SupportsClusters = cc >= 90
	// A lane adds and multiplies in one clock.
	info.PeakGFLOPS = 2 * float64(lanes(cc)*info.ComputeUnits) * float64(info.ClockMHz) / 1000
}

// lanes is how many operations on float one multiprocessor starts per clock; 0 for
// capabilities that this version does not know.
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
