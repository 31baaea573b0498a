package tensor

// Compiled functions: a function of tensors that is traced once for each list of shapes, and then is one graph, or
// several with collectives between them, in planned memory.

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/concord-compute/concord/kernels/expr"
	"github.com/concord-compute/concord/runtime"
)

// Func is a compiled function. It is safe for concurrent use; its calls come one at a time.
type Func struct {
	scope  *Scope
	f      func(args ...*Tensor) []*Tensor
	traces []*trace // guarded by the engine's lock, as is closed
	closed bool
}

// trace is a Func for arguments of certain types and shapes, of which certain ones are donated.
type trace struct {
	on       *runtime.Device
	args     []operand // of no place
	donated  []bool    // none if it is shorter
	aliases  []int     // for each result 1 more than the number of the donated argument in whose memory it is stored, or 0
	memories []stretch // the memory of arguments and constants of the call under way; nil if aliases is all 0
	plan     *plan
	once     []task    // of the plan, for the first call: what they compute stays
	outs     []*Tensor // of the function, as it was traced
	// one for each set of results, so that a loop replaces nothing that was not replaced in the last call but one
	stages   [2][]stage
	recorded []*runtime.Buffer // of the arguments, when the graphs were recorded
	used     []bool            // whether the graphs read each argument
	memory   []*runtime.Buffer // that the trace owns
	results  [2][]*Tensor
	turn     int
	swaps    []swap // what takes the place of recorded buffers in the launch under way
	bindings []runtime.Binding
	parts    []*runtime.Buffer // views of larger buffers among the arguments of the launch under way
	bytes    Memory
}

// stretch is a part of the memory behind a handle of the driver, in bytes.
type stretch struct {
	handle     uint64
	first, end int64
	donated    int // 1 more than the number of the argument in whose memory a result is stored, or 0
}

// Memory is what a compiled function needs besides its arguments.
type Memory struct {
	Planned int64 // bytes of what lies between kernels, which share memory where their lifetimes allow it
	Apart   int64 // bytes that these would take without sharing
	Results int64 // bytes of one set of results; a Func has two
	Scratch int64 // bytes that kernels of the catalog need besides their operands
}

var errTraced = errors.New("tensor: an argument of a compiled function has no value while the function is traced")

// Compile returns a compiled form of f, which computes its results from its arguments by operations of tensors. f is
// called once for each list of types and shapes of arguments; tensors that it takes from around it are constants.
// Constants that are not computed yet are computed then, once, and their memory is that of their scopes. The Func ends
// with the scope.
func Compile(s *Scope, f func(args ...*Tensor) []*Tensor) *Func {
	c := &Func{scope: s, f: f}
	s.engine.mu.Lock()
	defer s.engine.mu.Unlock()
	if !s.closed {
		s.funcs = append(s.funcs, c)
	}
	return c
}

// Call queues the function's graph and returns its results, which it owns: they are overwritten by the call
// after the next one with the same shapes. So the results of a call may be arguments of the next one. Keep what
// has to last with [Tensor.Copy]. The first call with new shapes traces and plans; later ones allocate nothing.
// Arguments are dense, as results of operations and of [Tensor.Copy] are; a transposed tensor, or one of some
// columns of another, is not, and the error matches [ErrShape].
func (c *Func) Call(ctx context.Context, args ...*Tensor) ([]*Tensor, error) {
	return c.CallDonating(ctx, nil, args...)
}

// CallDonating is Call where results may be stored in the memory of the arguments for which donated is true; there may
// be fewer flags than arguments. A step of training so updates parameters where they are, rather than to write others.
// A donated argument has an undefined value after the call, unless it is among the results. A result takes the memory
// of an argument of its type and shape that it is computed from. The kernel that stores it has to be the last that
// reads the argument, and may read no other element of it than the one it stores. The memory of such an argument must
// not be that of another argument, nor of a constant of the function, not even in part. A call for which it is changes
// nothing, and its error matches [ErrShape].
func (c *Func) CallDonating(ctx context.Context, donated []bool, args ...*Tensor) (set []*Tensor, err error) {
	if c.scope.engine.standby == nil {
		return c.calling(ctx, donated, args)
	}
	return c.callAnew(ctx, args)
}

// calling is CallDonating on one device.
func (c *Func) calling(ctx context.Context, donated []bool, args []*Tensor) (set []*Tensor, err error) {
	err = c.called(ctx, donated, args, func(t *trace) error {
		if err := t.launch(ctx, c.scope.engine, t.turn); err != nil {
			return err
		}
		set = t.results[t.turn]
		for i, arg := range t.aliases {
			if arg > 0 {
				set[i] = args[arg-1]
			}
		}
		t.turn = 1 - t.turn
		if c.scope.engine.standby != nil {
			c.scope.engine.onUndo(func() { t.turn = 1 - t.turn })
		}
		return nil
	})
	return set, err
}

// called calls f with the trace for arguments while it is bound to them, under the engine's lock.
func (c *Func) called(ctx context.Context, donated []bool, args []*Tensor, f func(t *trace) error) error {
	t, err := c.prepare(ctx, donated, args)
	if err != nil {
		return fmt.Errorf("call: %w", err)
	}
	c.scope.engine.mu.Lock()
	defer c.scope.engine.mu.Unlock()
	if c.scope.closed || t.stages[1] == nil {
		return ErrScope
	}
	defer t.unbind()
	if err = t.bind(args); err == nil {
		err = f(t)
	}
	if err != nil {
		return fmt.Errorf("call: %w", err)
	}
	return nil
}

// bind says for a launch which buffers of arguments are used and are not those of the recording. After the launch the
// caller calls unbind.
func (t *trace) bind(args []*Tensor) (err error) {
	t.swaps = t.swaps[:0]
	if t.memories != nil {
		if err := t.apart(args); err != nil {
			return err
		}
	}
	for i, a := range args {
		b := a.data.buf
		if !t.used[i] || b == t.recorded[i] && a.data.first == 0 {
			continue
		}
		if n := count(a.shape); a.data.first != 0 || b.Len() != n {
			if b, err = b.Slice(a.data.first, n); err != nil {
				return err
			}
			t.parts = append(t.parts, b)
		}
		t.swaps = append(t.swaps, swap{t.recorded[i], b})
	}
	return nil
}

// apart returns an error if an argument in whose memory a result is stored lies in that of another argument or
// of a constant.
func (t *trace) apart(args []*Tensor) error {
	t.memories = t.memories[:0]
	for _, v := range t.plan.extern {
		if v.arg == 0 {
			m := v.data.buf.Memory()
			t.memories = append(t.memories, stretch{m.Handle, m.Offset, m.Offset + m.Size, 0})
		}
	}
	constants := len(t.memories)
	for _, a := range args {
		m := a.data.buf.Memory()
		first := m.Offset + int64(a.data.first*size(a.typ))
		t.memories = append(t.memories, stretch{m.Handle, first, first + int64(count(a.shape)*size(a.typ)), 0})
	}
	for _, arg := range t.aliases {
		if arg > 0 {
			t.memories[constants+arg-1].donated = arg
		}
	}
	slices.SortFunc(t.memories, func(a, b stretch) int {
		return cmp.Or(cmp.Compare(a.handle, b.handle), cmp.Compare(a.first, b.first))
	})
	var far, over stretch // of those so far: the one that ends last, and the one that does among those that are donated
	for _, s := range t.memories {
		if s.first == s.end {
			continue
		}
		if s.handle == over.handle && s.first < over.end || s.donated > 0 && s.handle == far.handle && s.first < far.end {
			return fmt.Errorf("%w: argument %d is donated, and lies in the same memory as another argument or a constant of "+
				"the function", ErrShape, cmp.Or(s.donated, over.donated)-1)
		}
		if s.handle != far.handle || s.end > far.end {
			far = s
		}
		if s.donated > 0 && (s.handle != over.handle || s.end > over.end) {
			over = s
		}
	}
	return nil
}

// unbind closes the views that bind has made.
func (t *trace) unbind() {
	for _, b := range t.parts {
		b.Close()
	}
	t.parts = t.parts[:0]
}

// prepare computes the arguments, and returns the trace for their types and shapes.
func (c *Func) prepare(ctx context.Context, donated []bool, args []*Tensor) (*trace, error) {
	if err := checkContext(ctx); err != nil {
		return nil, err
	}
	for _, a := range args {
		if a == nil || a.err != nil || a.scope.engine != c.scope.engine {
			if bad := check("call", append([]*Tensor{{scope: c.scope}}, args...)...); bad != nil {
				return nil, bad.err
			}
		}
	}
	e := c.scope.engine
	if !e.computed(args) {
		if err := Eval(ctx, args...); err != nil {
			return nil, err
		}
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	for i, a := range args {
		if !isDense(a.shape, a.data.strides) {
			return nil, fmt.Errorf("%w: argument %d is a view; Copy makes a dense tensor of it", ErrShape, i)
		}
	}
	if err := c.scope.ready(); err != nil {
		return nil, err
	}
	if c.closed {
		return nil, fmt.Errorf("%w: the function itself is", ErrScope)
	}
	if e.standby != nil {
		c.traces = slices.DeleteFunc(c.traces, func(t *trace) bool {
			gone := t.on != e.device && lostDevice(t.on) != nil
			if gone {
				_ = t.close() // what it says is why the device was lost
			}
			return gone
		})
	}
	for _, t := range c.traces {
		if t.fits(args) && sameFlags(t.donated, donated) && (t.on == e.device || e.standby == nil) {
			return t, nil
		}
	}
	t, err := c.trace(ctx, donated, args)
	if err == nil { // another goroutine may have closed the scope while the function ran
		err = c.scope.ready()
	}
	if err == nil && e.standby != nil { // which may have taken the arguments to another device
		err = e.eval(ctx, args)
	}
	if err == nil {
		err = e.ended(t.plan, t.record(ctx, e, args))
	}
	if err != nil {
		return nil, err
	}
	c.traces = append(c.traces, t)
	e.onUndo(func() { // what it computes once may be behind the failure
		c.traces = slices.DeleteFunc(c.traces, func(x *trace) bool { return x == t })
		_ = t.close()
	})
	return t, nil
}

// sameFlags reports whether two lists have true at the same places.
func sameFlags(a, b []bool) bool {
	if len(a) > len(b) {
		a, b = b, a
	}
	return slices.Equal(a, b[:len(a)]) && !slices.Contains(b[len(a):], true)
}

// computed reports whether tensors are data.
func (e *engine) computed(ts []*Tensor) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, t := range ts {
		if t.data == nil || t.data.load != nil || t.scope.closed || t.stale() {
			return false
		}
	}
	return true
}

func (t *trace) fits(args []*Tensor) bool {
	if len(args) != len(t.args) {
		return false
	}
	for i, a := range args {
		if a.typ != t.args[i].typ || !slices.Equal(a.shape, t.args[i].shape) {
			return false
		}
	}
	return true
}

// trace calls the function with arguments without values, and plans its results. The engine is locked, but not
// while the function runs.
func (c *Func) trace(ctx context.Context, donated []bool, args []*Tensor) (*trace, error) {
	e := c.scope.engine
	t := &trace{donated: slices.Clone(donated), on: e.device}
	stand := make([]*Tensor, len(args))
	for i, a := range args {
		t.args = append(t.args, operand{typ: a.typ, shape: a.shape})
		stand[i] = &Tensor{scope: c.scope, typ: a.typ, shape: a.shape, data: &array{strides: rowMajor(a.shape), arg: i + 1}}
	}
	e.mu.Unlock()
	before := births.Load()
	outs := func() []*Tensor {
		defer e.mu.Lock() // also if f panics
		return e.traced(func() []*Tensor { return c.f(stand...) })
	}()
	if len(outs) == 0 {
		return nil, fmt.Errorf("%w: the function has no result", ErrShape)
	}
	if bad := check("call", append([]*Tensor{{scope: c.scope}}, outs...)...); bad != nil {
		return nil, bad.err
	}
	if err := e.refresh(ctx, outs); err != nil {
		return nil, err
	}
	if around := captured(outs, before); len(around) > 0 {
		if err := e.eval(ctx, around); err != nil {
			return nil, err
		}
	}
	// Results that are arguments or views of something get memory of their own.
	for _, o := range outs {
		if o.kind() == kindView || o.data != nil {
			o = o.copied()
		}
		t.outs = append(t.outs, o)
	}
	var err error
	if t.plan, err = newPlan(t.outs, e.fuse, nil); err != nil {
		return nil, err
	}
	t.used = make([]bool, len(args))
	for _, v := range t.plan.extern {
		if v.arg > 0 {
			t.used[v.arg-1] = count(t.args[v.arg-1].shape) > 0
		}
	}
	t.once, t.plan = t.plan.constants()
	t.donate()
	return t, nil
}

// donate chooses the results that take the memory of arguments.
func (t *trace) donate() {
	t.aliases = make([]int, len(t.outs))
	if !slices.Contains(t.donated, true) {
		return
	}
	last := allocate(t.plan).last
	writers, taken := map[*value]int{}, map[*value]bool{}
	results := map[*value][]int{} // where the function returns what lies there
	for j, at := range t.plan.results {
		results[at.v] = append(results[at.v], j)
	}
	for _, k := range t.plan.tasks {
		_, out := k.values()
		for _, v := range out {
			writers[v]++
		}
	}
	for i, x := range t.plan.tasks {
		k, ok := x.(*kernel)
		if !ok {
			continue
		}
		// the arguments in whose memory an output may be stored, among those that it is computed from
		may := make([][]*value, len(k.outs))
		var order []int
		for at, o := range k.outs {
			if results[o.to.v] == nil || writers[o.to.v] != 1 || count(o.n.shape) != o.to.v.n {
				continue
			}
			used := expr.Used(o.e)
			for j, in := range k.inputs {
				w := in.v
				if w.arg == 0 || w.arg > len(t.donated) || !t.donated[w.arg-1] || last[w.number] != i ||
					t.args[w.arg-1].typ != o.n.typ ||
					!slices.Equal(t.args[w.arg-1].shape, o.n.shape) ||
					j >= len(used) || used[j] == 0 || slices.Contains(may[at], w) {
					continue
				}
				if k.aliased(at, func(x *value) bool { return x == w }) != nil {
					may[at] = append(may[at], w)
				}
			}
			order = append(order, at)
		}
		// An output that has few takes one before those that have more.
		slices.SortStableFunc(order, func(a, b int) int { return len(may[a]) - len(may[b]) })
		for _, at := range order {
			if j := slices.IndexFunc(may[at], func(w *value) bool { return !taken[w] }); j >= 0 {
				w := may[at][j]
				taken[w], t.memories = true, []stretch{}
				for _, r := range results[k.outs[at].to.v] {
					t.aliases[r] = w.arg
				}
			}
		}
	}
}

// record allocates memory and records the graph. The engine is locked.
func (t *trace) record(ctx context.Context, e *engine, args []*Tensor) (err error) {
	defer func() {
		if err != nil {
			err = errors.Join(err, t.close())
		}
	}()
	own := func(b *runtime.Buffer, err error) (*runtime.Buffer, error) {
		if err == nil {
			t.memory = append(t.memory, b)
		}
		return b, err
	}
	alloc := func(typ Type, n int) (*runtime.Buffer, error) { return own(e.device.Alloc(typ.Stored(), n)) }
	// The graph knows its arguments by their buffers, so that each needs one that is used for nothing else.
	taken := map[*runtime.Buffer]bool{}
	for _, v := range t.plan.extern {
		if v.arg > 0 {
			continue
		}
		if err := v.data.loaded(ctx); err != nil {
			return err
		}
		if v.data.buf != nil {
			taken[v.data.buf] = true
		}
	}
	for _, a := range args {
		b, n := a.data.buf, count(a.shape)
		if taken[b] || a.data.first != 0 || b.Len() != n {
			if b, err = alloc(a.typ, n); err != nil {
				return err
			}
		}
		taken[b] = true
		t.recorded = append(t.recorded, b)
	}
	for _, v := range t.plan.extern {
		switch {
		case v.arg > 0:
			v.data = &array{buf: t.recorded[v.arg-1], strides: rowMajor(args[v.arg-1].shape)}
		case v.data.buf == nil:
			return errTraced
		}
	}
	for set := range t.results {
		for _, o := range t.outs {
			v := t.plan.results[len(t.results[set])].v
			if arg := t.aliases[len(t.results[set])]; arg > 0 {
				t.results[set] = append(t.results[set], &Tensor{scope: o.scope, typ: o.typ, shape: o.shape,
					data: dense(t.recorded[arg-1], o.shape)})
				continue
			}
			i := slices.IndexFunc(t.plan.results, func(at place) bool { return at.v == v })
			var b *runtime.Buffer
			if i < len(t.results[set]) {
				b = t.results[set][i].data.buf
			} else if b, err = alloc(o.typ, v.n); err != nil {
				return err
			} else if set == 0 {
				t.bytes.Results += int64(v.n * size(v.typ))
			}
			t.results[set] = append(t.results[set], &Tensor{scope: o.scope, typ: o.typ, shape: o.shape, data: dense(b, o.shape)})
			t.results[set][len(t.results[set])-1].data.on = e.seatOf()
		}
	}
	a := allocate(t.plan)
	t.bytes.Planned, t.bytes.Apart = a.total, a.apart
	if a.total > 0 {
		arena, err := alloc(U8, int(a.total))
		if err != nil {
			return err
		}
		for _, v := range t.plan.values {
			if t.plan.keeps(v) || v.n == 0 {
				continue
			}
			raw, err := own(arena.Slice(int(a.offsets[v.number]), v.n*size(v.typ)))
			if err != nil {
				return err
			}
			b, err := own(raw.As(v.typ.Stored()))
			if err != nil {
				return err
			}
			v.data = &array{buf: b}
		}
	}
	if len(t.once) > 0 {
		r := &run{ctx: ctx, engine: e, stream: e.stream}
		r.alloc = func(typ Type, n int) (*runtime.Buffer, error) { return e.stream.Alloc(typ.Stored(), n) }
		for _, k := range t.once {
			_, out := k.values()
			for _, v := range out {
				b, err := alloc(v.typ, v.n)
				if err != nil {
					return err
				}
				v.data = &array{buf: b}
				t.bytes.Planned, t.bytes.Apart = t.bytes.Planned+int64(v.n*size(v.typ)), t.bytes.Apart+int64(v.n*size(v.typ))
			}
			if err := r.task(k); err != nil {
				return fmt.Errorf("%v: %w", k, err)
			}
		}
	}
	for set := range t.stages {
		for i, at := range t.plan.results {
			at.v.data = t.results[set][i].data
		}
		r := &run{ctx: ctx, engine: e, keepTemps: true}
		r.alloc = func(typ Type, n int) (*runtime.Buffer, error) {
			t.bytes.Scratch += int64(n * size(typ))
			return e.device.Alloc(typ.Stored(), n)
		}
		t.stages[set], err = t.capture(r, e.stream)
		t.memory = append(t.memory, r.temps...)
		if err != nil {
			return err
		}
	}
	return nil
}

// close frees the graphs and the memory. The engine is locked.
func (t *trace) close() error {
	var errs []error
	for _, set := range t.stages {
		for i := range set {
			errs = append(errs, set[i].graph.Close())
		}
	}
	errs = append(errs, t.plan.closeExchanges())
	for _, b := range slices.Backward(t.memory) {
		errs = append(errs, b.Close())
	}
	t.stages, t.memory = [2][]stage{}, nil
	return errors.Join(errs...)
}

// Close frees the memory of the function, also that of its results; calls after it are [ErrScope]. It is not
// needed where the scope is closed. Closing twice does nothing.
func (c *Func) Close() error {
	c.scope.engine.mu.Lock()
	defer c.scope.engine.mu.Unlock()
	c.closed = true
	return c.close()
}

func (c *Func) close() error {
	var errs []error
	for _, t := range c.traces {
		errs = append(errs, t.close())
	}
	c.traces = nil
	return errors.Join(errs...)
}

// Plan returns what a call with such arguments does. It traces and plans the function where no call has done so.
func (c *Func) Plan(ctx context.Context, args ...*Tensor) (*Plan, error) {
	var t *trace
	err := c.scope.engine.unit(ctx, "plan", func(ctx context.Context) (err error) {
		t, err = c.planned(ctx, args)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("plan: %w", err)
	}
	p := t.plan.describe()
	p.Memory = t.bytes
	return p, nil
}

// planned returns the trace of a call with such arguments.
func (c *Func) planned(ctx context.Context, args []*Tensor) (*trace, error) {
	c.scope.engine.mu.Lock()
	i := slices.IndexFunc(c.traces, func(t *trace) bool { return t.fits(args) })
	var donated []bool // as in the first call with such arguments
	if i >= 0 {
		donated = c.traces[i].donated
	}
	c.scope.engine.mu.Unlock()
	return c.prepare(ctx, donated, args)
}
