package tensor

// What a framework with graphs of its own needs of compiled functions beside Call.

import (
	"context"
	"errors"
	"fmt"

	"github.com/concord-compute/concord/runtime"
)

// Stream returns the stream on which the scope's tensors are computed. What is queued on it comes between the
// computations that are queued before and after; it is not captured, closed or reset.
func (s *Scope) Stream() (*runtime.Stream, error) {
	if s.engine.standby != nil {
		return nil, fmt.Errorf("the stream of a scope on a Runner: %w", runtime.ErrUnsupported)
	}
	s.engine.mu.Lock()
	defer s.engine.mu.Unlock()
	if err := s.ready(); err != nil {
		return nil, err
	}
	return s.engine.stream, nil
}

// CallOwned queues the function's graph as [Func.Call] does, and returns its results in buffers of their own, which
// the caller closes, with elements in order, and their types and shapes. They are computed on the scope's stream:
// [runtime.Read] and [Wrap] wait for that, work on other streams is put behind it by [runtime.Stream.WaitFor]. A Bool
// has a buffer of U8. Later calls leave the buffers as they are. Arguments are donated as for [Func.CallDonating];
// where a result takes the memory of one, it is the argument's buffer.
func (c *Func) CallOwned(ctx context.Context, donated []bool,
	args ...*Tensor) (results []*runtime.Buffer, specs []Spec, err error) {
	if c.scope.engine.standby != nil {
		return nil, nil, fmt.Errorf("call: buffers of a scope on a Runner: %w", runtime.ErrUnsupported)
	}
	err = c.called(ctx, donated, args, func(t *trace) (err error) {
		defer func() {
			if err != nil {
				for i, b := range results {
					if t.aliases[i] == 0 {
						err = errors.Join(err, b.Close())
					}
				}
				results, specs = nil, nil
			}
		}()
		stream := c.scope.engine.stream
		for i, r := range t.results[0] {
			for _, same := range t.results[0][:i] {
				if same.data.buf == r.data.buf {
					return fmt.Errorf("%w: result %d is another result too; Copy makes a tensor of its own", ErrShape, i)
				}
			}
			specs = append(specs, Spec{r.typ, r.Shape()})
			if arg := t.aliases[i]; arg > 0 {
				a := args[arg-1]
				if a.data.buf.Len() != a.Len() {
					return fmt.Errorf("%w: the donated argument %d is a part of a buffer", ErrShape, arg-1)
				}
				results = append(results, a.data.buf)
				continue
			}
			b, err := stream.Alloc(r.typ.Stored(), r.data.buf.Len())
			if err != nil {
				return err
			}
			if results = append(results, b); r.Len() > 0 {
				t.swaps = append(t.swaps, swap{r.data.buf, b})
			}
		}
		return t.launch(ctx, c.scope.engine, 0)
	})
	return results, specs, err
}
