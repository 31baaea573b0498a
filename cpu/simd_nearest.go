package cpu

// The nearest vectors in vector instructions (csrc/cpu/nearest.h).

import (
	"slices"
	"unsafe"

	"github.com/concord-compute/concord/internal/simd"
	"github.com/concord-compute/concord/source"
)

func init() {
	vector("nearest", "nearest", func(u *source.Unit) goFunc {
		typ := typeNumber(u, "T")
		return func(c *call) error { return simdNearest(c, typ) }
	})
}

// nearMetrics are the metrics in the order of csrc/cpu/nearest.h.
var nearMetrics = []string{"l2", "ip", "cosine"}

func simdNearest(c *call, typ uint64) error {
	s, set := searchOf(c), c.device.simd
	queries, vectors, size := c.at(0), c.at(1), typeSize(typ)
	if size == 2 {
		wide, err := c.device.scratch.take(int64(max(4*s.queries*s.dim, 1)))
		if err != nil {
			return err
		}
		defer c.device.scratch.give(wide)
		set.run(simd.Widen, flag(s.t == "bf16"), uint64(s.queries), uint64(s.dim), queries, uint64(s.dim), address(wide.data), uint64(s.dim))
		queries = address(wide.data)
	}
	metric := uint64(slices.Index(nearMetrics, s.metric))
	return s.run(func(lo, hi int, heaps []neighbor) {
		set.run(simd.Nearest, queries, uint64(s.queries), vectors+uint64(lo*s.dim*size), uint64(hi-lo), uint64(s.dim), uint64(lo), uint64(s.k),
			uint64(uintptr(unsafe.Pointer(unsafe.SliceData(heaps)))), typ, metric)
	})
}
