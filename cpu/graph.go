package cpu

// Graphs: operations that are prepared once and queued together many times.

import (
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/concord-compute/concord/runtime/driver"
)

// graph is a tape that can be replaced by another one.
type graph struct {
	device *device
	mu     sync.Mutex
	tape   *tape // nil if closed
}

// tape is the operations of one capture. It lasts as long as a graph has it or a launch of it is queued.
type tape struct {
	device *device
	ops    []op
	uses   atomic.Int64
	turn   sync.Mutex // held while the operations run: each has memory for one execution at a time
}

var (
	_ driver.Graph    = (*graph)(nil)
	_ driver.Capturer = (*stream)(nil)
)

// BeginCapture implements driver.Capturer.
func (s *stream) BeginCapture() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.refuse(); err != nil {
		return err
	}
	if s.tape != nil {
		return s.opError("begin capture", errRecording)
	}
	s.tape = &tape{device: s.device}
	s.tape.uses.Store(1)
	return nil
}

var errRecording = fmt.Errorf("the stream is recording a graph: %w", driver.ErrInvalidArgument)

// endCapture returns what was recorded, and makes the stream run its work again.
func (s *stream) endCapture(op string) (*tape, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.tape == nil {
		return nil, s.opError(op, fmt.Errorf("the stream records no graph: %w", driver.ErrInvalidArgument))
	}
	t := s.tape
	s.tape = nil
	return t, nil
}

// EndCapture implements driver.Capturer.
func (s *stream) EndCapture(update driver.Graph) (driver.Graph, error) {
	const op = "end capture"
	g := &graph{device: s.device}
	if update != nil {
		earlier, ok := update.(*graph)
		if !ok || earlier.device != s.device {
			return nil, s.opError(op, fmt.Errorf("graph of another device: %w", driver.ErrInvalidArgument))
		}
		g = earlier
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if update != nil && g.tape == nil {
		return nil, s.opError(op, driver.ErrClosed)
	}
	t, err := s.endCapture(op)
	if err != nil {
		return nil, err
	}
	if g.tape != nil {
		g.tape.release()
	}
	g.tape = t
	return g, nil
}

// DropCapture implements driver.Capturer.
func (s *stream) DropCapture() error {
	t, err := s.endCapture("drop capture")
	if err == nil {
		t.release()
	}
	return err
}

// Launch implements driver.Graph. The operations run one after another without a look at the queue in between.
func (g *graph) Launch(on driver.Stream) error {
	const op = "launch graph"
	s, ok := on.(*stream)
	if !ok || s.device != g.device {
		return g.device.opError(op, fmt.Errorf("stream of another device: %w", driver.ErrInvalidArgument))
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.tape == nil {
		return g.device.opError(op, driver.ErrClosed)
	}
	return s.pushTape(g.tape)
}

// Close implements driver.Graph. Launches that are queued still run.
func (g *graph) Close() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.tape != nil {
		g.tape.release()
		g.tape = nil
	}
	return nil
}

func (t *tape) release() {
	if t.uses.Add(-1) == 0 {
		dropAll(t.ops)
	}
}

// run performs the operations, with the turn and a place. Between two of them another launch may get the place.
// If the times are wanted, it notes in times when each operation ended.
func (t *tape) run(w *workers, times *timed) error {
	for i := range t.ops {
		if i > 0 {
			w.yield()
		}
		if err := t.ops[i].run(); err != nil {
			return err
		}
		if times != nil {
			times.Parts = append(times.Parts, driver.Now())
		}
	}
	return nil
}
