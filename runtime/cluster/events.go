package cluster

// What a Runner tells of.

import (
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/concord-compute/concord/runtime"
	"github.com/concord-compute/concord/runtime/driver"
)

// Event is something that a [Runner] tells of: that a unit of work goes on with another device, and how that ended; or
// that a device works again.
type Event struct {
	Time     time.Time
	Kind     EventKind
	Op       string        // of the unit
	From, To string        // devices
	Reason   string        // why the unit left a device: "device lost", "timeout", "memory exhausted", "repeated failures"
	Took     time.Duration // from the failure to the end on the next device, of Completed and Failed
	Err      error
}

// EventKind is what an [Event] tells of.
type EventKind uint8

// The events. A unit that fails on one device and goes on with another one has Started, and then Completed or Failed;
// Exhausted if it has failed on all.
const (
	Started EventKind = iota
	Completed
	Failed
	Restored // a device that was at rest works again
	Exhausted
)

var eventNames = [...]string{"started", "completed", "failed", "restored", "exhausted"}

// String returns the kind as a word.
func (k EventKind) String() string { return eventNames[min(int(k), len(eventNames)-1)] }

// String returns "failover started: search leaves cuda:0 for cpu:0: device lost".
func (e Event) String() string {
	text := fmt.Sprintf("failover %v: ", e.Kind)
	switch e.Kind {
	case Started:
		return fmt.Sprintf("%s%s leaves %s for %s: %s", text, e.Op, e.From, e.To, e.Reason)
	case Restored:
		return text + e.To + " works again"
	case Exhausted:
		return fmt.Sprintf("%s%v", text, e.Err)
	}
	text += fmt.Sprintf("%s on %s after %v", e.Op, e.To, e.Took.Round(time.Millisecond))
	if e.Err != nil {
		text += ": " + e.Err.Error()
	}
	return text
}

func (e Event) as(k EventKind) Event {
	e.Kind = k
	return e
}

// reasonOf says in few words why a device was left.
func reasonOf(err error) string {
	for _, r := range []struct {
		is   error
		text string
	}{{driver.ErrTimeout, "timeout"}, {runtime.ErrDeviceLost, "device lost"}, {runtime.ErrOutOfMemory, "memory exhausted"},
		{driver.ErrTooLarge, "memory exhausted"}, {runtime.ErrCompile, "program did not build"},
		{runtime.ErrUnsupported, "not supported"}, {runtime.ErrNoDevice, "no device"}} {
		if errors.Is(err, r.is) {
			return r.text
		}
	}
	return "repeated failures"
}

// keptEvents is how many events a Runner keeps, and how many may wait to be told.
const keptEvents = 100

// tell keeps an event, and has it told. The runner is not locked.
func (r *Runner) tell(e Event) {
	e.Time = r.now()
	r.mu.Lock()
	defer r.mu.Unlock()
	add := func(list []Event) []Event { return append(slices.Clone(list[max(0, len(list)+1-keptEvents):]), e) }
	r.events = add(r.events)
	if r.o.Tell == nil {
		return
	}
	r.untold = add(r.untold)
	if !r.tells {
		r.tells = true
		go r.tellAll()
	}
}

// tellAll calls the program's function until no event is left. The first of its panics is logged.
func (r *Runner) tellAll() {
	panicked, told := false, false
	defer func() { // also if the function ends the goroutine
		if !told {
			r.mu.Lock()
			defer r.mu.Unlock()
			if r.tells = len(r.untold) > 0; r.tells {
				go r.tellAll()
			}
		}
	}()
	for {
		r.mu.Lock()
		if len(r.untold) == 0 {
			r.tells, told = false, true
			r.mu.Unlock()
			return
		}
		e := r.untold[0]
		r.untold = r.untold[1:]
		r.mu.Unlock()
		func() {
			defer func() {
				if p := recover(); p != nil && !panicked {
					panicked = true
					slog.Error("concord: a function for events of failover panicked", "event", e.String(), "panic", p)
				}
			}()
			r.o.Tell(e)
		}()
	}
}

// Events returns the last events, 100 at most, the oldest first.
func (r *Runner) Events() []Event {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.events)
}

// Stats returns what was counted so far.
func (r *Runner) Stats() RunnerStats {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.stats
}

// Standby is how a device of a [Runner] does.
type Standby struct {
	Name string
	Health
	Until time.Time // the end of its rest; zero if it gets work
}

// Devices returns how the devices do, in the order of preference.
func (r *Runner) Devices() []Standby {
	var list []Standby
	for _, d := range r.devices {
		s := Standby{Name: d.name, Health: d.health.get()}
		r.mu.Lock()
		if d.rest != nil {
			s.Until = d.rest.until
		}
		r.mu.Unlock()
		list = append(list, s)
	}
	return list
}

// String returns "cpu:0 healthy, 12 calls, 1 failure".
func (s Standby) String() string {
	text := fmt.Sprintf("%s %v, %d calls, %d failures", s.Name, s.State, s.Calls, s.Failures)
	if !s.Until.IsZero() {
		text += ", rests until " + s.Until.Format(time.TimeOnly)
	}
	return text
}
