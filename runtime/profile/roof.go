package profile

// The roofline of a device: what it can do at most.

import (
	"fmt"
	"math"
	"time"
)

// Roof is what was measured of a device: the rates that bound any kernel on it. A rate that is 0 is
// unknown. Package runtime/roof measures it.
type Roof struct {
	// bytes per nanosecond, read and written, of arrays that fit no cache
	MemoryGBs float64 `json:"memory_gbs,omitempty"`
	// operations per nanosecond of float32 multiply-adds in registers
	GFLOPS       float64 `json:"gflops,omitempty"`
	DoubleGFLOPS float64 `json:"double_gflops,omitempty"` // the same of float64
	// from the call that queues a kernel that does nothing to the end of the wait for it
	LaunchNs float64 `json:"launch_ns,omitempty"`

	Measured time.Time `json:"measured"`
}

// Bound says which limit of a device a kernel meets first.
type Bound string

// The bounds.
const (
	UnknownBound Bound = ""        // the amount of work or a rate of the device is unknown
	MemoryBound  Bound = "memory"  // bytes take longer than operations
	ComputeBound Bound = "compute" // operations take longer than bytes, or as long
)

// Limit returns the least time that a device with this roof takes for so many operations of float32 on so many bytes,
// each byte counted once, and which of the two takes it. This is the roofline model of Williams, Waterman and
// Patterson (2009). Both are unknown, 0 and UnknownBound, if a rate that counts is not known, if there is no work, or
// if a number is negative, infinite or not a number.
func (r Roof) Limit(flops, bytes float64) (time.Duration, Bound) {
	ns, bound := r.limit(flops, bytes)
	return time.Duration(math.Ceil(ns)), bound
}

// limit is Limit in nanoseconds.
func (r Roof) limit(flops, bytes float64) (float64, Bound) {
	if !counts(flops) || !counts(bytes) || flops+bytes == 0 || flops > 0 && !(r.GFLOPS > 0) || bytes > 0 &&
		!(r.MemoryGBs > 0) {
		return 0, UnknownBound
	}
	var compute, memory float64
	if flops > 0 {
		compute = flops / r.GFLOPS
	}
	if bytes > 0 {
		memory = bytes / r.MemoryGBs
	}
	if ns := max(compute, memory); ns > math.MaxInt64/2 {
		return 0, UnknownBound
	}
	if compute >= memory {
		return compute, ComputeBound
	}
	return memory, MemoryBound
}

// counts reports whether a number is an amount of work.
func counts(n float64) bool { return n >= 0 && !math.IsInf(n, 0) }

// String returns a line such as "memory 21.3 GB/s, float32 174 GFLOP/s, float64 unknown, launch 5.1 µs".
func (r Roof) String() string {
	rate := func(v float64, unit string) string {
		if !(v > 0) {
			return "unknown"
		}
		return fmt.Sprintf("%.3g %s", v, unit)
	}
	return fmt.Sprintf("memory %s, float32 %s, float64 %s, launch %s", rate(r.MemoryGBs, "GB/s"),
		rate(r.GFLOPS, "GFLOP/s"),
		rate(r.DoubleGFLOPS, "GFLOP/s"), rate(r.LaunchNs/1e3, "µs"))
}
