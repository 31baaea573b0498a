//go:build cgo && unix

package cgo

// Graphs: work that was recorded once and runs many times.

import (
	"sync"

	"github.com/concord-compute/concord/runtime/driver"
)

type graph struct {
	d *device

	alive  sync.RWMutex // held for reading while c is used
	closed bool
	c      cGraph
}

var _ driver.Graph = (*graph)(nil)

// BeginCapture implements driver.Capturer.
func (s *stream) BeginCapture() error {
	const op = "begin capture"
	if err := s.enterRunning(op); err != nil {
		return err
	}
	defer s.leave()
	b := &s.d.blas
	b.mu.Lock() // waits for a call that opens the library
	defer b.mu.Unlock()
	if f := s.t.captureBegin(s.c); f != nil {
		return s.refuse(op, f)
	}
	s.capturing.Store(true)
	b.captures.Add(1)
	return nil
}

// captured marks the stream as no longer recording, and reports whether it was.
func (s *stream) captured() bool {
	was := s.capturing.Swap(false)
	if was {
		s.d.blas.captures.Add(-1)
	}
	return was
}

// EndCapture implements driver.Capturer. Afterwards the stream runs its work again, even if there
// is no graph because of an error.
func (s *stream) EndCapture(update driver.Graph) (driver.Graph, error) {
	const op = "end capture"
	var earlier *graph
	if update != nil {
		g, ok := update.(*graph)
		if !ok || g.d != s.d {
			return nil, s.d.errorf(op, driver.ErrInvalidArgument, "graph is a %T, or one of another device", update)
		}
		g.alive.Lock()
		defer g.alive.Unlock()
		if g.closed {
			return nil, s.d.errorf(op, driver.ErrClosed, "graph")
		}
		earlier = g
	}
	if err := s.enterCapture(op); err != nil {
		return nil, err
	}
	defer s.leave()
	var c cGraph
	if earlier != nil {
		c = earlier.c
	}
	c, f := s.t.captureEnd(s.c, c)
	s.captured()
	if f != nil {
		return nil, s.refuse(op, f)
	}
	if earlier != nil {
		earlier.c = c
		return earlier, nil
	}
	g := &graph{d: s.d, c: c}
	s.d.hold(g)
	return g, nil
}

// DropCapture implements driver.Capturer.
func (s *stream) DropCapture() error {
	const op = "drop capture"
	if err := s.enterCapture(op); err != nil {
		return err
	}
	defer s.leave()
	f := s.t.captureDrop(s.c)
	s.captured()
	if f != nil {
		return s.refuse(op, f)
	}
	return nil
}

// enterCapture is enter for operations that end a capture.
func (s *stream) enterCapture(op string) error {
	if err := s.enter(op); err != nil {
		return err
	}
	if !s.capturing.Load() {
		s.leave()
		return s.d.errorf(op, driver.ErrInvalidArgument, "the stream records no graph")
	}
	return nil
}

// Launch implements driver.Graph.
func (g *graph) Launch(on driver.Stream) error {
	const op = "launch graph"
	s, ok := on.(*stream)
	if !ok || s.d != g.d {
		return g.d.errorf(op, driver.ErrInvalidArgument, "stream is a %T, or one of another device", on)
	}
	g.alive.RLock()
	defer g.alive.RUnlock()
	if g.closed {
		return g.d.errorf(op, driver.ErrClosed, "graph")
	}
	if err := s.enterRunning(op); err != nil {
		return err
	}
	return s.queued(op, s.t.graphLaunch(g.c, s.c))
}

func (g *graph) order() int { return orderGraphs }

// Close implements driver.Graph.
func (g *graph) Close() error {
	g.alive.Lock()
	defer g.alive.Unlock()
	if g.closed {
		return nil
	}
	g.closed = true
	defer g.d.forget(g) // last, since the device's Close waits for the objects that it holds
	return g.d.freed("close graph", g.d.t.graphClose(g.c))
}
