package cpu

// Products of few rows with a large matrix, and of a large matrix with few columns: each thread reads its parts of the
// matrix once, as it is stored (csrc/cpu/few.h). Half and bfloat16 become floats in registers.

import (
	"math"

	"github.com/concord-compute/concord/internal/simd"
)

// fewTogether is the largest number of rows that a function multiplies, FEW_MOST of csrc/cpu/all.h, and fewTile a
// multiple of every set's FEW_ROWS.
const fewTogether, fewTile = 16, 12

// few reports whether the product is one of few rows or columns that gains by reading the large matrix as it is stored:
// since it would be converted otherwise, or comes from memory, or would be packed.
func (p *product) few() bool {
	few, many, w, across := p.m, p.n, &p.b, p.b.across
	if p.m > p.n {
		few, many, w, across = p.n, p.m, &p.a, !p.a.across
	}
	elements := p.k * many
	c := p.call
	if few == 0 || few > c.Choose(fewMost) || p.k < c.Choose(fewDeep) || elements < c.Choose(fewLeast) {
		return false
	}
	l2, _ := cacheSizes()
	return p.a.size != p.size || p.b.size != p.size || elements*w.size > l2 ||
		across && few > c.Choose(fewAcross) && elements >= c.Choose(fewAcrossLeast)
}

// fewRows is the state of one product while it is computed: rows of floats x times a matrix w.
type fewRows struct {
	product
	w, x         matrix
	turned       bool // the few are columns: what is computed is the transpose of C
	few, many    int  // rows of x and columns of w
	parts, depth int  // of w's rows
	sums         uint64
}

func (p *product) runFew() error {
	f := &fewRows{product: *p, w: p.b, x: p.a, turned: p.m > p.n, few: min(p.m, p.n), many: max(p.m, p.n)}
	f.parts, f.depth = 1, p.k
	if f.turned {
		f.w, f.x = p.a.turned(), p.b.turned()
	}
	c := p.call
	if f.many < c.Choose(fewNarrow) {
		f.depth = roundUpInt(max(c.Choose(fewPartLeast), c.Choose(fewPart)<<10/(f.w.size*f.many)), 64)
		f.parts = (p.k + f.depth - 1) / f.depth
	}
	sums, floats := roundUpInt(f.parts*f.few*f.many*p.size, 64), roundUpInt(f.few*p.k*p.size, 64)
	room, err := p.call.device.scratch.take(int64(sums + 2*floats))
	if err != nil {
		return err
	}
	defer p.call.device.scratch.give(room)
	f.sums = address(room.data)
	f.readRows(f.sums+uint64(sums), f.sums+uint64(sums+floats))
	unit := fewTile * c.Choose(fewDots)
	if !f.w.across {
		unit = min(roundUpInt(c.Choose(fewColumns), 64), roundUpInt(c.each(f.many, fewTasks), 64))
	}
	tasks := (f.many + unit - 1) / unit
	if f.parts == 1 {
		return f.spread(tasks, func(lo, hi int) {
			lo, hi = lo*unit, min(hi*unit, f.many)
			f.multiply(0, lo, hi, unit)
			f.store(lo, hi)
		})
	}
	if err := f.spread(tasks*f.parts, func(lo, hi int) {
		for i := lo; i < hi; i++ {
			j := i % tasks * unit
			f.multiply(i/tasks, j, min(j+unit, f.many), unit)
		}
	}); err != nil {
		return err
	}
	f.store(0, f.many)
	return nil
}

// turned returns the transpose.
func (x matrix) turned() matrix {
	x.across = !x.across
	return x
}

// spread calls f for ranges of [0, n), on several threads if that saves time.
func (f *fewRows) spread(n int, part func(lo, hi int)) error {
	elements := float64(f.many) * float64(f.k)
	if !f.call.threadsPay(2*float64(f.few)*elements, float64(f.w.size)*elements) {
		part(0, n)
		return nil
	}
	return f.call.Parallel(n, 1, part)
}

// readRows makes x rows of the type of the computation, one after the other, at an address, unless they are stored like
// that. There is room for as many elsewhere.
func (f *fewRows) readRows(to, elsewhere uint64) {
	if f.x.size != f.size {
		rows, cols, at := f.few, f.k, to
		if f.x.across {
			rows, cols, at = f.k, f.few, elsewhere
		}
		f.set.run(simd.Widen, f.x.half, uint64(rows), uint64(cols), f.x.at, uint64(f.x.ld), at, uint64(cols))
		f.x = matrix{at: at, ld: cols, size: f.size, across: f.x.across}
	}
	if f.x.across {
		f.set.run(f.op(simd.GemmF32Pack), 0, uint64(f.k), uint64(f.few), f.x.at, uint64(f.x.ld), to, uint64(f.k))
		f.x = matrix{at: to, ld: f.k, size: f.size}
	}
}

// multiply computes the sums of a part of the depth for columns lo to hi of w, some at a time.
func (f *fewRows) multiply(part, lo, hi, some int) {
	p0 := part * f.depth
	depth := min(f.depth, f.k-p0)
	typ := uint64(0) // float, or whatever the computation is in
	if f.w.size == 2 {
		typ = 2 + f.w.half
	}
	sums := f.sums + uint64(part*f.few*f.many*f.size)
	for j := lo; j < hi; j += some {
		cols := min(some, hi-j)
		for i := 0; i < f.few; i += fewTogether {
			rows, to := min(fewTogether, f.few-i), sums+uint64((i*f.many+j)*f.size)
			op, across, down := simd.GemmF32FewColumns, uint64(f.many), uint64(0)
			if f.w.across {
				op, across, down = simd.GemmF32FewRows, 1, uint64(f.many)
			}
			f.set.run(f.op(op), typ, uint64(cols), uint64(rows), uint64(depth), f.w.element(p0, j), uint64(f.w.ld),
				f.x.element(i, p0), uint64(f.x.ld), to, across, down,
				uint64(roundUpInt(f.call.Choose(fewBytes), 64)))
		}
	}
}

// store adds the parts up and stores columns lo to hi of w's results.
func (f *fewRows) store(lo, hi int) {
	i0, i1, j0, j1, down, right := 0, f.few, lo, hi, f.many, 1
	if f.turned {
		i0, i1, j0, j1, down, right = lo, hi, 0, f.few, 1, f.many
	}
	after := f.finish.from(j0, f.size)
	f.set.run(f.op(simd.GemmF32Store), uint64(i1-i0), uint64(j1-j0), f.sums+uint64(lo*f.size), uint64(down), uint64(right),
		uint64(f.parts), uint64(f.few*f.many), f.out.element(i0, j0), uint64(f.out.ld),
		math.Float64bits(f.alpha), math.Float64bits(f.beta), after.bias, after.f)
	f.round(i0, i1, j0, j1)
}
