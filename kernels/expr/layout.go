package expr

// Layout, the positions of the elements of operands in their buffers.

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"math"
	"slices"
)

// maxBytes is how many bytes the arguments of a kernel have at most on every device.
const maxBytes = 1024

// MaxRank is the largest number of dimensions of a Layout.
const MaxRank = 8

// Layout gives the positions of the elements of every operand of a launch. The element at (i0, i1, ...) of operand k is
// element First + Σ i_j·Steps[j] of its buffer. A step may be 0, which repeats elements, or negative; two
// elements of an output must not have the same position. If a dimension has length 0, the launch does nothing.
//
// Reductions are over the last dimension. An output that has only one element for each row, that is, for all positions
// in the last dimension, has step 0 there; it is also written if that dimension has length 0.
type Layout struct {
	Dims     []int
	Operands []Operand // the inputs, then the outputs

	reduced bool // of a map with reductions, whose last dimension is not joined with others
}

// Operand gives the positions of the elements of one operand in its buffer, counted in elements.
type Operand struct {
	First int
	Steps []int
}

// Rows returns the dense operand of that shape, whose elements are adjacent, with the last dimension changing fastest.
func Rows(dims ...int) Operand {
	o := Operand{Steps: make([]int, len(dims))}
	o.fill(dims)
	return o
}

// fill sets the first steps to those of adjacent elements.
func (o *Operand) fill(dims []int) {
	step := 1
	for j := len(dims) - 1; j >= 0; j-- {
		o.Steps[j] = step
		step *= max(dims[j], 1)
	}
}

// Broadcast returns o, which has the shape dims, as an operand of shape to: as in NumPy, missing leading
// dimensions are added, and dimensions of length 1 are repeated.
func (o Operand) Broadcast(dims, to []int) (Operand, error) {
	shift := len(to) - len(dims)
	if len(o.Steps) != len(dims) {
		return Operand{}, fmt.Errorf("%d steps for shape %v: %w", len(o.Steps), dims, ErrInvalid)
	}
	if shift < 0 {
		return Operand{}, fmt.Errorf("shape %v has more dimensions than %v: %w", dims, to, ErrInvalid)
	}
	out := Operand{First: o.First, Steps: make([]int, len(to))}
	for j, d := range dims {
		switch {
		case d == to[shift+j]:
			out.Steps[shift+j] = o.Steps[j]
		case d != 1:
			return Operand{}, fmt.Errorf("shape %v does not stretch to %v: %w", dims, to, ErrInvalid)
		}
	}
	return out, nil
}

// Len returns the number of elements of the launch.
func (l *Layout) Len() int {
	n := 1
	for _, d := range l.Dims {
		n *= d
	}
	return n
}

// Rank returns the number of dimensions; 0 for a layout in which every operand is dense and begins at the start of its
// buffer.
func (l *Layout) Rank() int {
	if l.reduced || len(l.Dims) > 1 || len(l.Dims) == 0 {
		return len(l.Dims)
	}
	for _, o := range l.Operands {
		if o.First != 0 || o.Steps[0] != 1 {
			return 1
		}
	}
	return 0
}

// Layout checks a layout for the map and returns it with as few dimensions as have the same effect: dimensions of
// length 1 are removed, and neighbours that every operand steps through evenly are joined. Dimensions with
// negative strides in most operands are flipped. Those that are not reduced get the order in which most
// operands lie in memory, unless the map has the number of an element ([Index], [Random]). The error wraps
// ErrInvalid.
func (m *Map) Layout(l Layout) (Layout, error) {
	if m.movable(&l) {
		l = m.ordered(m.turned(l))
	}
	var out Layout
	if err := m.simplify(&l, &out); err != nil {
		return Layout{}, err
	}
	return out, nil
}

// movable reports whether the dimensions of l may be turned and ordered: the map has no number of an element, and
// the numbers of operands and steps are right.
func (m *Map) movable(l *Layout) bool {
	return len(l.Operands) == len(m.inputs)+len(m.outputs) &&
		!slices.ContainsFunc(l.Operands, func(o Operand) bool { return len(o.Steps) != len(l.Dims) }) &&
		!slices.ContainsFunc(m.nodes, func(n node) bool { return n.op == opIndex || n.op == opRandom })
}

// turned returns l with those dimensions in the opposite order through which operands of more bytes step
// downwards than upwards: processors fetch by themselves what is read upwards.
func (m *Map) turned(l Layout) Layout {
	for j, d := range l.Dims {
		down := 0
		for k, o := range l.Operands {
			down += m.elem(k).Size() * cmp.Compare(0, o.Steps[j])
		}
		if down <= 0 || d <= 1 || m.locating > 0 && j == len(l.Dims)-1 {
			continue
		}
		operands := slices.Clone(l.Operands)
		for k, o := range operands {
			operands[k] = Operand{o.First + (d-1)*o.Steps[j], slices.Clone(o.Steps)}
			operands[k].Steps[j] = -o.Steps[j]
		}
		l.Operands = operands
	}
	return l
}

// ordered returns l with the dimensions that are not reduced in the order of memory.
func (m *Map) ordered(l Layout) Layout {
	n := len(l.Dims)
	if m.Reduces() {
		n--
	}
	if n < 2 {
		return l
	}
	bytes, steps := make([]int, len(l.Operands)), make([][]int, len(l.Operands))
	for k, o := range l.Operands {
		bytes[k], steps[k] = m.elem(k).Size(), o.Steps
	}
	order := Order(l.Dims[:n], steps, bytes)
	if slices.IsSorted(order) {
		return l
	}
	out := Layout{Dims: slices.Clone(l.Dims)}
	for _, o := range l.Operands {
		o.Steps = slices.Clone(o.Steps)
		for j, d := range order {
			out.Dims[j], o.Steps[j] = l.Dims[d], steps[len(out.Operands)][d]
		}
		out.Operands = append(out.Operands, o)
	}
	return out
}

// Order returns the numbers of dimensions from the outermost to the innermost, as operands lie in memory. Of
// two dimensions the inner one is that with smaller strides in most operands, each weighted by the bytes of its
// elements. Dimensions of which the same can be said remain in their order. Steps of 0 do not count.
func Order(dims []int, steps [][]int, bytes []int) []int {
	order := make([]int, len(dims))
	for j := range dims {
		order[j] = j
		if dims[j] <= 1 {
			continue
		}
		for at := j; at > 0; at-- {
			votes, i := 0, order[at-1]
			for k, s := range steps {
				if dims[i] > 1 && s[i] != 0 && s[j] != 0 {
					votes += bytes[k] * cmp.Compare(max(s[j], -s[j]), max(s[i], -s[i]))
				}
			}
			if votes <= 0 && dims[i] > 1 {
				break
			}
			order[at-1], order[at] = j, i
		}
	}
	return order
}

// simplify is Layout with the result in out, whose memory it reuses.
func (m *Map) simplify(l, out *Layout) error {
	bad := func(format string, args ...any) error {
		return fmt.Errorf("layout: "+format+": %w", append(args, ErrInvalid)...)
	}
	if want := len(m.inputs) + len(m.outputs); len(l.Operands) != want {
		return bad("%d operands for the %d of the map", len(l.Operands), want)
	}
	if m.Reduces() && len(l.Dims) == 0 {
		return bad("no dimension for the reductions")
	}
	n := 1
	for j, d := range l.Dims {
		if d < 0 {
			return bad("dimension %d has length %d", j, d)
		}
		if d > 0 && n > math.MaxInt/d {
			return bad("more elements than an int counts")
		}
		n *= max(d, 1)
	}
	for k, o := range l.Operands {
		if len(o.Steps) != len(l.Dims) {
			return bad("operand %d has %d steps for %d dimensions", k, len(o.Steps), len(l.Dims))
		}
		if m.oncePerRow(k) && o.Steps[len(o.Steps)-1] != 0 {
			return bad("output %d has one element for a row and the step %d in the last dimension", k-len(m.inputs),
				o.Steps[len(o.Steps)-1])
		}
		dims, places := m.own(k, l)
		if slices.Contains(dims, 0) {
			continue
		}
		if lo, _, ok := places.span(dims); !ok || lo < 0 {
			return bad("operand %d reaches in front of its buffer or beyond what an int counts", k)
		}
	}
	l.coalesce(m.Reduces(), out)
	if len(out.Dims) > MaxRank {
		return bad("%d dimensions that cannot be joined; there can be %d", len(out.Dims), MaxRank)
	}
	for k := range m.outputs {
		if dims, o := m.own(len(m.inputs)+k, out); !slices.Contains(dims, 0) && !o.distinct(dims) {
			return bad("two elements of output %d may be one of its buffer", k)
		}
	}
	if bytes := 8 * (len(out.Dims) + len(out.Operands)*(len(out.Dims)+2) + len(m.params)); out.Rank() > 0 &&
		bytes > maxBytes {
		return bad("%d bytes of arguments; OpenCL promises %d", bytes, maxBytes)
	}
	return nil
}

// shape gives l the number of operands and of dimensions, and reuses its memory.
func (l *Layout) shape(rank, operands int) {
	l.Dims = slices.Grow(l.Dims[:0], rank)[:rank]
	l.Operands = slices.Grow(l.Operands[:0], operands)[:operands]
	for k := range l.Operands {
		o := &l.Operands[k]
		o.First, o.Steps = 0, slices.Grow(o.Steps[:0], rank)[:rank]
	}
}

// dense makes l the layout of n adjacent elements for every operand.
func (l *Layout) dense(n, operands int) {
	l.shape(1, operands)
	l.Dims[0] = n
	for k := range l.Operands {
		l.Operands[k].Steps[0] = 1
	}
}

// own returns the dimensions that operand k has elements for, and where it has them: all but the last one for
// an output with one element for a row.
func (m *Map) own(k int, l *Layout) (dims []int, o Operand) {
	dims, o = l.Dims, l.Operands[k]
	if m.oncePerRow(k) {
		dims, o.Steps = dims[:len(dims)-1], o.Steps[:len(dims)-1]
	}
	return dims, o
}

// rows returns the number of rows and the length of one.
func (l *Layout) rows() (rows, n int) {
	rows = 1
	for _, d := range l.Dims[:len(l.Dims)-1] {
		rows *= d
	}
	return rows, l.Dims[len(l.Dims)-1]
}

// span returns the first and the last element of the buffer that the operand uses.
func (o *Operand) span(dims []int) (lo, hi int, ok bool) {
	lo, hi = o.First, o.First
	for j, d := range dims {
		if d <= 1 {
			continue
		}
		if s := o.Steps[j]; s != 0 && (s == math.MinInt || d-1 > math.MaxInt/max(s, -s)) {
			return 0, 0, false
		}
		reach := (d - 1) * o.Steps[j]
		if reach > 0 && hi > math.MaxInt-reach || reach < 0 && lo < math.MinInt-reach {
			return 0, 0, false
		}
		lo, hi = lo+min(reach, 0), hi+max(reach, 0)
	}
	return lo, hi, true
}

// coalesce makes out the layout with joined dimensions, but with the last one as it is if there are reductions.
func (l *Layout) coalesce(reduces bool, out *Layout) {
	last := len(l.Dims)
	if out.reduced = reduces; reduces {
		last--
	}
	if slices.Contains(l.Dims[:last], 0) {
		out.dense(0, len(l.Operands))
	} else {
		out.shape(0, len(l.Operands))
		for k := range out.Operands {
			out.Operands[k].First = l.Operands[k].First
		}
		for j, d := range l.Dims[:last] {
			l.join(j, d, out)
		}
	}
	if reduces {
		l.add(last, l.Dims[last], out)
	} else if len(out.Dims) == 0 { // one element
		l.add(-1, 1, out)
	}
}

// join adds dimension j of l to out, as part of the last one if all operands step evenly through both.
func (l *Layout) join(j, length int, out *Layout) {
	last := len(out.Dims) - 1
	joined := last >= 0
	for k := range l.Operands {
		joined = joined && out.Operands[k].Steps[last] == l.Operands[k].Steps[j]*length
	}
	switch {
	case length == 1:
	case joined:
		out.Dims[last] *= length
		for k := range l.Operands {
			out.Operands[k].Steps[last] = l.Operands[k].Steps[j]
		}
	default:
		l.add(j, length, out)
	}
}

// add adds dimension j of l to out, or, if j is negative, one of adjacent elements.
func (l *Layout) add(j, length int, out *Layout) {
	out.Dims = append(out.Dims, length)
	for k := range out.Operands {
		o, step := &out.Operands[k], 1
		if j >= 0 {
			step = l.Operands[k].Steps[j]
		}
		o.Steps = append(o.Steps, step)
	}
}

// distinct reports whether no two positions are the same element. It requires that each step is longer than the reach
// of all smaller steps together, which is sufficient, and true for every view of an array.
func (o *Operand) distinct(dims []int) bool {
	var all [MaxRank]int
	order := all[:len(dims)]
	for j := range order {
		order[j] = j
	}
	size := func(j int) int { return max(o.Steps[j], -o.Steps[j]) }
	slices.SortFunc(order, func(a, b int) int { return size(a) - size(b) })
	reach := 0
	for _, j := range order {
		if dims[j] == 1 {
			continue
		}
		if size(j) <= reach {
			return false
		}
		reach += (dims[j] - 1) * size(j)
	}
	return true
}

// Bytes returns the layout in the form in which a launch takes it: the lengths of dimensions, then the first element
// of each operand, then the steps of each. It is the value of the kernel's last parameter for a program of rank
// l.Rank().
func (l *Layout) Bytes() []byte { return l.appendTo(nil) }

// appendTo appends the result of Bytes to b.
func (l *Layout) appendTo(b []byte) []byte {
	put := func(x int) { b = binary.NativeEndian.AppendUint64(b, uint64(x)) }
	for _, d := range l.Dims {
		put(d)
	}
	for _, o := range l.Operands {
		put(o.First)
	}
	for _, o := range l.Operands {
		for _, s := range o.Steps {
			put(s)
		}
	}
	return b
}

// Argument returns the last argument of a launch: the number of elements, a uint64, for a program of rank 0, else
// the result of Bytes.
func (l *Layout) Argument() any {
	if l.Rank() == 0 {
		return uint64(l.Len())
	}
	return l.Bytes()
}

// read reads a layout from the form that Bytes returns, and reports whether it is one.
func (l *Layout) read(b []byte, operands int) bool {
	rank := (len(b)/8 - operands) / (1 + operands)
	if rank < 1 || rank > MaxRank || len(b) != 8*(rank+operands+operands*rank) {
		return false
	}
	l.shape(rank, operands)
	get := func() int {
		x := int(binary.NativeEndian.Uint64(b))
		b = b[8:]
		return x
	}
	for j := range l.Dims {
		l.Dims[j] = get()
	}
	for k := range l.Operands {
		l.Operands[k].First = get()
	}
	for k := range l.Operands {
		o := &l.Operands[k]
		for j := range o.Steps {
			o.Steps[j] = get()
		}
	}
	return true
}
