package cpu

// The arguments of a launch of gemm, gemm_batch or gemm_bias, checked, for all
// implementations on the CPU.

import (
	"github.com/concord-compute/concord/kernels"
	"github.com/concord-compute/concord/source"
)

// gemmLaunch is C = alpha·A·B + beta·C for count matrices.
type gemmLaunch struct {
	m, n, k     int
	alpha, beta float64
	ld          [3]int // of A, B and C: elements from one row to the next
	count       int
	step        [3]int // of A, B and C: elements from one matrix to the next
}

// Positions of arguments: the buffers A, B and C, each followed by its leading dimension; for
// gemm_batch the count and three strides, for gemm_bias the bias.
var gemmBuffers = [3]int{4, 6, 9}

const (
	gemmCount = 11
	gemmSteps = 12
	gemmBias  = 11
)

// gemmOf reads the arguments, for elements of size bytes, and ends the launch if a buffer
// is too small or matrices of C overlap. If there is nothing to write, it sets count to 0; if A and
// B are not to be read, it sets k to 0.
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
		c.Fail(gemmSteps+2, "%d matrices of %d rows of %d elements overlap: rows are %d and matrices %d elements apart",
			g.count, g.m, g.n, g.ld[2], g.step[2])
	}
	return g
}

// hold ends the launch if the buffer of matrix which (0 is A, 1 B, 2 C) is too small for all of its
// matrices. rows and cols are the size of op of the matrix; across says that op transposes.
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
		c.Fail(i, "%d elements are too few for %d rows of %d that are %d apart", elements, rows, cols, ld)
	}
	rest := elements - cols - (rows-1)*ld
	if g.count > 1 && step > uint64(rest)/uint64(g.count-1) {
		c.Fail(i, "%d elements are too few for %d matrices of %d rows of %d that are %d apart", elements, g.count, rows, cols, step)
	}
}

// apart reports whether no two of count matrices of m rows of n elements have an element in
// common. The rows of one may lie between those of another.
func apart(count, m, n, ld, step int) bool {
	if ld == 0 { // all rows are the same memory
		m, ld = 1, n
	}
	for far := step; count > 1 && far < (m-1)*ld+n; far += step {
		row, col := far/ld, far%ld // row and column of the first matrix at which another one begins
		if col < n || ld-col < n && row+1 < m {
			return false
		}
		count--
	}
	return true
}

// gemmActivation returns the index of a program's ACT in kernels.Activations, whose order
// csrc/cpu/gemm.h relies on, or -1 if it is not one of them.
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

// addsBias reports whether the kernel is gemm_bias.
func (c *call) addsBias() bool { return c.Kernel == "gemm_bias" }

// activation returns the activation of a launch of gemm_bias from a table of functions by kernel
// name; it returns its argument if ACT is none.
func (c *call) activation(of map[string]func(float64) float64) func(float64) float64 {
	switch i := gemmActivation(c.Unit); i {
	case 0:
		return func(x float64) float64 { return x }
	case -1:
		c.Fail(-1, "the definition ACT is not the name of an activation")
		return nil
	default:
		return of[kernels.Activations[i].Kernel]
	}
}
