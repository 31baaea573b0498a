package cpu

// conv2d by Winograd's method (csrc/cpu/winograd.h), for filters of 3×3 with strides of 1 or 2 and of 5×5 with
// a stride of 1: 2.25, 1.44 and 2.78 times fewer products than by definition. The bound of the catalog covers
// all of them.

import (
	"slices"
	"sync/atomic"
	"unsafe"

	"github.com/concord-compute/concord/internal/simd"
)

// winograd reports whether the method saves time: there have to be enough filters and images to pay
// for the transforms, and the transformed filters have to stay in the third-level cache. A phase of an image with gaps
// has another filter, and other tiles, than those that the catalog's bound is for.
func (p *convPlan) winograd() bool {
	channels, filters := p.c/p.groups, p.k/p.groups
	_, l3 := cacheSizes()
	n, c, few := p.tile(), p.call, winogradOuts
	if p.strideH == 2 {
		few = winogradOuts2
	}
	return p.gapH == 0 && p.gapW == 0 && p.size == 4 && n > 0 && p.dilationH == 1 && p.dilationW == 1 &&
		channels >= c.Choose(winogradChannels) && filters >= c.Choose(winogradFilters)*p.set.rows &&
		p.n*p.outs() >= c.Choose(few) && n*n*p.k*channels*p.size <= c.share(winogradMost, l3)
}

// tile returns the number of rows, and columns, of the input that a tile of 2×2 elements of the output comes
// from, or 0 if the method is not for the filter.
func (p *convPlan) tile() int {
	for _, t := range [][3]int{{3, 1, 4}, {3, 2, 5}, {5, 1, 6}} {
		if t[0] == p.rows && t[0] == p.cols && t[1] == p.strideH && t[1] == p.strideW {
			return t[2]
		}
	}
	return 0
}

// planWinograd divides the work: the output of the plan are the tiles of 2×2 elements, those of all images,
// which are computed in strips. A task computes some strips with some of the filters. If the transformed
// filters are too many for a part of the second-level cache, it computes several strips with each filter that it
// reads.
func (p *convPlan) planWinograd() {
	p.channels, p.filters = p.c/p.groups, p.k/p.groups
	n := p.tile()
	p.down = convAxis{size: p.h, out: (p.outH + 1) / 2, stride: 1, pad: p.padH, planes: 1}
	p.along = convAxis{size: p.w, out: (p.outW + 1) / 2, stride: 1, pad: p.padW, planes: 1}
	l2, _ := cacheSizes()
	c, threads, total := p.call, p.call.device.threads, p.allStrips()
	p.strips = 1
	if n*n*p.filters*p.channels*p.size > c.share(winogradNear, l2) {
		p.strips = min(max(c.share(winogradStrip, l2)/(p.channels*p.strip()*p.size), 1), c.Choose(winogradStrips))
	}
	p.portions = (total + p.strips - 1) / p.strips
	blocks := threads / gcd(p.portions*p.groups, threads) // of filters, so that all threads get the same number of tasks
	if total >= c.Choose(winogradTasks)*threads {
		p.portions, blocks = roundUpInt(p.portions, threads), 1
	}
	p.strips = (total + p.portions - 1) / p.portions
	p.together = p.set.rows
	if p.strips > 1 {
		p.together *= max(c.share(winogradSums, l2)/(n*n*p.strips*p.set.rows*p.strip()*p.size), 1)
	}
	p.some = min(even(p.filters, (p.filters+blocks-1)/blocks, p.set.rows), p.filters)
}

// allStrips returns the number of strips of a group.
func (p *convPlan) allStrips() int { return (p.n*p.down.out*p.along.out + p.strip() - 1) / p.strip() }

// strip returns the number of tiles that are computed at a time.
func (p *convPlan) strip() int { return 2 * p.set.bytes / p.size }

// runWinograd computes y. It returns false if a result is not finite: what is infinite or NaN in an
// image has then spread to its neighbours.
func (p *convPlan) runWinograd(x, weight, bias, y []byte) (finite bool, err error) {
	q := *p
	q.planWinograd()
	n := p.tile()
	panels := (q.filters + p.set.rows - 1) / p.set.rows
	filters, err := p.call.device.scratch.take(int64(q.groups * panels * p.set.rows * n * n * q.channels * q.size))
	if err != nil {
		return false, err
	}
	defer p.call.device.scratch.give(filters)
	err = p.call.Parallel(q.groups*panels, 1, func(lo, hi int) {
		q.set.run(simd.WinogradFilters, uint64(n), uint64(q.filters), uint64(q.channels), address(weight),
			address(filters.data), uint64(lo), uint64(hi))
	})
	if err != nil {
		return false, err
	}
	add := uint64(0)
	if q.bias {
		add = address(bias)
	}
	words := q.words(q.rows*q.cols, address(x), address(filters.data), add, 0, address(y))
	room := q.size * (16 + n*n*(q.strips*(q.strip()*(q.channels+q.together)+16)+16))
	tasks := q.groups * q.portions * ((q.filters + q.some - 1) / q.some)
	threads := q.call.device.threads
	var odd atomic.Bool
	err = q.call.inRooms(tasks, q.each(tasks, threads), threads, room, func(lo, hi int, own block) {
		q.set.run(simd.Winograd, append(slices.Clone(words), address(own.data), uint64(n), uint64(q.outH), uint64(q.outW),
			uint64(q.portions), uint64(q.strips), uint64(lo), uint64(hi), uint64(q.call.Choose(gemmFetch)))...)
		if *(*float32)(unsafe.Pointer(unsafe.SliceData(own.data))) != 0 {
			odd.Store(true)
		}
	})
	return !odd.Load(), err
}
