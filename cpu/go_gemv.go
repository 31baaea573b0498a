package cpu

// gemv in Go.

func init() { native("gemv", "gemv", typed(goGemv[float32], goGemv[float64])) }

// goGemv computes y = alpha·op(A)·x + beta·y: a dot product of each row of A with x, or the sum of the rows of
// A times their elements of x.
func goGemv[F number](c *call, t string) error {
	m, k, alpha, lda, beta := int(c.Int(0)), int(c.Int(1)), F(c.Float(2)), int(c.Int(4)), F(c.Float(6))
	if alpha == 0 {
		k = 0
	}
	a, from, y := viewOf[F](c, 3, t), viewOf[F](c, 5, t), viewOf[F](c, 7, c.Type("OUT"))
	x := from.read(0, k, make([]F, k))
	store := func(i int, sum F) {
		if sum *= alpha; beta != 0 {
			sum += beta * y.at(i)
		}
		y.set(i, sum)
	}
	if !c.Flag("TRANS_A") {
		return c.Parallel(m, max(1, c.Choose(goGrain)/max(k, 1)), func(lo, hi int) {
			room := make([]F, k)
			for i := lo; i < hi; i++ {
				var s [4]F
				if k > 0 { // else A may be too short for a slice of nothing
					for p, v := range a.read(i*lda, i*lda+k, room) {
						s[p%4] += v * x[p]
					}
				}
				store(i, s[0]+s[1]+(s[2]+s[3]))
			}
		})
	}
	piece := c.Choose(goSums)
	return c.Parallel(m, max(16, c.Choose(goGrain)/max(k, 1)), func(lo, hi int) {
		room, sums := make([]F, piece), make([]F, piece)
		for ; lo < hi; lo += piece {
			end := min(lo+piece, hi)
			clear(sums)
			for p, by := range x {
				for j, v := range a.read(p*lda+lo, p*lda+end, room) {
					sums[j] += v * by
				}
			}
			for i := lo; i < end; i++ {
				store(i, sums[i-lo])
			}
		}
	})
}
