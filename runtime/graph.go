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
// number of times. Each launch does exactly what was recorded, with the same buffers. The graph
// keeps these buffers and its kernels' programs alive until it is closed, even if they are closed
// before. It is safe for concurrent use.
type Graph struct {
	core     *core
	priority Priority

	mu       sync.Mutex // held while it is launched, replaced or closed
	drv      driver.Graph
	software bool // recorded by recorder, not by the driver
	kept     *capture
	streams  []*Stream // the streams that it was launched on
	closed   bool
}

// capture holds the memory and the programs that a recording uses.
type capture struct {
	memory   map[*allocation]struct{}
	programs map[*programCore]struct{}
	kernels  int64 // launches
	ended    bool
}

// Capture returns a graph of the launches, copies and fills that record queues on the stream it is
// given. None of them runs yet. That stream is a new one with the priority of s, and ends with
// record; s and all other streams are not affected.
//
// On the recording stream Read, Write, Sync, Record, Wait, Prefetch, Run and the launch of a graph
// return ErrInvalidArgument and do not disturb the recording. Buffers that record allocates and
// programs that it builds are made at once and are not part of the graph; memory that is closed
// meanwhile is freed afterwards. If record returns an error or panics, the recording is dropped;
// the error is returned.
//
// Where the driver has graphs, the result is one of them; elsewhere Concord keeps the checked and
// packed calls and queues them again. The caller closes the graph.
func (s *Stream) Capture(record func(s *Stream) error) (*Graph, error) {
	const op = "capture"
	if err := s.live(op); err != nil {
		return nil, err
	}
	if err := s.lock(op); err != nil {
		return nil, err
	}
	s.mu.Unlock()
	g := &Graph{core: s.core, priority: s.priority, kept: &capture{}}
	if err := g.record(op, false, record); err != nil {
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
	closed, software := g.closed, g.software
	g.mu.Unlock()
	if closed {
		return g.core.closedError(op)
	}
	return g.record(op, software, record)
}

// record calls the function with a recording stream, and makes the calls that it queues there the
// contents of the graph. Concord records them if software is true or the driver has no graphs.
func (g *Graph) record(op string, software bool, record func(s *Stream) error) error {
	if record == nil {
		return g.core.error(op, fmt.Errorf("function is nil: %w", ErrInvalidArgument))
	}
	s, software, err := g.core.streams.newRecording(g.priority, software)
	if err != nil {
		return err
	}
	kept := s.capture
	defer func() { // also when record panics
		if err := s.close(); err != nil {
			g.core.session.debug(1, "closing a recording stream", "device", g.core.info.ID, "error", err)
		}
		kept.release()
	}()
	if err := record(s); err != nil {
		return err
	}
	if !g.core.enter() {
		return g.core.closedError(op)
	}
	defer g.core.leave()
	old, err := g.replace(op, s, software)
	if err == nil {
		kept = old
	}
	return err
}

// replace makes the recording of s the contents of the graph, and returns the previous contents'
// buffers and programs.
func (g *Graph) replace(op string, s *Stream, software bool) (old *capture, err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	if g.closed || s.closed {
		return nil, g.core.closedError(op)
	}
	s.capture.ended = true
	drv, err := s.drv.(driver.Capturer).EndCapture(g.drv)
	if err != nil {
		return nil, g.core.noticed(s.core.named(op, err))
	}
	g.core.streams.mu.Lock()
	g.core.streams.graphs[g] = struct{}{} // the map still exists, since the caller has entered
	g.core.streams.mu.Unlock()
	old, g.kept = g.kept, s.capture
	g.drv, g.software = drv, software
	return old, nil
}

// Launch queues the whole graph on a stream of its device, and returns. A later failure is an error
// of the stream.
func (g *Graph) Launch(s *Stream) error {
	const op = "launch graph"
	if g == nil || g.core == nil {
		return fmt.Errorf("%s: graph is nil: %w", op, ErrInvalidArgument)
	}
	if err := s.live(op); err != nil {
		return err
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		return g.core.closedError(op)
	}
	return s.queue(op, func() error {
		if s.core != g.core {
			return fmt.Errorf("graph of %s: %w", g.core.info.ID, ErrInvalidArgument)
		}
		if !slices.Contains(g.streams, s) {
			g.streams = slices.DeleteFunc(g.streams, func(s *Stream) bool { return s.gone.Load() && !s.busy() })
			g.streams = append(g.streams, s)
		}
		for a := range g.kept.memory {
			if err := a.usedBy(s); err != nil {
				return err
			}
		}
		if err := g.drv.Launch(s.drv); err != nil {
			return err
		}
		s.launches.Add(g.kept.kernels)
		return nil
	})
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
	err := g.drv.Close()
	g.kept.release()
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
	return g.drv.Close()
}

// newRecording returns a stream that records, with the driver's graphs if it has them.
func (set *streams) newRecording(p Priority, software bool) (s *Stream, isSoftware bool, err error) {
	if !set.core.enter() {
		return nil, false, set.core.closedError("capture")
	}
	defer set.core.leave()
	var drv driver.Stream
	if !software {
		if drv, err = set.beginCapture(p); err != nil {
			return nil, false, set.core.noticed(err)
		}
	}
	if drv == nil {
		drv, software = &recorder{}, true
	}
	return set.register(&Stream{core: set.core, drv: drv, priority: p, capture: &capture{
		memory: map[*allocation]struct{}{}, programs: map[*programCore]struct{}{}}}), software, nil
}

// beginCapture returns a stream of the driver in capture mode, or nil if the driver has no graphs.
func (set *streams) beginCapture(p Priority) (driver.Stream, error) {
	if _, ok := set.own.drv.(driver.Capturer); !ok {
		return nil, nil
	}
	drv, err := set.driverStream(p)
	if err != nil {
		return nil, err
	}
	set.capturing.Add(1)
	if err = drv.(driver.Capturer).BeginCapture(); err == nil {
		return drv, nil
	}
	set.capturing.Add(-1)
	if closeErr := drv.Close(); !errors.Is(err, ErrUnsupported) {
		return nil, errors.Join(err, closeErr)
	}
	return nil, nil
}

// stopRecording takes the driver's stream out of capture mode if it is in it.
func (s *Stream) stopRecording() error {
	var err error
	if !s.capture.ended {
		err = s.drv.(driver.Capturer).DropCapture()
	}
	if _, software := s.drv.(*recorder); !software {
		s.core.streams.capturing.Add(-1)
	}
	return err
}

// keep holds memory for as long as the recording is needed. The caller holds references to it.
func (k *capture) keep(memory []*allocation) {
	for _, a := range memory {
		if _, have := k.memory[a]; !have && a.ref() {
			k.memory[a] = struct{}{}
		}
	}
}

// keepProgram does the same for the program of a kernel.
func (k *capture) keepProgram(p *programCore) error {
	if _, have := k.programs[p]; have {
		return nil
	}
	if !p.retain() {
		return fmt.Errorf("program: %w", ErrClosed)
	}
	k.programs[p] = struct{}{}
	return nil
}

func (k *capture) release() {
	for a := range k.memory {
		a.unref()
	}
	for p := range k.programs {
		_ = p.release() // a graph has nowhere to report a module that does not unload
	}
}
