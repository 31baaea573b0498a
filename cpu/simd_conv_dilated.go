package cpu

// conv2d with dilation and a stride of 1 in vector instructions, without the products in the padding
// (csrc/cpu/conv_dilated.h).

import (
	"slices"
	"unsafe"

	"github.com/concord-compute/concord/internal/simd"
)

// dilatedAxis has the cells of a convolution in one direction. A cell has as many elements as the dilation.
type dilatedAxis struct {
	filter  int // elements of the filter
	in, out int // cells of the image and of the output
	before  int // cells of padding before those of the image
}

func dilatedAxisOf(size, out, filter, pad, dilation int) dilatedAxis {
	return dilatedAxis{filter: filter, in: (size + pad%dilation + dilation - 1) / dilation,
		out: (out + dilation - 1) / dilation, before: pad / dilation}
}

// met returns the elements of the filter, from the first to before the last, for which cell i of the output meets a
// cell of the image.
func (a *dilatedAxis) met(i int) (first, last int) {
	first = max(a.before-i, 0)
	return first, max(min(a.filter, a.in+a.before-i), first)
}

// dilatedRun is a run of cells in a row of the output that meet the same elements of the filter.
type dilatedRun struct{ row, from, to, r0, r1, q0, q1 int }

// runs returns all runs of a row of the output.
func dilatedRuns(down, along *dilatedAxis, row int) (list []dilatedRun) {
	r0, r1 := down.met(row)
	for j := 0; j < along.out; {
		run := dilatedRun{row: row, from: j, r0: r0, r1: r1}
		run.q0, run.q1 = along.met(j)
		for ; j < along.out; j++ {
			if q0, q1 := along.met(j); q0 != run.q0 || q1 != run.q1 {
				break
			}
		}
		run.to = j
		list = append(list, run)
	}
	return list
}

// dilatedPlan is a convolution whose channels are copied to cells.
type dilatedPlan struct {
	convPlan
	rowCells, colCells dilatedAxis
	cell               int // elements of a cell
	runs               []dilatedRun
}

// dilated returns the plan for a filter with dilation, and whether it saves enough products.
func (p *convPlan) dilated() (q dilatedPlan, ok bool) {
	if p.strideH != 1 || p.strideW != 1 || p.dilationH == 1 && p.dilationW == 1 || p.padH < 0 || p.padW < 0 ||
		p.padH == 0 && p.padW == 0 || p.depth() == 0 {
		return q, false
	}
	q = dilatedPlan{convPlan: *p, rowCells: dilatedAxisOf(p.h, p.outH, p.rows, p.padH, p.dilationH),
		colCells: dilatedAxisOf(p.w, p.outW, p.cols, p.padW, p.dilationW)}
	l2, _ := cacheSizes()
	room := p.call.share(convRoom, l2) / p.size
	down, along := &q.rowCells, &q.colCells
	cell := float64(p.dilationH) * float64(p.dilationW)
	sums, plane := cell*float64(down.out)*float64(along.out), cell*float64(down.in)*float64(along.in)
	if sums > float64(room) || plane > float64(room) || sums == 0 || plane == 0 {
		return q, false
	}
	q.cell, q.channels, q.filters, q.packed, q.batch = p.dilationH*p.dilationW, p.c/p.groups, p.k/p.groups, true, 1
	lanes, used := p.set.bytes/p.size, 0 // registers of products
	for i := range down.out {
		for _, run := range dilatedRuns(down, along, i) {
			used += ((run.to-run.from)*q.cell + lanes - 1) / lanes * (run.r1 - run.r0) * (run.q1 - run.q0)
			q.runs = append(q.runs, run)
		}
	}
	all := (p.outs() + lanes - 1) / lanes * p.rows * p.cols
	if 100*used > (100-p.call.Choose(convDilated))*all {
		return q, false
	}
	// Few channels and filters, such as one of each in every group, save less than the copies cost.
	saved := float64(all-used) * float64(lanes) * float64(q.channels) * float64(q.filters)
	if saved <= plane*float64(q.channels)+sums*float64(q.filters) {
		return q, false
	}
	return q, q.divide(room)
}

// divide decides how the work is divided. It returns false if the memory of a task exceeds a part of the second-level
// cache.
func (p *dilatedPlan) divide(room int) bool {
	pitch := p.colCells.in * p.cell
	// The copies have other lines than planes have, which differ from the output's.
	p.down = convAxis{size: p.h, out: p.outH, stride: 1, pad: p.padH, dilation: p.dilationH,
		longer: p.rowCells.in - p.outH}
	p.along = convAxis{size: p.w, out: p.outW, stride: 1, pad: p.padW, dilation: p.dilationW, longer: pitch - p.outW}
	p.lines = p.outH
	p.plane = p.oddLines(p.rowCells.in * pitch)
	p.sums = roundUpInt(p.rowCells.out*p.colCells.out*p.cell, p.set.bytes/p.size)
	p.deep = even(p.channels, max(room/p.plane, 1), 1)
	p.together = even(p.filters, p.set.rows, 1)
	threads, tasks := p.call.device.threads, p.parts()
	if tasks%threads == 0 {
		tasks *= 2 // all threads get the same number, so that no further division is needed
	}
	some := max(p.filters*tasks/(2*threads), 1)
	if p.deep < p.channels { // sums of all filters of a task are kept
		some = min(some, room/p.sums/p.together*p.together)
	}
	p.some = even(p.filters, max(some, 1), p.together)
	least := min(p.channels, 1+(p.call.Choose(convSums)-1)/(p.rows*p.cols)) // so that enough products are summed
	return least <= p.deep && p.sumRows()*p.sums <= room
}

// sumRows returns the filters for which a task has sums.
func (p *dilatedPlan) sumRows() int {
	if p.deep < p.channels {
		return p.some
	}
	return p.together
}

// table returns the runs and their parts in the form of the vector function.
func (p *dilatedPlan) table() []int64 {
	var runs, parts []int64
	down, along := &p.rowCells, &p.colCells
	for _, run := range p.runs {
		first := len(parts) / 3
		add := func(r, taps int) {
			from := (run.row+r-down.before)*along.in + run.from + run.q0 - along.before
			parts = append(parts, int64(r*p.cols+run.q0), int64(taps), int64(from*p.cell))
		}
		switch {
		case run.r0 == run.r1 || run.q0 == run.q1: // the sums are zeros, or the bias
			parts = append(parts, 0, 0, 0)
		case run.q0 == 0 && run.q1 == p.cols:
			add(run.r0, (run.r1-run.r0)*p.cols)
		default:
			for r := run.r0; r < run.r1; r++ {
				add(r, run.q1-run.q0)
			}
		}
		runs = append(runs, int64((run.row*along.out+run.from)*p.cell), int64((run.to-run.from)*p.cell), int64(first),
			int64(len(parts)/3-first))
	}
	return append(runs, parts...)
}

// steps returns the distances in the copies of n channels from each element of the filters to the next.
func (p *dilatedPlan) steps(n int) []int64 {
	list := make([]int64, n*p.rows*p.cols)
	for i := range list {
		list[i] = int64(p.plane)
		if place := i / n; i%n == n-1 && place%p.cols == p.cols-1 {
			list[i] = int64((p.colCells.in-p.cols+1)*p.cell - (n-1)*p.plane)
		} else if i%n == n-1 {
			list[i] = int64(p.cell - (n-1)*p.plane)
		}
	}
	return list
}

// run computes y.
func (p *dilatedPlan) run(x, weight, bias, y []byte) error {
	table, steps := p.table(), p.steps(p.deep)
	if rest := p.channels % p.deep; rest > 0 {
		steps = append(steps, p.steps(rest)...)
	}
	panels, places := (p.filters+p.together-1)/p.together, p.rows*p.cols
	begin := roundUpInt(8*(len(table)+len(steps)), 64)
	scratch := &p.call.device.scratch
	shared, err := scratch.take(int64(begin + p.groups*panels*p.together*p.depth()*p.size))
	if err != nil {
		return err
	}
	defer scratch.give(shared)
	words := unsafe.Slice((*int64)(unsafe.Pointer(unsafe.SliceData(shared.data))), len(table)+len(steps))
	copy(words[copy(words, table):], steps)
	at := address(shared.data)
	grain := 1 + p.call.Choose(convGrain)/(p.together*(p.depth()+1))
	err = p.call.Parallel(p.groups*panels, grain, func(lo, hi int) {
		p.set.run(p.op(simd.ConvDilatedPackF32), uint64(p.filters), uint64(p.channels), uint64(places), uint64(p.deep),
			uint64(p.together), address(weight), at+uint64(begin), uint64(lo), uint64(hi))
	})
	if err != nil {
		return err
	}
	add := uint64(0)
	if p.bias {
		add = address(bias)
	}
	list := p.words(places, address(x), at+uint64(begin), add, at+uint64(8*len(table)), address(y))
	room := (p.deep*p.plane+p.sumRows()*p.sums)*p.size + 2*p.set.bytes
	tasks, threads := p.parts()*((p.filters+p.some-1)/p.some), p.call.device.threads
	if !p.call.threadsPay(2*float64(p.n*p.k*p.outs())*float64(p.depth()), float64(len(x)+len(weight)+len(y))) {
		threads = 1
	}
	return p.call.inRooms(tasks, p.each(tasks, threads), threads, room, func(lo, hi int, own block) {
		p.set.run(p.op(simd.ConvDilatedF32), slices.Concat(list, []uint64{address(own.data), uint64(len(p.runs)), at,
			uint64(lo), uint64(hi)})...)
	})
}
