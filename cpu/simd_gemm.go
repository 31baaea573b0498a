package cpu

// gemm in vector instructions: what a launch asks for, whether it can be done, and
// which of the ways is the shortest. simd_panels.go has the one for large matrices.

import (
	"math"

	"github.com/concord-compute/concord/source"
)

func init() { vector("gemm", "gemm", bindGemm) }

// matrix is op(X) for a stored X: element (i, j) is at row i and column j of X, or
// the other way round where across is set.
type matrix struct {
	at     uint64 // address
	ld     int    // elements from one stored row to the next
	size   int    // bytes of an element
	across bool   // op transposes
}

// element is the address of element (i, j).
func (x *matrix) element(i, j int) uint64 {
	if x.across {
		i, j = j, i
	}
	return x.at + uint64((i*x.ld+j)*x.size)
}

// product is C = alpha·A·B + beta·C.
type product struct {
	call        *Call
	set         *simdSet
	m, n, k     int
	alpha, beta float64
	a, b, out   matrix
	size        int    // bytes of what is computed in
	half        uint64 // of 16-bit matrices: 0 half, 1 bfloat16
}

// Numbers of functions, less those for float.
func (p *product) op(f simdOp) simdOp {
	if p.size == 8 {
		return f + gemmDirect64 - gemmDirect32
	}
	return f
}

// strip is how many columns the kernels take at a time.
func (p *product) strip() int { return 2 * p.set.bytes / p.size }

// bindGemm looks up what a program was defined with.
func bindGemm(u *source.Unit) Func {
	p, size := product{size: 4}, 4
	switch t, _ := unitDefine(u, "T"); t {
	case "f64":
		p.size, size = 8, 8
	case "f16":
		size = 2
	case "bf16":
		size, p.half = 2, 1
	}
	p.a.size, p.b.size, p.out.size = size, size, size
	a, _ := unitDefine(u, "TRANS_A")
	b, _ := unitDefine(u, "TRANS_B")
	p.a.across, p.b.across = a == "1", b == "1"
	return func(c *Call) error {
		q := p
		return q.run(c)
	}
}

func (p *product) run(c *Call) error {
	p.call, p.set = c, c.device.simd
	p.m, p.n, p.k = int(c.Int(0)), int(c.Int(1)), int(c.Int(2))
	p.alpha, p.beta = c.Float(3), c.Float(8)
	if p.m == 0 || p.n == 0 {
		return nil
	}
	if p.alpha == 0 {
		p.k = 0 // A and B are not read
	}
	p.a.bind(c, 4, p.m, p.k)
	p.b.bind(c, 6, p.k, p.n)
	p.out.bind(c, 9, p.m, p.n)
	if p.a.size != p.size {
		return p.halves()
	}
	return p.compute()
}

// compute takes the shortest way for matrices of what is computed in.
func (p *product) compute() error {
	width := p.strip() / 2
	rest := p.n % width
	switch {
	case p.k > 4 && p.n <= 4 && p.dots(p.n) || p.k > 4 && p.m <= 4 && p.b.across && !p.a.across:
		return p.runDot()
	case p.k == 0 || !p.b.across && p.direct():
		if p.n > width && p.n < 4*width && rest > 0 && p.dots(rest) {
			return p.runApart(rest)
		}
		return p.runDirect()
	}
	return p.runPanels()
}

// dots says that n columns cost less as scalar products with rows of A than as a
// register of which they fill little. Adding up a register is worth some ten steps.
func (p *product) dots(n int) bool {
	steps := n * (2*p.k/p.strip() + 10)
	return !p.a.across && (p.b.across || p.n == 1 && p.b.ld == 1 || p.m >= 8 && steps < p.k)
}

// runApart computes the last columns as scalar products.
func (p *product) runApart(cols int) error {
	q := *p
	q.n -= cols
	if err := q.runDirect(); err != nil {
		return err
	}
	q.b.at, q.out.at, q.n = p.b.element(0, q.n), p.out.element(0, q.n), cols
	return q.runDot()
}

// bind sets x to argument i, of which rows × cols elements of op(X) are used, and
// ends the launch if they are not all there.
func (x *matrix) bind(c *Call, i, rows, cols int) {
	x.ld = int(c.Int(i + 1))
	if x.across {
		rows, cols = cols, rows
	}
	data := c.Bytes(i)
	elements := len(data) / x.size
	if rows == 0 || cols == 0 {
		return
	}
	if cols > elements || x.ld > 0 && rows-1 > (elements-cols)/x.ld {
		c.fail(i, "%d elements cannot be %d rows of %d, %d apart", elements, rows, cols, x.ld)
	}
	if x.at = address(data); x.at%uint64(x.size) != 0 {
		c.fail(i, "offset %d is not a multiple of the element's %d bytes", c.args[i].Memory.Offset, x.size)
	}
}

// threadsPay says whether work is worth more threads than one: starting a second
// takes some 20 µs. The guess is 100 operations or 25 bytes per nanosecond.
func threadsPay(operations, bytes float64) bool { return operations/100+bytes/25 > 40e3 }

func (p *product) threadsPay() bool {
	m, n, k := float64(p.m), float64(p.n), float64(p.k)
	return p.call.device.threads > 1 && threadsPay(2*m*n*k, float64(p.size)*(m*k+k*n+m*n))
}

// direct says that packing would cost more than it saves: B is used by few rows, or
// stays in the second cache as it is.
func (p *product) direct() bool {
	l2, _ := cacheSizes()
	return p.m <= 4*p.set.rows || p.k <= 8 || p.k*p.n*p.size <= l2/2 && (p.m <= 20*p.set.rows || p.n <= 2*p.strip())
}

// runDirect computes from the matrices as they are.
func (p *product) runDirect() error {
	if !p.threadsPay() {
		p.directPart(0, p.m, 0, p.n)
		return nil
	}
	q := *p // so that only this way needs memory
	if q.m >= 4*q.set.rows*q.call.device.threads {
		return q.call.Parallel(q.m, q.set.rows, func(lo, hi int) { q.directPart(lo, hi, 0, q.n) })
	}
	step := 4 * q.strip() // the kernels for few rows are that wide
	return q.call.Parallel((q.n+step-1)/step, 1, func(lo, hi int) { q.directPart(0, q.m, lo*step, min(hi*step, q.n)) })
}

func (p *product) directPart(i0, i1, j0, j1 int) {
	rs, cs := p.a.ld, 1
	if p.a.across {
		rs, cs = 1, p.a.ld
	}
	p.set.run(p.op(gemmDirect32), uint64(i1-i0), uint64(j1-j0), uint64(p.k),
		p.a.element(i0, 0), uint64(rs), uint64(cs), p.b.element(0, j0), uint64(p.b.ld),
		p.out.element(i0, j0), uint64(p.out.ld), math.Float64bits(p.alpha), math.Float64bits(p.beta))
}

// runDot computes scalar products of rows with rows; a B that is not stored so is
// turned first, which is little as it has few columns.
func (p *product) runDot() error {
	if p.n == 1 && p.b.ld == 1 {
		p.b.across, p.b.ld = true, p.k
	}
	if !p.b.across {
		turned, err := p.call.device.scratch.take(int64(p.k * p.n * p.size))
		if err != nil {
			return err
		}
		defer p.call.device.scratch.give(turned)
		p.set.run(p.op(gemmPack32), 0, uint64(p.k), uint64(p.n), p.b.at, uint64(p.b.ld), address(turned.data), uint64(p.k))
		p.b = matrix{at: address(turned.data), ld: p.k, size: p.size, across: true}
	}
	if !p.threadsPay() {
		p.dotPart(0, p.m)
		return nil
	}
	q := *p
	return q.call.Parallel(q.m, 4, q.dotPart)
}

func (p *product) dotPart(i0, i1 int) {
	p.set.run(p.op(gemmDot32), uint64(i1-i0), uint64(p.n), uint64(p.k), p.a.element(i0, 0), uint64(p.a.ld),
		p.b.at, uint64(p.b.ld), p.out.element(i0, 0), uint64(p.out.ld), math.Float64bits(p.alpha), math.Float64bits(p.beta))
}
