package cpu

// Squared distances in vector instructions.

import (
	"github.com/concord-compute/concord/internal/simd"
	"github.com/concord-compute/concord/source"
)

func init() {
	for name, size := range map[string]int{"l2_distance_fp32": 4, "l2_distance_fp16": 2, "l2_distance_int8": 1} {
		vector("l2_distance", name, func(*source.Unit) goFunc { return func(c *call) error { return simdL2(c, size) } })
	}
}

// distance has the arguments of one launch.
type distance struct {
	call                  *call
	nq, nv, dim, size     int
	queries, vectors, out uint64 // addresses
}

// simdL2 divides the vectors among the threads, so that each vector is read once, whatever the number
// of queries.
func simdL2(c *call, size int) error {
	l := distance{call: c, nq: int(c.Int(3)), nv: int(c.Int(4)), dim: int(c.Int(5)), size: size,
		queries: c.at(0), vectors: c.at(1), out: c.at(2)}
	many := c.manyQueries(l.nq)
	switch {
	case size == 1 && many && l.dim <= l2Int8Short:
		return l.packedBytes()
	case size == 1:
		return l.parallel(1, func(lo, hi int) { l.bytes(lo, hi, l.queries, 0, 0) })
	case many:
		return l.packed()
	case size == 2:
		return l.widened()
	}
	return l.parallel(1, func(lo, hi int) { l.part(lo, hi, l.queries, 0, 0) })
}

// manyQueries reports whether so many queries fill the lanes of a register of sums.
func (c *call) manyQueries(n int) bool { return 100*n > c.Choose(nearMany)*c.device.simd.bytes/4 }

const (
	l2Int8Short = 32768 // the largest number of components whose sum fits in 32 bits
	l2Block     = 48    // vectors whose results are transposed together (csrc/cpu/l2.h)
	l2Int8Block = 64    // likewise, of bytes
)

// vector returns the address of vector i.
func (l *distance) vector(i int) uint64 { return l.vectors + uint64(i*l.dim*l.size) }

// parallel calls f for ranges of vectors that begin at multiples of step.
func (l *distance) parallel(step int, f func(lo, hi int)) error {
	steps := (l.nv + step - 1) / step
	return l.call.spread(steps, step*(l.size*l.dim+l.nq*l.dim/8+4*l.nq), func(_ *call, lo, hi int) {
		f(lo*step, min(hi*step, l.nv))
	})
}

// part computes the distances of a range of vectors, with the queries converted to float.
func (l *distance) part(lo, hi int, queries, packed, room uint64) {
	l.call.device.simd.run(simd.L2Float, queries, uint64(l.nq), l.vector(lo), uint64(hi-lo), uint64(l.dim),
		l.out+uint64(4*lo), uint64(l.nv),
		flag(l.size == 2), packed, room, l.past())
}

// past returns 1 if the results should be stored past the caches: if they are larger than these and each
// row of them begins at a cache line.
func (l *distance) past() uint64 {
	return flag(l.call.overflows(4*l.nq*l.nv) && l.out%64 == 0 && l.nv%16 == 0)
}

// widened computes with few queries, which it converts to float first.
func (l *distance) widened() error {
	d := l.call.device
	b, err := d.scratch.take(int64(4 * l.nq * l.dim))
	if err != nil {
		return err
	}
	defer d.scratch.give(b)
	queries := address(b.data)
	d.simd.run(simd.L2Pack, l.queries, uint64(l.nq), uint64(l.dim), 1, queries, 0)
	return l.parallel(1, func(lo, hi int) { l.part(lo, hi, queries, 0, 0) })
}

// bytes computes the distances of a range of vectors of bytes, with the queries as stored, or packed
// in words of word bytes.
func (l *distance) bytes(lo, hi int, queries uint64, word int, room uint64) {
	l.call.device.simd.run(simd.L2I8, queries, uint64(l.nq), l.vector(lo), uint64(hi-lo), uint64(l.dim),
		l.out+uint64(4*lo), uint64(l.nv),
		uint64(word), room, l.past())
}

// packed computes with many queries, which it packs first. Vectors of halves are converted to float
// block by block.
func (l *distance) packed() error {
	d, room := l.call.device, 0
	if l.size == 2 {
		room = 4 * l.dim
	}
	return l.blocks(l2Block, 4*l.dim, room, func(queries uint64) {
		d.simd.run(simd.L2Pack, l.queries, uint64(l.nq), uint64(l.dim), flag(l.size == 2), queries, 1)
	}, func(lo, hi int, queries, room uint64) { l.part(lo, hi, queries, 1, room) })
}

// packedBytes does the same for bytes. The queries are packed in words of as many bytes as one
// instruction multiplies and adds, or as pairs of 16-bit numbers. Vectors are transposed in whole registers.
func (l *distance) packedBytes() error {
	set, word := l.call.device.simd, 2
	if set.multipliesBytes() {
		word = 4
	}
	words := (l.dim + word - 1) / word
	return l.blocks(l2Int8Block, 4*(words+1), roundUpInt(4*words, set.bytes), func(queries uint64) {
		set.run(simd.L2I8Pack, l.queries, uint64(l.nq), uint64(l.dim), queries, uint64(word))
	}, func(lo, hi int, queries, room uint64) { l.bytes(lo, hi, queries, word, room) })
}

// blocks calls pack to pack the queries, query bytes each, and then part for blocks of vectors. Each
// thread has room for one block, vector bytes per vector.
func (l *distance) blocks(block, query, vector int, pack func(to uint64),
	part func(lo, hi int, queries, room uint64)) error {
	d := l.call.device
	wide := d.simd.bytes / 2 // queries in the widest strip
	strips := roundUp(int64((l.nq+wide-1)/wide*wide*query), baseAlign)
	room := roundUp(int64(block*vector), baseAlign)
	b, err := d.scratch.take(strips + room*int64(d.threads))
	if err != nil {
		return err
	}
	defer d.scratch.give(b)
	queries, rooms := address(b.data), make(chan uint64, d.threads)
	for i := range d.threads {
		rooms <- queries + uint64(strips) + uint64(i)*uint64(room)
	}
	pack(queries)
	return l.parallel(block, func(lo, hi int) {
		own := <-rooms
		part(lo, hi, queries, own)
		rooms <- own
	})
}
