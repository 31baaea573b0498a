package cpu

// What a launch of gemm, gemm_batch or gemm_bias asks for, checked: the same for every
// implementation.

import (
	"github.com/concord-compute/concord/kernels"
	"github.com/concord-compute/concord/source"
)

// gemmLaunch is C = alpha·A·B + beta·C for count matrices.
type gemmLaunch struct {
	m, n, k     int
	alpha, beta float64
	ld          [3]int // of A, B and C: elements from row to row
	count       int
	step        [3]int // and from matrix to matrix
}

// Arguments: buffers A, B and C, each with its leading dimension behind it; of gemm_batch
// the count and three strides, of gemm_bias the bias.
var gemmBuffers = [3]int{4, 6, 9}

const (
	gemmCount = 11
	gemmSteps = 12
	gemmBias  = 11
)

// gemmOf reads the arguments, for elements of that size, and ends the launch if a buffer
// is too small or matrices of C overlap. Where nothing is written, count is 0; where A and
// B are not read, k is.
func gemmOf(c *call, size int, transA, transB bool) gemmLaunch {
	g := gemmLaunch{m: int(c.Int(0)), n: int(c.Int(1)), k: int(c.Int(2)), alpha: c.Float(3), beta: c.Float(8), count: 1}
	for i, at := range gemmBuffers {
		g.ld[i] = int(c.Int(at + 1))
	}
	if g.alpha == 0 {
		g.k = 0
	}
	if c.Kernel == "gemm_batch" {
		g.count = int(c.Int(gemmCount))
		for i := range g.step {
			g.step[i] = int(c.Int(gemmSteps + i))
		}
	}
	if g.m == 0 || g.n == 0 {
		g.count = 0
	}
	g.hold(c, 0, size, g.m, g.k, transA)
	g.hold(c, 1, size, g.k, g.n, transB)
	g.hold(c, 2, size, g.m, g.n, false)
	if c.addsBias() && g.count > 0 {
		c.elements(gemmBias, g.n, size)
	}
	if !apart(g.count, g.m, g.n, g.ld[2], g.step[2]) {
		c.Fail(gemmSteps+2, "%d matrices of %d rows of %d, rows %d and matrices %d apart, have elements in common",
			g.count, g.m, g.n, g.ld[2], g.step[2])
	}
	return g
}

// hold ends the launch if matrices of so many rows and columns, as op has them, are not
// all in their buffer.
func (g *gemmLaunch) hold(c *call, which, size, rows, cols int, across bool) {
	if across {
		rows, cols = cols, rows
	}
	if g.count == 0 || rows == 0 || cols == 0 {
		return
	}
	i, ld, step := gemmBuffers[which], g.ld[which], uint64(g.step[which])
	elements := len(c.Bytes(i)) / size
	if cols > elements || ld > 0 && rows-1 > (elements-cols)/ld {
		c.Fail(i, "%d elements cannot be %d rows of %d, %d apart", elements, rows, cols, ld)
	}
	rest := elements - cols - (rows-1)*ld
	if g.count > 1 && step > uint64(rest)/uint64(g.count-1) {
		c.Fail(i, "%d elements cannot be %d matrices of %d rows of %d, %d apart", elements, g.count, rows, cols, step)
	}
}

// apart says that no two of count matrices of m rows of n have an element in common; one
// may lie in the gaps of another's rows.
func apart(count, m, n, ld, step int) bool {
	if ld == 0 { // all rows are one
		m, ld = 1, n
	}
	for far := step; count > 1 && far < (m-1)*ld+n; far += step {
		row, col := far/ld, far%ld // where another begins, as one matrix has it
		if col < n || ld-col < n && row+1 < m {
			return false
		}
		count--
	}
	return true
}

// gemmActivation returns the place of a program's ACT in kernels.Activations, whose order
// is that of csrc/cpu/gemm.h, or -1 where it is none.
func gemmActivation(u *source.Unit) int {
	act, _ := u.Define("ACT")
	if act == "" {
		return 0
	}
	for i, a := range kernels.Activations {
		if a.Act == act {
			return i
		}
	}
	return -1
}

// addsBias says that this is gemm_bias.
func (c *call) addsBias() bool { return c.Kernel == "gemm_bias" }

// activation is what a launch of gemm_bias ends with, of a table of functions.
func (c *call) activation(of map[string]func(float64) float64) func(float64) float64 {
	switch i := gemmActivation(c.Unit); i {
	case 0:
		return func(x float64) float64 { return x }
	case -1:
		c.Fail(-1, "ACT is no activation")
		return nil
	default:
		return of[kernels.Activations[i].Kernel]
	}
}
