package tensor

// Eval, and the execution of plans.

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/concord-compute/concord/kernels"
	"github.com/concord-compute/concord/kernels/expr"
	"github.com/concord-compute/concord/runtime"
)

// array is where the elements of a computed tensor lie: that of index i at first + Σ strides[j]·i[j] of a buffer.
type array struct {
	buf     *runtime.Buffer // nil of an argument of a function that is traced, and before load
	first   int
	strides []int
	arg     int // 1 more than the number of the argument of a function that is traced, or 0
	// makes the buffer when the elements are needed for the first time; nil otherwise
	load func(ctx context.Context) (*runtime.Buffer, error)
	// of a scope on a Runner: the device of the buffer, nil if there is none, and what makes the buffer on another
	// device
	on     *runtime.Device
	source func(ctx context.Context) (*runtime.Buffer, error)
}

// loaded makes the buffer, if that is left to do. The engine is locked.
func (a *array) loaded(ctx context.Context) error {
	if a.load == nil {
		return nil
	}
	b, err := a.load(ctx)
	if err == nil {
		a.buf, a.load = b, nil
	}
	return err
}

// dense returns the array of dense elements.
func dense(b *runtime.Buffer, shape []int) *array { return &array{buf: b, strides: rowMajor(shape)} }

// dense returns t, or a tensor that will be a dense copy of it if t is a view of another one.
func (t *Tensor) dense() *Tensor {
	t.scope.engine.mu.Lock()
	defer t.scope.engine.mu.Unlock()
	again := t.scope.engine.standby != nil && t.kind() == kindView // it may lie otherwise when it is computed again
	if t.data != nil && isDense(t.shape, t.data.strides) && !again {
		return t
	}
	if t.kind() == kindView || t.data != nil {
		return t.copied()
	}
	return t
}

// Copy returns a tensor of the same elements with memory of its own, in order.
func (t *Tensor) Copy() *Tensor {
	if t.err != nil {
		return t
	}
	return t.copied()
}

func (t *Tensor) copied() *Tensor {
	return made(&mapOp{name: "copy", e: expr.Input(0, t.typ)}, t.typ, t.shape, t)
}

// Eval computes tensors, together, with as few kernels as it finds. It queues the work and returns; a failure of
// the work is returned by later calls and by Read, which waits. If Eval returns an error, nothing is computed,
// and the tensors can be evaluated again. All tensors belong to one scope and the scopes within it. With collectives it
// waits for the other members of the group, and if it fails the group has failed: see [NewMemberScope].
func Eval(ctx context.Context, ts ...*Tensor) error {
	if err := checkContext(ctx); err != nil {
		return fmt.Errorf("eval: %w", err)
	}
	if len(ts) == 0 {
		return nil
	}
	if bad := check("eval", ts...); bad != nil {
		return bad.err
	}
	e := ts[0].scope.engine
	err := e.unit(ctx, "eval", func(ctx context.Context) error {
		e.mu.Lock()
		defer e.mu.Unlock()
		return e.eval(ctx, ts)
	})
	if err != nil {
		return fmt.Errorf("eval: %w", err)
	}
	return nil
}

// checkContext returns an error for a context that is nil or done.
func checkContext(ctx context.Context) error {
	if ctx == nil {
		return fmt.Errorf("the context is nil: %w", runtime.ErrInvalidArgument)
	}
	return ctx.Err()
}

// eval is Eval of tensors without mistakes. The engine is locked.
func (e *engine) eval(ctx context.Context, ts []*Tensor) error {
	for _, t := range ts {
		if err := t.scope.ready(); err != nil {
			return err
		}
	}
	if err := e.refresh(ctx, ts); err != nil {
		return err
	}
	for _, t := range ts {
		if t.data != nil {
			if err := t.data.loaded(ctx); err != nil {
				return err
			}
		}
	}
	ts = slices.DeleteFunc(slices.Clone(ts), func(t *Tensor) bool { return t.data != nil })
	if len(ts) == 0 {
		return e.stream.Err()
	}
	ts = withResults(ts)
	p, err := newPlan(ts, e.fuse, nil)
	if err != nil {
		return err
	}
	err = e.ended(p, e.execute(ctx, p))
	closed := p.closeExchanges()
	if err != nil {
		return err
	}
	// the outermost scopes of the tensors that lie in what was computed, which has to live as long
	owners := map[*runtime.Buffer]*Scope{}
	for i, t := range ts {
		at := p.results[i]
		t.data = &array{buf: at.v.data.buf, first: at.first, strides: at.strides, on: e.seatOf()}
		e.onUndo(func() { t.data = nil })
		if s := owners[t.data.buf]; !at.v.have && (s == nil || t.scope.depth < s.depth) {
			owners[t.data.buf] = t.scope
		}
	}
	for b, s := range owners {
		s.buffers[b] = struct{}{}
		e.onUndo(func() {
			if _, own := s.buffers[b]; own {
				delete(s.buffers, b)
				b.Close()
			}
		})
	}
	return closed
}

// execute queues a plan, with memory in the order of the stream: a value's is freed after the last task that
// reads it, for those that follow.
func (e *engine) execute(ctx context.Context, p *plan) (err error) {
	r := &run{ctx: ctx, engine: e, stream: e.stream}
	r.alloc = func(t Type, n int) (*runtime.Buffer, error) { return e.stream.Alloc(t.Stored(), n) }
	for _, v := range p.extern {
		if err := v.data.loaded(ctx); err != nil {
			return err
		}
		if v.data.buf == nil {
			return errTraced
		}
	}
	a := allocate(p)
	given := make([]bool, len(a.last)) // values whose memory another one has taken over
	var mine []*value
	defer func() {
		if err != nil {
			for _, v := range mine {
				if v.data != nil {
					v.data.buf.Close()
					v.data = nil
				}
			}
		}
	}()
	allocate := func(v *value) error {
		if v.data != nil || v.token {
			return nil
		}
		b, err := r.alloc(v.typ, v.n)
		if err != nil {
			return err
		}
		v.data = &array{buf: b}
		mine = append(mine, v)
		return nil
	}
	for i, t := range p.tasks {
		if err := ctx.Err(); err != nil {
			return err
		}
		in, out := t.values()
		for _, v := range in {
			if err := allocate(v); err != nil { // one without elements, which no task writes
				return err
			}
		}
		for _, v := range out {
			if w := a.takes[v.number]; w != nil && a.first[v.number] == i {
				v.data, given[w.number] = w.data, true
				mine[slices.Index(mine, w)] = v
			} else if err := allocate(v); err != nil {
				return err
			}
		}
		if err := r.task(t); err != nil {
			return fmt.Errorf("%v: %w", t, err)
		}
		for _, v := range append(in, out...) {
			if a.last[v.number] == i && !p.keeps(v) && v.data != nil {
				if given[v.number] {
					v.data = nil
					continue
				}
				v.data.buf.Close()
				mine = slices.DeleteFunc(mine, func(x *value) bool { return x == v })
				v.data = nil
			}
		}
	}
	for _, at := range p.results { // those without elements
		if err := allocate(at.v); err != nil {
			return err
		}
	}
	return nil
}

// task queues one task, and frees the memory that it needed besides its operands.
func (r *run) task(t task) error {
	var err error
	switch t := t.(type) {
	case *kernel:
		err = r.kernel(t)
	case *step:
		err = t.op.run(r, t.out, t.in)
	case start:
		err = t.record(r.stream)
	case finish:
		err = r.finish(t.exchange)
	}
	if r.keepTemps {
		return err
	}
	for _, b := range r.temps {
		err = errors.Join(err, b.Close())
	}
	r.temps = r.temps[:0]
	return err
}

func (r *run) kernel(k *kernel) error {
	var args []any
	for _, in := range k.inputs {
		args = append(args, in.v.data.buf)
	}
	for _, o := range k.outs {
		args = append(args, o.to.v.data.buf)
	}
	return r.mapped(k.m, &k.layout, append(args, k.params...))
}

// laidOut returns a layout for a map, or an error if the map cannot have it or is too large for a device that
// runs block programs.
func laidOut(m *expr.Map, l expr.Layout) (out expr.Layout, err error) {
	if out, err = m.Layout(l); err != nil {
		return out, err
	}
	if m.Reduces() {
		_, err = m.Steps()
	} else {
		_, err = m.Block()
	}
	return out, err
}

// shared returns the map m of exprs with parameters in place of numbers, and their values, so that it is one
// program with maps that differ in numbers alone. It is m itself where the layout, which is m's, leaves no room
// for parameters.
func shared(m *expr.Map, l expr.Layout, exprs []*expr.Expr) (*expr.Map, []any) {
	if with, params := expr.Parameters(exprs...); len(params) > 0 {
		if p, err := expr.New(with...); err == nil {
			if out, err := laidOut(p, l); err == nil && out.Rank() == l.Rank() {
				return p, params
			}
		}
	}
	return m, nil
}

// mapped queues a map with the buffers of its inputs and outputs, and its parameters.
func (r *run) mapped(m *expr.Map, l *expr.Layout, args []any) error {
	p, err := r.engine.mapProgram(r.ctx, m, l.Rank())
	if err != nil {
		return err
	}
	name, size := m.Entry(l)
	f, err := p.kernel(name)
	if err != nil {
		return err
	}
	items, group, err := kernels.Geometry(p.unit, name, size)
	if err != nil {
		return err
	}
	return r.stream.Launch(f, runtime.Grid{Items: items, Group: group}, append(args, l.Argument())...)
}

// Keep computes t and moves it to the scope around its own, with which its memory ends. The result is data:
// gradients do not reach what it was computed from.
func (t *Tensor) Keep(ctx context.Context) (kept *Tensor, err error) {
	if t.err != nil {
		return nil, t.err
	}
	err = t.scope.engine.unit(ctx, "keep", func(ctx context.Context) (err error) {
		kept, err = t.outward(ctx)
		return err
	})
	if err != nil {
		return nil, err
	}
	return kept, nil
}

// outward is Keep of a tensor without a mistake.
func (t *Tensor) outward(ctx context.Context) (*Tensor, error) {
	d := t.dense()
	if err := Eval(ctx, d); err != nil {
		return nil, err
	}
	t.scope.engine.mu.Lock()
	defer t.scope.engine.mu.Unlock()
	if t.scope.closed {
		return nil, ErrScope
	}
	to := t.scope.parent
	if to == nil {
		to = t.scope
	}
	if _, own := d.scope.buffers[d.data.buf]; own {
		delete(d.scope.buffers, d.data.buf)
		to.buffers[d.data.buf] = struct{}{}
	}
	return &Tensor{scope: to, typ: t.typ, shape: t.shape, data: d.data}, nil
}
