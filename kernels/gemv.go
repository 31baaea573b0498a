package kernels

// The family gemv and its cases: long and short rows, padding, views that are not aligned, NaN in memory that
// must not be read.

import (
	"fmt"
	"math"

	"github.com/concord-compute/concord/source"
)

func init() {
	Register(Family{
		ID: "gemv", Doc: "y = alpha·op(A)·x + beta·y, with or without a transpose",
		Kernels: []string{"gemv"}, Types: floatTypes, Defines: []string{"T", "TRANS_A", "OUT", "GROUP"},
		Check: oneOf(gemmValues), Source: sources, Tile: gemvTile, Arguments: gemvArguments, Work: gemvWork,
		Reference: refGemv, Bound: knows(gemvLaunch), Rows: gemvRows, Cases: gemvCases,
	})
}

// gemvTile returns how many elements of y a group computes: as many as it has rows of LANES items or, with
// TRANS_A, as LANES items have elements in 16 bytes each.
func gemvTile(u *source.Unit, kernel string) (rows, cols int) {
	k, _ := u.Kernel(kernel)
	lanes := min(k.ReqdLocal[0], 8)
	if transposed, _ := u.Define("TRANS_A"); transposed == "1" {
		t, _ := u.Define("T")
		return 0, lanes * 16 / SizeOf(t)
	}
	return 0, k.ReqdLocal[0] / lanes
}

func gemvCases(f *Family) (list []Case) {
	for _, t := range f.Types {
		for i, s := range []gemmShape{
			{m: 1, k: 1, alpha: 1}, {m: 0, k: 5, alpha: 1}, {m: 5, k: 0, alpha: 1, beta: 2}, {m: 3, k: 0, alpha: 1},
			{m: 2, k: 5, alpha: 1},
			{m: 31, k: 33, alpha: 1.5, beta: -0.5}, {m: 64, k: 512, alpha: 1}, {m: 65, k: 257, alpha: 1, beta: 1, pad: 3},
			{m: 128, k: 2048, alpha: -1, pad: 16}, {m: 1, k: 65537, alpha: 1}, {m: 4099, k: 150, alpha: 2, beta: 1},
			{m: 7, k: 11, beta: 3, note: " alpha=0"},
			{m: 70, k: 9, alpha: 1, note: " NaN in C"}, {m: 97, k: 301, alpha: 1, note: " NaN in A, Inf in B"},
		} {
			for _, trans := range []bool{false, true} {
				s.transA, s.n = trans, 1
				if t == "f32" || i%4 == 0 || s.m == 97 {
					list = append(list, gemvCase(f, t, t, s))
				}
				if SizeOf(t) == 2 && i%4 < 2 {
					list = append(list, gemvCase(f, t, "f32", s))
				}
			}
		}
	}
	for _, group := range []int{4, 32, 256} {
		for _, trans := range []bool{false, true} {
			list = append(list, gemvCase(f, "f32", "f32", gemmShape{m: 97, n: 1, k: 301, alpha: 1.5, beta: -0.5, pad: 3,
				transA: trans}).grouped(group),
				gemvCase(f, "f32", "f32", gemmShape{m: 64, n: 1, k: 512, alpha: 1, transA: trans}).grouped(group))
		}
	}
	return list
}

func gemvCase(f *Family, t, result string, s gemmShape) Case {
	p := s.place(1, 0)
	p.ld[1], p.ld[2], p.length[1], p.length[2] = 1, 1, s.k, s.m
	a, x, y := Uniform(t, p.length[0], 31, -1, 1), Uniform(t, s.k, 32, -1, 1), Uniform(result, s.m, 33, -1, 1)
	switch s.note {
	case " NaN in C":
		y = constant(s.m, math.NaN()) // beta is 0: y is not read
	case " NaN in A, Inf in B":
		a, x = mixed(a, math.NaN(), 3*p.ld[0]+1, 64*p.ld[0]+17), mixed(x, math.Inf(1), 5)
	}
	shape := fmt.Sprintf("m=%d k=%d alpha=%g beta=%g%s", s.m, s.k, s.alpha, s.beta, s.note)
	if s.pad > 0 {
		shape += " padded"
	}
	if s.transA {
		shape += " TRANS_A"
	}
	if s.m == 0 {
		y = constant(1, 77)
	}
	c := f.Case("gemv", t, shape, s.m).with(uintArg(s.m), uintArg(s.k), value(scalarOf(t), s.alpha), in(t, p.length[0], a),
		uintArg(p.ld[0]), in(t, s.k, x), value(scalarOf(t), s.beta), inout(result, s.m, y))
	if s.transA {
		c = c.define("TRANS_A", "1")
	}
	return c.results(t, result).within("ε·((k+2)·|alpha|·Σ|a||x| + 2|beta·y| + |result|)", gemmWhy,
		func(_ int, in [][]float64, ref []float64) []float64 {
			return gemmBound(t, result, s, p, [][]float64{4: in[3], 6: in[5], 9: in[7]}, ref)
		})
}

// results adds the definition OUT to a case if its results are not of the type of its inputs.
func (c Case) results(t, result string) Case {
	if result == t {
		return c
	}
	c.Shape += " to " + result
	return c.define("OUT", result)
}

func gemvArguments(c *Call) bool {
	t, m, k := c.Type("T"), int(c.Int(0)), int(c.Int(1))
	if m == 0 {
		return false
	}
	if c.Float(2) == 0 { // A and x are not read
		k = 0
	}
	needMatrices(c, 3, t, flip(c.Flag("TRANS_A"), m, k), 1, 0)
	needAll(c, t, k, 5)
	needAll(c, c.Type("OUT"), m, 7)
	return true
}

func gemvWork(c *Call, _ float64) (operations, moved float64) {
	t, m, k := float64(SizeOf(c.Type("T"))), float64(c.Int(0)), float64(c.Int(1))
	if c.Float(2) == 0 {
		k = 0
	}
	operations, moved = 2*m*k, (m*k+k)*t+m*float64(SizeOf(c.Type("OUT")))
	if c.Float(6) != 0 { // y is read, too
		operations, moved = operations+2*m, moved+m*float64(SizeOf(c.Type("OUT")))
	}
	return operations, moved
}

func refGemv(c *Call) error {
	t, m, k, alpha, lda, beta := c.Type("T"), int(c.Int(0)), int(c.Int(1)), c.Float(2), int(c.Int(4)), c.Float(6)
	a, x, y, set := c.Get(3, t), c.Get(5, t), c.Get(7, c.Type("OUT")), c.Set(7, c.Type("OUT"))
	down, along := lda, 1 // elements of A from one element of y, and of x, to the next
	if c.Flag("TRANS_A") {
		down, along = 1, lda
	}
	if alpha == 0 {
		k = 0
	}
	for i := range m {
		sum := 0.0
		for p := range k {
			sum += a(i*down+p*along) * x(p)
		}
		if sum *= alpha; beta != 0 {
			sum += beta * y(i)
		}
		set(i, sum)
	}
	return nil
}
