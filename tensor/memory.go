package tensor

// The last pass: the memory of plans, that is when values live, which share memory, and where each lies in one block.
// And plans for people.

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/concord-compute/concord/kernels/expr"
	"github.com/concord-compute/concord/runtime/driver"
)

// allocation says of each value of a plan when it lives and where, by the values' numbers.
type allocation struct {
	*plan
	first, last []int    // the tasks that use it
	takes       []*value // the value whose memory it takes over, or nil
	offsets     []int64  // where it begins in a block for all that lies between tasks, or -1 for what does not
	total       int64    // bytes of that block
	apart       int64    // bytes that it would have without sharing
}

// allocate finds when the values of a plan live, and places those that lie between tasks into one block, where values
// whose lifetimes do not overlap share bytes.
func allocate(p *plan) *allocation {
	const align = 256
	n := len(p.kept)
	a := &allocation{plan: p, first: slices.Repeat([]int{-1}, n), last: slices.Repeat([]int{-1}, n),
		takes: make([]*value, n), offsets: slices.Repeat([]int64{-1}, n)}
	for i, t := range p.tasks {
		in, out := t.values()
		for _, v := range append(in, out...) {
			if a.first[v.number] < 0 {
				a.first[v.number] = i
			}
			a.last[v.number] = i
		}
	}
	taken := make([]bool, n)
	for i, t := range p.tasks {
		_, out := t.values()
		for _, v := range out {
			if a.first[v.number] != i {
				continue
			}
			if w := a.inPlace(t, i, v); w != nil && !taken[w.number] {
				a.takes[v.number], taken[w.number] = w, true
			}
		}
	}
	// Values that take over memory from each other are one block.
	type block struct {
		bytes, offset int64
		first, last   int
	}
	var blocks []*block
	of := make([]*block, n)
	for _, v := range p.values {
		if a.first[v.number] < 0 || p.keeps(v) || v.n == 0 {
			continue
		}
		bytes := (int64(v.n)*int64(size(v.typ)) + align - 1) / align * align
		a.apart += bytes
		root := v
		for a.takes[root.number] != nil {
			root = a.takes[root.number]
		}
		b := of[root.number]
		if b == nil {
			b = &block{bytes: bytes, first: a.first[v.number], last: a.last[v.number]}
			of[root.number] = b
			blocks = append(blocks, b)
		}
		of[v.number] = b
		b.bytes, b.first, b.last = max(b.bytes, bytes), min(b.first, a.first[v.number]), max(b.last, a.last[v.number])
	}
	// The largest blocks first, each at the lowest place that no block of the same time takes.
	slices.SortStableFunc(blocks, func(a, b *block) int { return cmp.Compare(b.bytes, a.bytes) })
	for i, b := range blocks {
		var busy []*block
		for _, o := range blocks[:i] {
			if o.first <= b.last && b.first <= o.last {
				busy = append(busy, o)
			}
		}
		slices.SortFunc(busy, func(x, y *block) int { return cmp.Compare(x.offset, y.offset) })
		for _, o := range busy {
			if b.offset+b.bytes <= o.offset {
				break
			}
			b.offset = max(b.offset, o.offset+o.bytes)
		}
		a.total = max(a.total, b.offset+b.bytes)
	}
	for i, b := range of {
		if b != nil {
			a.offsets[i] = b.offset
		}
	}
	return a
}

// String lists the values with their lifetimes and places.
func (a *allocation) String() string {
	var b strings.Builder
	for _, v := range a.values {
		i := v.number
		if a.first[i] < 0 {
			continue
		}
		fmt.Fprintf(&b, "%v %v[%d] tasks %d to %d", v, v.typ, v.n, a.first[i], a.last[i])
		switch w := a.takes[i]; {
		case a.keeps(v):
			b.WriteString(", a result")
		case w != nil:
			fmt.Fprintf(&b, ", at %d in place of %v", a.offsets[i], w)
		default:
			fmt.Fprintf(&b, ", at %d", a.offsets[i])
		}
		b.WriteByte('\n')
	}
	fmt.Fprintf(&b, "%d bytes between tasks, %d without sharing\n", a.total, a.apart)
	return b.String()
}

// inPlace returns the value whose memory output v of task t, number i, takes over: one of as many bytes that t reads
// last, each element where it stores one. It is nil if there is none.
func (a *allocation) inPlace(t task, i int, v *value) *value {
	k, ok := t.(*kernel)
	if !ok || a.keeps(v) {
		return nil
	}
	at := slices.IndexFunc(k.outs, func(o output) bool { return o.to.v == v })
	return k.aliased(at, func(w *value) bool { return !a.keeps(w) && a.last[w.number] == i && w.n == v.n })
}

// aliased returns an input in whose memory the kernel may store output number out, or nil. May reports whether an
// input's memory is free for that. The elements of the input have the same size as those of the output, and once a
// kernel stores elements it reads only that element of the input in whose place it stores the result: kernels that
// reduce store them in their last visit of a row. Results of rows are stored before it.
func (k *kernel) aliased(out int, may func(w *value) bool) *value {
	if k.m.OncePerRow(out) {
		return nil
	}
	to, v := k.layout.Operands[len(k.inputs)+out], k.outs[out].to.v
	for j, in := range k.inputs {
		w, from := in.v, k.layout.Operands[j]
		if !may(w) || w.typ.Stored() != v.typ.Stored() || from.First != to.First || !slices.Equal(from.Steps, to.Steps) {
			continue
		}
		if !slices.ContainsFunc(k.inputs, func(o input) bool { return o.v == w && o.text != in.text }) {
			return w
		}
	}
	return nil
}

// Plan says what the computation of tensors does.
type Plan struct {
	Tasks  []Task
	Memory Memory // of a compiled function
	Costs  Costs  // by which it was made
}

// Task is one step of a Plan: a kernel that fuses several operations, or an operation with kernels of its own.
type Task struct {
	Operations    []string // in the order in which they are computed
	Read, Written int64    // bytes, each element of a tensor once for each view that is read
	Results       []string // types and shapes of what is stored
}

// Pass is what one pass of the planner has decided, as text for people.
type Pass struct {
	Name string `json:"name"`
	Text string `json:"text"`
}

// Explain returns what Eval would do for tensors. It computes nothing.
func Explain(ts ...*Tensor) (*Plan, error) {
	p, _, err := explained(ts, nil)
	if err != nil {
		return nil, err
	}
	return p.describe(), nil
}

// ExplainPasses returns what each pass of the planner decides for tensors, in the order of the passes. First comes
// which tensors have to be computed, how their elements lie, and which are stored and why. Then come the tasks that
// store them, their order, the tasks that are fused, and the memory between them. It computes nothing.
func ExplainPasses(ts ...*Tensor) ([]Pass, error) {
	var list []Pass
	show := func(pass string, value fmt.Stringer) { list = append(list, Pass{pass, value.String()}) }
	_, a, err := explained(ts, show)
	if err != nil {
		return nil, err
	}
	show("allocate", a)
	return list, nil
}

// explained returns the plan of tensors that may have been computed, and its memory, and shows the values of the passes
// before.
func explained(ts []*Tensor, show func(pass string, value fmt.Stringer)) (*plan, *allocation, error) {
	if len(ts) == 0 {
		return &plan{}, &allocation{plan: &plan{}}, nil
	}
	if bad := check("explain", ts...); bad != nil {
		return nil, nil, bad.err
	}
	e := ts[0].scope.engine
	e.mu.Lock()
	defer e.mu.Unlock()
	ts = slices.DeleteFunc(slices.Clone(ts), func(t *Tensor) bool { return t.data != nil })
	p, err := newPlan(ts, e.fuse, show)
	if err != nil {
		return nil, nil, err
	}
	return p, allocate(p), nil
}

func (p *plan) describe() *Plan {
	out := &Plan{Costs: p.costs}
	for _, t := range p.tasks {
		var d Task
		switch t := t.(type) {
		case *kernel:
			d.Operations = t.names
			for i, in := range t.inputs {
				d.Read += moved(&t.layout, i) * int64(size(in.v.typ))
			}
			for _, o := range t.outs {
				d.Written += int64(o.n.bytes())
				d.Results = append(d.Results, fmt.Sprintf("%v%v", o.n.typ, o.n.shape))
			}
		case *step:
			d.Operations = []string{t.String()}
			for _, in := range t.in {
				d.Read += int64(count(in.shape) * size(in.typ))
			}
			for _, o := range t.out {
				d.Written += int64(count(o.shape) * size(o.typ))
				d.Results = append(d.Results, fmt.Sprintf("%v%v", o.typ, o.shape))
			}
		case start:
			d.Operations = []string{t.String()}
		case finish:
			d.Operations, d.Results = []string{t.String()}, []string{fmt.Sprintf("%v%v", t.out.typ, t.out.shape)}
			d.Read, d.Written = int64(count(t.in.shape)*size(t.in.typ)), int64(count(t.out.shape)*size(t.out.typ))
		}
		out.Tasks = append(out.Tasks, d)
	}
	return out
}

// moved returns how many different elements an operand of a layout has.
func moved(l *expr.Layout, operand int) int64 {
	n := int64(1)
	for j, d := range l.Dims {
		if l.Operands[operand].Steps[j] != 0 {
			n *= int64(d)
		}
	}
	return n
}

// String returns a table of the tasks, and the memory of a compiled function.
func (p *Plan) String() string {
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "\tREAD\tWRITTEN\tRESULTS\tOPERATIONS")
	for i, t := range p.Tasks {
		fmt.Fprintf(w, "%d\t%s\t%s\t%s\t%s\n", i+1, driver.FormatBytes(t.Read), driver.FormatBytes(t.Written),
			strings.Join(t.Results, " "), strings.Join(t.Operations, " "))
	}
	w.Flush()
	if m := p.Memory; m != (Memory{}) {
		fmt.Fprintf(&b, "%s between the tasks (%s without sharing); %s of results, twice; %s of scratch\n",
			driver.FormatBytes(m.Planned),
			driver.FormatBytes(m.Apart), driver.FormatBytes(m.Results), driver.FormatBytes(m.Scratch))
	}
	return b.String()
}
