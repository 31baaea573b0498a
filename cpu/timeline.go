package cpu

// Times of work: the worker notes when it began and ended each piece.

import (
	"slices"

	"github.com/concord-compute/concord/runtime/driver"
)

var _ driver.Timeliner = (*stream)(nil)

// timed is an operation of driver.Timeliner. The stream's mu guards it, except for Parts, which is the worker's
// until the piece of work has passed.
type timed struct {
	driver.Span
	left   int // pieces of work that are queued and not done
	began  bool
	closed bool // it gets no more pieces
}

// Time implements driver.Timeliner.
func (s *stream) Time(op uint64) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if t := s.timing; t != nil {
		t.closed = true
		if !t.began && t.left == 0 { // it queued nothing
			t.Start = driver.Now()
			t.End = t.Start
		}
	}
	s.timing = nil
	if op != 0 {
		if last := len(s.fetched) - 1; last >= 0 {
			s.timing, s.fetched = s.fetched[last], s.fetched[:last]
		} else {
			s.timing = new(timed)
		}
		*s.timing = timed{Span: driver.Span{Op: op}}
		s.times = append(s.times, s.timing)
	}
	return nil
}

// passed notes that a piece of an operation ran from start until now.
func (s *stream) passed(t *timed, start int64) {
	end := driver.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	if !t.began {
		t.began, t.Start = true, start
	}
	t.End = end
	t.left--
}

// here performs work on the caller's goroutine, as a piece of the operation that is timed now, if there is one.
func (s *stream) here(do func() error) error {
	s.mu.Lock()
	t := s.timing
	if t != nil {
		t.left++
	}
	s.mu.Unlock()
	if t == nil {
		return do()
	}
	start := driver.Now()
	err := do()
	if err == nil {
		s.passed(t, start)
	}
	return err
}

// Spans implements driver.Timeliner.
func (s *stream) Spans(to []driver.Span) []driver.Span {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := 0
	for n < len(s.times) && s.times[n].closed && s.times[n].left == 0 {
		to = append(to, s.times[n].Span)
		n++
	}
	s.fetched = append(s.fetched, s.times[:n]...)
	s.times = slices.Delete(s.times, 0, n)
	if s.closed {
		s.times, s.fetched = nil, nil
	}
	return to
}

// Clock implements driver.Timeliner: the workers use the host's clock.
func (s *stream) Clock() (device, host int64, err error) {
	now := driver.Now()
	return now, now, nil
}
