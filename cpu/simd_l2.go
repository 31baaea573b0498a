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

// distance is one launch: what its parts are computed from.
type distance struct {
	call                  *Call
	nq, nv, dim, size     int
	queries, vectors, out uint64 // addresses
}

// simdL2 takes the vectors in parallel: each is read once, however many queries there
// are.
func simdL2(c *Call, size int) error {
	l := distance{call: c, nq: int(c.Int(3)), nv: int(c.Int(4)), dim: int(c.Int(5)), size: size}
	if l.nq == 0 || l.nv == 0 {
		return nil
	}
	if longest := math.MaxInt / 64 / max(l.nq, l.nv); l.dim > longest || l.nq > math.MaxInt/64/l.nv {
		c.fail(5, "%d queries and %d vectors of %d are more than there can be", l.nq, l.nv, l.dim)
	}
	l.queries, l.vectors, l.out = c.elements(0, l.nq*l.dim, size), c.elements(1, l.nv*l.dim, size), c.elements(2, l.nq*l.nv, 4)
	set := c.device.simd
	switch {
	case size == 1:
		return l.parallel(1, func(lo, hi int) {
			set.run(l2Int8, l.queries, uint64(l.nq), l.vector(lo), uint64(hi-lo), uint64(l.dim), l.out+uint64(4*lo), uint64(l.nv))
		})
	case l.nq > set.bytes/8: // half a register of floats
		return l.packed()
	case size == 2:
		return l.widened()
	}
	return l.parallel(1, func(lo, hi int) { l.part(lo, hi, l.queries, 0, 0) })
}

// vector is the address of one of them.
func (l *distance) vector(i int) uint64 { return l.vectors + uint64(i*l.dim*l.size) }

// parallel calls f for ranges of vectors, which are multiples of step.
func (l *distance) parallel(step int, f func(lo, hi int)) error {
	steps := (l.nv + step - 1) / step
	return l.call.spread(steps, step*(l.size*l.dim+l.nq*l.dim/8+4*l.nq), func(lo, hi int) { f(lo*step, min(hi*step, l.nv)) })
}

// part computes a range of vectors with queries of floats.
func (l *distance) part(lo, hi int, queries, packed, room uint64) {
	l.call.device.simd.run(l2Float, queries, uint64(l.nq), l.vector(lo), uint64(hi-lo), uint64(l.dim), l.out+uint64(4*lo), uint64(l.nv),
		flag(l.size == 2), packed, room)
}

// widened makes floats of a few queries first.
func (l *distance) widened() error {
	d := l.call.device
	b, err := d.scratch.take(int64(4 * l.nq * l.dim))
	if err != nil {
		return err
	}
	defer d.scratch.give(b)
	queries := address(b.data)
	d.simd.run(l2Pack, l.queries, uint64(l.nq), uint64(l.dim), 1, queries, 0)
	return l.parallel(1, func(lo, hi int) { l.part(lo, hi, queries, 0, 0) })
}

// packed packs many queries first; vectors of halves are made floats block by block.
func (l *distance) packed() error {
	d := l.call.device
	wide, block := d.simd.bytes/2, 4*d.simd.rows // queries in a strip, vectors in a block
	strips := roundUp(int64((l.nq+wide-1)/wide*wide*4*l.dim), baseAlign)
	rooms := make(chan uint64, d.threads)
	room := int64(0)
	if l.size == 2 {
		room = roundUp(int64(4*block*l.dim), baseAlign)
	}
	b, err := d.scratch.take(strips + room*int64(d.threads))
	if err != nil {
		return err
	}
	defer d.scratch.give(b)
	queries := address(b.data)
	for i := range d.threads {
		rooms <- queries + uint64(strips) + uint64(i)*uint64(room)
	}
	d.simd.run(l2Pack, l.queries, uint64(l.nq), uint64(l.dim), flag(l.size == 2), queries, 1)
	return l.parallel(block, func(lo, hi int) {
		own := <-rooms
		l.part(lo, hi, queries, 1, own)
		rooms <- own
	})
}
