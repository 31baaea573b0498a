package cpu

// conv2d of images with gaps between their elements, as in transposed convolutions and gradients with strides,
// in vector instructions (csrc/cpu/conv_phases.h).

import (
	"math"
	"slices"
	"unsafe"

	"github.com/concord-compute/concord/internal/simd"
)

// convPhase has the rows of the output, or likewise the columns, that meet the same elements of the filter, if
// the elements of the image have gaps between them: every step-th row from first on. They are a convolution
// without gaps, with every every-th element of the filter from tap on, and their own stride, padding and
// dilation.
type convPhase struct {
	first, step, outs     int
	tap, every, taps      int
	stride, pad, dilation int
}

// convPhases returns the phases along one axis. The padding of a phase may be negative.
func convPhases(outs, filter, stride, pad, dilation, gap int) (list []convPhase) {
	s := gap + 1
	step, every := s/gcd(s, stride), s/gcd(s, dilation)
	for first := range min(step, outs) {
		ph := convPhase{first: first, step: step, outs: (outs - first + step - 1) / step, every: every,
			stride: stride * step / s, dilation: dilation * every / s}
		for ph.tap < min(filter, every) && (first*stride+ph.tap*dilation-pad)%s != 0 {
			ph.tap++
		}
		if ph.tap < min(filter, every) {
			ph.taps = (filter - ph.tap + every - 1) / every
			ph.pad = -(first*stride + ph.tap*dilation - pad) / s
		}
		list = append(list, ph)
	}
	return list
}

// phases computes y as one convolution, or, if the elements of the images have gaps between them, in phases.
func (p *convPlan) phases(x, weight, bias, y []byte) error {
	if p.gapH == 0 && p.gapW == 0 {
		return p.run(x, weight, bias, y)
	}
	if q := p.inPhases(); q.plan() {
		return q.run(x, weight, bias, y)
	}
	return p.apart(x, weight, bias, y)
}

// apart computes y as a convolution for each phase of rows and columns.
func (p *convPlan) apart(x, weight, bias, y []byte) error {
	scratch, lines := &p.call.device.scratch, p.n*p.k*p.outH
	block, err := scratch.take(int64(lines * p.outW * p.size)) // more than a phase of rows has
	if err != nil {
		return err
	}
	defer scratch.give(block)
	columns := convPhases(p.outW, p.cols, p.strideW, p.padW, p.dilationW, p.gapW)
	for _, down := range convPhases(p.outH, p.rows, p.strideH, p.padH, p.dilationH, p.gapH) {
		lines, at := p.n*p.k*down.outs, 0
		for _, along := range columns {
			if err := p.phase(down, along, x, weight, bias, block.data[at:]); err != nil {
				return err
			}
			at += lines * along.outs * p.size
		}
		err := p.call.Parallel(lines, 1+p.call.Choose(goGrain)/p.outW, func(lo, hi int) {
			p.set.run(p.op(simd.ConvZipF32), uint64(len(columns)), uint64(p.outW), uint64(lines), uint64(down.outs),
				address(block.data),
				address(y)+uint64(down.first*p.outW*p.size), uint64(down.step*p.outW), uint64(p.outs()), uint64(lo), uint64(hi))
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// phase computes the elements of y in a phase of rows and one of columns, without those between them.
func (p *convPlan) phase(down, along convPhase, x, weight, bias, y []byte) error {
	q, scratch := *p, &p.call.device.scratch
	q.rows, q.strideH, q.padH, q.dilationH, q.outH = down.taps, down.stride, down.pad, down.dilation, down.outs
	q.cols, q.strideW, q.padW, q.dilationW, q.outW = along.taps, along.stride, along.pad, along.dilation, along.outs
	filters := p.k * (p.c / p.groups)
	block, err := scratch.take(int64(filters*q.rows*q.cols*p.size + 64))
	if err != nil {
		return err
	}
	defer scratch.give(block)
	part := block.data[:filters*q.rows*q.cols*p.size]
	for f := range filters {
		for i := range q.rows {
			for j := range q.cols {
				to, from := (f*q.rows+i)*q.cols+j, (f*p.rows+down.tap+i*down.every)*p.cols+along.tap+j*along.every
				copy(part[to*p.size:][:p.size], weight[from*p.size:])
			}
		}
	}
	return q.run(x, part, bias, y[:p.n*p.k*q.outs()*p.size])
}

// phasesPlan is a convolution whose phases are computed together, from the same planes. Its output is the first
// phase of rows and of columns, which is the largest.
type phasesPlan struct {
	convPlan
	rowPhases, colPhases []convPhase
}

// inPhases returns the convolution as one in phases.
func (p *convPlan) inPhases() phasesPlan {
	return phasesPlan{convPlan: *p, rowPhases: convPhases(p.outH, p.rows, p.strideH, p.padH, p.dilationH, p.gapH),
		colPhases: convPhases(p.outW, p.cols, p.strideW, p.padW, p.dilationW, p.gapW)}
}

// phasesAxis returns the axis of the planes: they have all elements of the image that a phase meets. It returns
// false if neighbours in the output of a phase are none in the image.
func phasesAxis(size int, list []convPhase) (a convAxis, ok bool) {
	a = convAxis{size: size, out: list[0].outs, stride: 1, pad: math.MinInt, planes: 1, wrap: 1}
	for _, ph := range list {
		if ph.stride != 1 {
			return a, false
		}
		if ph.taps > 0 {
			a.pad = max(a.pad, ph.pad)
		}
	}
	for _, ph := range list {
		if ph.taps > 0 {
			a.longer = max(a.longer, (ph.taps-1)*ph.dilation+a.pad-ph.pad)
		}
	}
	return a, a.pad > math.MinInt
}

// plan decides how the work is divided. It returns false if the phases have to be computed apart: if images and
// channels have changed places, or if the planes of all channels, or the sums of one block of filters in all
// phases, do not fit in a part of the second-level cache.
func (p *phasesPlan) plan() bool {
	var down, along bool
	p.down, down = phasesAxis(p.h, p.rowPhases)
	p.along, along = phasesAxis(p.w, p.colPhases)
	if p.across || p.depth() == 0 || !down || !along {
		return false
	}
	p.channels, p.filters, p.packed, p.batch = p.c/p.groups, p.k/p.groups, true, 1
	l2, _ := cacheSizes()
	pitch := p.along.out + p.along.longer
	phases := len(p.rowPhases) * len(p.colPhases)
	room := p.call.share(phasesRoom, l2) / p.size
	fit := min(room/p.channels/pitch-p.down.longer, room/p.set.rows/phases/pitch)
	if fit < 1 {
		return false
	}
	parts := p.tasks()/(p.n*p.groups) + 1
	p.lines = even(p.down.out, min(max((p.down.out+parts-1)/parts, p.call.Choose(convOuts)/p.along.out, 1), fit), 1)
	p.plane = p.oddLines((p.lines + p.down.longer) * pitch)
	p.sums = roundUpInt(p.lines*pitch, p.set.bytes/p.size)
	p.deep, p.some = p.channels, p.filters
	p.together = even(p.filters, max(p.call.share(phasesSums, l2)/p.size/(phases*p.sums), p.set.rows), p.set.rows)
	return true
}

// run computes y.
func (p *phasesPlan) run(x, weight, bias, y []byte) error {
	scratch, count, places := &p.call.device.scratch, len(p.rowPhases)*len(p.colPhases), p.rows*p.cols
	tall := roundUpInt(p.filters, p.set.rows)
	// The phases with four words each, the distances between places, and the panels.
	table, begin := 4*count+p.channels*places, roundUpInt(8*(4*count+p.channels*places), 64)
	shared, err := scratch.take(int64(begin + p.groups*tall*p.channels*places*p.size))
	if err != nil {
		return err
	}
	defer scratch.give(shared)
	words := unsafe.Slice((*int64)(unsafe.Pointer(unsafe.SliceData(shared.data))), table)
	pitch, steps, panels := p.along.out+p.along.longer, 4*count, begin
	for i, down := range p.rowPhases {
		for j, along := range p.colPhases {
			n := down.taps * along.taps
			first := 0
			if n > 0 {
				first = (p.down.pad-down.pad)*pitch + p.along.pad - along.pad
			}
			at := func(k int) int {
				return k/n*p.plane + k%n/along.taps*down.dilation*pitch + k%along.taps*along.dilation
			}
			for k := range p.channels * n {
				words[steps+k] = int64(at(k+1) - at(k))
			}
			copy(words[4*(i*len(p.colPhases)+j):], []int64{int64(n), int64(first), int64(address(shared.data)) + 8*int64(steps),
				int64(address(shared.data)) + int64(panels)})
			steps, panels = steps+p.channels*n, panels+p.groups*tall*p.channels*n*p.size
		}
	}
	if err := p.pack(weight, shared.data[begin:]); err != nil {
		return err
	}
	add := uint64(0)
	if p.bias {
		add = address(bias)
	}
	list := p.words(places, address(x), 0, add, 0, address(y))
	room := (p.channels*p.plane+count*p.together*p.sums)*p.size + 2*p.set.bytes
	tasks, threads := p.parts(), p.call.device.threads
	products := float64(p.n*p.k*p.down.out*p.along.out) * float64(p.depth())
	if !p.call.threadsPay(2*products, float64(len(x)+len(weight)+len(y))) {
		threads = 1
	}
	return p.call.inRooms(tasks, p.each(tasks, threads), threads, room, func(lo, hi int, own block) {
		p.set.run(p.op(simd.ConvPhasesF32), slices.Concat(list, []uint64{address(own.data), uint64(len(p.rowPhases)),
			uint64(len(p.colPhases)), uint64(p.outH), uint64(p.outW),
			address(shared.data), uint64(lo), uint64(hi)})...)
	})
}

// pack copies the filters to panels, those of each phase one after the other.
func (p *phasesPlan) pack(weight, to []byte) error {
	if p.size == 8 {
		return packPhases[uint64](p, weight, to)
	}
	return packPhases[uint32](p, weight, to)
}

func packPhases[E uint32 | uint64](p *phasesPlan, weight, to []byte) error {
	rows, cols, tall, depth := p.rows, p.cols, p.set.rows, p.depth()
	from := unsafe.Slice((*E)(unsafe.Pointer(unsafe.SliceData(weight))), p.k*p.depth())
	out := unsafe.Slice((*E)(unsafe.Pointer(unsafe.SliceData(to))), len(to)/p.size)
	panels := (p.filters + tall - 1) / tall
	return p.call.Parallel(p.groups*panels, 1+p.call.Choose(goGrain)/(tall*depth), func(lo, hi int) {
		for panel := lo; panel < hi; panel++ {
			g, first := panel/panels, panel%panels*tall
			count := min(p.filters-first, tall)
			for c := range p.channels { // whose elements are next to each other, whatever their phases
				filter, begin := ((g*p.filters+first)*p.channels+c)*rows*cols, 0
				for _, down := range p.rowPhases {
					for _, along := range p.colPhases {
						taps := down.taps * along.taps
						at := begin + (panel*p.channels+c)*taps*tall
						for i := range down.taps {
							for j := range along.taps {
								place := filter + (down.tap+i*down.every)*cols + along.tap + j*along.every
								for r := range out[at:][:count] {
									out[at+r] = from[place]
									place += depth
								}
								at += tall
							}
						}
						begin += p.groups * panels * tall * p.channels * taps
					}
				}
			}
		}
	})
}
