package cpu

// conv2d in vector instructions, as products of the filters with planes, which are copies of the
// input with padding (csrc/cpu/conv.h). This file decides which planes there are and how the work
// is divided. 16-bit images are converted to float as a whole, and the output is rounded once.

import (
	"math"
	"slices"
	"unsafe"

	"github.com/concord-compute/concord/internal/simd"
	"github.com/concord-compute/concord/source"
)

func init() { vector("conv2d", "conv2d", bindConv2D) }

// convAxis has the sizes of a convolution in one direction, along rows or along columns. Elements of the filter
// whose distance is a multiple of the stride can share a plane of each channel, which is then longer.
type convAxis struct {
	size, out, filter     int
	stride, pad, dilation int
	planes                int
	wrap                  int // plane i begins at i·dilation % wrap
	longer                int // elements by which a shared plane is longer than the output
}

// shared returns the axis with planes that filter elements share.
func (a convAxis) shared() convAxis {
	a.planes, a.wrap = min(a.filter, a.stride/gcd(a.stride, a.dilation)), a.stride
	a.longer = max(a.filter-1, 0) * a.dilation / a.stride
	return a
}

// apart returns the axis with a plane for each filter element.
func (a convAxis) apart() convAxis {
	a.planes, a.wrap, a.longer = a.filter, math.MaxInt64, 0
	return a
}

// elements returns the number of elements of all planes of a channel for a number of outputs.
func (a *convAxis) elements(outs int) float64 {
	return float64(a.planes) * (float64(outs) + float64(a.longer))
}

// place returns the plane that belongs to element i of the filter, and the offset in it.
func (a *convAxis) place(i int) (plane, far int) {
	if a.longer == 0 {
		return i, 0
	}
	return i % a.planes, i * a.dilation / a.stride
}

func gcd(a, b int) int {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}

// convPlan is one launch with its division into tasks.
type convPlan struct {
	convolution
	call        *call
	set         *simdSet
	bias        bool
	size        int      // bytes of an element in the computation
	half        uint64   // type of 16-bit images: 0 half, 1 bfloat16
	down, along convAxis // rows and columns
	channels    int      // of a group
	filters     int      // of a group
	packed      bool     // filters are packed into panels
	batch       int      // images that a task computes
	lines       int      // rows of the output that a task computes
	some        int      // filters that a task computes
	deep        int      // channels that are copied to planes at a time; 0 if the planes are the image itself
	plane       int      // elements of a plane
	together    int      // filters that are multiplied with a strip of the planes before the next strip
	portions    int      // of Winograd's method: parts into which the strips of the tiles of a group are divided
	strips      int      // of Winograd's method: the most strips of such a part, which are computed together
	sums        int      // elements of a filter's sums if they are not in the output itself, else 0
}

func bindConv2D(u *source.Unit) goFunc {
	p := convPlan{size: 4}
	t, _ := u.Define("T")
	switch t {
	case "f64":
		p.size = 8
	case "bf16":
		p.half = 1
	}
	bias, _ := u.Define("BIAS")
	p.bias = bias == "1"
	short := t == "f16" || t == "bf16"
	return func(c *call) error {
		q := p
		q.call, q.set, q.convolution = c, c.device.simd, convolutionOf(c, true)
		if short {
			return q.halves()
		}
		return q.arrange(c.Bytes(16), c.Bytes(17), c.Bytes(18), c.Bytes(19))
	}
}

// op returns the function for the type of the computation, given that for floats.
func (p *convPlan) op(f simd.Op) simd.Op {
	switch {
	case p.size == 4:
		return f
	case f == simd.GemmF32Pack:
		return simd.GemmF64Pack
	}
	return f + simd.ConvF64 - simd.ConvF32 // the functions of convolutions are in pairs
}

// plan decides how the work is divided into tasks.
func (p *convPlan) plan() {
	p.channels, p.filters = p.c/p.groups, p.k/p.groups
	if p.depth() == 0 {
		p.channels, p.rows, p.cols = 0, 0, 0
	}
	// Rows at distances of whole pages would share the same few lines of the first-level cache.
	p.packed = p.filters >= p.set.rows && p.depth()*p.size%4096 == 0
	p.down = convAxis{size: p.h, out: p.outH, filter: p.rows, stride: p.strideH, pad: p.padH,
		dilation: p.dilationH}.shared()
	p.along = convAxis{size: p.w, out: p.outW, filter: p.cols, stride: p.strideW, pad: p.padW,
		dilation: p.dilationW}.shared()
	l2, _ := cacheSizes()
	room := p.call.share(convRoom, l2) / p.size // for planes, in elements
	p.cutColumns(room)
	p.cutRows(room)
	p.cutImages(room)
	pitch := p.along.out + p.along.longer
	p.plane = p.oddLines(p.batch * (p.lines + p.down.longer) * pitch)
	p.deep, p.together = max(room/(max(p.planes(), 1)*p.plane), 1), p.set.rows
	if p.set.bytes < 64 {
		// A strip of the planes fits into the first-level cache, where all filters find it. The strips of
		// AVX-512 are too wide for that.
		p.deep, p.together = max(min(p.deep, p.call.Choose(convDeep)/max(p.rows*p.cols, 1)), 1), max(p.filters, 1)
	}
	p.deep = even(p.channels, p.deep, 1)
	if p.deep == 0 || p.bare() { // no channels, or no planes
		p.deep, p.together = 0, p.set.rows
		if 4*p.channels*p.set.bytes <= p.call.Choose(convBareWide)<<10 {
			p.together /= 2 // filters, which leave registers for as many columns again
		}
	}
	if p.along.longer > 0 || p.batch > 1 {
		p.sums = roundUpInt(p.batch*p.lines*pitch, p.set.bytes/p.size)
	}
	threads, tasks := p.call.device.threads, p.parts()
	if tasks%threads == 0 {
		tasks *= 2 // all threads get the same number, so that no further division is needed
	}
	p.some = min(even(p.filters, max(p.filters*tasks/(2*threads), 1), p.set.rows), p.filters)
}

// bare reports whether the planes are the image itself, and are not copied: each element of the output is a
// product of a filter with the elements at one place of the image. Rows of an image are read in short parts,
// and the filters once for each of these.
func (p *convPlan) bare() bool {
	l2, _ := cacheSizes()
	return p.rows == 1 && p.cols == 1 && p.strideH == 1 && p.strideW == 1 && p.padH == 0 && p.padW == 0 && p.outH == p.h &&
		p.outW == p.w &&
		p.batch == 1 && !p.packed && p.filters >= p.set.rows && p.depth()*p.filters*p.size <= p.call.share(convBare, l2)
}

// oddLines returns n elements rounded up to an odd number of cache lines, so that planes of so many elements
// begin at different offsets in a page.
func (p *convPlan) oddLines(n int) int {
	unit := 64 / p.size
	lines := (n + unit - 1) / unit
	return (lines + 1 - lines%2) * unit
}

// planes returns the number of planes of a channel.
func (p *convPlan) planes() int { return p.down.planes * p.along.planes }

// parts returns the number of parts into which images, groups and rows of the output are divided.
func (p *convPlan) parts() int {
	return (p.n + p.batch - 1) / p.batch * p.groups * ((p.down.out + p.lines - 1) / p.lines)
}

// room returns the bytes for the planes and sums of a task. Accesses of whole registers reach past
// the end of either by less than one register.
func (p *convPlan) room() int {
	return (p.deep*p.planes()*p.plane+p.some*p.sums)*p.size + 2*p.set.bytes
}

// cutColumns decides whether columns share planes. If they do, products are also computed for those
// elements of a plane that belong to no output. If not, more elements are copied, which needs room
// for the planes of at least one row of the output.
func (p *convPlan) cutColumns(room int) {
	shared, apart := &p.along, p.along.apart()
	products := float64(shared.longer) * float64(p.rows) * float64(p.cols) * float64(p.filters)
	copies := apart.elements(p.outW) - shared.elements(p.outW)
	fits := apart.elements(p.outW)*float64(p.rows) <= float64(room)
	if products > float64(p.call.Choose(convCopy))*copies && (fits || copies <= 0) {
		p.along = apart
	}
}

// cutRows decides how many rows of the output a task computes, and whether rows share planes. There
// has to be room for the planes of so many channels that enough products are summed, and there should be
// enough tasks for the threads, but none with too few elements of the output.
func (p *convPlan) cutRows(room int) {
	least := min(p.channels, 1+(p.call.Choose(convSums)-1)/max(p.rows*p.cols, 1))
	rows := float64(room) / max(float64(least)*p.along.elements(p.outW), 1) // of planes
	parts := p.tasks()/(p.n*p.groups) + 1
	want := min(max((p.outH+parts-1)/parts, p.call.Choose(convOuts)/p.outW), p.outH)
	fit := func(a *convAxis) int { return max(min(want, int(rows/float64(max(a.planes, 1)))-a.longer), 1) }
	p.lines = fit(&p.down)
	if apart := p.down.apart(); p.down.elements(p.lines) > apart.elements(p.lines) {
		p.down, p.lines = apart, fit(&apart)
	}
	p.lines = even(p.outH, p.lines, 1)
}

// tasks returns the number of tasks that there should be.
func (p *convPlan) tasks() int { return p.call.Choose(convTasks) * p.call.device.threads }

// cutImages decides how many images a task computes. Several images whose outputs are too small to
// fill the registers are placed side by side, in planes for one filter element each.
func (p *convPlan) cutImages(room int) {
	outs, lanes, c := p.outs(), p.set.bytes/p.size, p.call
	p.batch = 1
	if p.lines < p.outH || outs >= c.Choose(convSmall)*lanes || p.filters < c.Choose(convSmallFilters)*p.set.rows {
		return
	}
	batch := even(p.n, max(c.Choose(convBeside)*lanes/outs, 1), 1)
	if batch > 1 && float64(p.rows)*float64(p.cols)*float64(batch*outs) <= float64(room) {
		p.batch, p.down, p.along = batch, p.down.apart(), p.along.apart()
	}
}

// convCopies have images, filters and results in another order.
type convCopies struct {
	block
	x, weight, y []byte
}

// copies takes memory for all three.
func (p *convPlan) copies() (c convCopies, err error) {
	sizes := [3]int{p.n * p.c * p.h * p.w * p.size, p.k * p.depth() * p.size, p.n * p.k * p.outs() * p.size}
	total := 64 // no block is empty
	for _, n := range sizes {
		total += roundUpInt(n, 64)
	}
	if c.block, err = p.call.device.scratch.take(int64(total)); err != nil {
		return c, err
	}
	rest := c.data
	for i, to := range []*[]byte{&c.x, &c.weight, &c.y} {
		*to, rest = rest[:sizes[i]], rest[roundUpInt(sizes[i], 64):]
	}
	return c, nil
}

func (c *convCopies) give(s *scratch) { s.give(c.block) }

// straight computes y from copies of images and filters whose images and channels have not changed places, and
// copies the result.
func (p *convPlan) straight(x, weight, bias, y []byte) error {
	q := *p
	q.across = false
	copies, err := p.copies()
	if err != nil {
		return err
	}
	defer copies.give(&p.call.device.scratch)
	move := func(bytes, outers, inners int, from []byte, a convSteps, to []byte, b convSteps) error {
		return p.call.Parallel(p.groups*outers*inners, 1+p.call.Choose(goGrain)/max(bytes, 1), func(lo, hi int) {
			for i := lo; i < hi; i++ {
				g, outer, inner := i/inners/outers, i/inners%outers, i%inners
				copy(to[b.plane(g, outer, inner)*bytes:][:bytes], from[a.plane(g, outer, inner)*bytes:])
			}
		})
	}
	channels, filters := p.c/p.groups, p.k/p.groups
	if err := move(p.h*p.w*p.size, p.n, channels, x, p.imageSteps(), copies.x, q.imageSteps()); err != nil {
		return err
	}
	if err := move(p.rows*p.cols*p.size, filters, channels, weight, p.filterSteps(), copies.weight,
		q.filterSteps()); err != nil {
		return err
	}
	if err := q.run(copies.x, copies.weight, bias, copies.y); err != nil {
		return err
	}
	return move(p.outs()*p.size, p.n, filters, copies.y, q.outSteps(), y, p.outSteps())
}

// arrange computes y. If channels are innermost, copies of the images and filters have them outermost, and the
// result is transposed at the end.
func (p *convPlan) arrange(x, weight, bias, y []byte) error {
	if !p.last {
		return p.phases(x, weight, bias, y)
	}
	c := p.call
	copies, err := p.copies()
	if err != nil {
		return err
	}
	defer copies.give(&c.device.scratch)
	turn := func(from []byte, n, rows, cols int, to []byte) error {
		if n*rows*cols == 0 {
			return nil
		}
		return c.transpose(p.size, rows, cols, n, address(from), address(to))
	}
	if err := turn(x, p.n, p.h*p.w, p.c, copies.x); err != nil {
		return err
	}
	if err := turn(weight, p.k, p.rows*p.cols, p.c/p.groups, copies.weight); err != nil {
		return err
	}
	if err := p.phases(copies.x, copies.weight, bias, copies.y); err != nil {
		return err
	}
	return turn(copies.y, p.n, p.k, p.outs(), y)
}

// run computes y. All buffers have the element type of the computation.
func (p *convPlan) run(x, weight, bias, y []byte) error {
	if p.long() {
		if finite, err := p.runLong(x, weight, bias, y); finite || err != nil {
			return err
		}
	}
	if p.across {
		return p.straight(x, weight, bias, y)
	}
	if p.winograd() {
		if finite, err := p.runWinograd(x, weight, bias, y); finite || err != nil {
			return err
		}
	}
	if q, ok := p.dilated(); ok {
		return q.run(x, weight, bias, y)
	}
	p.plan()
	filters := address(weight)
	if p.packed {
		packed, err := p.pack(filters)
		if err != nil {
			return err
		}
		defer p.call.device.scratch.give(packed)
		filters = address(packed.data)
	}
	steps, err := p.steps()
	if err != nil {
		return err
	}
	defer p.call.device.scratch.give(steps)
	add := uint64(0)
	if p.bias {
		add = address(bias)
	}
	words := p.words(p.rows*p.cols, address(x), filters, add, address(steps.data), address(y))
	tasks := p.parts() * ((p.filters + p.some - 1) / p.some)
	threads := p.call.device.threads
	if !p.call.threadsPay(2*float64(p.n*p.k*p.outs())*float64(p.depth()), float64(len(x)+len(weight)+len(y))) {
		threads = 1
	}
	return p.call.inRooms(tasks, p.each(tasks, threads), threads, p.room(), func(lo, hi int, room block) {
		p.set.run(p.op(simd.ConvF32), append(slices.Clone(words), address(room.data), uint64(lo), uint64(hi))...)
	})
}

// each returns the length of the ranges of tasks.
func (p *convPlan) each(tasks, threads int) int {
	count := p.call.Choose(convRanges) * threads
	return (tasks + count - 1) / count
}

// words returns the words of conv_shape, with the addresses of all but room.
func (p *convPlan) words(places int, x, filters, bias, steps, y uint64) []uint64 {
	u := func(n int) uint64 { return uint64(int64(n)) }
	var words []uint64
	for _, a := range []*convAxis{&p.down, &p.along} {
		words = append(words, u(a.size), u(a.stride), u(a.pad), u(a.dilation), u(a.planes), u(a.wrap))
	}
	return append(words, u(p.channels), u(p.groups), u(p.filters), u(places), u(p.down.out), u(p.along.out), u(p.n),
		u(p.batch),
		u(p.lines), u(p.some), u(p.deep), u(p.lines+p.down.longer), u(p.along.out+p.along.longer), u(p.plane), u(p.sums),
		u(p.together), flag(p.packed),
		x, filters, bias, steps, y)
}

// steps returns a table of the distances in the planes from each filter element to the next.
func (p *convPlan) steps() (block, error) {
	places := p.rows * p.cols
	b, err := p.call.device.scratch.take(int64(max(8*p.deep*places, 1)))
	if err != nil {
		return block{}, err
	}
	at := func(i int) int {
		c, r, q := i/places, i%places/p.cols, i%p.cols
		planeR, farR := p.down.place(r)
		planeQ, farQ := p.along.place(q)
		return ((c*p.down.planes+planeR)*p.along.planes+planeQ)*p.plane + farR*(p.outW+p.along.longer) + farQ
	}
	list := unsafe.Slice((*int64)(unsafe.Pointer(unsafe.SliceData(b.data))), p.deep*places)
	for i := range list {
		list[i] = int64(at(i+1) - at(i))
	}
	return b, nil
}

// pack copies the filters of each group into panels; those for the first deep channels come first.
func (p *convPlan) pack(weight uint64) (block, error) {
	depth, most := p.depth(), p.deep*p.rows*p.cols
	tall := roundUpInt(p.filters, p.set.rows)
	to, err := p.call.device.scratch.take(int64(max(p.groups*tall*depth*p.size, 1)))
	if err != nil {
		return block{}, err
	}
	panels := tall / p.set.rows
	grain := 1 + p.call.Choose(convGrain)/(p.set.rows*(depth+1))
	err = p.call.Parallel(p.groups*panels, grain, func(lo, hi int) {
		for i := lo; i < hi; i++ {
			g, row := i/panels, i%panels*p.set.rows
			for k := 0; k < depth; k += most {
				n := min(most, depth-k)
				p.set.run(p.op(simd.GemmF32Pack), 0, uint64(min(p.filters-row, p.set.rows)), uint64(n),
					weight+uint64(((g*p.filters+row)*depth+k)*p.size), uint64(depth),
					address(to.data)+uint64((g*tall*depth+k*tall+row*n)*p.size), uint64(p.set.rows))
			}
		}
	})
	if err != nil {
		p.call.device.scratch.give(to)
		return block{}, err
	}
	return to, nil
}

// halves computes the convolution of 16-bit images in float.
func (p *convPlan) halves() error {
	c := p.call
	counts := []int{p.n * p.c * p.h * p.w, p.k * p.depth(), 0, p.n * p.k * p.outs()}
	if p.bias {
		counts[2] = p.k
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
		wide[i], rest = rest[:4*n], rest[roundUpInt(4*n+4, 64):]
		if n == 0 || i == 3 {
			continue
		}
		from, to := address(c.Bytes(16+i)), address(wide[i])
		err := c.Parallel(n, c.Choose(convGrain), func(lo, hi int) {
			p.set.run(simd.Widen, p.half, 1, uint64(hi-lo), from+2*uint64(lo), uint64(n), to+4*uint64(lo), uint64(n))
		})
		if err != nil {
			return err
		}
	}
	if err := p.arrange(wide[0], wide[1], wide[2], wide[3]); err != nil {
		return err
	}
	from, to, n := address(wide[3]), address(c.Bytes(19)), counts[3]
	return c.Parallel(n, c.Choose(convGrain), func(lo, hi int) {
		p.set.run(simd.Narrow, p.half, 1, uint64(hi-lo), from+4*uint64(lo), uint64(n), to+2*uint64(lo), uint64(n), 0, 0, 0)
	})
}
