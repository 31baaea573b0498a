package expr

// The evaluation of maps with reductions on a machine for block programs. How the elements are divided depends on the
// layout alone, so that results do not depend on the number of threads.

import (
	"slices"
	"unsafe"

	"github.com/concord-compute/concord/kernels"
)

// Machine runs the steps of a map with reductions. Its methods may be called from several goroutines at once.
type Machine interface {
	// Compute computes elements lo to hi of a step. memory has the memory of each operand.
	Compute(step int, l *Layout, memory [][]byte, params []uint64, lo, hi int)
	// Fold combines into[i] with from[i], from[i+lanes] and so on, count numbers in this order, for each i < lanes. Then it
	// combines the first half of the lanes with the second, until keep of them are left.
	Fold(op Op, c Class, lanes, count, keep int, into, from []byte)
	// Segments combines into[i] with the combination of from[i·n] to from[i·n+n-1], for each i < rows.
	Segments(op Op, c Class, rows, n int, into, from []byte)
	// Memory returns memory with undefined contents, which is free again after the call of free.
	Memory(bytes int) (memory []byte, free func(), err error)
}

const (
	// piece is the number of elements that are computed before they are combined; so many stay in a cache.
	piece = 8192
	// lanes is the largest number of sums that are added up side by side.
	lanes = 4096
)

// reducing is one launch.
type reducing struct {
	Launch
	m        *Map
	call     *kernels.Call
	machine  Machine
	steps    []Step
	rows, n  int
	columns  bool // neighbouring rows lie side by side in memory, and not the elements of a row
	parts    int  // in which a row is reduced
	length   int  // of a part
	memory   [][]byte
	results  [][]byte // of each reduction, for all rows
	partial  [][]byte // of each reduction, for all rows and parts
	scratch  chan []byte
	workerOf int // bytes of a worker's scratch for one reduction
}

// Reduce computes a launch of a map with reductions. It is for devices that run block programs.
func (m *Map) Reduce(c *kernels.Call, machine Machine) error {
	steps, err := m.Steps()
	if err != nil {
		return err
	}
	r := reducing{m: m, call: c, machine: machine, steps: steps}
	m.Read(c, &r.Launch)
	r.rows, r.n = r.Layout.rows()
	if r.rows == 0 || r.n == 0 && len(m.outputsBy(true)) == 0 {
		return nil
	}
	for k := range len(m.inputs) + len(m.outputs) {
		r.memory = append(r.memory, c.Bytes(k))
	}
	r.columns = m.columns(&r.Layout)
	r.divide()
	free, err := r.allocate()
	if err != nil {
		return err
	}
	defer free()
	if !r.columns && r.parts == 1 {
		return c.Parallel(r.rows, max(1, 2*piece/max(r.n, 1)), r.whole)
	}
	return r.level()
}

// columns reports whether neighbouring rows lie side by side in memory in most inputs.
func (m *Map) columns(l *Layout) bool {
	last := len(l.Dims) - 1
	votes := 0
	for _, n := range m.nodes {
		switch n.op {
		case opIndex, opRandom: // positions of elements are those of rows
			return false
		case opInput:
			if s := l.Operands[n.slot].Steps; last > 0 && s[last] != 0 && s[last-1] != 0 && max(s[last-1], -s[last-1]) < max(s[last], -s[last]) {
				votes++
			} else if s[last] != 0 {
				votes--
			}
		}
	}
	return votes > 0
}

// inner returns the number of neighbouring rows that are reduced side by side.
func (r *reducing) inner() int {
	if r.columns {
		return r.Layout.Dims[len(r.Layout.Dims)-2]
	}
	return 1
}

// divide chooses the parts of rows. Each lane of a part adds up at most 128 numbers or an eighth of a thousandth of a row.
func (r *reducing) divide() {
	if r.columns {
		r.length = max(128, (r.n+127)/128, piece/r.inner())
	} else {
		r.length = max(8*piece, ((r.n+63)/64+piece-1)/piece*piece)
	}
	r.parts = max(1, (r.n+r.length-1)/r.length)
}

// allocate takes the memory of the launch.
func (r *reducing) allocate() (free func(), err error) {
	most := 0 // reductions of one level
	for _, s := range r.steps {
		most = max(most, len(s.Combine))
	}
	r.workerOf = 8 * (piece + lanes)
	workers := r.call.Threads()
	results := 8 * r.rows * len(r.m.reductions)
	memory, free, err := r.machine.Memory(results*(r.parts+1) + workers*most*r.workerOf)
	if err != nil {
		return nil, err
	}
	take := func(bytes int) []byte {
		b := memory[:bytes:bytes]
		memory = memory[bytes:]
		return b
	}
	for range r.m.reductions {
		r.results = append(r.results, take(8*r.rows))
		r.partial = append(r.partial, r.results[len(r.results)-1])
	}
	for i := range r.partial {
		if r.parts > 1 {
			r.partial[i] = take(8 * r.rows * r.parts)
		}
	}
	r.scratch = make(chan []byte, workers)
	for range workers {
		r.scratch <- take(most * r.workerOf)
	}
	return free, nil
}

// space returns the layout of a step and the memory of its operands. Operands that reductions take have their memory in
// scratch. With across, elements are in the order of memory where columns are reduced.
func (r *reducing) space(s *Step, across bool, scratch []byte) (Layout, [][]byte) {
	dims := r.Layout.Dims
	last := len(dims) - 1
	ordered := func(o []int) []int {
		o = slices.Clone(o)
		if across {
			o[last], o[last-1] = o[last-1], o[last]
		}
		if s.Rows {
			o = o[:last]
		}
		return o
	}
	l := Layout{Dims: ordered(dims)}
	var memory [][]byte
	row := Rows(dims[:last]...)
	operand := func(k int) {
		if k >= len(r.memory) {
			l.Operands = append(l.Operands, Operand{Steps: ordered(append(slices.Clone(row.Steps), 0))})
			memory = append(memory, r.results[k-len(r.memory)])
			return
		}
		o := r.Layout.Operands[k]
		l.Operands = append(l.Operands, Operand{First: o.First, Steps: ordered(o.Steps)})
		memory = append(memory, r.memory[k])
	}
	for _, k := range s.Inputs {
		operand(k)
	}
	for j, k := range s.Outputs {
		if s.Combine == nil {
			operand(k)
			continue
		}
		l.Operands = append(l.Operands, Rows(l.Dims...))
		memory = append(memory, scratch[j*r.workerOf:][:8*piece])
	}
	var out Layout
	l.coalesce(max(l.Len(), 1), &out)
	return out, memory
}

// params returns the parameters of a step.
func (r *reducing) params(s *Step) []uint64 {
	var list []uint64
	for _, p := range s.Params {
		if p == len(r.m.params) {
			list = append(list, uint64(r.n))
		} else {
			list = append(list, r.Params[p])
		}
	}
	return list
}

// whole computes all steps of rows lo to hi, a few rows at a time.
func (r *reducing) whole(lo, hi int) {
	scratch := <-r.scratch
	defer func() { r.scratch <- scratch }()
	workers := make([]worker, len(r.steps))
	for i := range r.steps {
		workers[i] = r.worker(i, false, scratch)
	}
	some := max(1, 4*piece/max(r.n, 1))
	for ; lo < hi; lo += some {
		end := min(lo+some, hi)
		for i := range workers {
			w := &workers[i]
			switch {
			case w.step.Rows:
				w.compute(lo, end)
			case w.step.Combine == nil:
				w.compute(lo*r.n, end*r.n)
			case r.n < piece:
				w.segments(lo, end)
			default:
				for row := lo; row < end; row++ {
					w.reduce(row*r.n, r.n, 1, 1, row)
				}
			}
			w.cut(lo, end)
		}
	}
}

// level computes one step after the other for all rows.
func (r *reducing) level() error {
	c := r.call
	for i := range r.steps {
		s := &r.steps[i]
		var err error
		switch {
		case s.Rows:
			err = c.Parallel((r.rows+Tile-1)/Tile, 16, func(lo, hi int) {
				w := r.worker(i, false, nil)
				w.compute(lo*Tile, min(hi*Tile, r.rows))
			})
		case s.Combine == nil:
			err = c.Parallel((r.rows*r.n+Tile-1)/Tile, 16, func(lo, hi int) {
				w := r.worker(i, r.columns, nil)
				w.compute(lo*Tile, min(hi*Tile, r.rows*r.n))
			})
		default:
			err = r.reduceAll(i)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// reduceAll computes the reductions of a step: of each part of each row, then of the parts.
func (r *reducing) reduceAll(step int) error {
	inner := r.inner()
	outer, wide := r.rows/inner, min(inner, lanes)
	across := (inner + wide - 1) / wide
	grain := 1 + 2*piece/max(1, wide*min(r.length, r.n))
	err := r.call.Parallel(outer*across*r.parts, grain, func(lo, hi int) {
		scratch := <-r.scratch
		defer func() { r.scratch <- scratch }()
		w := r.worker(step, r.columns, scratch)
		for u := lo; u < hi; u++ {
			part, first, o := u/across%r.parts, u%across*wide, u/across/r.parts
			begin := part * r.length
			w.reduce((o*r.n+begin)*inner+first, min(r.length, r.n-begin), inner, min(wide, inner-first), part*r.rows+o*inner+first)
		}
	})
	if err != nil {
		return err
	}
	w := r.worker(step, r.columns, nil)
	for j := range w.step.Combine {
		if size := w.class(j).Size(); r.parts > 1 {
			k := w.step.Outputs[j] - len(r.memory)
			copy(r.results[k], r.partial[k][:r.rows*size])
			r.machine.Fold(w.step.Combine[j], w.class(j), r.rows, r.parts-1, r.rows, r.results[k], r.partial[k][r.rows*size:])
		}
	}
	w.cut(0, r.rows)
	return nil
}

// worker computes one step on one goroutine.
type worker struct {
	*reducing
	number  int
	step    *Step
	layout  Layout
	memory  [][]byte
	params  []uint64
	scratch []byte
}

func (r *reducing) worker(step int, across bool, scratch []byte) worker {
	w := worker{reducing: r, number: step, step: &r.steps[step], scratch: scratch}
	if scratch != nil || w.step.Combine == nil {
		w.layout, w.memory = r.space(w.step, across, scratch)
	}
	w.params = r.reducing().params(w.step)
	return w
}

func (r *reducing) reducing() *reducing { return r }

func (w *worker) compute(lo, hi int) {
	if lo < hi {
		w.machine.Compute(w.number, &w.layout, w.memory, w.params, lo, hi)
	}
}

func (w *worker) class(j int) Class { return w.step.Reducing[j].register().class() }

// fetch computes up to piece elements from lo on into the scratch memory.
func (w *worker) fetch(lo, hi int) {
	for k := range w.step.Outputs {
		w.layout.Operands[len(w.step.Inputs)+k].First = -lo
	}
	w.compute(lo, hi)
}

// sums returns the memory for the lanes of reduction j.
func (w *worker) sums(j int) []byte { return w.scratch[j*w.workerOf+8*piece:][:8*lanes] }

// reduce reduces length rows of the given number of columns, which begin at element first and are inner elements apart, to
// one row of partial results that begins at place.
func (w *worker) reduce(first, length, inner, columns, place int) {
	together := 1 // rows whose lanes are apart from each other, a power of two
	for columns == inner && 2*together*columns <= Tile && 2*together <= max(length, 1) {
		together *= 2
	}
	wide := together * columns
	for j, op := range w.step.Combine {
		fillNumbers(w.class(j), w.sums(j), wide, identityOf(op, w.step.Reducing[j]))
	}
	all, at, some := length*columns, 0, piece/wide*wide
	if columns < inner {
		some = columns // rows are not adjacent
	}
	for at < all {
		n, lo := min(some, all-at), first+at
		if columns < inner {
			lo = first + at/columns*inner
		}
		w.fetch(lo, lo+n)
		for j, op := range w.step.Combine {
			from, c := w.memory[len(w.step.Inputs)+j], w.class(j)
			w.machine.Fold(op, c, wide, n/wide, wide, w.sums(j), from)
			if rest := n % wide; rest > 0 {
				w.machine.Fold(op, c, rest, 1, rest, w.sums(j), from[(n-rest)*c.Size():])
			}
		}
		at += n
	}
	for j, op := range w.step.Combine {
		c, sums := w.class(j), w.sums(j)
		w.machine.Fold(op, c, wide, 0, columns, sums, nil)
		copy(w.partial[w.step.Outputs[j]-len(w.reducing.memory)][place*c.Size():], sums[:columns*c.Size()])
	}
}

// segments reduces rows lo to hi, several of which are one piece.
func (w *worker) segments(lo, hi int) {
	some := hi - lo
	if w.n > 0 {
		some = piece / w.n
	}
	for ; lo < hi; lo += some {
		end := min(lo+some, hi)
		w.fetch(lo*w.n, end*w.n)
		for j, op := range w.step.Combine {
			c := w.class(j)
			to := w.results[w.step.Outputs[j]-len(w.reducing.memory)][lo*c.Size() : end*c.Size()]
			fillNumbers(c, to, end-lo, identityOf(op, w.step.Reducing[j]))
			w.machine.Segments(op, c, end-lo, w.n, to, w.memory[len(w.step.Inputs)+j])
		}
	}
}

// cut wraps the results of rows lo to hi that are of short integers.
func (w *worker) cut(lo, hi int) {
	for j, t := range w.step.Reducing {
		if types[t].bits < 32 && t.integer() {
			for i, x := range slice[uint32](w.results[w.step.Outputs[j]-len(w.reducing.memory)])[lo:hi] {
				slice[uint32](w.results[w.step.Outputs[j]-len(w.reducing.memory)])[lo+i] = uint32(wrap(t, uint64(x)))
			}
		}
	}
}

// fillNumbers sets n numbers of a class.
func fillNumbers(c Class, b []byte, n int, bits uint64) {
	if c.Size() == 8 {
		fill(slice[uint64](b)[:n], bits)
	} else {
		fill(slice[uint32](b)[:n], uint32(bits))
	}
}

// goMachine runs steps in Go.
type goMachine struct{ steps []Step }

func (g *goMachine) Compute(step int, l *Layout, memory [][]byte, params []uint64, lo, hi int) {
	g.steps[step].Block.Run(l, memory, params, lo, hi)
}

func (g *goMachine) Memory(bytes int) ([]byte, func(), error) {
	words := make([]uint64, (bytes+7)/8)
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(words))), bytes), func() {}, nil
}

func (g *goMachine) Fold(op Op, c Class, lanes, count, keep int, into, from []byte) {
	for j := range count {
		combineBytes(op, c, lanes, into, from[j*lanes*c.Size():])
	}
	for lanes > keep {
		lanes /= 2
		combineBytes(op, c, lanes, into, into[lanes*c.Size():])
	}
}

func (g *goMachine) Segments(op Op, c Class, rows, n int, into, from []byte) {
	size, lanes := c.Size(), 1
	for lanes < Tile && 4*lanes <= n {
		lanes *= 2
	}
	part := make([]byte, lanes*size)
	for i := range rows {
		row := from[i*n*size : (i+1)*n*size]
		if n == 0 {
			break
		}
		whole := n / lanes * lanes
		copy(part, row)
		g.Fold(op, c, lanes, n/lanes-1, lanes, part, row[lanes*size:])
		combineBytes(op, c, n-whole, part, row[whole*size:])
		g.Fold(op, c, lanes, 0, 1, part, nil)
		combineBytes(op, c, 1, into[i*size:], part)
	}
}

// combineBytes combines n numbers of a class.
func combineBytes(op Op, c Class, n int, into, from []byte) {
	switch c {
	case ClassF32:
		combineFloats(op, slice[float32](into)[:n], slice[float32](from))
	case ClassF64:
		combineFloats(op, slice[float64](into)[:n], slice[float64](from))
	case ClassI32:
		combineInts(op, slice[int32](into)[:n], slice[int32](from))
	case ClassI64:
		combineInts(op, slice[int64](into)[:n], slice[int64](from))
	case ClassU32:
		combineInts(op, slice[uint32](into)[:n], slice[uint32](from))
	case ClassU64:
		combineInts(op, slice[uint64](into)[:n], slice[uint64](from))
	}
}

func combineFloats[F floatNumber](op Op, into, from []F) {
	for i, x := range into {
		y := from[i]
		switch op {
		case Sum:
			into[i] = x + y
		case Product:
			into[i] = x * y
		case Smallest:
			if !(x < y || x != x) {
				into[i] = y
			}
		case Largest:
			if !(x > y || x != x) {
				into[i] = y
			}
		}
	}
}

func combineInts[I intNumber](op Op, into, from []I) {
	for i, x := range into {
		y := from[i]
		switch op {
		case Sum:
			into[i] = x + y
		case Product:
			into[i] = x * y
		case Smallest:
			into[i] = min(x, y)
		case Largest:
			into[i] = max(x, y)
		case All:
			into[i] = x & y
		case Any:
			into[i] = x | y
		}
	}
}
