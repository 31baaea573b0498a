package cpu

// Functions that the vector kernels share whose speed is limited by memory: types, addresses,
// division among threads.

import (
	"slices"

	"github.com/concord-compute/concord/kernels"
	"github.com/concord-compute/concord/source"
)

// simdTypes are the element types in the order of csrc/cpu/storage.h, floating ones
// first.
var simdTypes = []string{"f32", "f64", "f16", "bf16", "i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64"}

// typeNumber returns the number in csrc/cpu of the type that a definition names.
func typeNumber(u *source.Unit, define string) uint64 {
	t, ok := u.Define(define)
	if !ok {
		return 0
	}
	return uint64(slices.Index(simdTypes, t))
}

// typeSize returns the size of a type's elements in bytes; wideSize that of the type in which
// they are computed, f32 (number 0) or f64.
func typeSize(number uint64) int { return kernels.SizeOf(simdTypes[number]) }

func wideType(number uint64) (wide uint64, size int) {
	if number == 1 {
		return 1, 8
	}
	return 0, 4
}

// at returns the address of buffer argument i.
func (c *call) at(i int) uint64 { return address(c.Bytes(i)) }

// spread calls f with c for ranges of [0, n) in parallel, or once if the n times bytes bytes are so
// few that more threads would not save time. An f that takes the arguments of the launch from c is
// made once for a program, and no launch allocates it.
func (c *call) spread(n, bytes int, f func(c *call, lo, hi int)) error {
	if !c.threadsPay(0, float64(n)*float64(bytes)) {
		if n > 0 {
			f(c, 0, n)
		}
		return nil
	}
	bytes = max(bytes, 1)
	some := max(c.Choose(rangeLeast)<<10/bytes+1, min(c.each(n, threadRanges), c.mostBytes()/bytes))
	return c.ranges(n, some, c.device.threads, f)
}

// mostBytes returns the most bytes that a thread processes at a time.
func (c *call) mostBytes() int { return c.Choose(rangeMost) << 10 }

// overflows reports whether a result of n bytes is so large that it is faster to store it past the
// caches.
func (c *call) overflows(n int) bool {
	_, l3 := cacheSizes()
	return n > c.share(pastCaches, l3)
}
