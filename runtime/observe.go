package runtime

// Observers of a session, which are told what happens in it.

import (
	"context"
	"errors"
	"fmt"
	"runtime/pprof"
	"runtime/trace"
	"slices"
	"sync"

	"github.com/concord-compute/concord/runtime/driver"
	"github.com/concord-compute/concord/runtime/profile"
)

// listener is one call of Observe. Lists of them are replaced as a whole.
type listener struct{ profile.Observer }

// Observe tells an observer what happens on all devices of the session, until stop is called. That is launches,
// copies, fills and graphs of streams, allocations of the drivers, programs that are built, waits of the host,
// fallbacks, and regions. A profile.Recording keeps the events. It is not told of memory that the pool has already,
// nor when memory is freed; Device.Stats has the accounts of both.
//
// An event comes when it is over and somebody has noticed: work of a device when the host waits for it, closes its
// stream, or has queued some dozens of operations more. It then has the device's own times, brought to the host's
// clock, if the driver has any. Else DeviceTime is false, and it lasts from the call that queued it to the moment at
// which the host knew that it was done. Work that failed, and work behind it that did not run, has the error. A launch
// of a graph is one event. On cpu:0 there is also one of kind profile.Node for each of its operations, of equal Stream
// and within its time; other drivers do not tell when these ran. Amounts of work are known of copies and fills, of
// kernels of the catalog, and of launches whose Grid states them (see Grid.Does).
//
// The observer is called on the goroutines that use the runtime, and must not use the runtime itself. He is
// told of the work that is queued while he listens: stop fetches what is over without waiting, and work that is
// not over is reported with no length. stop may be called twice.
func (s *Session) Observe(o profile.Observer) (stop func()) {
	l := &listener{o}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.setListeners(append(slices.Clone(s.listening()), l))
	return sync.OnceFunc(func() { s.unobserve(l) })
}

// listening returns the session's observers.
func (s *Session) listening() []*listener {
	if list := s.listeners.Load(); list != nil {
		return *list
	}
	return nil
}

// setListeners replaces the list, with Session.mu held.
func (s *Session) setListeners(list []*listener) {
	if len(list) == 0 {
		s.listeners.Store(nil) // what every launch looks at
		return
	}
	s.listeners.Store(&list)
}

func (s *Session) unobserve(l *listener) {
	for _, st := range s.streams() {
		st.notes.fetch(st, nil, true)
	}
	s.mu.Lock()
	s.setListeners(without(s.listening(), l))
	s.mu.Unlock()
	for _, st := range s.streams() { // those from now on never knew him
		st.notes.leave(l)
	}
}

// without returns a list without a listener.
func without(list []*listener, l *listener) []*listener {
	return slices.DeleteFunc(slices.Clone(list), func(other *listener) bool { return other == l })
}

// streams returns the streams of all open devices.
func (s *Session) streams() (list []*Stream) {
	s.mu.Lock()
	var cores []*core
	for _, c := range s.open {
		cores = append(cores, c)
	}
	s.mu.Unlock()
	for _, c := range cores {
		list = append(list, c.streams.list()...)
	}
	return list
}

// observed reports whether anybody listens.
func (s *Session) observed() bool { return s.listeners.Load() != nil }

// tell tells everybody.
func (s *Session) tell(e profile.Event) {
	for _, l := range s.listening() {
		l.Observe(e)
	}
}

// Tell tells the session's observers of something that the program did itself, such as work of its own code on
// the host. Times are those of driver.Now.
func (s *Session) Tell(e profile.Event) { s.tell(e) }

// told is for what the host does: from a time of driver.Now until now.
func (s *Session) told(e profile.Event, start int64) {
	e.Start, e.End = start, driver.Now()
	s.tell(e)
}

// Region names a part of the program, from now until end is called on the same goroutine. It is an event for the
// session's observers, a region of runtime/trace, and the label concord_region of the CPU profile's samples. Where
// their libraries are installed, it is also a range of NVTX and of rocTX, which the vendors' profilers show. Regions
// may nest; the context is for those within.
func (s *Session) Region(ctx context.Context, name string) (in context.Context, end func()) {
	in = pprof.WithLabels(ctx, pprof.Labels("concord_region", name))
	pprof.SetGoroutineLabels(in)
	region := trace.StartRegion(in, name)
	var marks []func()
	for _, b := range s.backends() {
		if m, ok := b.(driver.Marker); ok {
			if end := m.Mark(name); end != nil {
				marks = append(marks, end)
			}
		}
	}
	start := driver.Now()
	return in, func() {
		for _, end := range marks {
			end()
		}
		region.End()
		pprof.SetGoroutineLabels(ctx)
		if s.observed() {
			s.told(profile.Event{Kind: profile.Region, Name: name}, start)
		}
	}
}

// observedSource is the driver's memory, for the pool.
type observedSource struct{ *core }

// Alloc implements mempool.Source.
func (c observedSource) Alloc(n int64, kind driver.MemoryKind) (driver.Memory, error) {
	if !c.session.observed() {
		return c.drv.Alloc(n, kind)
	}
	start := driver.Now()
	m, err := c.drv.Alloc(n, kind)
	c.session.told(profile.Event{Kind: profile.Alloc, Name: kind.String(), Device: c.info.ID, Bytes: float64(n), Err: err},
		start)
	return m, err
}

// Free implements mempool.Source.
func (c observedSource) Free(m driver.Memory) error { return c.drv.Free(m) }

// observedAlloc allocates in the order of the stream. A driver that cannot has not failed.
func (s *Stream) observedAlloc(here driver.StreamAllocator, n int64) (driver.Memory, error) {
	session := s.core.session
	if !session.observed() {
		return here.AllocHere(n)
	}
	start := driver.Now()
	m, err := here.AllocHere(n)
	if !errors.Is(err, ErrUnsupported) {
		session.told(profile.Event{Kind: profile.Alloc, Name: OnDevice.String(), Device: s.core.info.ID, Stream: s.number,
			Bytes: float64(n), Err: err}, start)
	}
	return m, err
}

// waited tells that the host waited for the stream from start until now.
func (s *Stream) waited(name string, start int64, err error) {
	s.core.session.told(profile.Event{Kind: profile.Wait, Name: name, Device: s.core.info.ID, Stream: s.number, Err: err},
		start)
}

// launchEvent describes a launch of k that ran as the driver's kernel.
func (s *Stream) launchEvent(k *Kernel, g *Grid) profile.Event {
	flops, bytes := s.workOf(k, g)
	info := s.spec.Kernel.Info()
	return profile.Event{Kind: profile.Launch, Name: k.id, Items: s.spec.Global, Group: s.spec.Local, Flops: flops,
		Bytes:     bytes,
		Registers: info.Registers, SpillBytes: info.SpillBytes, LocalBytes: info.LocalBytes, Detail: info.Implementation}
}

// workOf returns the work of the launch that is packed: what the grid states or, if that is nothing, what the
// program's family knows.
func (s *Stream) workOf(k *Kernel, g *Grid) (flops, bytes float64) {
	if g.flops != 0 || g.bytes != 0 {
		return g.flops, g.bytes
	}
	values := s.values[:0]
	for _, a := range s.spec.Args {
		var v []byte
		if a.Kind == driver.ArgValue {
			v = s.spec.Data[a.Offset:][:a.Size:a.Size]
		}
		values = append(values, v)
	}
	s.values = values
	return k.Unit().Work(k.decl, s.spec.Global, values)
}

// copyEvent describes a copy.
func copyEvent(from, to string, bytes int64) profile.Event {
	return profile.Event{Kind: profile.Copy, Name: from + " to " + to, Bytes: float64(bytes)}
}

// place names where memory is.
func place(m driver.Memory) string {
	if m.Kind == driver.Pinned {
		return "host"
	}
	return "device"
}

// graphEvent describes a launch of the graph.
func (g *Graph) graphEvent() profile.Event {
	e := profile.Event{Kind: profile.Graph, Name: "graph", Detail: fmt.Sprintf("%d launches", g.does.kernels)}
	if !g.does.unknown {
		e.Flops, e.Bytes = g.does.flops, g.does.bytes
	}
	return e
}
