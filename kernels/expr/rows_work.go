package expr

// What the goroutines of a launch of a map with reductions do: they compute steps, combine the parts of rows, and find
// the places of extremes.

import "slices"

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
		w.memory = append(w.memory, r.take(r.piece))
		if r.columns {
			w.tops = append(w.tops, r.takePartials(i, r.length/r.few*r.band()))
		}
	}
	if r.columns {
		w.sums = r.take(2 * r.narrow)
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
		return c.Parallel((r.rows+Tile-1)/Tile, r.share/Tile, r.compute)
	case s.Combine == nil:
		return c.Parallel((r.rows*r.n+Tile-1)/Tile, r.share/Tile, r.compute)
	}
	units, each := r.rows*r.parts, r.length
	if r.columns {
		units, each = r.rows/r.inner()*r.bands()*r.parts, r.length*r.band()
	}
	if err := c.Parallel(units, max(1, r.share/each), r.reduce); err != nil {
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
	for step == columns && 2*together*columns <= w.narrow && 2*together <= n {
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
