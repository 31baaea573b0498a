//go:build cgo && opencl && (linux || darwin)

package opencl

// Times of work: the profiling times of the commands' events.

import (
	"github.com/go-gl/cl/v1.2/cl"

	"github.com/concord-compute/concord/runtime/driver"
)

var _ driver.Timeliner = (*stream)(nil)

// timed is an operation of driver.Timeliner, with references to the events of its first and its last
// command. The stream's mu guards it.
type timed struct {
	op     uint64
	called int64 // the host's time before the first command was queued
	known  int64 // and after it
	first  clEvent
	last   clEvent
	copy   clEvent // of a copy under way that is waited for
	closed bool
}

// reading is a pair of times at the same moment, as far as the host knows it: within some nanoseconds, within.
type reading struct{ device, host, within int64 }

// readingOf is the reading of a command that was queued between two times of the host.
func readingOf(queued uint64, before, after int64) reading {
	within := max((after-before)/2, 1)
	return reading{int64(queued), before + within, within}
}

// readClocks reads the clocks by a marker.
func (d *device) readClocks() (r reading, err error) {
	const op = "read the clocks"
	err = d.own(op, func(q cl.CommandQueue) error {
		s, err := d.stamp(op, q)
		if err != nil {
			return err
		}
		r = readingOf(s.times[0], s.before, s.after)
		return d.failed(op, s.code, driver.ErrUnsupported)
	})
	return r, err
}

// queued notes the commands from number n on.
func (t *timed) queued(q queue, n uint64) {
	if e, ok := q.at(n); ok && t.first.c == nil {
		t.first, t.known = e, driver.Now()
	} else if ok {
		e.release()
	}
	if e, ok := q.at(q.next() - 1); ok {
		t.last.drop()
		t.last = e
	}
}

// waited returns where the event of a copy goes that is waited for; nil if nobody wants its times.
func (t *timed) waited() *clEvent {
	if t == nil {
		return nil
	}
	return &t.copy
}

// copied takes over the event of a copy that was waited for.
func (t *timed) copied() {
	if t.first.c == nil {
		t.first = t.copy
		t.first.retain()
	}
	t.last.drop()
	t.last, t.copy = t.copy, clEvent{}
}

func (e clEvent) drop() {
	if e.c != nil {
		e.release()
	}
}

// Time implements driver.Timeliner. Queues without profiling and drivers without useful times have none.
func (s *stream) Time(op uint64) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if op != 0 && s.reading.within == 0 {
		useless, err := s.d.noTimes()
		if err == nil && (useless || !s.timed) {
			err = s.d.errorf("time", driver.ErrUnsupported, "the driver reports no times of this queue's work")
		}
		if err == nil {
			s.reading, err = s.d.readClocks()
		}
		if err != nil {
			return err
		}
	}
	if s.timing != nil {
		s.timing.closed = true
	}
	s.timing = nil
	if op != 0 {
		s.timing = &timed{op: op, called: driver.Now()}
		s.times = append(s.times, s.timing)
	}
	return nil
}

// Spans implements driver.Timeliner.
func (s *stream) Spans(to []driver.Span) []driver.Span {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := 0
	for ; n < len(s.times) && s.times[n].closed; n++ {
		t := s.times[n]
		if t.last.c == nil { // it queued nothing
			now := driver.Now() + s.reading.device - s.reading.host
			to = append(to, driver.Span{Op: t.op, Start: now, End: now})
			continue
		}
		if state, code := t.last.status(); code != cl.SUCCESS || state != 0 {
			break
		}
		first, code := t.first.times()
		last, code2 := first, code
		if t.last.c != t.first.c {
			last, code2 = t.last.times()
		}
		if code != cl.SUCCESS || code2 != cl.SUCCESS {
			break
		}
		to = append(to, driver.Span{Op: t.op, Start: int64(first[2]), End: int64(last[3])})
		if r := readingOf(first[0], t.called, t.known); t.known != 0 && r.within <= 2*max(s.reading.within, 5000) {
			s.reading = r // others queued a kernel that the driver compiled first
		}
		t.release()
	}
	if clear(s.times[:n]); s.closed {
		for _, t := range s.times[n:] {
			t.release()
		}
		n = len(s.times)
	}
	if s.times = s.times[n:]; len(s.times) == 0 {
		s.times = nil
	}
	return to
}

func (t *timed) release() {
	t.first.drop()
	t.last.drop()
}

// Clock implements driver.Timeliner: the time at which the driver says that a command was queued, and the host's
// around that call.
func (s *stream) Clock() (device, host int64, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.reading.device, s.reading.host, nil
}
