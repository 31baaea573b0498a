package expr

// The evaluation of maps with reductions on a machine for block programs. In which order numbers are combined
// depends on the layout alone, so that results do not depend on the number of threads.

import (
	"sync"

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
// most Kept elements, or as many as were chosen for the device. With two or more rows for each thread, it may have
// LongestKept. Others are computed at each visit.
const (
	Kept        = 1 << 15
	LongestKept = 1 << 20
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
	piece   int  // elements that are computed before they are combined
	share   int  // elements that are worth a thread
	wide    int  // columns that are reduced side by side at most
	narrow  int  // columns up to which several rows are combined as one
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
	r.piece, r.share = chosen(c, pieceElements), chosen(c, shareElements)
	r.wide, r.narrow = chosen(c, wideColumns), chosen(c, narrowColumns)
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
		return c.Parallel(r.rows, max(1, r.share/max(r.n, 1)), r.block)
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
	r.blocks = !r.columns && (r.n <= r.piece || r.n <= LongestKept && r.rows >= 2*r.call.Threads())
	r.length, r.few = r.piece, 1
	if r.columns {
		if r.inner() <= r.wide { // their rows are adjacent
			r.few = r.piece / r.inner()
		}
		// Parts are about equally long, since each is computed by one thread. The pieces of a part are about equally
		// long, too.
		rowsLeast := chosen(r.call, leastRows)
		least := rowsLeast
		for _, elem := range r.m.inputs { // a part's results are of 32 bits or more
			least = max(least, rowsLeast*F32.Size()/elem.Size())
		}
		if r.m.locating > 0 {
			least = max(least, r.n/chosen(r.call, locatingParts))
		}
		most := chosen(r.call, mostPieces) * r.few
		r.length = r.few * ceil(min(max(r.n/chosen(r.call, partsMost), least), most), r.few)
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
		return min(r.rows, max(1, r.piece/max(r.n, 1)))
	}
	return r.rows
}

// band returns how many columns are reduced side by side.
func (r *reducing) band() int { return min(r.inner(), r.wide) }

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
	own := reductions * room(r.piece)
	if r.blocks {
		shared, own = 0, own+shared
	} else if r.columns {
		own += lists*room(r.length/r.few*r.band()) + room(2*r.narrow)
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
