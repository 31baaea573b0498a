package expr

// The evaluation of maps with reductions on a machine for block programs. In which order numbers are combined
// depends on the layout alone, so that results do not depend on the number of threads.

import (
	"slices"
	"sync"
	"unsafe"

	"github.com/concord-compute/concord/kernels"
)

// Machine runs the steps of a map with reductions, for one launch at a time. Compute, Rows and Columns may be
// called from several goroutines at once.
type Machine interface {
	// Compute computes elements lo to hi of a step. memory has the memory of each operand.
	Compute(step int, l *Layout, memory [][]byte, params []uint64, lo, hi int)
	// Rows sets into[i] to the combination of elements from[i·n] to from[i·n+n-1] of type t, for each i < rows, or to the
	// I64 that says which of them it is. n is not 0. Results have the type of registers for t.
	Rows(op Op, t Type, rows, n int, into, from []byte)
	// Columns sets into[i] to the combination of n numbers, from[i], from[i+step] and so on, for each i < columns.
	Columns(op Op, t Type, n, step, columns int, into, from []byte)
	// Memory returns memory with undefined contents, which is the launch's until it calls Free.
	Memory(bytes int) ([]byte, error)
	Free()
}

// The CPU computes the elements of a row once for all reductions and outputs that need them, if the row has at
// most Kept elements. With two or more rows for each thread, it may have LongestKept. Others are computed at
// each visit.
const (
	Kept        = piece
	LongestKept = 1 << 20
)

const (
	// piece is the number of elements that are computed before they are combined; so many stay in a cache.
	piece = 32768
	// share is how many elements are worth a thread.
	share = piece
	// pieces is how many pieces of columns are combined to one partial result at most.
	pieces = 64
	// wide is how many columns are reduced side by side at most.
	wide = 8192
	// narrow is the number of columns from which rows of them are combined one by one.
	narrow = 512
)

// reducing is one launch. Later launches reuse its memory.
type reducing struct {
	Launch
	m       *Map
	call    *kernels.Call
	machine Machine
	steps   []Step
	number  int // that the machine has for the first of the steps
	rows, n int
	columns bool // neighbouring rows lie side by side in memory, and not the elements of a row
	blocks  bool // all steps are computed for some rows before the next rows
	length  int  // of the parts of a row that are reduced by themselves
	parts   int
	few     int        // of columns: how many elements of each are computed at a time
	memory  [][]byte   // of the operands of steps, as far as goroutines share it
	partial []partials // of each reduction: the results of parts
	rest    []byte     // memory of the launch that is not in use
	at      int        // the step that is being computed
	mu      sync.Mutex
	ready   []*worker // of this launch
	spare   []*worker // of earlier ones

	block, compute, reduce func(lo, hi int) // methods as func values, so that a launch allocates nothing
}

// partials are results of parts of rows. Those of a reduction to places are the places in the parts and the numbers
// that are there, if they are needed.
type partials struct{ numbers, places []byte }

// after returns the results after the first n, whose numbers have size bytes each.
func (p partials) after(n, size int) partials {
	if p.numbers != nil {
		p.numbers = p.numbers[n*size:]
	}
	if p.places != nil {
		p.places = p.places[n*I64.Size():]
	}
	return p
}

var launches = sync.Pool{New: func() any {
	r := new(reducing)
	r.block, r.compute, r.reduce = r.someRows, r.someElements, r.someParts
	return r
}}

// Reduce computes a launch of a map with reductions. It is for devices that run block programs.
func (m *Map) Reduce(c *kernels.Call, machine Machine) error {
	d, err := m.steps()
	if err != nil {
		return err
	}
	r := launches.Get().(*reducing)
	defer r.end()
	r.m, r.call, r.machine = m, c, machine
	m.Read(c, &r.Launch)
	r.rows, r.n = r.Layout.rows()
	if r.rows == 0 || r.n == 0 && len(m.outputsBy(true)) == 0 {
		return nil
	}
	r.divide()
	r.steps, r.number = d.list, 0
	if d.kept > 0 {
		r.steps = d.list[:d.kept]
		if r.blocks && r.parts == 1 {
			r.steps, r.number = d.list[d.kept:], d.kept
		}
	}
	if err := r.allocate(); err != nil {
		return err
	}
	defer machine.Free()
	if r.blocks {
		return c.Parallel(r.rows, max(1, share/max(r.n, 1)), r.block)
	}
	for r.at = range r.steps {
		if err := r.level(); err != nil {
			return err
		}
	}
	return nil
}

// end makes r ready for the launch of another map.
func (r *reducing) end() {
	r.spare, r.ready = append(r.spare, r.ready...), r.ready[:0]
	r.m, r.call, r.machine, r.steps = nil, nil, nil, nil
	launches.Put(r)
}

// columns reports whether neighbouring rows lie side by side in memory in most inputs. Inputs with one element
// for a row, or with the same ones for all neighbouring rows, are read as fast in either order.
func (m *Map) columns(l *Layout) bool {
	last := len(l.Dims) - 1
	votes := 0
	for _, n := range m.nodes {
		switch n.op {
		case opIndex, opRandom: // positions of elements are those of rows
			return false
		case opInput:
			s := l.Operands[n.slot].Steps
			switch {
			case last == 0 || s[last] == 0 || s[last-1] == 0:
			case max(s[last-1], -s[last-1]) < max(s[last], -s[last]):
				votes++
			default:
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

// divide chooses what is computed at a time, and the parts of rows.
func (r *reducing) divide() {
	r.columns = r.m.columns(&r.Layout)
	r.blocks = !r.columns && (r.n <= piece || r.n <= LongestKept && r.rows >= 2*r.call.Threads())
	r.length, r.few = piece, 1
	if r.columns {
		if r.inner() <= wide { // their rows are adjacent
			r.few = piece / r.inner()
		}
		// Parts are about equally long, since each is computed by one thread. The pieces of a part are about equally
		// long, too.
		least := 32
		for _, elem := range r.m.inputs { // a part's results, of 32 bits or more, are few beside its elements
			least = max(least, 128/elem.Size())
		}
		if r.m.locating > 0 { // what is found in a part costs a copy
			least = max(least, r.n/16)
		}
		r.length = r.few * ceil(min(max(r.n/256, least), pieces*r.few), r.few)
		rows := ceil(r.n, max(1, ceil(r.n, r.length)))
		times := max(1, ceil(rows, r.few))
		r.few = max(1, ceil(rows, times))
		r.length = times * r.few
	}
	r.parts = max(1, ceil(r.n, r.length))
}

func ceil(a, b int) int { return (a + b - 1) / b }

// height returns how many rows are computed together.
func (r *reducing) height() int {
	if r.blocks {
		return min(r.rows, max(1, piece/max(r.n, 1)))
	}
	return r.rows
}

// band returns how many columns are reduced side by side.
func (r *reducing) band() int { return min(r.inner(), wide) }

// room returns the bytes of n numbers, after which others are aligned.
func room(n int) int { return (8*n + 63) &^ 63 }

// take returns memory of the launch for n numbers.
func (r *reducing) take(n int) []byte {
	b := r.rest[:room(n)]
	r.rest = r.rest[len(b):]
	return b
}

// allocate takes the memory of the launch.
func (r *reducing) allocate() error {
	reductions := len(r.m.reductions)
	lists := reductions + r.m.locating // of partial results
	shared := (reductions+len(r.m.values))*room(r.height()) + lists*room(r.height()*r.parts)
	own := reductions * room(piece)
	if r.blocks {
		shared, own = 0, own+shared
	} else if r.columns {
		own += lists*room(r.length/r.few*r.band()) + room(2*narrow)
	}
	memory, err := r.machine.Memory(shared + own*r.call.Threads())
	if err != nil {
		return err
	}
	r.rest, r.memory, r.partial = memory, r.memory[:0], r.partial[:0]
	for k := range r.m.resultAt(0) {
		r.memory = append(r.memory, r.call.Bytes(k))
	}
	if !r.blocks {
		r.memory, r.partial = r.results(r.memory, r.partial)
	}
	return nil
}

// results appends the memory of the results of reductions and of other values of rows to memory, and that of
// the results of parts.
func (r *reducing) results(memory [][]byte, partial []partials) ([][]byte, []partials) {
	for range len(r.m.reductions) + len(r.m.values) {
		memory = append(memory, r.take(r.height()))
	}
	for i := range r.m.reductions {
		part := r.result(memory, i)
		if r.parts > 1 {
			part = r.takePartials(i, r.height()*r.parts)
		}
		partial = append(partial, part)
	}
	return memory, partial
}

// result returns the memory of the results of a reduction.
func (r *reducing) result(memory [][]byte, reduction int) partials {
	b := memory[r.m.resultAt(reduction)]
	if r.locates(reduction) {
		return partials{places: b}
	}
	return partials{numbers: b}
}

// takePartials returns memory for n partial results of a reduction.
func (r *reducing) takePartials(reduction, n int) (p partials) {
	if p.numbers = r.take(n); r.locates(reduction) {
		p.places = r.take(n)
	}
	return p
}

// locates reports whether a reduction is one to places.
func (r *reducing) locates(reduction int) bool {
	return r.m.nodes[r.m.reductions[reduction]].op.locates()
}

// worker is what one goroutine needs for a launch.
type worker struct {
	*reducing
	memory  [][]byte // of the operands of steps
	partial []partials
	tops    []partials // of each reduction of columns: the results of pieces
	sums    []byte
	spaces  []space // of each step
	row     int     // the first one that results are of
}

// space has the positions and the memory of the operands of a step.
type space struct {
	given, layout Layout // as it follows from the launch, and with joined dimensions
	memory        [][]byte
	params        []uint64
	direct        bool // what is reduced is read from inputs
}

// worker returns a worker that no other goroutine uses.
func (r *reducing) worker() *worker {
	r.mu.Lock()
	defer r.mu.Unlock()
	if n := len(r.ready); n > 0 {
		w := r.ready[n-1]
		r.ready = r.ready[:n-1]
		return w
	}
	if len(r.spare) == 0 {
		r.spare = append(r.spare, &worker{reducing: r})
	}
	w := r.spare[len(r.spare)-1]
	r.spare = r.spare[:len(r.spare)-1]
	w.row, w.memory, w.partial, w.tops = 0, append(w.memory[:0], r.memory...), append(w.partial[:0], r.partial...),
		w.tops[:0]
	if r.blocks {
		w.memory, w.partial = r.results(w.memory, w.partial)
	}
	for i := range r.m.reductions {
		w.memory = append(w.memory, r.take(piece))
		if r.columns {
			w.tops = append(w.tops, r.takePartials(i, r.length/r.few*r.band()))
		}
	}
	if r.columns {
		w.sums = r.take(2 * narrow)
	}
	w.spaces = slices.Grow(w.spaces[:0], len(r.steps))[:len(r.steps)]
	for i := range w.spaces {
		w.place(&w.spaces[i], &w.steps[i])
	}
	return w
}

func (r *reducing) leave(w *worker) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ready = append(r.ready, w)
}

// place makes the space of a step. Its elements are in the order of memory where columns are reduced.
func (w *worker) place(s *space, step *Step) {
	dims, last := w.Layout.Dims, len(w.Layout.Dims)-1
	rank, across := last+1, w.columns && !step.Rows
	if step.Rows {
		rank = last
	}
	l := &s.given
	l.shape(rank, len(step.Inputs)+len(step.Outputs))
	copy(l.Dims, dims)
	if across {
		l.Dims[last], l.Dims[last-1] = dims[last-1], dims[last]
	}
	s.memory = s.memory[:0]
	for j := range l.Operands {
		k, o := step.operand(j), &l.Operands[j]
		s.memory = append(s.memory, w.memory[k])
		switch {
		case k >= w.m.reducedAt(0):
			o.fill(l.Dims)
			continue
		case k >= w.m.resultAt(0):
			if !step.Rows {
				o.Steps[last] = 0
			}
			o.fill(dims[:last])
		default:
			o.First = w.Layout.Operands[k].First
			copy(o.Steps, w.Layout.Operands[k].Steps)
		}
		if across {
			o.Steps[last], o.Steps[last-1] = o.Steps[last-1], o.Steps[last]
		}
	}
	l.coalesce(false, &s.layout)
	s.params = s.params[:0]
	for _, p := range step.Params {
		if p == len(w.m.params) {
			s.params = append(s.params, uint64(w.n))
		} else {
			s.params = append(s.params, w.Params[p])
		}
	}
	s.direct = len(step.Outputs) == len(step.Combine) && !slices.ContainsFunc(step.Direct, func(k int) bool {
		if k < 0 {
			return true
		}
		steps := w.Layout.Operands[k].Steps
		if w.columns {
			return steps[last-1] != 1 || steps[last] < 0
		}
		return steps[last] != 1 || w.n < Tile && last > 0 && steps[last-1] != w.n // a call for each short row would be slow
	})
}

// operand returns the number of an operand of a step among those of all steps.
func (s *Step) operand(j int) int {
	if j < len(s.Inputs) {
		return s.Inputs[j]
	}
	return s.Outputs[j-len(s.Inputs)]
}

// run computes elements lo to hi of a step, or rows.
func (w *worker) run(i, lo, hi int) {
	s, step := &w.spaces[i], &w.steps[i]
	for j := range s.layout.Operands {
		if k := step.operand(j); k >= w.m.reducedAt(0) {
			s.layout.Operands[j].First = -lo
		} else if k >= w.m.resultAt(0) {
			s.layout.Operands[j].First = -w.row
		}
	}
	if lo < hi {
		w.machine.Compute(w.number+i, &s.layout, s.memory, s.params, lo, hi)
	}
}

// someRows computes all steps for rows lo to hi, a few rows at a time.
func (r *reducing) someRows(lo, hi int) {
	w := r.worker()
	defer r.leave(w)
	for end := lo; lo < hi; lo = end {
		end = min(lo+r.height(), hi)
		w.row = lo
		for i := range w.steps {
			switch s := &w.steps[i]; {
			case s.Rows:
				w.run(i, lo, end)
			case s.Combine == nil:
				w.run(i, lo*r.n, end*r.n)
			default:
				for p := range w.parts {
					w.reduceRows(i, lo, end, p, p)
				}
				w.finish(i, end-lo)
			}
		}
	}
}

// level computes a step for all rows.
func (r *reducing) level() error {
	s, c := &r.steps[r.at], r.call
	switch {
	case s.Rows:
		return c.Parallel((r.rows+Tile-1)/Tile, share/Tile, r.compute)
	case s.Combine == nil:
		return c.Parallel((r.rows*r.n+Tile-1)/Tile, share/Tile, r.compute)
	}
	units, each := r.rows*r.parts, r.length
	if r.columns {
		units, each = r.rows/r.inner()*r.bands()*r.parts, r.length*r.band()
	}
	if err := c.Parallel(units, max(1, share/each), r.reduce); err != nil {
		return err
	}
	w := r.worker()
	defer r.leave(w)
	w.finish(r.at, r.rows)
	return nil
}

// bands returns in how many bands neighbouring columns are reduced.
func (r *reducing) bands() int { return (r.inner() + r.band() - 1) / r.band() }

// someElements computes tiles of elements or of rows.
func (r *reducing) someElements(lo, hi int) {
	w := r.worker()
	defer r.leave(w)
	n := r.rows
	if !r.steps[r.at].Rows {
		n *= r.n
	}
	w.run(r.at, lo*Tile, min(hi*Tile, n))
}

// someParts reduces parts of rows, or of bands of columns.
func (r *reducing) someParts(lo, hi int) {
	w := r.worker()
	defer r.leave(w)
	for u := lo; u < hi; u++ {
		if r.columns {
			w.reduceColumns(r.at, u/r.bands()/r.parts, u%r.bands()*r.band(), u/r.bands()%r.parts)
		} else {
			w.reduceRows(r.at, u/r.parts, u/r.parts+1, u%r.parts, u)
		}
	}
}

// reduceRows reduces a part of each of rows lo to hi. The results of the part are those from number to on.
func (w *worker) reduceRows(i, lo, hi, part, to int) {
	s, begin := &w.steps[i], part*w.length
	n := min(w.length, w.n-begin)
	if n == 0 {
		return
	}
	if !w.spaces[i].direct {
		w.run(i, lo*w.n+begin, (hi-1)*w.n+begin+n)
	}
	for j, op := range s.Combine {
		t, size := w.reduced(i, j)
		into := w.partial[s.reduction(w.m, j)].after(to, size)
		if !w.spaces[i].direct {
			w.rowsOf(op, t, hi-lo, n, into, partials{numbers: w.memory[s.Outputs[j]]}, 0)
			continue
		}
		for row, together := lo, 0; row < hi; row += together {
			at, adjacent := w.start(s.Direct[j], row)
			together = min(adjacent, hi-row)
			from := partials{numbers: w.memory[s.Direct[j]]}.after(at+begin, t.Size())
			w.rowsOf(op, t, together, n, into.after(row-lo, size), from, 0)
		}
	}
}

// reduced returns the type of what output j of a step has for its reduction, and the size of numbers among the partial
// results: those of a reduction to places are as they were read.
func (w *worker) reduced(i, j int) (t Type, size int) {
	s := &w.steps[i]
	if t = s.Types[j]; w.spaces[i].direct {
		t = w.m.inputs[s.Direct[j]]
	}
	if s.Combine[j].locates() {
		return t, t.Size()
	}
	return t, s.Types[j].Size()
}

// rowsOf combines rows of n elements, or of the results of parts that are length elements long.
func (w *worker) rowsOf(op Op, t Type, rows, n int, into, from partials, length int) {
	if !op.locates() {
		w.machine.Rows(op, t, rows, n, into.numbers, from.numbers)
		return
	}
	w.machine.Rows(op, t, rows, n, into.places, from.numbers)
	into.locate(t.Size(), rows, from, n, 1, length)
}

// locate completes places in lists of numbers or partial results, whose number p for result i is number i·row + p·step,
// with the numbers that are there. Places in parts become those in the rows.
func (p partials) locate(size, results int, from partials, row, step, length int) {
	places := slice[int64](p.places)[:results]
	if p.numbers != nil {
		switch size {
		case 1:
			pick(slice[uint8](p.numbers), slice[uint8](from.numbers), places, row, step)
		case 2:
			pick(slice[uint16](p.numbers), slice[uint16](from.numbers), places, row, step)
		case 4:
			pick(slice[uint32](p.numbers), slice[uint32](from.numbers), places, row, step)
		default:
			pick(slice[uint64](p.numbers), slice[uint64](from.numbers), places, row, step)
		}
	}
	if from.places != nil {
		for i, at := range places {
			places[i] = at*int64(length) + slice[int64](from.places)[i*row+int(at)*step]
		}
	}
}

func pick[T any](to, from []T, places []int64, row, step int) {
	for i, at := range places {
		to[i] = from[i*row+int(at)*step]
	}
}

// reduction returns the number of the reduction that output j of a step goes to.
func (s *Step) reduction(m *Map, j int) int { return s.Outputs[j] - m.reducedAt(0) }

// start returns where a row of operand k begins, and how many rows from there on are adjacent.
func (r *reducing) start(k, row int) (at, adjacent int) {
	o, last := &r.Layout.Operands[k], len(r.Layout.Dims)-1
	at, adjacent = o.First, 1
	for j := last - 1; j >= 0; j-- {
		d := r.Layout.Dims[j]
		if j == last-1 && o.Steps[j] == r.n {
			adjacent = d - row%d
		}
		at += row % d * o.Steps[j]
		row /= d
	}
	return at, adjacent
}

// reduceColumns reduces a part of the columns of a band that begins at column first.
func (w *worker) reduceColumns(i, outer, first, part int) {
	s, begin, columns := &w.steps[i], part*w.length, min(w.band(), w.inner()-first)
	n, row := min(w.length, w.n-begin), outer*w.inner()+first
	for at := 0; at < n && !w.spaces[i].direct; at += w.few {
		lo, some := (outer*w.n+begin+at)*w.inner()+first, min(w.few, n-at)
		w.run(i, lo, lo+some*columns)
		for j, op := range s.Combine {
			into := w.tops[s.reduction(w.m, j)].after(at/w.few*columns, s.Types[j].Size())
			w.columnsOf(op, s.Types[j], some, columns, columns, into, partials{numbers: w.memory[s.Outputs[j]]}, 0)
		}
	}
	for j, op := range s.Combine {
		t, size := w.reduced(i, j)
		into := w.partial[s.reduction(w.m, j)].after(part*w.rows+row, size)
		if k := s.Direct[j]; n > 0 && w.spaces[i].direct {
			at, _ := w.start(k, row)
			step := w.Layout.Operands[k].Steps[len(w.Layout.Dims)-1]
			w.columnsOf(op, t, n, step, columns, into, partials{numbers: w.memory[k]}.after(at+begin*step, t.Size()), 0)
		} else if n > 0 {
			w.columnsOf(op, t, ceil(n, w.few), columns, columns, into, w.tops[s.reduction(w.m, j)], w.few)
		}
	}
}

// columnsOf is rowsOf for columns. Where there are few of them, it combines several rows at a time as if they were one
// long row.
func (w *worker) columnsOf(op Op, t Type, n, step, columns int, into, from partials, length int) {
	if op.locates() {
		w.machine.Columns(op, t, n, step, columns, into.places, from.numbers)
		into.locate(t.Size(), columns, from, 1, step, length)
		return
	}
	together := 1
	for step == columns && 2*together*columns <= narrow && 2*together <= n {
		together *= 2
	}
	if together > 1 {
		across, rest, wide := together*columns, n%together, widened(t.Computed())
		w.machine.Columns(op, t, n/together, across, across, w.sums, from.numbers)
		if rest > 0 {
			last := from.after((n-rest)*columns, t.Size()).numbers
			w.machine.Columns(op, t, rest, columns, columns, w.sums[across*wide.Size():], last)
		}
		n, t, from.numbers = together+min(rest, 1), wide, w.sums
	}
	w.machine.Columns(op, t, n, step, columns, into.numbers, from.numbers)
}

// finish combines the results of parts of rows.
func (w *worker) finish(i, rows int) {
	s := &w.steps[i]
	for j, op := range s.Combine {
		k, t := s.reduction(w.m, j), s.Types[j]
		if op.locates() {
			t, _ = w.reduced(i, j)
		}
		result, typ := w.memory[w.m.resultAt(k)], w.m.nodes[w.m.reductions[k]].typ
		switch {
		case w.n == 0:
			fillNumbers(classOf(typ), result, rows, identityOf(op, typ))
		case w.parts > 1 && w.columns:
			w.columnsOf(op, t, w.parts, rows, rows, w.result(w.memory, k), w.partial[k], w.length)
		case w.parts > 1:
			w.rowsOf(op, t, rows, w.parts, w.result(w.memory, k), w.partial[k], w.length)
		}
		if typ.Size() < 4 && typ.IsInteger() {
			for i, x := range slice[uint32](result)[:rows] {
				slice[uint32](result)[i] = uint32(wrap(typ, uint64(x)))
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

func (g *goMachine) Memory(bytes int) ([]byte, error) {
	words := make([]uint64, (bytes+7)/8)
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(words))), bytes), nil
}

func (g *goMachine) Free() {}

func (g *goMachine) Rows(op Op, t Type, rows, n int, into, from []byte) {
	t, from = widenRows(t, rows*n, from)
	c, size, lanes := classOf(t), t.Size(), 1
	if op.locates() {
		firstBytes(op, c, rows, n, n, 1, into, from)
		return
	}
	for lanes < Tile && 4*lanes <= n {
		lanes *= 2
	}
	part := make([]byte, lanes*size)
	for i := range rows {
		row := from[i*n*size : (i+1)*n*size]
		copy(part, row)
		at := lanes
		for ; at+lanes <= n; at += lanes {
			combineBytes(op, c, lanes, part, row[at*size:])
		}
		combineBytes(op, c, n-at, part, row[at*size:])
		for w := lanes / 2; w > 0; w /= 2 {
			combineBytes(op, c, w, part, part[w*size:])
		}
		copy(into[i*size:], part[:size])
	}
	plusZero(op, c, rows, into)
}

// plusZero adds 0 to n sums of floating numbers, as other devices begin with it: the sum of numbers that are
// all -0 is 0.
func plusZero(op Op, c Class, n int, sums []byte) {
	switch {
	case op == Sum && c == ClassF32:
		for i := range slice[float32](sums)[:n] {
			slice[float32](sums)[i] += 0
		}
	case op == Sum && c == ClassF64:
		for i := range slice[float64](sums)[:n] {
			slice[float64](sums)[i] += 0
		}
	}
}

// Columns combines blocks of 128 rows, which keeps the errors of sums small.
func (g *goMachine) Columns(op Op, t Type, n, step, columns int, into, from []byte) {
	t, from = widenRows(t, (n-1)*step+columns, from)
	c, size := classOf(t), t.Size()
	if op.locates() {
		firstBytes(op, c, columns, n, 1, step, into, from)
		return
	}
	part := make([]byte, columns*size)
	for j := range n {
		row := from[j*step*size:]
		if j%128 == 0 {
			copy(part, row)
		} else {
			combineBytes(op, c, columns, part, row)
		}
		if j == min(127, n-1) {
			copy(into, part)
		} else if j%128 == 127 || j == n-1 {
			combineBytes(op, c, columns, into, part)
		}
	}
	plusZero(op, c, columns, into)
}

// widenRows returns n elements as registers have them, and their type there.
func widenRows(t Type, n int, from []byte) (Type, []byte) {
	wide := widened(t.Computed())
	if wide == t {
		return t, from
	}
	to := make([]byte, n*wide.Size())
	widen(t, n, to, from)
	return wide, to
}

// firstBytes sets into[i] to the place of the first extreme of n numbers of a class, from[i·row], from[i·row+step] and
// so on.
func firstBytes(op Op, c Class, results, n, row, step int, into, from []byte) {
	to := slice[int64](into)[:results]
	switch c {
	case ClassF32:
		firsts(op, n, row, step, to, slice[float32](from))
	case ClassF64:
		firsts(op, n, row, step, to, slice[float64](from))
	case ClassI32:
		firsts(op, n, row, step, to, slice[int32](from))
	case ClassI64:
		firsts(op, n, row, step, to, slice[int64](from))
	case ClassU32:
		firsts(op, n, row, step, to, slice[uint32](from))
	case ClassU64:
		firsts(op, n, row, step, to, slice[uint64](from))
	}
}

func firsts[N anyNumber](op Op, n, row, step int, to []int64, from []N) {
	for i := range to {
		best, place := from[i*row], 0
		for j := 1; j < n && best == best; j++ {
			x := from[i*row+j*step]
			if x != x || op == ArgLargest && x > best || op == ArgSmallest && x < best {
				best, place = x, j
			}
		}
		to[i] = int64(place)
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
