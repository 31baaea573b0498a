package cpu

// Gradients of filters, and other convolutions with filters that are longer than the output, as products of the
// filters with copies of many images that have the images innermost (csrc/cpu/conv_turned.h).

// planTurned decides how the work is divided. lines are the rows of a filter for which an image is copied at a
// time, deep those that are multiplied at a time, and sums the images in a copy. It returns false if there are
// too few images for whole registers, or too few products to pay for copies.
func (p *convPlan) planTurned() bool {
	lanes, c := p.set.bytes/p.size, p.call
	p.channels, p.filters = p.c/p.groups, p.k/p.groups
	p.down, p.along = p.longDown().apart(), p.longAlong().apart()
	// All lines and columns that are copied are met by some place of the output.
	if p.outs() == 1 || p.n < lanes || p.dilationH > (p.outH-1)*p.strideH+1 || p.dilationW > (p.outW-1)*p.strideW+1 ||
		p.filters*p.outs()/c.Choose(turnedPays)/p.dilationH < p.dilationW {
		return false
	}
	threads := p.call.device.threads
	// Each task copies its images, so that images are divided first, if enough registers of them are left.
	want := (threads + p.groups - 1) / p.groups
	parts := max(min(want, p.n/(c.Choose(turnedLeast)*lanes)), 1)
	p.batch = min(even(p.n, (p.n+parts-1)/parts, lanes), c.Choose(turnedMost)*lanes)
	p.sums = p.batch
	parts = (p.n + p.batch - 1) / p.batch
	if 100*p.n < c.Choose(turnedFill)*parts*p.batch { // too many are missing from whole registers in equal tasks
		return false
	}
	want = (want + parts - 1) / parts
	l2, _ := cacheSizes()
	most := c.share(turnedSums, l2) / (p.size * p.outs() * p.sums) // filters whose sums stay in the cache
	p.some = min(even(p.filters, max(min((p.filters+want-1)/want, most), 1), p.set.rows), p.filters)
	p.along.longer = (p.cols-1)*p.dilationW + (p.outW-1)*p.strideW + 1 - p.cols
	line := p.pitchTurned() * p.sums * p.size // bytes
	reach := (p.outH-1)*p.strideH + 1         // lines that a row of a filter meets
	room := c.share(turnedRoom, l2)
	fit := (room/line-reach)/p.dilationH + 1
	if room < reach*line {
		return false
	}
	p.lines = even(p.rows, fit, 1)
	p.deep = even(p.lines, max(c.Choose(turnedDeep)/p.cols, 1), 1)
	p.down.longer = (p.lines-1)*p.dilationH + reach - p.lines
	p.plane = (p.lines + p.down.longer) * p.pitchTurned() * p.sums
	p.packed = p.filterSteps().outer*p.rows*p.cols*p.size%4096 == 0
	return true
}

// pitchTurned returns the number of columns of a copy.
func (p *convPlan) pitchTurned() int { return p.cols + p.along.longer }

// turnedRoom returns the bytes of a task's sums, copies and packed filters, with a register after the copies.
func (p *convPlan) turnedRoom() int {
	n := p.outs()*p.some*p.sums + p.plane
	if p.packed {
		n += p.some * p.deep * p.cols
	}
	return n*p.size + 2*p.set.bytes
}

// turnedSteps sets steps to the distances in the copies from each element of the rows of a filter that are
// multiplied at a time to the next.
func (p *convPlan) turnedSteps(steps []int64) {
	for i := range steps {
		steps[i] = int64(p.dilationW * p.sums)
		if i%p.cols == p.cols-1 {
			steps[i] += int64((p.dilationH*p.pitchTurned() - p.cols*p.dilationW) * p.sums)
		}
	}
}
