package tensor

// The memory of plans: when values live, which share memory, and where each lies in one block.

import (
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/concord-compute/concord/kernels/expr"
	"github.com/concord-compute/concord/runtime/driver"
)

// lifetimes returns for each value the first and the last task that uses it.
func (p *plan) lifetimes() (first, last map[*value]int) {
	first, last = map[*value]int{}, map[*value]int{}
	for i, t := range p.tasks {
		in, out := t.values()
		for _, v := range append(in, out...) {
			if _, ok := first[v]; !ok {
				first[v] = i
			}
			last[v] = i
		}
	}
	return first, last
}

// inPlace returns the value whose memory output v of task t, number i, takes over: one of as many bytes that t reads last, each element where it stores one.
// It is nil if there is none.
func inPlace(t task, i int, v *value, last map[*value]int) *value {
	k, ok := t.(*kernel)
	if !ok || v.data != nil || v.kept {
		return nil
	}
	at := slices.IndexFunc(k.outs, func(o output) bool { return o.to.v == v })
	return k.over(at, func(w *value) bool { return !w.have && !w.kept && last[w] == i && w.n == v.n })
}

// over returns an input in whose memory the kernel may store output number out, or nil. May reports whether an input's memory is free for that. The elements of the
// input have the same size as those of the output, and once a kernel stores elements it reads only that element of the input in whose place it stores
// the result: kernels that reduce store them in their last visit of a row. Results of rows are stored before it.
func (k *kernel) over(out int, may func(w *value) bool) *value {
	if k.m.OncePerRow(out) {
		return nil
	}
	to, v := k.layout.Operands[len(k.inputs)+out], k.outs[out].to.v
	for j, in := range k.inputs {
		w, from := in.v, k.layout.Operands[j]
		if !may(w) || stored(w.typ) != stored(v.typ) || from.First != to.First || !slices.Equal(from.Steps, to.Steps) {
			continue
		}
		if !slices.ContainsFunc(k.inputs, func(o input) bool { return o.v == w && o.text != in.text }) {
			return w
		}
	}
	return nil
}

// arena places the values that lie between tasks into one block. Values whose lifetimes do not overlap may share bytes. It returns
// the byte at which each begins, how many there are, and how many there would be without sharing.
func (p *plan) arena() (offsets map[*value]int64, total, apart int64) {
	const align = 256
	first, last := p.lifetimes()
	type block struct {
		v           *value
		bytes       int64
		first, last int
	}
	var blocks []block
	joined := map[*value]*value{} // the value whose memory one takes over
	taken := map[*value]bool{}
	for i, t := range p.tasks {
		_, out := t.values()
		for _, v := range out {
			if first[v] != i {
				continue
			}
			if w := inPlace(t, i, v, last); w != nil && !taken[w] {
				joined[v], taken[w] = w, true
			}
		}
	}
	root := func(v *value) *value {
		for joined[v] != nil {
			v = joined[v]
		}
		return v
	}
	at := map[*value]int{}
	for _, v := range p.values {
		if _, used := first[v]; !used || v.kept || v.have || v.n == 0 {
			continue
		}
		bytes := (int64(v.n)*int64(size(v.typ)) + align - 1) / align * align
		apart += bytes
		r := root(v)
		j, ok := at[r]
		if !ok {
			j = len(blocks)
			at[r] = j
			blocks = append(blocks, block{r, bytes, first[v], last[v]})
		}
		b := &blocks[j]
		b.bytes, b.first, b.last = max(b.bytes, bytes), min(b.first, first[v]), max(b.last, last[v])
	}
	// The largest blocks first, each at the lowest place that no block of the same time takes.
	slices.SortStableFunc(blocks, func(a, b block) int { return int(b.bytes - a.bytes) })
	place := map[*value]int64{}
	for i, b := range blocks {
		var busy [][2]int64
		for _, o := range blocks[:i] {
			if o.first <= b.last && b.first <= o.last {
				busy = append(busy, [2]int64{place[o.v], place[o.v] + o.bytes})
			}
		}
		slices.SortFunc(busy, func(x, y [2]int64) int { return int(x[0] - y[0]) })
		off := int64(0)
		for _, o := range busy {
			if off+b.bytes <= o[0] {
				break
			}
			off = max(off, o[1])
		}
		place[b.v] = off
		total = max(total, off+b.bytes)
	}
	offsets = map[*value]int64{}
	for _, v := range p.values {
		if _, ok := place[root(v)]; ok {
			offsets[v] = place[root(v)]
		}
	}
	return offsets, total, apart
}

// Plan says what the computation of tensors does.
type Plan struct {
	Tasks  []Task
	Memory Memory // of a compiled function
}

// Task is one step of a Plan: a kernel that fuses several operations, or an operation with kernels of its own.
type Task struct {
	Operations    []string // in the order in which they are computed
	Read, Written int64    // bytes, each element of a tensor once for each view that is read
	Results       []string // types and shapes of what is stored
}

// Explain returns what Eval would do for tensors. It computes nothing.
func Explain(ts ...*Tensor) (*Plan, error) {
	if len(ts) == 0 {
		return &Plan{}, nil
	}
	if bad := check("explain", ts...); bad != nil {
		return nil, bad.err
	}
	e := ts[0].scope.engine
	e.mu.Lock()
	defer e.mu.Unlock()
	ts = slices.DeleteFunc(slices.Clone(ts), func(t *Tensor) bool { return t.data != nil })
	p, err := newPlan(ts, e.fuse)
	if err != nil {
		return nil, err
	}
	return p.describe(), nil
}

func (p *plan) describe() *Plan {
	out := &Plan{}
	for _, t := range p.tasks {
		var d Task
		switch t := t.(type) {
		case *kernel:
			d.Operations = t.names
			for i, in := range t.inputs {
				d.Read += moved(&t.layout, i) * int64(size(in.v.typ))
			}
			for _, o := range t.outs {
				d.Written += int64(count(o.t.shape) * size(o.t.typ))
				d.Results = append(d.Results, fmt.Sprintf("%v%v", o.t.typ, o.t.shape))
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
		fmt.Fprintf(w, "%d\t%s\t%s\t%s\t%s\n", i+1, driver.FormatBytes(t.Read), driver.FormatBytes(t.Written), strings.Join(t.Results, " "), strings.Join(t.Operations, " "))
	}
	w.Flush()
	if m := p.Memory; m != (Memory{}) {
		fmt.Fprintf(&b, "%s between the tasks (%s without sharing); %s of results, twice; %s of scratch\n", driver.FormatBytes(m.Planned),
			driver.FormatBytes(m.Apart), driver.FormatBytes(m.Results), driver.FormatBytes(m.Scratch))
	}
	return b.String()
}
