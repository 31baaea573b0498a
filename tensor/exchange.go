package tensor

// Collectives in plans. The host waits for the other members in one, so that a plan has two tasks for each: its start
// notes where in the stream its operand is computed, and its finish makes the call of the member and has the stream
// wait for the result. What lies between the two is queued before the host waits, and runs beside the collective, which
// has a stream of its own.

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"github.com/concord-compute/concord/runtime"
)

// exchange is a collective in a plan.
type exchange struct {
	op      *callOp
	in, out operand
	born    uint64 // of the tensor: all members make the calls of their plans in this order
	number  int    // in that order, from 1 on
	// tokens: the start has come, the call before it was made, and this one was
	started, before, made *value

	ready, over runtime.Event // the operand is computed, the result is there
}

// start and finish are the tasks of a collective. The result has its memory from the start on, and the operand keeps
// its memory up to the finish.
type (
	start  struct{ *exchange }
	finish struct{ *exchange }
)

func (s start) String() string  { return s.op.String() + " start" }
func (f finish) String() string { return f.op.String() }

func (s start) values() (in, out []*value) {
	return []*value{s.in.v}, []*value{s.out.v, s.started}
}

func (f finish) values() (in, out []*value) {
	in = []*value{f.in.v, f.started}
	if f.before != nil {
		in = append(in, f.before)
	}
	return in, []*value{f.out.v, f.made}
}

// exchange makes the tasks of a collective.
func (l *lowering) exchange(s *step, born uint64) {
	token := func() *value { return l.value(value{typ: U8, token: true, id: l.made - l.before}) }
	x := &exchange{op: s.op, in: s.in[0], out: s.out[0], born: born, started: token(), made: token()}
	l.tasks = append(l.tasks, start{x}, finish{x})
}

// ordered has the calls of collectives come in the order in which the program has described them: other orders may
// differ between members, whose devices have different costs.
func (l *lowering) ordered() {
	list := exchanges(l.tasks)
	slices.SortFunc(list, func(a, b *exchange) int { return cmp.Compare(a.born, b.born) })
	for i, x := range list {
		if x.number = i + 1; i > 0 {
			x.before = list[i-1].made
		}
	}
}

// exchanges returns the collectives of tasks.
func exchanges(tasks []task) (list []*exchange) {
	for _, t := range tasks {
		if f, ok := t.(finish); ok {
			list = append(list, f.exchange)
		}
	}
	return list
}

// startsOf returns the places of the starts among tasks, in the order of the calls.
func startsOf(tasks []task) (list []int) {
	for i, t := range tasks {
		if _, ok := t.(start); ok {
			list = append(list, i)
		}
	}
	slices.SortFunc(list, func(i, j int) int { return cmp.Compare(tasks[i].(start).number, tasks[j].(start).number) })
	return list
}

// overlapping returns tasks, which are in order, with each behind all those that need fewer of the calls of
// collectives. So what needs none is queued before the host waits for the first one.
func overlapping(tasks []task) []task {
	calls := map[*value]int{} // that a value needs
	fills := map[*value]int{} // that its filling needs, which comes before parts of it are stored
	of := make(map[task]int, len(tasks))
	for _, t := range tasks {
		in, out := t.values()
		n := 0
		if f, ok := t.(finish); ok {
			n = f.number
		}
		for _, v := range in {
			n = max(n, calls[v])
		}
		for _, v := range out {
			n = max(n, fills[v])
		}
		k, ok := t.(*kernel)
		for _, v := range out {
			if calls[v] = max(calls[v], n); ok && k.fills {
				fills[v] = max(fills[v], n)
			}
		}
		of[t] = n
	}
	tasks = slices.Clone(tasks)
	slices.SortStableFunc(tasks, func(a, b task) int { return cmp.Compare(of[a], of[b]) })
	return tasks
}

// record notes that the operand is computed by what the stream has so far.
func (x *exchange) record(s *runtime.Stream) error { return s.RecordIn(&x.ready) }

// finish makes the call of a collective of a plan that is executed once.
func (r *run) finish(x *exchange) error {
	var b [2]*runtime.Buffer
	for i, o := range []operand{x.out, x.in} {
		part, err := exactly(o.v.data.buf, o)
		if err != nil {
			return err
		}
		if b[i] = part; part != o.v.data.buf {
			r.temps = append(r.temps, part)
		}
	}
	return r.engine.call(r.ctx, x, b[0], b[1])
}

// exactly returns the memory of an operand, which is dense, in its buffer: a view where that has more.
func exactly(b *runtime.Buffer, o operand) (*runtime.Buffer, error) {
	if n := count(o.shape); o.first != 0 || b.Len() != n {
		return b.Slice(o.first, n)
	}
	return b, nil
}

// call makes the call of the engine's member between what has been queued on its stream up to the start, and what
// follows.
func (e *engine) call(ctx context.Context, x *exchange, dst, src *runtime.Buffer) error {
	own := e.member.Stream()
	if err := own.Wait(&x.ready); err != nil {
		return err
	}
	if err := x.op.exchange(ctx, e.member, dst, src); err != nil {
		return err
	}
	if err := own.RecordIn(&x.over); err != nil {
		return err
	}
	return e.stream.Wait(&x.over)
}

// ended returns the error of work that has ended with err. The other members learn of it where they would wait for what
// this one does not call any more.
func (e *engine) ended(p *plan, err error) error {
	if err == nil || len(exchanges(p.tasks)) == 0 {
		return err
	}
	if failed := e.member.Fail(err); !errors.Is(err, failed) {
		return failed
	}
	return err
}

// closeExchanges closes the events of the collectives.
func (p *plan) closeExchanges() error {
	var errs []error
	for _, x := range exchanges(p.tasks) {
		errs = append(errs, x.ready.Close(), x.over.Close())
	}
	return errors.Join(errs...)
}
