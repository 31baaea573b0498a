package cpu

// gemm of 8-bit integers in Go, for devices without vector kernels. All
// arithmetic is modulo 2^32, so that the order of operations does not matter.

func init() { native("gemm_i8", "gemm_i8", goGemmI8) }

// gemmI8 has the arguments of one launch.
type gemmI8 struct {
	m, n, k        int
	alpha, beta    uint32
	a, b           []int8
	out            []int32
	lda, ldb, ldc  int
	transA, transB bool
}

func gemmI8Of(c *call) gemmI8 {
	return gemmI8{m: int(c.Int(0)), n: int(c.Int(1)), k: int(c.Int(2)), alpha: uint32(c.Int(3)), beta: uint32(c.Int(8)),
		a: c.I8(4), b: c.I8(6), out: c.I32(9), lda: int(c.Int(5)), ldb: int(c.Int(7)), ldc: int(c.Int(10)),
		transA: c.Flag("TRANS_A"), transB: c.Flag("TRANS_B")}
}

// left returns element (i, p) of op(A), and right an element of op(B).
func (g *gemmI8) left(i, p int) int8 {
	if g.transA {
		i, p = p, i
	}
	return g.a[i*g.lda+p]
}

func (g *gemmI8) right(p, j int) int8 {
	if g.transB {
		p, j = j, p
	}
	return g.b[p*g.ldb+j]
}

// finish stores alpha·sum + beta·C as element (i, j) of C.
func (g *gemmI8) finish(i, j int, sum uint32) {
	at := &g.out[i*g.ldc+j]
	sum *= g.alpha
	if g.beta != 0 {
		sum += g.beta * uint32(*at)
	}
	*at = int32(sum)
}

func goGemmI8(c *call) error {
	g := gemmI8Of(c)
	pack := func(at func(i, p int) int8) func(i, p0, p1 int, dst []int32) {
		return func(i, p0, p1 int, dst []int32) {
			for p := p0; p < p1; p++ {
				dst[p-p0] = int32(at(i, p))
			}
		}
	}
	return rowProducts(c, g.m, g.n, g.k, pack(g.left), pack(func(j, p int) int8 { return g.right(p, j) }), dots[int32],
		func(i, j int, sums []int64) {
			for q, s := range sums {
				g.finish(i, j+q, uint32(s))
			}
		})
}
