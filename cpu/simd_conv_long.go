package cpu

// conv2d with filters that are longer than the output, in vector instructions, as dot products of filters with planes
// (csrc/cpu/conv_long.h). Gradients of filters are such convolutions.

import (
	"slices"
	"unsafe"

	"github.com/concord-compute/concord/internal/simd"
)

// long reports whether dot products save time: they have to be long enough to pay for the sums of the lanes at
// their ends, and the output so small that the products by the definition would leave lanes empty.
func (p *convPlan) long() bool {
	if p.outs() > p.call.Choose(longOuts) || p.outs() >= p.rows*p.cols {
		return false
	}
	down, along := p.longDown(), p.longAlong()
	return p.depth() >= p.call.Choose(longDepth) && p.pitch() <= 1<<16 && down.longer <= p.rows && along.longer <= p.cols
}

// pitch returns the length of a row of a plane: that of a filter's rows, and what planes that places of the
// output share are longer.
func (p *convPlan) pitch() int { return p.cols + p.longAlong().longer }

// longDown and longAlong return the axes with the filter and the output in each other's place.
func (p *convPlan) longDown() convAxis {
	return convAxis{size: p.h, out: p.rows, filter: p.outH, stride: p.dilationH, pad: p.padH, dilation: p.strideH}.shared()
}

func (p *convPlan) longAlong() convAxis {
	return convAxis{size: p.w, out: p.cols, filter: p.outW, stride: p.dilationW, pad: p.padW, dilation: p.strideW}.shared()
}

// planLong decides how the work is divided. lines are the rows of a filter that are copied at a time, deep the
// channels, and sums the images whose planes are made at a time.
func (p *convPlan) planLong() {
	p.channels, p.filters = p.c/p.groups, p.k/p.groups
	p.down, p.along = p.longDown(), p.longAlong()
	l2, l3 := cacheSizes()
	threads := p.call.device.threads
	// Each task copies all its filters, so that there is one for each thread, and images are divided first.
	want := (threads + p.groups - 1) / p.groups
	p.batch = even(p.n, (p.n+want-1)/want, 1)
	want = (want + p.n - 1) / p.n
	p.some = min(even(p.filters, (p.filters+want-1)/want, 6), p.filters)
	c := p.call
	p.some = max(min(p.some, c.share(longFilters, l2)/(p.size*p.pitch())), 1)
	// The filters stay in the third-level cache, if they need not be cut so short for it that the sums of lanes cost more.
	elements := max(min(c.share(longShare, l3)/p.size/p.some, c.Choose(longMost)), c.Choose(longLeast))
	p.lines = even(p.rows, max(elements/p.pitch(), 1), 1)
	p.deep = 1
	if all := (p.rows + p.down.longer) * p.pitch(); p.lines == p.rows {
		p.deep = even(p.channels, max(elements/all, 1), 1)
	}
	// Of an image that is neither padded nor cut, planes are not copies.
	lanes := p.set.bytes / p.size
	if unit := lanes / gcd(lanes, p.cols); p.outs() == 1 && p.padH == 0 && p.padW == 0 && p.dilationH == 1 &&
		p.dilationW == 1 && p.w == p.cols && p.rows <= p.h && p.rows%unit == 0 {
		p.packed, p.deep, p.lines = true, 1, roundUpInt(p.lines, unit)
		p.sums = min(p.batch, c.Choose(longImages))
		return
	}
	p.plane = p.oddLines(p.deep*(p.lines+p.down.longer)*p.pitch() + p.along.longer + p.set.bytes/p.size)
	p.sums = max(min(c.share(longPlanes, l2)/(p.size*p.plane*p.planes()), p.batch), 1)
}

// longRoom returns the bytes of a task's sums, filters and planes, with a register after the filters and the planes.
func (p *convPlan) longRoom() int {
	sums := roundUpInt(p.batch*p.outs()*p.some*p.size, p.set.bytes)
	if p.packed {
		return sums
	}
	return sums + (p.some+p.sums*p.planes())*p.plane*p.size + 2*p.set.bytes
}

// longSteps sets steps to the distances in the planes from their beginning, for each image and place of the output.
func (p *convPlan) longSteps(steps []int64) {
	for i := range steps {
		image, r, s := i/p.outs(), i%p.outs()/p.outW, i%p.outW
		planeR, farR := p.down.place(r)
		planeS, farS := p.along.place(s)
		if p.packed {
			steps[i] = int64(image * p.imageSteps().outer * p.h * p.w)
			continue
		}
		steps[i] = int64(((image*p.down.planes+planeR)*p.along.planes+planeS)*p.plane + farR*p.pitch() + farS)
	}
}

// runLong computes y. It returns false if a result is not finite.
func (p *convPlan) runLong(x, weight, bias, y []byte) (finite bool, err error) {
	q := *p
	op, size, set, room := q.op(simd.ConvTurnedF32), 0, q.turnedSteps, q.turnedRoom
	if q.planTurned() {
		size = q.deep * q.cols
	} else {
		q = *p
		q.planLong()
		op, size, set, room = q.op(simd.ConvLongF32), q.sums*q.outs(), q.longSteps, q.longRoom
	}
	scratch := &p.call.device.scratch
	shared, err := scratch.take(int64(8 + 8*size))
	if err != nil {
		return false, err
	}
	defer scratch.give(shared)
	words := unsafe.Slice((*int64)(unsafe.Pointer(unsafe.SliceData(shared.data))), 1+size)
	words[0] = 0
	set(words[1:])
	add := uint64(0)
	if q.bias {
		add = address(bias)
	}
	list := q.words(q.outs(), address(x), address(weight), add, address(shared.data)+8, address(y))
	u := func(steps convSteps, elements int) []uint64 {
		return []uint64{uint64(steps.group * elements), uint64(steps.outer * elements), uint64(steps.inner * elements)}
	}
	more := slices.Concat(u(q.imageSteps(), q.h*q.w), u(q.filterSteps(), q.rows*q.cols), u(q.outSteps(), q.outs()))
	tasks := q.groups * ((q.n + q.batch - 1) / q.batch) * ((q.filters + q.some - 1) / q.some)
	threads := q.call.device.threads
	if !p.call.threadsPay(2*float64(q.n*q.k*q.outs())*float64(q.depth()), float64(len(x)+len(weight)+len(y))) {
		threads = 1
	}
	err = q.call.inRooms(tasks, q.each(tasks, threads), threads, room(), func(lo, hi int, own block) {
		q.set.run(op, slices.Concat(list, []uint64{address(own.data)}, more,
			[]uint64{uint64(lo), uint64(hi), address(shared.data)})...)
	})
	return words[0] == 0, err
}
