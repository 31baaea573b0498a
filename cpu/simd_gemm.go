package cpu

// gemm, gemm_batch and gemm_bias in vector instructions: the choice of a method by size, and the
// methods for small products. simd_strips.go has the method for products of the size of the caches,
// simd_panels.go the one for larger products.

import (
	"math"

	"github.com/concord-compute/concord/internal/simd"
	"github.com/concord-compute/concord/kernels"
	"github.com/concord-compute/concord/source"
)

func init() {
	for _, kernel := range []string{"gemm", "gemm_batch", "gemm_bias"} {
		vector(kernel, kernel, bindGemm)
	}
}

// matrix is op(X) of a stored matrix X: its element (i, j) is at row i and column j of X, or, if
// across is set, at row j and column i.
type matrix struct {
	at     uint64 // address
	ld     int    // elements from one stored row to the next
	size   int    // bytes of an element
	half   uint64 // if size is 2: 0 half, 1 bfloat16
	across bool   // whether op transposes
}

// element returns the address of element (i, j).
func (x *matrix) element(i, j int) uint64 {
	if x.across {
		i, j = j, i
	}
	return x.at + uint64((i*x.ld+j)*x.size)
}

// product is C = alpha·A·B + beta·C, with the bias and activation that follow.
type product struct {
	gemmLaunch
	call      *call
	set       *simdSet
	a, b, out matrix
	size      int // bytes of an element in the computation
	finish    finish
	rounded   rounding // the 16-bit result of a product that is computed in float
}

// finish is the operation after a product: f(C + bias).
type finish struct {
	bias uint64 // address of the bias, in the type of the computation
	f    uint64 // number of the function in csrc/cpu/gemm.h; 0 if there is no such operation
}

// from returns the operation for the columns from j on.
func (f finish) from(j, size int) finish { return finish{f.bias + uint64(j*size), f.f} }

// op returns the number of the function for the product's element type; f is that for float.
func (p *product) op(f simd.Op) simd.Op {
	if p.size == 8 {
		return f + simd.GemmF64Direct - simd.GemmF32Direct
	}
	return f
}

// strip returns the number of columns that the kernels compute at a time.
func (p *product) strip() int { return 2 * p.set.bytes / p.size }

// bindGemm returns the function for the definitions of a program.
func bindGemm(u *source.Unit) goFunc {
	if integerProducts(u) {
		return simdGemmInt
	}
	p := product{size: 4}
	if kernels.TypeOf(u, "T") == "f64" {
		p.size = 8
	}
	p.a.stored(kernels.TypeOf(u, "TYPE_A"))
	p.b.stored(kernels.TypeOf(u, "TYPE_B"))
	p.out.stored(kernels.TypeOf(u, "OUT"))
	a, _ := u.Define("TRANS_A")
	b, _ := u.Define("TRANS_B")
	p.a.across, p.b.across = a == "1", b == "1"
	act := gemmActivation(u)
	if act < 0 {
		return nil
	}
	p.finish.f = uint64(act) + 1
	return func(c *call) error {
		q := p
		return q.run(c)
	}
}

// stored sets the size of an element and, if that is 2, its type.
func (x *matrix) stored(t string) {
	x.size = 4
	switch t {
	case "f64":
		x.size = 8
	case "f16":
		x.size = 2
	case "bf16":
		x.size, x.half = 2, 1
	}
}

func (p *product) run(c *call) error {
	p.call, p.set = c, c.device.simd
	p.gemmLaunch = gemmOf(c)
	for i, x := range []*matrix{&p.a, &p.b, &p.out} {
		x.at, x.ld = c.at(gemmBuffers[i]), p.ld[i]
	}
	if c.addsBias() {
		p.finish.bias = c.at(gemmBias)
	} else {
		p.finish.f = 0
	}
	if p.count > 1 {
		return p.batch()
	}
	return p.compute()
}

// batch computes all products: one after another with all threads together if they are large
// enough, otherwise whole products on each thread.
func (p *product) batch() error {
	if p.step[1] == 0 && !p.a.across && p.step[0] == p.m*p.a.ld && p.step[2] == p.m*p.out.ld {
		p.m *= p.count // rows of one large product
		return p.compute()
	}
	q := *p
	c, one := q.call, q.nanoseconds()
	part := func(_ *call, lo, hi int) {
		for i := lo; i < hi; i++ {
			if err := q.nth(i).compute(); err != nil && c.ctx.Err() == nil {
				panic(err)
			}
		}
	}
	chunk, pays := max(1, int(float64(c.Choose(batchNs))/one)), float64(c.Choose(threadsPayNs))
	if c.device.threads == 1 || one > pays || one*float64(q.count) < pays {
		return c.serial(q.count, chunk, body{with: part})
	}
	return c.ranges(q.count, max(chunk, c.each(q.count, threadRanges)), c.device.threads, part)
}

// nth returns product i of a batch.
func (p *product) nth(i int) *product {
	q := *p
	for j, x := range []*matrix{&q.a, &q.b, &q.out} {
		x.at += uint64(i * p.step[j] * x.size)
	}
	return &q
}

// compute computes one product by the method that is fastest for its size.
func (p *product) compute() error {
	if p.a.size != p.size || p.b.size != p.size {
		return p.halves()
	}
	width := p.strip() / 2
	rest := p.n % width
	switch {
	case p.few():
		return p.runFew()
	case p.k > p.call.Choose(dotDepth) && p.short():
		return p.runDot()
	case p.k == 0 || !p.b.across && p.direct():
		if p.n > width && p.n < 4*width && rest > 0 && p.dots(rest) { // other widths fill tiles of several registers
			return p.runApart(rest)
		}
		return p.runDirect()
	case p.narrow():
		return p.runNarrow()
	case p.inStrips():
		return p.runStrips()
	}
	return p.runPanels()
}

// narrow reports whether B has so few columns that packing A, each element of which meets them once, costs more
// than it saves, while there are rows for all threads.
func (p *product) narrow() bool {
	c := p.call
	return !p.b.across && !p.a.across && p.n <= c.Choose(narrowCols)*p.strip() && p.n%p.strip() == 0 &&
		p.k > c.Choose(narrowDepth)*p.n && p.rounded.out.size == 0 && p.m >= p.set.rows*c.device.threads
}

// runNarrow adds up products of parts of the depth, whose rows of B stay in the second-level cache.
func (p *product) runNarrow() error {
	l2, _ := cacheSizes()
	q, rows := *p, p.set.rows
	depth := even(q.k, max(q.call.share(narrowShare, l2)/(q.n*q.size), q.call.Choose(narrowLeast)), 16)
	return q.call.Parallel((q.m+rows-1)/rows, 1, func(lo, hi int) {
		for p0 := 0; p0 < q.k; p0 += depth {
			part := q
			part.a.at, part.b.at, part.k = q.a.element(0, p0), q.b.element(p0, 0), min(depth, q.k-p0)
			if p0 > 0 {
				part.beta = 1
			}
			if p0+depth < q.k {
				part.finish = finish{}
			}
			part.directPart(lo*rows, min(hi*rows, q.m), 0, q.n)
		}
	})
}

// dots reports whether n columns cost less as dot products with rows of A than as a register that
// they fill only in part. Adding up the lanes of a register costs about ten multiply-adds.
func (p *product) dots(n int) bool {
	steps := n * (2*p.k/p.strip() + p.call.Choose(dotSum))
	return !p.a.across && (p.b.across || p.n == 1 && p.b.ld == 1 || p.m >= p.call.Choose(dotRows) && steps < p.k)
}

// short reports whether the result has so few columns, or rows, that it is computed as dot products.
func (p *product) short() bool {
	few := p.call.Choose(dotFew)
	return p.n <= few && p.dots(p.n) || p.m <= few && p.b.across && !p.a.across
}

// runApart computes the last columns as dot products.
func (p *product) runApart(cols int) error {
	q := *p
	q.n -= cols
	if err := q.runDirect(); err != nil {
		return err
	}
	q.b.at, q.out.at, q.finish, q.n = p.b.element(0, q.n), p.out.element(0, q.n), p.finish.from(q.n, p.size), cols
	return q.runDot()
}

// guess estimates the time of work on one thread in nanoseconds.
func (c *call) guess(operations, bytes float64) float64 {
	return operations/float64(c.Choose(guessOperations)) + bytes/float64(c.Choose(guessBytes))
}

// threadsPay reports whether more than one thread saves time.
func (c *call) threadsPay(operations, bytes float64) bool {
	return c.guess(operations, bytes) > float64(c.Choose(threadsPayNs))
}

func (p *product) nanoseconds() float64 {
	m, n, k := float64(p.m), float64(p.n), float64(p.k)
	return p.call.guess(2*m*n*k, float64(p.size)*(m*k+k*n+m*n))
}

func (p *product) threadsPay() bool {
	return p.nanoseconds() > float64(p.call.Choose(threadsPayNs))
}

// direct reports whether packing would cost more than it saves: B is used by few rows, or fits into
// the second-level cache without packing.
func (p *product) direct() bool {
	l2, _ := cacheSizes()
	c := p.call
	return p.m <= c.Choose(directRows)*p.set.rows || p.k <= c.Choose(directDepth) ||
		p.k*p.n*p.size <= c.share(directRight, l2) &&
			(p.m <= c.Choose(directTall) || p.n <= c.Choose(directWide)*p.strip())
}

// runDirect computes the product without packing.
func (p *product) runDirect() error {
	if !p.threadsPay() {
		p.directPart(0, p.m, 0, p.n)
		return nil
	}
	q := *p // a copy, so that only this method allocates one
	if q.m >= q.call.Choose(directSplit)*q.set.rows*q.call.device.threads {
		rows := q.set.rows
		return q.call.Parallel((q.m+rows-1)/rows, 1, func(lo, hi int) { q.directPart(lo*rows, min(hi*rows, q.m), 0, q.n) })
	}
	step := 4 * q.strip() // the width of the kernels for few rows
	return q.call.Parallel((q.n+step-1)/step, 1, func(lo, hi int) { q.directPart(0, q.m, lo*step, min(hi*step, q.n)) })
}

func (p *product) directPart(i0, i1, j0, j1 int) {
	rs, cs := p.a.ld, 1
	if p.a.across {
		rs, cs = 1, p.a.ld
	}
	after := p.finish.from(j0, p.size)
	p.set.run(p.op(simd.GemmF32Direct), uint64(i1-i0), uint64(j1-j0), uint64(p.k),
		p.a.element(i0, 0), uint64(rs), uint64(cs), p.b.element(0, j0), uint64(p.b.ld),
		p.out.element(i0, j0), uint64(p.out.ld), math.Float64bits(p.alpha), math.Float64bits(p.beta), after.bias, after.f,
		uint64(p.call.Choose(thinRows)), uint64(p.call.Choose(thinDepth)))
}

// runDot computes dot products of rows of A with columns of B. If B is not stored with its columns
// contiguous, it is transposed first, which is little work as it has few columns.
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
		p.set.run(p.op(simd.GemmF32Pack), 0, uint64(p.k), uint64(p.n), p.b.at, uint64(p.b.ld), address(turned.data),
			uint64(p.k))
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
	p.set.run(p.op(simd.GemmF32Dot), uint64(i1-i0), uint64(p.n), uint64(p.k), p.a.element(i0, 0), uint64(p.a.ld),
		p.b.at, uint64(p.b.ld), p.out.element(i0, 0), uint64(p.out.ld), math.Float64bits(p.alpha), math.Float64bits(p.beta),
		p.finish.bias, p.finish.f)
}
