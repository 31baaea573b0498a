package cpu

// conv2d by Winograd's method (csrc/cpu/winograd.h), for filters of 3×3 with strides of 1 or 2 and of 5×5 with a stride of 1:
// 2.25, 1.44 and 2.78 times fewer products than by definition. The bound of the catalog covers all of them.

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
	n := p.tile()
	return p.gapH == 0 && p.gapW == 0 && p.size == 4 && n > 0 && p.dilationH == 1 && p.dilationW == 1 &&
		channels >= 16 && filters >= 4*p.set.rows && p.n*p.outs() >= 256 && n*n*p.k*channels*p.size <= l3
}

// tile returns the number of rows, and columns, of the input that a tile of 2×2 elements of the output comes from, or 0 if the method is not for the filter.
func (p *convPlan) tile() int {
	for _, t := range [][3]int{{3, 1, 4}, {3, 2, 5}, {5, 1, 6}} {
		if t[0] == p.rows && t[0] == p.cols && t[1] == p.strideH && t[1] == p.strideW {
			return t[2]
		}
	}
	return 0
}

// planWinograd divides the work: the output of the plan are the tiles of 2×2 elements. If the transformed filters are
// too many for half of the second-level cache, a task computes several strips of tiles with each filter that it reads, those
// of several images if need be.
func (p *convPlan) planWinograd() {
	p.channels, p.filters = p.c/p.groups, p.k/p.groups
	n, step := p.tile(), 2*p.strideH // rows of the input of a tile, and from one tile to the next
	p.down = convAxis{size: p.h, out: (p.outH + 1) / 2, stride: 1, pad: p.padH, planes: 1}
	p.along = convAxis{size: p.w, out: (p.outW + 1) / 2, stride: 1, pad: p.padW, planes: 1}
	p.deep, p.packed, p.sums = p.channels, true, 0
	l2, _ := cacheSizes()
	threads, pitch := p.call.device.threads, step*p.along.out+n-step
	row := p.channels * pitch * p.size // of the copies of all channels
	// Parts of an image have so many strips that the last one hardly matters, if there are enough of them for the threads.
	few := max(p.down.out*p.along.out/(8*p.strip()), (threads+p.n*p.groups-1)/(p.n*p.groups))
	parts, room, strips, together := min(4*threads/(p.n*p.groups)+1, few), l2, 1, 8
	if n*n*p.filters*p.channels*p.size > l2/2 {
		strips = min(max(l2/8/(p.channels*p.strip()*p.size), 1), 16)
		parts, room, together = 1, 4*l2, strips
	}
	p.lines = max(min((p.down.out+parts-1)/parts, (room/row-n)/step+1), 1)
	p.lines, p.batch = even(p.down.out, p.lines, 1), 1
	tiles, lines := p.lines*p.along.out, step*p.lines+n-step
	if p.lines == p.down.out {
		p.batch = even(p.n, max(min(4*l2/(row*lines), together*p.strip()/max(tiles, 1)), 1), 1)
	}
	p.strips = even((p.batch*tiles+p.strip()-1)/p.strip(), strips, 1)
	p.together = p.set.rows
	if strips > 1 {
		p.together *= max(l2/2/(n*n*p.strips*p.set.rows*p.strip()*p.size), 1)
	}
	p.down.longer, p.along.longer = lines-p.lines, pitch-p.along.out
	p.plane = p.oddLines(p.batch * lines * pitch)
	blocks := threads / gcd(p.parts(), threads) // of filters, so that all threads get the same number of tasks
	p.some = min(even(p.filters, (p.filters+blocks-1)/blocks, p.set.rows), p.filters)
}

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
		q.set.run(simd.WinogradFilters, uint64(n), uint64(q.filters), uint64(q.channels), address(weight), address(filters.data), uint64(lo), uint64(hi))
	})
	if err != nil {
		return false, err
	}
	add := uint64(0)
	if q.bias {
		add = address(bias)
	}
	words := q.words(q.rows*q.cols, address(x), address(filters.data), add, 0, address(y))
	room := q.size * (16 + roundUpInt(q.channels*q.plane+2*q.strip()+4, 16) + n*n*(q.strips*(q.strip()*(q.channels+q.together)+16)+16))
	tasks := q.parts() * ((q.filters + q.some - 1) / q.some)
	threads := q.call.device.threads
	var odd atomic.Bool
	err = q.call.ranges(tasks, (tasks+16*threads-1)/(16*threads), threads, func(_ *call, lo, hi int) {
		own, err := q.call.device.scratch.take(int64(room))
		if err != nil {
			panic(err)
		}
		defer q.call.device.scratch.give(own)
		q.set.run(simd.Winograd, append(slices.Clone(words), address(own.data), uint64(n), uint64(q.outH), uint64(q.outW), uint64(q.strips), uint64(lo), uint64(hi))...)
		if *(*float32)(unsafe.Pointer(unsafe.SliceData(own.data))) != 0 {
			odd.Store(true)
		}
	})
	return !odd.Load(), err
}
