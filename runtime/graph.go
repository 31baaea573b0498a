package runtime

// Graphs: work that is recorded once and launched many times.

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/concord-compute/concord/runtime/driver"
)

// Graph is work of one device, recorded by Stream.Capture, that can be launched as a whole any
// number of times. Each launch does what was recorded, with the buffers and values that were recorded or
// with others that the launch names. The graph keeps the recorded buffers and its kernels' programs alive
// until it is closed, even if they are closed before. It is safe for concurrent use.
type Graph struct {
	core     *core
	priority driver.Priority

	mu      sync.Mutex // held while it is launched, replaced or closed
	drv     driver.Graph
	does    *recording
	maker   driver.Stream // the driver's stream in which drv was captured again, or nil
	stale   bool          // drv lacks the last bindings
	streams []*Stream     // the streams that it was launched on
	closed  bool
}

// Capture returns a graph of the launches, copies and fills that record queues on the stream it is
// given. None of them runs yet. What record queues on another stream, also on the one that Capture is called on, runs
// at once and is not part of the graph. That stream is a new one with the priority of s, and ends with
// record; s and all other streams are not affected.
//
// On the recording stream Read, Write, Sync, Record, Wait, Prefetch, Run and the launch of a graph
// return ErrInvalidArgument and do not disturb the recording. Buffers that record allocates and
// programs that it builds are made at once and are not part of the graph. If record returns an error
// or panics, the recording is dropped; the error is returned.
//
// Concord keeps the checked and packed calls. Where the driver has graphs, it makes one of them;
// elsewhere each launch queues them again. The caller closes the graph.
func (s *Stream) Capture(record func(s *Stream) error) (*Graph, error) {
	const op = "capture"
	if err := s.live(op); err != nil {
		return nil, err
	}
	if err := s.lock(op); err != nil {
		return nil, err
	}
	s.mu.Unlock()
	g := &Graph{core: s.core, priority: s.priority, does: new(recording)}
	if err := g.record(op, record); err != nil {
		return nil, err
	}
	return g, nil
}

// Update records the graph again. If only arguments and grids differ, a driver can change the graph
// in place, which costs less than another Capture. Earlier launches are not affected. If Update
// fails, the graph is unchanged.
func (g *Graph) Update(record func(s *Stream) error) error {
	const op = "update graph"
	if g == nil || g.core == nil {
		return fmt.Errorf("%s: graph is nil: %w", op, ErrInvalidArgument)
	}
	g.mu.Lock()
	closed := g.closed
	g.mu.Unlock()
	if closed {
		return g.core.closedError(op)
	}
	return g.record(op, record)
}

// record calls the function with a recording stream, and makes the calls that it queues there the
// contents of the graph.
func (g *Graph) record(op string, record func(s *Stream) error) error {
	if record == nil {
		return g.core.error(op, fmt.Errorf("function is nil: %w", ErrInvalidArgument))
	}
	if !g.core.enter() {
		return g.core.closedError(op)
	}
	r := newRecording()
	s := g.core.streams.register(&Stream{core: g.core, drv: r, priority: g.priority, capture: r})
	g.core.leave()
	defer func() { // also when record panics
		_ = s.close() // a recording has nothing to wait for
		r.release()
	}()
	if err := record(s); err != nil {
		return err
	}
	if !g.core.enter() {
		return g.core.closedError(op)
	}
	defer g.core.leave()
	g.mu.Lock()
	defer g.mu.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	if g.closed || s.closed {
		return g.core.closedError(op)
	}
	drv, err := g.make(r)
	if err != nil {
		return g.core.noticed(g.core.named(op, err))
	}
	g.core.streams.mu.Lock()
	g.core.streams.graphs[g] = struct{}{} // the map still exists, since the caller has entered
	g.core.streams.mu.Unlock()
	g.drv, g.stale = drv, false
	g.does, r = r, g.does
	return nil
}

// make returns a driver's graph of a recording: the present one, updated, if the driver can do that. The
// caller holds the graph.
func (g *Graph) make(r *recording) (driver.Graph, error) {
	if _, soft := g.drv.(softGraph); soft {
		return softGraph{r}, nil
	}
	if _, ok := g.core.streams.own.present().(driver.Capturer); !ok {
		return softGraph{r}, nil
	}
	if g.maker == nil {
		drv, err := g.core.streams.driverStream(g.priority)
		if err != nil {
			return nil, err
		}
		g.maker = drv
	}
	g.core.streams.capturing.Add(1)
	defer g.core.streams.capturing.Add(-1)
	drv, err := capture(g.maker.(driver.Capturer), g.drv, r)
	if err == nil && r == g.does { // it will be bound again
		return drv, nil
	}
	closeErr := g.maker.Close()
	g.maker = nil
	if err != nil {
		return nil, errors.Join(err, closeErr)
	}
	return drv, nil
}

// capture makes a driver's graph of a recording, or updates one. A driver that turns out to have no
// graphs leaves it to softGraph.
func capture(s driver.Capturer, update driver.Graph, r *recording) (driver.Graph, error) {
	if err := s.BeginCapture(); errors.Is(err, ErrUnsupported) && update == nil {
		return softGraph{r}, nil
	} else if err != nil {
		return nil, err
	}
	if err := r.queue(s.(driver.Stream)); err != nil {
		return nil, errors.Join(err, s.DropCapture())
	}
	return s.EndCapture(update)
}

// Launch queues the whole graph on a stream of its device, and returns. The bindings replace buffers and
// values that were recorded in this launch alone: see WithBuffer and WithValue. Two launches in a row with
// the same bindings cost no more than two without any. A later failure is an error of the stream.
func (g *Graph) Launch(s *Stream, bindings ...Binding) error {
	const op = "launch graph"
	if g == nil || g.core == nil {
		return fmt.Errorf("%s: graph is nil: %w", op, ErrInvalidArgument)
	}
	if err := s.live(op); err != nil {
		return err
	}
	if g.core.isAbandoned() {
		return g.core.lost()
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		return g.core.closedError(op)
	}
	checks := g.samples()
	defer checks.submit()
	return checks.failed(s.queue(op, func() error {
		if s.core != g.core {
			return fmt.Errorf("graph of %s: %w", g.core.info.ID, ErrInvalidArgument)
		}
		if !slices.Contains(g.streams, s) {
			g.streams = slices.DeleteFunc(g.streams, func(s *Stream) bool { return s.gone.Load() && !s.busy() })
			g.streams = append(g.streams, s)
		}
		for a := range g.does.memory {
			if err := a.usedBy(s); err != nil {
				return err
			}
		}
		if len(bindings) > 0 || g.does.bound {
			if err := g.bind(s, bindings); err != nil {
				return err
			}
		}
		watched := s.begin()
		var err error
		if len(checks) == 0 {
			err = g.drv.Launch(s.drv)
		} else {
			err = checks.queue(s, g.does.bindings())
		}
		if watched {
			s.done(g.graphEvent(), err, g.does.events()...)
		}
		if err != nil {
			return err
		}
		s.launches.Add(g.does.kernels)
		return nil
	}))
}

// bind replaces what the graph's calls use, for a launch on s. The caller holds the graph and the stream.
func (g *Graph) bind(s *Stream, bindings []Binding) error {
	for i := range bindings {
		b := &bindings[i]
		err := b.err
		if err == nil && b.buffer != nil {
			err = s.hold(b.buffer)
		}
		if err == nil && b.recorded == nil && b.param == nil {
			err = fmt.Errorf("is none of WithBuffer or WithValue: %w", ErrInvalidArgument)
		}
		if err == nil && b.recorded != nil {
			if _, uses := g.does.memory[b.recorded.a]; !uses {
				err = fmt.Errorf("the graph does not use %v: %w", b.recorded, ErrInvalidArgument)
			} else if _, written := g.does.written[b.recorded.a]; written {
				err = b.buffer.writable()
			}
		}
		if err != nil {
			return fmt.Errorf("binding %d: %w", i, err)
		}
	}
	changed, err := g.does.bind(bindings)
	g.stale = g.stale || changed
	if err != nil || !g.stale {
		return err
	}
	drv, err := g.make(g.does)
	if err == nil {
		g.drv, g.stale = drv, false
	}
	return err
}

// Close waits for the launches of the graph and releases its buffers and programs. Closing twice,
// or after the device, does nothing.
func (g *Graph) Close() error {
	if g == nil || g.core == nil || !g.core.enter() {
		return nil
	}
	defer g.core.leave()
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		return nil
	}
	g.closed = true
	for _, s := range g.streams {
		_ = s.passed(context.Background()) // its error belongs to the stream, which reports it
	}
	g.core.streams.mu.Lock()
	delete(g.core.streams.graphs, g)
	g.core.streams.mu.Unlock()
	err := g.end()
	g.does.release()
	return err
}

// drop closes the graph when its device is closed, which frees the graph's buffers and programs.
func (g *Graph) drop() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		return nil
	}
	g.closed = true
	return g.end()
}

// end closes the driver's objects.
func (g *Graph) end() error {
	err := g.drv.Close()
	if g.maker != nil {
		err = errors.Join(err, g.maker.Close())
	}
	return err
}
