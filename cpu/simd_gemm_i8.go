package cpu

// gemm of 8-bit integers in vector instructions (csrc/cpu/gemm_i8.h). All threads pack B; then
// each task multiplies rows of A with all of B.

import (
	"github.com/concord-compute/concord/internal/simd"
	"github.com/concord-compute/concord/source"
)

func init() {
	vector("gemm_i8", "gemm_i8", func(*source.Unit) goFunc { return runGemmI8 })
}

func runGemmI8(c *call) error {
	g, set := gemmOf(c), c.device.simd
	pack, rows, group := simd.GemmI8Pack, simd.GemmI8Rows, 2
	if set.multipliesBytes() {
		pack, rows, group = simd.GemmVNNIPack, simd.GemmVNNIRows, 4
	}
	words, strip := (g.k+group-1)/group, set.bytes/2
	strips := (g.n + strip - 1) / strip
	panel := strip * (words + 1) * 4
	right, err := c.device.scratch.take(int64(strips * panel))
	if err != nil {
		return err
	}
	defer c.device.scratch.give(right)
	a, b, out := c.at(gemmBuffers[0]), c.at(gemmBuffers[1]), c.at(gemmBuffers[2])
	rs, cs := g.strides(c, 0)
	step, next := g.strides(c, 1)
	packStrips := func(_ *call, lo, hi int) {
		for s := lo; s < hi; s++ {
			set.run(pack, uint64(min(strip, g.n-s*strip)), uint64(g.k), b+uint64(s*strip*next), uint64(step), uint64(next),
				address(right.data)+uint64(s*panel))
		}
	}
	multiply := func(_ *call, lo, hi int) {
		room, err := c.device.scratch.take(int64(max(set.rows*words*4, 64)))
		if err != nil {
			panic(err)
		}
		defer c.device.scratch.give(room)
		set.run(rows, uint64(hi-lo), uint64(g.n), uint64(g.k), a+uint64(lo*rs), uint64(rs), uint64(cs), address(right.data),
			out+uint64(lo*g.ld[2]*4), uint64(g.ld[2]), uint64(uint32(c.Int(3))), uint64(uint32(c.Int(8))), address(room.data))
	}
	m, n, k := float64(g.m), float64(g.n), float64(g.k)
	if !c.threadsPay(m*n*k, 4*k*n) {
		packStrips(c, 0, strips)
		multiply(c, 0, g.m)
		return c.ctx.Err()
	}
	threads := c.device.threads
	some := max(min(c.each(strips, threadRanges), c.mostBytes()/4/max(strip*g.k, 1)), 1)
	if err := c.ranges(strips, some, threads, packStrips); err != nil {
		return err
	}
	return c.ranges(g.m, gemmI8Part(g.m, g.n, g.k, set.rows, c.Choose(threadRanges)*threads), threads, multiply)
}

// gemmI8Most is the largest number of multiply-adds of a task of more than one tile of rows: some tens of
// milliseconds. A launch can be stopped, or let another one run, only between two tasks.
const gemmI8Most = 1 << 31

// gemmI8Part returns the number of rows of A in a task: whole tiles, and that many tasks.
func gemmI8Part(m, n, k, tile, tasks int) int {
	most := min(gemmI8Most/max(float64(n)*float64(k), 1), float64(m))
	most = min(most, float64((m+tasks-1)/tasks+tile-1))
	return even(m, max(int(most)/tile, 1)*tile, tile)
}
