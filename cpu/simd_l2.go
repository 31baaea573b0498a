package cpu

// Squared distances in vector instructions.

import (
	"math"

	"github.com/concord-compute/concord/source"
)

func init() {
	for name, size := range map[string]int{"l2_distance_fp32": 4, "l2_distance_fp16": 2, "l2_distance_int8": 1} {
		vector("l2_distance", name, func(*source.Unit) Func { return func(c *Call) error { return simdL2(c, size) } })
	}
}

// manyQueries is from how many on it pays to pack vectors.
const manyQueries = 6

// simdL2 takes the vectors in parallel: each is read once, however many queries there
// are.
func simdL2(c *Call, size int) error {
	nq, nv, dim := int(c.Int(3)), int(c.Int(4)), int(c.Int(5))
	if nq == 0 || nv == 0 {
		return nil
	}
	if longest := math.MaxInt / 64 / max(nq, nv); dim > longest || nq > math.MaxInt/64/nv {
		c.fail(5, "%d queries and %d vectors of %d are more than there can be", nq, nv, dim)
	}
	queries, vectors, out := c.elements(0, nq*dim, size), c.elements(1, nv*dim, size), c.elements(2, nq*nv, 4)
	d, set := c.device, c.device.simd
	if size == 1 {
		return c.spread(nv, dim+nq*dim/8+4*nq, func(lo, hi int) {
			set.run(l2Int8, queries, uint64(nq), vectors+uint64(lo*dim), uint64(hi-lo), uint64(dim), out+uint64(4*lo), uint64(nv))
		})
	}
	strip := 2 * set.bytes / 4 * dim * 4 // of packed vectors
	room := roundUp(int64(strip), 64)
	if size == 2 {
		room *= 2
	}
	wide := roundUp(int64(nq*dim*4), 64)
	b, err := d.scratch.take(wide + room*int64(8*d.threads))
	if err != nil {
		return err
	}
	defer d.scratch.give(b)
	if size == 2 {
		set.run(simdWiden, 0, 1, uint64(nq*dim), queries, uint64(nq*dim), address(b.data), uint64(nq*dim))
		queries = address(b.data)
	}
	grain := 8 * set.bytes // vectors, so that strips are whole
	chunks := (nv + grain - 1) / grain
	per := max(1, (chunks+8*d.threads-1)/(8*d.threads)) // one room for each range of this many
	return c.spread((chunks+per-1)/per, per*grain*(size*dim+nq*dim/8+4*nq), func(lo, hi int) {
		own := address(b.data) + uint64(wide) + uint64(lo)*uint64(room)
		for r := lo; r < hi; r++ {
			v0, v1 := r*per*grain, min((r+1)*per*grain, nv)
			set.run(l2Float, queries, uint64(nq), vectors+uint64(v0*dim*size), uint64(v1-v0), uint64(dim), out+uint64(4*v0), uint64(nv),
				flag(size == 2), flag(nq >= manyQueries), own)
		}
	})
}
