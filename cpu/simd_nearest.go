package cpu

// The nearest vectors in vector instructions (csrc/cpu/nearest.h).

import (
	"math"
	"slices"
	"unsafe"

	"github.com/concord-compute/concord/internal/simd"
	"github.com/concord-compute/concord/kernels"
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

// vectorScan has what the vector functions need besides the arguments of a launch.
type vectorScan struct {
	queries, vectors uint64 // addresses
	typ, metric      uint64 // numbers of the type and the metric

	// For many queries, whose distances are computed in blocks of vectors:
	packed      uint64 // the address of the queries in the form for that
	word        int    // bytes in a word of packed bytes
	room, each  uint64 // memory of the first thread, and its size for a thread
	block, wide int    // vectors in a block, and elements in its row of a query
}

func simdNearest(c *call, typ uint64) error {
	s, set := searchOf(c), c.device.simd
	defer s.done()
	s.vector = vectorScan{queries: c.at(0), vectors: c.at(1), typ: typ,
		metric: uint64(slices.Index(nearMetrics, s.metric))}
	if typeSize(typ) == 2 {
		wide, err := c.device.scratch.take(int64(max(4*s.queries*s.dim, 1)))
		if err != nil {
			return err
		}
		defer c.device.scratch.give(wide)
		set.run(simd.Widen, flag(s.t == "bf16"), uint64(s.queries), uint64(s.dim), s.vector.queries, uint64(s.dim),
			address(wide.data), uint64(s.dim))
		s.vector.queries = address(wide.data)
	}
	if s.metric == "l2" && c.manyQueries(s.queries) && s.t != "bf16" && s.vectors > 0 && s.dim > 0 &&
		(s.t != "i8" || s.dim <= l2Int8Short) {
		return s.findMany()
	}
	return s.find(s.run)
}

// scanVectors is scan for few queries, which are all compared with one vector after the other.
func (s *search) scanVectors(lo, hi int, heaps []neighbor) {
	v := &s.vector
	s.device.simd.run(simd.Nearest, v.queries, uint64(s.queries), v.vectors+uint64(lo*s.dim*typeSize(v.typ)),
		uint64(hi-lo), uint64(s.dim), uint64(lo), uint64(s.k),
		pointer(heaps), v.typ, v.metric)
}

// findMany computes the distances from many queries in tiles that stay in registers (csrc/cpu/l2.h), and then selects.
func (s *search) findMany() error {
	set, v := s.device.simd, &s.vector
	step, query, extra := l2Block, 4*s.dim, 0
	switch s.t {
	case "f16":
		extra = 4 * s.dim * l2Block
	case "i8":
		if v.word = 2; set.multipliesBytes() {
			v.word = 4
		}
		words := (s.dim + v.word - 1) / v.word
		step, query, extra = l2Int8Block, 4*(words+1), roundUpInt(4*words, set.bytes)*l2Int8Block
	}
	v.block = max(1, s.Choose(nearBlock)<<10/(4*s.queries*step)) * step
	v.wide = v.block + set.bytes/4
	lanes := set.bytes / 2
	strips := roundUp(int64((s.queries+lanes-1)/lanes*lanes*query), baseAlign)
	v.each = uint64(roundUp(int64(4*s.queries*v.wide), baseAlign) + roundUp(int64(extra), baseAlign))
	b, err := s.device.scratch.take(strips + int64(v.each)*int64(s.device.threads))
	if err != nil {
		return err
	}
	defer s.device.scratch.give(b)
	v.packed = address(b.data)
	v.room = v.packed + uint64(strips)
	if s.t == "i8" {
		set.run(simd.L2I8Pack, v.queries, uint64(s.queries), uint64(s.dim), v.packed, uint64(v.word))
	} else {
		set.run(simd.L2Pack, v.queries, uint64(s.queries), uint64(s.dim), 0, v.packed, 1)
	}
	return s.find(s.runMany)
}

// scanMany is scan for many queries.
func (s *search) scanMany(lo, hi int, heaps []neighbor) {
	set, v := s.device.simd, &s.vector
	room := v.room + v.each*uint64(s.thread(heaps))
	extra := room + uint64(roundUp(int64(4*s.queries*v.wide), baseAlign))
	unit := 1 + 4*float64(s.dim+8)/(1<<23) // both sums err by at most (dim + 4)·2^-24 of themselves
	if s.t == "i8" {
		unit /= 127 * 127
	}
	nq, dim := uint64(s.queries), uint64(s.dim)
	for n := 0; lo < hi; lo += n {
		// While heaps are not full every vector is computed twice, so that the first block is small.
		if n = min(v.block, hi-lo); heaps[1] == noNeighbor {
			n = min(n, l2Int8Block)
		}
		vectors := v.vectors + uint64(lo*s.dim*typeSize(v.typ))
		if s.t == "i8" {
			set.run(simd.L2I8, v.packed, nq, vectors, uint64(n), dim, room, uint64(v.wide), uint64(v.word), extra, 0)
		} else {
			set.run(simd.L2Float, v.packed, nq, vectors, uint64(n), dim, room, uint64(v.wide), flag(s.t == "f16"), 1, extra, 0)
		}
		set.run(simd.NearestPick, room, uint64(v.wide), v.queries, nq, vectors, uint64(n), dim, pointer(heaps), v.typ,
			uint64(lo), uint64(s.k), math.Float64bits(unit))
	}
}

// Rank implements kernels.Ranker.
func (d *device) Rank(r *kernels.Ranking) bool {
	switch {
	case d.reference: // whose kernels compute in float64
		return false
	case len(r.Rows) == 0:
		return true
	case d.simd == nil:
		goRank(r)
		return true
	}
	bound := math.Inf(1)
	if r.Bound > 0 {
		bound = float64(r.Bound) * (1 + 1e-5) // as parts of a sum are added in another order than its end
	}
	_, metric := r.Distances[:len(r.Rows)], slices.Index(nearMetrics, r.Metric)
	typ := uint64(slices.Index(simdTypes, r.Type))
	d.simd.run(simd.NearestList, pointer(r.Query), pointer(r.Vectors), pointer(r.Rows), uint64(len(r.Rows)), uint64(r.Dim),
		uint64(len(r.Vectors)/(r.Dim*typeSize(typ))),
		pointer(r.Distances), math.Float64bits(bound), typ, uint64(metric),
		uint64(d.workers.choose(nearFetch)))
	return true
}

func pointer[T any](x []T) uint64 { return uint64(uintptr(unsafe.Pointer(unsafe.SliceData(x)))) }
