package cpu

// The k smallest of rows in vector instructions.

import (
	"sync/atomic"
	"unsafe"

	"github.com/concord-compute/concord/internal/simd"
	"github.com/concord-compute/concord/source"
)

func init() { vector("topk", "topk", bindTopK) }

// bindTopK returns a function that divides rows among the threads, or, if there are few long rows, parts
// of rows.
func bindTopK(u *source.Unit) goFunc {
	typ := typeNumber(u, "T")
	size := typeSize(typ)
	return func(c *call) error {
		rows, n, k := int(c.Int(3)), int(c.Int(4)), int(c.Int(5))
		want := min(n, k)
		in, values, places := c.at(0), c.at(1), c.at(2)
		if rows < c.device.threads && n >= c.Choose(topkParts)*c.Choose(topkPart) && want <= c.Choose(topkMost) {
			for r := range rows {
				if err := c.topLong(typ, n, want, in+uint64(r*n*size), values+uint64(r*k*size), places+uint64(4*r*k),
					c.U32(2)[r*k:][:want]); err != nil {
					return err
				}
			}
			return nil
		}
		var failed atomic.Pointer[error]
		near, first := c.topkWords()
		err := c.spread(rows, n*size, func(_ *call, lo, hi int) {
			heap, err := c.device.scratch.take(int64(16 * want))
			if err != nil {
				failed.Store(&err)
				return
			}
			defer c.device.scratch.give(heap)
			c.device.simd.run(simd.TopK, typ, uint64(hi-lo), uint64(n), uint64(k), in+uint64(lo*n*size),
				values+uint64(lo*k*size), places+uint64(4*lo*k), address(heap.data), near, first)
		})
		if e := failed.Load(); e != nil {
			return *e
		}
		return err
	}
}

// topkWords returns the choices of the vector function.
func (c *call) topkWords() (near, first uint64) {
	return uint64(c.Choose(topkNear)) << 10, uint64(c.Choose(topkFirst))
}

// topLong finds the k smallest elements of each part of a row, and then the k smallest of these. Equal
// elements stay in the order of the row, so that ties are decided as in the whole row.
func (c *call) topLong(typ uint64, n, k int, in, values, places uint64, chosen []uint32) error {
	// With fewer parts, fewer elements pass through a heap. The last part gets the remainder.
	length := max(c.Choose(topkPart), n/(c.Choose(threadRanges)*c.device.threads))
	size, parts, set := typeSize(typ), n/length, c.device.simd
	near, first := c.topkWords()
	room, err := c.device.scratch.take(int64(parts*k*(size+4+16)) + 128)
	if err != nil {
		return err
	}
	defer c.device.scratch.give(room)
	heaps := address(room.data)
	best := heaps + uint64(16*parts*k)
	from := best + uint64(size*parts*k+3)&^3
	if err := c.Parallel(parts, 1, func(lo, hi int) {
		for p := lo; p < hi; p++ {
			m := length
			if p == parts-1 {
				m = n - p*length
			}
			set.run(simd.TopK, typ, 1, uint64(m), uint64(k), in+uint64(p*length*size),
				best+uint64(p*k*size), from+uint64(4*p*k), heaps+uint64(16*p*k), near, first)
		}
	}); err != nil {
		return err
	}
	set.run(simd.TopK, typ, 1, uint64(parts*k), uint64(k), best, values, places, heaps, near, first)
	within := unsafe.Slice((*uint32)(unsafe.Pointer(&room.data[from-heaps])), parts*k)
	for i, candidate := range chosen {
		chosen[i] = candidate/uint32(k)*uint32(length) + within[candidate]
	}
	return nil
}
