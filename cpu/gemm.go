package cpu

// The arguments of a launch of gemm, gemm_batch, gemm_bias or gemm_i8, for all implementations on the CPU.

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

// gemmOf reads the arguments, which the family has checked. If A and B are not to be read, it sets k to 0.
func gemmOf(c *call) gemmLaunch {
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
	return g
}

// strides returns the elements of A (0) or B (1) from one row of op(X) to the next, and from one column to the next.
func (g *gemmLaunch) strides(c *call, i int) (down, across int) {
	if c.Flag([2]string{"TRANS_A", "TRANS_B"}[i]) {
		return 1, g.ld[i]
	}
	return g.ld[i], 1
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
