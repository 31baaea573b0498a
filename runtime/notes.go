package runtime

// What a stream's observed work waits for: its times.

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/concord-compute/concord/runtime/driver"
	"github.com/concord-compute/concord/runtime/profile"
)

const (
	mostNotes  = 4096  // operations of a stream without times that are kept; more wait for no times
	fetchEvery = 64    // operations after which times are fetched though nobody waits
	clockEvery = 100e6 // nanoseconds after which the clocks are read again
	mostDrift  = 1e-3  // of a clock; a larger one is a mistake of a reading
	timesLate  = 50e6  // nanoseconds after which times of work that is done are not waited for
)

// notes are the operations of a stream that were queued while somebody listened and are not over.
type notes struct {
	number uint64 // of the last operation; changed with the stream held
	began  int64  // when the call under way began; so, too
	timing bool   // the driver notes its times; so, too

	mu       sync.Mutex
	reads    bool             // readLater is under way
	open     []note           // oldest first
	lines    driver.Timeliner // nil if the driver's stream has no times
	of       driver.Stream    // the stream that lines is of
	spans    []driver.Span
	over     []telling // what fetch tells
	from, to reading   // the last two readings of the clocks
	end      int64     // of the last operation
}

// note is one operation.
type note struct {
	op    uint64
	queue uint64 // the work of the stream that it is part of, as Stream.queued counts it
	event profile.Event
	parts []profile.Event // of a graph: its operations
	to    []*listener     // the observers at the time when it was queued, without those that have been removed since
}

// telling is an event, and the observers that are told of it.
type telling struct {
	event profile.Event
	to    []*listener
}

// reading is a device's clock and the host's at the same moment.
type reading struct{ device, host int64 }

// begin begins an operation, if somebody listens. The caller holds the stream, and calls done after the driver's
// calls, if begin returned true.
func (s *Stream) begin() bool {
	if !s.core.session.observed() || s.capture != nil {
		return false
	}
	n := &s.notes
	n.number++
	n.mu.Lock()
	if n.of != s.drv {
		n.of, n.from, n.to = s.drv, reading{}, reading{}
		n.lines, _ = s.drv.(driver.Timeliner)
	}
	lines := n.lines
	if len(n.open) >= mostNotes {
		lines = nil
	}
	n.mu.Unlock()
	n.began = driver.Now()
	n.timing = lines != nil && n.time(lines, n.number)
	return true
}

// time begins or, with 0, ends an operation of the driver's.
func (n *notes) time(lines driver.Timeliner, op uint64) bool {
	err := lines.Time(op)
	if errors.Is(err, ErrUnsupported) {
		n.mu.Lock()
		n.lines = nil
		n.mu.Unlock()
	}
	return err == nil
}

// done ends an operation that begin began; e says what it was, parts what it consists of, and err why it was refused.
func (s *Stream) done(e profile.Event, err error, parts ...profile.Event) {
	n := &s.notes
	if n.timing {
		n.time(s.drv.(driver.Timeliner), 0)
	}
	e.Device, e.Stream, e.Queued, e.Start, e.End = s.core.info.ID, s.number, n.began, n.began, driver.Now()
	if err != nil {
		e.Err = err
		s.core.session.tell(e)
		return
	}
	n.mu.Lock()
	to := s.core.session.listening()
	if len(to) == 0 { // the last observer has left meanwhile
		n.mu.Unlock()
		return
	}
	if len(n.open) >= mostNotes { // memory is bounded, whatever is queued
		n.mu.Unlock()
		e.End = e.Start
		e.Detail = "too much work is queued to wait for its times"
		s.core.session.tell(e)
		return
	}
	n.open = append(n.open, note{n.number, s.queued.Load() + 1, e, parts, to})
	n.mu.Unlock()
	if n.number%fetchEvery == 0 {
		n.fetch(s, nil, false)
	}
}

// fetch tells what is over. failed is why the stream's remaining work will never be, or nil. If the call must
// not wait, the clocks are read by a goroutine, for the calls after this one.
func (n *notes) fetch(s *Stream, failed error, mayWait bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if len(n.open) == 0 && !s.gone.Load() || n.of == nil {
		return
	}
	if n.lines != nil && !mayWait && !s.core.isAbandoned() {
		if n.readLater(); n.to == (reading{}) {
			return
		}
	}
	// before the driver is asked: it knows the times of all that is finished
	now, finished := driver.Now(), s.finished.Load()
	var spans []driver.Span
	if s.core.isAbandoned() {
		failed = s.core.lost()
	} else if n.lines != nil {
		n.spans = n.lines.Spans(n.spans[:0])
		if mayWait && failed == nil {
			n.awaitTimes(finished)
		}
		if spans = n.spans; len(spans) > 0 && !n.readClocks(mayWait) {
			spans = nil
		}
	}
	keep, over := n.open[:0], n.over[:0]
	for _, o := range n.open {
		for len(spans) > 0 && spans[0].Op < o.op { // of a call that the driver refused
			spans = spans[1:]
		}
		switch {
		case len(spans) > 0 && spans[0].Op == o.op:
			e := &o.event
			e.Start = max(n.host(spans[0].Start), e.Queued, n.end)
			e.End = max(n.host(spans[0].End), e.Start)
			e.DeviceTime, n.end = true, e.End
			if len(spans[0].Parts) == len(o.parts) {
				over = n.appendParts(over, &o, spans[0].Parts)
			}
			spans = spans[1:]
		case failed != nil:
			o.event.Err, o.event.End = failed, o.event.Start
		case o.queue <= finished && (mayWait || n.lines == nil):
			o.event.End = max(now, o.event.Start)
		default:
			keep = append(keep, o)
			continue
		}
		over = append(over, telling{o.event, o.to})
	}
	clear(n.open[len(keep):])
	n.open, n.over = keep, over
	// The observers are told at the end, as one of them may panic. The notes are locked until then, since stopping an
	// observation waits for the lock, so that its observer gets no event afterwards.
	for i := range over {
		for _, l := range over[i].to {
			l.Observe(over[i].event)
		}
	}
	clear(over)
}

// appendParts appends the operations of a graph, which ended at times of the device's clock.
func (n *notes) appendParts(over []telling, o *note, ends []int64) []telling {
	whole, at := &o.event, o.event.Start
	for i, e := range o.parts {
		e.Device, e.Stream, e.Queued, e.DeviceTime = whole.Device, whole.Stream, whole.Queued, true
		e.Start = at
		at = min(max(n.host(ends[i]), at), whole.End)
		e.End = at
		over = append(over, telling{e, o.to})
	}
	return over
}

// awaitTimes fetches until the times of all work are there that is done: the device notes them a moment later.
func (n *notes) awaitTimes(finished uint64) {
	due := uint64(0)
	for i := range n.open {
		if n.open[i].queue <= finished {
			due = n.open[i].op
		}
	}
	for end := driver.Now() + timesLate; due > 0 && (len(n.spans) == 0 || n.spans[len(n.spans)-1].Op < due) &&
		driver.Now() < end; {
		time.Sleep(20 * time.Microsecond)
		n.spans = n.lines.Spans(n.spans)
	}
}

// readClocks reads the clocks again if the last reading is old, and reports whether there is one.
func (n *notes) readClocks(mayWait bool) bool {
	first := n.to == reading{}
	if !first && (!mayWait || driver.Now()-n.to.host < clockEvery) {
		return true
	}
	device, host, err := n.lines.Clock()
	if err == nil {
		n.read(reading{device, host})
	}
	return err == nil || !first
}

// read keeps a reading.
func (n *notes) read(now reading) {
	switch {
	case n.to == reading{}:
		n.from, n.to = now, now
	case now != n.to:
		n.from, n.to = n.to, now
	}
}

// readLater reads the clocks if the last reading is old, on a goroutine, since that may wait.
func (n *notes) readLater() {
	if n.reads || n.to != (reading{}) && driver.Now()-n.to.host < clockEvery {
		return
	}
	n.reads = true
	go func(of driver.Stream, lines driver.Timeliner) {
		device, host, err := lines.Clock()
		n.mu.Lock()
		defer n.mu.Unlock()
		n.reads = false
		if err == nil && n.of == of && host >= n.to.host {
			n.read(reading{device, host})
		}
	}(n.of, n.lines)
}

// host converts a time of the device's clock. Between two readings, and beyond, the clocks differ by a constant
// rate.
func (n *notes) host(device int64) int64 {
	rate := 1.0
	if d, h := n.to.device-n.from.device, n.to.host-n.from.host; d > 0 && float64(h-d) < mostDrift*float64(d) &&
		float64(d-h) < mostDrift*float64(d) {
		rate = float64(h) / float64(d)
	}
	past := device - n.to.device
	return n.to.host + past + int64(float64(past)*(rate-1))
}

// leave tells an observer that was removed of the work that is not over. It is told nothing after that.
func (n *notes) leave(l *listener) {
	var missed []profile.Event
	n.mu.Lock()
	keep := n.open[:0]
	for _, o := range n.open {
		if slices.Contains(o.to, l) {
			missed = append(missed, o.event)
			o.to = without(o.to, l)
		}
		if len(o.to) > 0 {
			keep = append(keep, o)
		}
	}
	clear(n.open[len(keep):])
	n.open = keep
	n.mu.Unlock()
	for _, e := range missed {
		e.End, e.Detail = e.Start, "not over when the observation ended"
		l.Observe(e)
	}
}

// ended is what fetch takes as the failure of a stream: none of an error of a context.
func ended(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return err
}
