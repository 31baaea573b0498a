//go:build cgo && unix

package cgo

// Times of work: an event before each operation and one behind it, and the device's clock, which counts from
// events that the host has waited for.

import (
	"context"
	"sync"

	"github.com/concord-compute/concord/runtime/driver"
)

var _ driver.Timeliner = (*stream)(nil)

// timed is an operation of driver.Timeliner.
type timed struct {
	op         uint64
	start, end *event // end is nil while the operation is open
	from       *anchor
}

// times are the operations of a stream whose times nobody has fetched.
type times struct {
	mu   sync.Mutex
	list []*timed // oldest first; the last one may be open
}

// anchor is a point of the device's clock: an event.
type anchor struct {
	event  *event
	device int64
	host   int64 // 0 if nobody has waited for the event
	users  int   // operations, and the clock; guarded by the clock's mu
}

// clock is the clock of a device: nanoseconds since its first anchor. Drivers measure in milliseconds of
// float32, which are fine only near an anchor.
type clock struct {
	turn  sync.Mutex // held by the call that replaces the anchor, and waits for it
	least int64      // nanoseconds from recording an event to knowing that it is over, at best; guarded by turn

	mu     sync.Mutex // nobody waits for work with it held
	stream *stream    // has nothing but the events of anchors
	now    *anchor    // the newest
}

// anchorAge is the time in nanoseconds after which Clock replaces the anchor.
const anchorAge = 200e6

// anchor returns the newest anchor, which the caller drops. It makes one if there is none, and does not wait for it.
func (d *device) anchor() (*anchor, error) {
	c := &d.clock
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.begin(d); err != nil {
		return nil, err
	}
	c.now.users++
	return c.now, nil
}

// begin makes the first anchor. The caller holds mu.
func (c *clock) begin(d *device) error {
	if c.now != nil {
		return nil
	}
	if c.stream == nil {
		s, err := d.NewStream()
		if err != nil {
			return err
		}
		c.stream = s.(*stream)
	}
	e, err := c.stream.record(true)
	if err == nil {
		c.now = &anchor{event: e, users: 1}
	}
	return err
}

// renew replaces the anchor by one of the present moment, and waits for that. The host may notice late that an event is
// over; of a few events it takes the one that took the least, unless the first took little. The caller has the turn.
func (c *clock) renew(d *device) error {
	c.mu.Lock()
	err := c.begin(d)
	last := c.now
	c.mu.Unlock()
	if err != nil {
		return err
	}
	var best *anchor
	least := int64(0)
	for range 5 {
		before := driver.Now()
		e, err := c.stream.record(true)
		if err == nil {
			if err = e.Wait(context.Background()); err != nil {
				_ = e.Close()
			}
		}
		if err != nil {
			if best != nil {
				_ = best.event.Close()
			}
			return err
		}
		took := driver.Now() - before
		if best == nil || took < least {
			if best != nil {
				_ = best.event.Close()
			}
			best, least = &anchor{event: e, host: before + took/2, users: 1}, took
		} else {
			_ = e.Close()
		}
		if least <= 2*c.least { // never for the first anchor
			break
		}
	}
	if c.least == 0 || least < c.least {
		c.least = least
	}
	if best.device, err = last.until(best.event); err != nil {
		_ = best.event.Close()
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	last.drop()
	c.now = best
	return nil
}

// until returns the device's time of an event that is over.
func (a *anchor) until(e *event) (int64, error) {
	const op = "elapsed"
	for _, used := range []*event{e, a.event} {
		if err := used.acquire(op); err != nil {
			return 0, err
		}
		defer used.release()
	}
	took, f := e.s.t.eventElapsed(a.event.c, e.c)
	return a.device + int64(took), e.s.d.failed(op, f)
}

// drop ends one use. The caller holds the clock.
func (a *anchor) drop() {
	if a.users--; a.users == 0 {
		_ = a.event.Close()
	}
}

// drop releases the events of an operation.
func (t *timed) drop(c *clock) {
	for _, e := range []*event{t.start, t.end} {
		if e != nil {
			_ = e.Close()
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	t.from.drop()
}

// Time implements driver.Timeliner.
func (s *stream) Time(op uint64) error {
	l := &s.times
	l.mu.Lock()
	defer l.mu.Unlock()
	if n := len(l.list); n > 0 && l.list[n-1].end == nil {
		t := l.list[n-1]
		end, err := s.record(true)
		if err != nil { // the stream has failed, or is closed
			l.list = l.list[:n-1]
			t.drop(&s.d.clock)
			return err
		}
		t.end = end
	}
	if op == 0 {
		return nil
	}
	from, err := s.d.anchor()
	if err != nil {
		return err
	}
	t := &timed{op: op, from: from}
	if t.start, err = s.record(true); err != nil {
		t.drop(&s.d.clock)
		return err
	}
	l.list = append(l.list, t)
	return nil
}

// Spans implements driver.Timeliner.
func (s *stream) Spans(to []driver.Span) []driver.Span {
	l := &s.times
	l.mu.Lock()
	defer l.mu.Unlock()
	closed := len(l.list)
	if closed > 0 && l.list[closed-1].end == nil {
		closed--
	}
	done := func(e *event) bool {
		is, err := e.Done()
		return is && err == nil
	}
	all := closed > 0 && done(l.list[closed-1].end) // as after most waits: then no other is asked
	n := 0
	for ; n < closed && (all || done(l.list[n].end)) && done(l.list[n].from.event); n++ {
		t := l.list[n]
		start, err := t.from.until(t.start)
		end, err2 := t.from.until(t.end)
		if err != nil || err2 != nil {
			break
		}
		to = append(to, driver.Span{Op: t.op, Start: start, End: end})
		t.drop(&s.d.clock)
	}
	s.alive.RLock()
	gone := s.closed
	s.alive.RUnlock()
	if clear(l.list[:n]); gone {
		for _, t := range l.list[n:] {
			t.drop(&s.d.clock)
		}
		n = len(l.list)
	}
	if l.list = l.list[n:]; len(l.list) == 0 {
		l.list = nil
	}
	return to
}

// Clock implements driver.Timeliner.
func (s *stream) Clock() (device, host int64, err error) {
	c := &s.d.clock
	c.turn.Lock()
	defer c.turn.Unlock()
	c.mu.Lock()
	a := c.now
	c.mu.Unlock()
	if a == nil || a.host == 0 || driver.Now()-a.host > anchorAge {
		if err := c.renew(s.d); err != nil {
			return 0, 0, err
		}
		a = c.now // nobody else has the turn
	}
	return a.device, a.host, nil
}
