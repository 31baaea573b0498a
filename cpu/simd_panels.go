package cpu

// Large products. B is divided into panels, parts of its columns and rows, which all
// threads pack together. Each thread packs the blocks of rows of A that it multiplies
// with a panel. Threads take these tasks in order, from a counter, and wait for the
// input of a task only if another thread is still working on it; there is no barrier.

import (
	"math"
	"sync/atomic"

	"github.com/concord-compute/concord/internal/simd"
)

// panelSizes has the sizes of panels and tasks.
type panelSizes struct {
	depth int // rows of B at a time
	cols  int // columns of B at a time
	rows  int // rows of A that one task packs
	chunk int // columns of B that one task packs
	wide  int // columns of B that one task multiplies
}

// sizes returns sizes such that a block of rows of A and some columns of B fit into the second-level
// cache and a panel of B into the third, and that there are enough tasks for the threads. The depth
// may exceed the first-level cache, since memory is read in order; a larger depth
// needs fewer passes over C.
func (p *product) sizes() panelSizes {
	l2, l3 := cacheSizes()
	c, strip, rows := p.call, p.strip(), p.set.rows
	threads, tasks, chunk := c.device.threads, c.Choose(gemmTasks)*c.device.threads, c.Choose(gemmChunk)*strip
	var s panelSizes
	fit := c.share(gemmDepthShare, l2) / ((c.Choose(gemmDepthTiles)*rows + strip) * p.size)
	s.depth = even(p.k, min(max(fit/16*16, c.Choose(gemmDepthLeast)), c.Choose(gemmDepth)), 1)
	s.cols = even(p.n, min(max(c.share(gemmPanel, l3)/(s.depth*p.size)/strip*strip, chunk), c.Choose(gemmCols)), strip)
	s.chunk = min(chunk, roundUpInt(s.cols, strip))
	block := c.share(gemmBlock, l2)
	if p.set.bytes == 32 {
		block = c.share(gemmBlock32, l2)
	}
	s.rows = min(max(block/(s.depth*p.size)/rows*rows, rows), c.Choose(gemmTall)*rows)
	blocks := (p.m + s.rows - 1) / s.rows
	if blocks = max(blocks, min(tasks, (p.m+rows-1)/rows)); threads > 1 {
		blocks = (blocks + threads - 1) / threads * threads
	}
	s.rows = even(p.m, (p.m+blocks-1)/blocks, rows)
	s.wide = s.cols
	if blocks = (p.m + s.rows - 1) / s.rows; blocks < tasks {
		parts := (tasks + blocks - 1) / blocks
		s.wide = roundUpInt((s.cols+parts-1)/parts, strip)
	}
	return s
}

// even divides n elements into the smallest number of equal parts of at most most elements, and returns
// their length, rounded up to a multiple of unit.
func even(n, most, unit int) int {
	parts := max((n+most-1)/most, 1)
	return roundUpInt((n+parts-1)/parts, unit)
}

func roundUpInt(n, to int) int { return (n + to - 1) / to * to }

// panels is the state of one product while it is computed.
type panels struct {
	*product
	panelSizes
	deep, broad  int         // panels along k and n
	chunks       int         // packing tasks of a panel
	tall, across int         // multiplying tasks of a panel: blocks of rows, parts of columns
	buffers      [2]uint64   // packed panels of B, used alternately
	rooms        chan uint64 // scratch memory for a thread, of which no thread is using it
	failed       atomic.Bool
	packed, done []atomic.Int32 // per panel: number of completed packing and multiplying tasks
	level        []atomic.Int32 // per block of C: number of panels that were added to it
}

func (p *product) runPanels() error {
	s := p.sizes()
	q := *p
	r := &panels{product: &q, panelSizes: s,
		deep: (p.k + s.depth - 1) / s.depth, broad: (p.n + s.cols - 1) / s.cols, chunks: (s.cols + s.chunk - 1) / s.chunk,
		tall: (p.m + s.rows - 1) / s.rows, across: (s.cols + s.wide - 1) / s.wide}
	count := r.deep * r.broad
	r.packed, r.done, r.level = make([]atomic.Int32, count), make([]atomic.Int32, count),
		make([]atomic.Int32, r.tall*r.across)
	threads := p.call.device.threads
	if !p.threadsPay() {
		threads = 1
	}
	right := uint64(roundUpInt(s.cols, p.strip()) * s.depth * p.size)
	own := uint64(roundUpInt(s.rows, p.set.rows) * s.depth * p.size)
	if p.a.size == 2 || p.b.size == 2 { // and memory for the floats of a part that it packs
		own += uint64(max(s.rows, s.chunk) * s.depth * p.size)
	}
	right, own = right+4096, own+4096+64 // so that they begin at different offsets in a page
	b, err := p.call.device.scratch.take(int64(2*right) + int64(threads)*int64(own))
	if err != nil {
		return err
	}
	defer p.call.device.scratch.give(b)
	at := address(b.data)
	r.buffers = [2]uint64{at, at + right}
	r.rooms = make(chan uint64, threads)
	for i := range uint64(threads) {
		r.rooms <- at + 2*right + i*own&^63
	}
	return p.call.ranges(count*r.tasks(), 1, threads, r.run)
}

// tasks returns the number of tasks of a panel: those that pack it and those that multiply with it.
func (r *panels) tasks() int { return r.chunks + r.tall*r.across }

// run does one task. Between two tasks another launch may get the thread, because only later tasks
// wait for a task that has not begun.
func (r *panels) run(_ *call, task, _ int) {
	own := <-r.rooms
	whole := false
	defer func() {
		r.rooms <- own
		if !whole {
			r.failed.Store(true)
		}
	}()
	panel, task := task/r.tasks(), task%r.tasks()
	if task < r.chunks {
		r.pack(panel, task, own)
	} else {
		r.multiply(panel, task-r.chunks, own)
	}
	whole = true
}

// place returns the part of B that is a panel: columns j0 to j1, rows p0 to p1.
func (r *panels) place(panel int) (j0, j1, p0, p1 int) {
	j0, p0 = panel/r.deep*r.cols, panel%r.deep*r.depth
	return j0, min(j0+r.cols, r.n), p0, min(p0+r.depth, r.k)
}

func (r *panels) pack(panel, chunk int, own uint64) {
	if panel >= 2 && !r.wait(&r.done[panel-2], r.tall*r.across) {
		return
	}
	j0, j1, p0, p1 := r.place(panel)
	to := r.buffers[panel%2] + uint64(chunk*r.chunk*(p1-p0)*r.size)
	j0 += chunk * r.chunk
	if j1 = min(j1, j0+r.chunk); j0 < j1 {
		at, ld := r.b.element(p0, j0), r.b.ld
		if r.b.size == 2 {
			at, ld = r.widen(&r.b, p0, p1, j0, j1, own)
		}
		r.set.run(r.op(simd.GemmF32Pack), flag(!r.b.across), uint64(j1-j0), uint64(p1-p0), at, uint64(ld), to,
			uint64(r.strip()))
	}
	r.packed[panel].Add(1)
}

func (r *panels) multiply(panel, task int, own uint64) {
	if !r.wait(&r.packed[panel], r.chunks) || !r.wait(&r.level[task], panel) {
		return
	}
	j0, j1, p0, p1 := r.place(panel)
	skip := task % r.across * r.wide
	from := r.buffers[panel%2] + uint64(skip*(p1-p0)*r.size)
	j0 += skip
	j1 = min(j1, j0+r.wide)
	i0 := task / r.across * r.rows
	i1 := min(i0+r.rows, r.m)
	if i0 < i1 && j0 < j1 {
		beta, after := 1.0, finish{}
		if p0 == 0 {
			beta = r.beta
		}
		if p1 == r.k {
			after = r.finish.from(j0, r.size)
		}
		at, ld, left := r.a.element(i0, p0), r.a.ld, own
		if r.a.size == 2 {
			left += uint64(max(r.rows, r.chunk) * r.depth * r.size)
			at, ld = r.widen(&r.a, i0, i1, p0, p1, own)
		}
		r.set.run(r.op(simd.GemmF32Block), uint64(i1-i0), uint64(j1-j0), uint64(p1-p0), at, uint64(ld), flag(r.a.across),
			from, r.out.element(i0, j0), uint64(r.out.ld), math.Float64bits(r.alpha), math.Float64bits(beta), left, after.bias,
			after.f, uint64(r.call.Choose(gemmFetch)))
		if p1 == r.k {
			r.round(i0, i1, j0, j1)
		}
	}
	r.level[task].Add(1)
	r.done[panel].Add(1)
}

// widen converts a part of a 16-bit matrix to float and returns its address and leading dimension.
func (r *panels) widen(x *matrix, i0, i1, j0, j1 int, to uint64) (at uint64, ld int) {
	from := x.element(i0, j0)
	rows, cols := i1-i0, j1-j0
	if x.across {
		rows, cols = cols, rows
	}
	r.set.run(simd.Widen, x.half, uint64(rows), uint64(cols), from, uint64(x.ld), to, uint64(cols))
	return to, cols
}

func (r *panels) wait(counter *atomic.Int32, n int) bool {
	return r.call.await(counter, n, &r.failed)
}

func flag(b bool) uint64 {
	if b {
		return 1
	}
	return 0
}

// rounding is the 16-bit matrix to which the results of a product in float are rounded. If the
// size of its elements is 0, there is none.
type rounding struct {
	out    matrix
	beta   float64
	finish finish
}

// halves computes a product in float of which a matrix is of 16 bits. If C is of 16 bits, too, it rounds each
// element once: each part of C as soon as it is complete.
func (p *product) halves() error {
	sums, wide := roundUpInt(p.m*p.n*4, 64), 4*(p.m*p.k+p.k*p.n)
	if p.out.size == 4 {
		sums = 0
	}
	l2, _ := cacheSizes()
	few := p.few()
	small := !few && sums+wide <= p.call.share(halvesSmall, l2)
	if !small {
		wide = 0 // panels are converted to float while they are packed
	}
	room, err := p.call.device.scratch.take(int64(sums + wide + p.n*4))
	if err != nil {
		return err
	}
	defer p.call.device.scratch.give(room)
	f, at := *p, address(room.data)
	if p.out.size == 2 {
		f.beta, f.finish, f.out = 0, finish{}, matrix{at: at, ld: p.n, size: 4}
		f.rounded = rounding{p.out, p.beta, p.finish}
		if p.finish.f != 0 {
			f.rounded.finish.bias = at + uint64(sums+wide)
			p.set.run(simd.Widen, p.out.half, 1, uint64(p.n), p.finish.bias, 0, f.rounded.finish.bias, 0)
		}
	}
	switch {
	case few:
		return f.runFew()
	case p.k > 0 && !small:
		return f.runPanels()
	}
	q := f
	q.rounded = rounding{}
	q.a = p.widened(&p.a, p.m, p.k, at+uint64(sums))
	q.b = p.widened(&p.b, p.k, p.n, at+uint64(sums+4*p.m*p.k))
	if err := q.compute(); err != nil {
		return err
	}
	f.round(0, p.m, 0, p.n)
	return nil
}

// widened converts a 16-bit matrix to floats at an address and returns that matrix; one of floats it returns as it is.
func (p *product) widened(x *matrix, rows, cols int, at uint64) matrix {
	if x.size == p.size {
		return *x
	}
	if x.across {
		rows, cols = cols, rows
	}
	p.set.run(simd.Widen, x.half, uint64(rows), uint64(cols), x.at, uint64(x.ld), at, uint64(cols))
	return matrix{at: at, ld: cols, size: 4, across: x.across}
}

// round rounds a part of a product in float to the 16-bit matrix, if there is one.
func (p *product) round(i0, i1, j0, j1 int) {
	if p.rounded.out.size == 0 {
		return
	}
	after := p.rounded.finish.from(j0, 4)
	p.set.run(simd.Narrow, p.rounded.out.half, uint64(i1-i0), uint64(j1-j0), p.out.element(i0, j0), uint64(p.out.ld),
		p.rounded.out.element(i0, j0), uint64(p.rounded.out.ld), math.Float64bits(p.rounded.beta), after.bias, after.f)
}
