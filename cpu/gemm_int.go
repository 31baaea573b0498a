package cpu

// gemm and gemm_batch of integers, modulo 2^32 or 2^64: in vector instructions (csrc/cpu/gemm_int.h), and in Go, where
// gemm_i8 is the same.

import (
	"github.com/concord-compute/concord/internal/simd"
	"github.com/concord-compute/concord/source"
)

// integerProducts reports whether the products of a program are of integers.
func integerProducts(u *source.Unit) bool {
	t, _ := u.Define("T")
	return t == "i32" || t == "i64"
}

// gemmIntCols is the number of columns that the vector function multiplies at a time, gemmIntMost the largest
// number of multiply-adds of a task of more than one tile: some milliseconds.
const gemmIntCols, gemmIntMost = 64, 1 << 24

func simdGemmInt(c *call) error {
	g, size := gemmOf(c), 4
	if t, _ := c.Define("T"); t == "i64" {
		size = 8
	}
	alpha, beta := uint64(c.Int(3)), uint64(c.Int(8))
	rs, cs := g.strides(c, 0)
	bs, bc := g.strides(c, 1)
	rows := min(max(gemmIntMost/(gemmIntCols*max(g.k, 1)), c.Choose(intRows)), g.m)
	across, down := (g.n+gemmIntCols-1)/gemmIntCols, (g.m+rows-1)/rows
	threads := c.device.threads
	if !c.threadsPay(float64(g.count)*float64(g.m)*float64(g.n)*float64(g.k), 0) {
		threads = 1
	}
	return c.inRooms(g.count*across*down, 1, threads, max(gemmIntCols*g.k*size, 64), func(task, _ int, room block) {
		z, i, j := task/(across*down), task%down*rows, task/down%across*gemmIntCols
		c.device.simd.run(simd.GemmInt, flag(size == 8), uint64(min(rows, g.m-i)), uint64(min(gemmIntCols, g.n-j)),
			uint64(g.k),
			c.at(gemmBuffers[0])+uint64(size*(z*g.step[0]+i*rs)), uint64(rs), uint64(cs),
			c.at(gemmBuffers[1])+uint64(size*(z*g.step[1]+j*bc)), uint64(bs), uint64(bc),
			c.at(gemmBuffers[2])+uint64(size*(z*g.step[2]+i*g.ld[2]+j)), uint64(g.ld[2]), alpha, beta, address(room.data))
	})
}

// goGemmInt multiplies elements of type S as numbers of type E, of which the order does not matter.
func goGemmInt[S int8 | int32 | int64, E int32 | int64](c *call, a, b []S, out []E) error {
	g, alpha, beta := gemmOf(c), E(c.Int(3)), E(c.Int(8))
	pack := func(x []S, first, along, across int) func(i, p0, p1 int, dst []E) {
		return func(i, p0, p1 int, dst []E) {
			for p := p0; p < p1; p++ {
				dst[p-p0] = E(x[first+i*across+p*along])
			}
		}
	}
	down, across := g.strides(c, 0)
	along, next := g.strides(c, 1)
	for z := range g.count {
		left, right, to := pack(a, z*g.step[0], across, down), pack(b, z*g.step[1], along, next), out[z*g.step[2]:]
		if err := rowProducts(c, g.m, g.n, g.k, left, right, dots[E], func(i, j int, sums []int64) {
			for q, sum := range sums {
				at := &to[i*g.ld[2]+j+q]
				x := alpha * E(sum)
				if beta != 0 {
					x += beta * *at
				}
				*at = x
			}
		}); err != nil {
			return err
		}
	}
	return nil
}
