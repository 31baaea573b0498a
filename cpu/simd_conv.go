package cpu

// conv2d in vector instructions: a product of filters with columns that are gathered
// straight into the panels of gemm's kernels (csrc/cpu/conv.h). 16-bit images are
// widened as a whole, and the output rounded once.

import (
	"github.com/concord-compute/concord/source"
)

func init() { vector("conv2d", "conv2d", bindConv2D) }

// convPlan is one launch.
type convPlan struct {
	convolution
	call    *Call
	set     *simdSet
	bias    bool
	size    int    // bytes of what is computed in
	half    uint64 // of 16-bit images: 0 half, 1 bfloat16
	filters int    // of a group
	k       int    // depth of the product, with a row for the bias
	deep    int    // rows of a panel
	wide    int    // columns of a task
	tall    int    // filters of a group, rounded up to whole tiles
	packed  uint64 // packed filters
}

func bindConv2D(u *source.Unit) Func {
	p := convPlan{size: 4}
	t, _ := unitDefine(u, "T")
	switch t {
	case "f64":
		p.size = 8
	case "bf16":
		p.half = 1
	}
	bias, _ := unitDefine(u, "BIAS")
	p.bias = bias == "1"
	short := t == "f16" || t == "bf16"
	return func(c *Call) error {
		q := p
		q.call, q.set, q.convolution = c, c.device.simd, convolutionOf(c, true)
		if q.n*q.convolution.k*q.outs() == 0 {
			return nil
		}
		if short {
			return q.halves()
		}
		for i := 16; i < 20; i++ {
			c.aligned(i, q.size)
		}
		return q.run(c.Bytes(16), c.Bytes(17), c.Bytes(18), c.Bytes(19))
	}
}

// aligned ends the launch if buffer argument i is not at a multiple of the size.
func (c *Call) aligned(i, size int) {
	if b := c.Bytes(i); len(b) > 0 && address(b)%uint64(size) != 0 {
		c.fail(i, "offset %d is not a multiple of the element's %d bytes", c.args[i].Memory.Offset, size)
	}
}

func (p *convPlan) op(f simdOp) simdOp {
	if p.size == 8 {
		if f == conv32 {
			return conv64
		}
		return f + gemmDirect64 - gemmDirect32
	}
	return f
}

// run computes y from numbers of what is computed in.
func (p *convPlan) run(x, weight, bias, y []byte) error {
	p.filters, p.k = p.convolution.k/p.groups, p.depth()
	if p.bias {
		p.k++
	}
	if p.k == 0 { // no channels and no bias: sums of nothing
		clear(y[:p.n*p.convolution.k*p.outs()*p.size])
		return nil
	}
	strip := 2 * p.set.bytes / p.size
	l2, _ := cacheSizes()
	p.deep = even(p.k, max(l2/2/(4*strip*p.size), 64), 1)
	p.wide = even(p.outs(), max(l2/2/(max(p.deep, 1)*p.size)/strip*strip, strip), strip)
	p.tall = roundUpInt(p.filters, p.set.rows)
	weights, err := p.pack(weight, bias)
	if err != nil {
		return err
	}
	defer p.call.device.scratch.give(weights)
	p.packed = address(weights.data)
	parts := (p.outs() + p.wide - 1) / p.wide
	return p.call.Parallel(p.n*p.groups*parts, 1, func(lo, hi int) {
		// A strip's last store may write a register behind it.
		room, err := p.call.device.scratch.take(int64((p.wide*p.deep+2*strip)*p.size + 64))
		if err != nil {
			panic(err)
		}
		defer p.call.device.scratch.give(room)
		for task := lo; task < hi; task++ {
			z, j := task/parts, task%parts*p.wide
			p.part(x, y, z/p.groups, z%p.groups, j, min(j+p.wide, p.outs()), address(room.data))
		}
	})
}

// part computes columns j0 to j1 of the output of a group of filters of one image.
func (p *convPlan) part(x, y []byte, image, group, j0, j1 int, room uint64) {
	channels := p.c / p.groups
	size := uint64(p.size)
	in := address(x) + uint64((image*p.c+group*channels)*p.h*p.w)*size
	out := address(y) + uint64((image*p.convolution.k+group*p.filters)*p.outs())*size
	u := func(n int) uint64 { return uint64(int64(n)) }
	p.set.run(p.op(conv32), u(channels), u(p.h), u(p.w), u(p.rows), u(p.cols), u(p.strideH), u(p.strideW), u(p.padH), u(p.padW),
		u(p.dilationH), u(p.dilationW), u(p.outW), in, address(x), address(x)+uint64(len(x)),
		p.packed+uint64(group*p.tall*p.k)*size, u(p.filters), u(p.k), u(p.deep), u(j0), u(j1), out, u(p.outs()), room)
}

// pack lays the filters of each group, with their biases as a last column, as panels.
func (p *convPlan) pack(weight, bias []byte) (block, error) {
	depth, size := p.depth(), p.size
	row, group := p.k*size, p.tall*p.k*size
	plain, err := p.call.device.scratch.take(int64(max(p.filters*row, 1)))
	if err != nil {
		return block{}, err
	}
	defer p.call.device.scratch.give(plain)
	to, err := p.call.device.scratch.take(int64(max(p.groups*group, 1)))
	if err != nil {
		return block{}, err
	}
	for g := range p.groups {
		for i := range p.filters {
			o := g*p.filters + i
			n := copy(plain.data[i*row:], weight[o*depth*size:(o+1)*depth*size])
			if p.bias {
				copy(plain.data[i*row+n:], bias[o*size:(o+1)*size])
			}
		}
		for k := 0; k < p.k; k += p.deep {
			p.set.run(p.op(gemmPack32), 0, uint64(p.filters), uint64(min(p.deep, p.k-k)), address(plain.data)+uint64(k*size), uint64(p.k),
				address(to.data)+uint64(g*group+k*p.tall*size), uint64(p.set.rows))
		}
	}
	return to, nil
}

// halves computes 16-bit images in float.
func (p *convPlan) halves() error {
	c := p.call
	counts := []int{p.n * p.c * p.h * p.w, p.convolution.k * p.depth(), 0, p.n * p.convolution.k * p.outs()}
	if p.bias {
		counts[2] = p.convolution.k
	}
	total := 0
	for _, n := range counts {
		total += roundUpInt(4*n+4, 64)
	}
	room, err := c.device.scratch.take(int64(total))
	if err != nil {
		return err
	}
	defer c.device.scratch.give(room)
	var wide [4][]byte
	rest := room.data
	for i, n := range counts {
		c.aligned(16+i, 2)
		wide[i], rest = rest[:4*n], rest[roundUpInt(4*n+4, 64):]
		if n == 0 || i == 3 {
			continue
		}
		from, to := address(c.Bytes(16+i)), address(wide[i])
		err := c.Parallel(n, grain*16, func(lo, hi int) {
			p.set.run(simdWiden, p.half, 1, uint64(hi-lo), from+2*uint64(lo), uint64(n), to+4*uint64(lo), uint64(n))
		})
		if err != nil {
			return err
		}
	}
	if err := p.run(wide[0], wide[1], wide[2], wide[3]); err != nil {
		return err
	}
	from, to, n := address(wide[3]), address(c.Bytes(19)), counts[3]
	return c.Parallel(n, grain*16, func(lo, hi int) {
		p.set.run(simdNarrow, p.half, 1, uint64(hi-lo), from+4*uint64(lo), uint64(n), to+2*uint64(lo), uint64(n), 0)
	})
}
