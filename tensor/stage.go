package tensor

// The stages of compiled functions: graphs, and the collectives between them.

import (
	"context"
	"fmt"

	"github.com/concord-compute/concord/runtime"
)

// stage is a part of a compiled function: a graph, or the start or the finish of a collective.
type stage struct {
	graph *runtime.Graph           // nil of a collective
	uses  map[*runtime.Buffer]bool // by the graph; nil if it is the only stage
	start *exchange
	made  *exchange          // whose call is made
	sides [2]*runtime.Buffer // the recorded buffers of its result and its operand
}

// swap is a buffer that takes the place of a recorded one.
type swap struct{ recorded, with *runtime.Buffer }

// capture records the plan's tasks, whose values have their memory, as stages.
func (t *trace) capture(r *run, s *runtime.Stream) (stages []stage, err error) {
	tasks := t.plan.tasks
	only := len(exchanges(tasks)) == 0
	for i := 0; i < len(tasks) || len(stages) == 0; {
		var st stage
		switch x := at(tasks, i).(type) {
		case start:
			st.start = x.exchange
			i++
		case finish:
			st.made = x.exchange
			st.sides = [2]*runtime.Buffer{x.out.v.data.buf, x.in.v.data.buf}
			i++
		default:
			from := i
			for i < len(tasks) && !collective(tasks[i]) {
				i++
			}
			if st.graph, err = r.recorded(s, tasks[from:i]); err != nil {
				return stages, err
			}
			if !only {
				st.uses = usedBy(tasks[from:i])
			}
		}
		stages = append(stages, st)
	}
	return stages, nil
}

// at returns a task, or nil behind the last one.
func at(tasks []task, i int) task {
	if i < len(tasks) {
		return tasks[i]
	}
	return nil
}

// collective reports whether a task is one of the two of a collective, which no graph has.
func collective(t task) bool {
	switch t.(type) {
	case start, finish:
		return true
	}
	return false
}

// recorded returns a graph of tasks.
func (r *run) recorded(s *runtime.Stream, tasks []task) (*runtime.Graph, error) {
	return s.Capture(func(s *runtime.Stream) error {
		r.stream = s
		for _, k := range tasks {
			if err := r.task(k); err != nil {
				return fmt.Errorf("%v: %w", k, err)
			}
		}
		return nil
	})
}

// usedBy returns the buffers of the values that tasks read and write.
func usedBy(tasks []task) map[*runtime.Buffer]bool {
	uses := map[*runtime.Buffer]bool{}
	for _, t := range tasks {
		in, out := t.values()
		for _, v := range append(in, out...) {
			if v.data != nil {
				uses[v.data.buf] = true
			}
		}
	}
	return uses
}

// launch queues the stages of a set. The other members learn of an error where they would wait for this one.
func (t *trace) launch(ctx context.Context, e *engine, set int) error {
	for i := range t.stages[set] {
		if err := t.stage(ctx, e, &t.stages[set][i]); err != nil {
			return e.ended(t.plan, err)
		}
	}
	return nil
}

func (t *trace) stage(ctx context.Context, e *engine, s *stage) error {
	switch {
	case s.start != nil:
		return s.start.record(e.stream)
	case s.made != nil:
		var b [2]*runtime.Buffer
		for i, o := range []operand{s.made.out, s.made.in} {
			whole := t.present(s.sides[i])
			part, err := exactly(whole, o)
			if err != nil {
				return err
			}
			if b[i] = part; part != whole {
				t.parts = append(t.parts, part)
			}
		}
		if err := e.call(ctx, s.made, b[0], b[1]); err != nil {
			return fmt.Errorf("%v: %w", finish{s.made}, err)
		}
		return nil
	}
	t.bindings = t.bindings[:0]
	for _, w := range t.swaps {
		if s.uses == nil || s.uses[w.recorded] {
			t.bindings = append(t.bindings, runtime.WithBuffer(w.recorded, w.with))
		}
	}
	return s.graph.Launch(e.stream, t.bindings...)
}

// present returns the buffer in the place of a recorded one.
func (t *trace) present(b *runtime.Buffer) *runtime.Buffer {
	for _, w := range t.swaps {
		if w.recorded == b {
			return w.with
		}
	}
	return b
}
