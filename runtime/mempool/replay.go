package mempool

// Replays: the requests of a trace, served by another pool.

import (
	"errors"
	"fmt"
	"time"

	"github.com/concord-compute/concord/runtime/driver"
)

// Sample is the amount of memory at one moment.
type Sample struct {
	At          time.Duration `json:"t"`
	Live        int64         `json:"live"`
	Requested   int64         `json:"requested"`
	Reserved    int64         `json:"reserved"`
	LargestFree int64         `json:"largest_free"`
	Hits        int64         `json:"hits"`
	Misses      int64         `json:"misses"`
}

// samples is the number of moments kept of a trace.
const samples = 512

// Outcome is the result of a replay.
type Outcome struct {
	Stats   Stats // at the end
	Samples []Sample
	Refused int64 // gets that the limits refused
}

// tally is a driver with unlimited memory that only counts.
type tally struct{ last uint64 }

func (s *tally) Alloc(n int64, kind driver.MemoryKind) (driver.Memory, error) {
	s.last++
	return driver.Memory{Handle: s.last, Size: n, Kind: kind}, nil
}

func (s *tally) Free(driver.Memory) error { return nil }

// Replay gives the requests of a trace to a new pool with other options, without a device. The pool
// may record to r. A trace of more than one device is ErrInvalidArgument: see Of.
//
// A replay differs from the recorded run. Every block counts as free of work when it is put back, clean-ups are those
// of the options only, and a HardLimit stands for a driver that is out of memory.
func (t *Trace) Replay(o Options, r *Recorder) (*Outcome, error) {
	devices := t.Devices()
	if len(devices) > 1 {
		return nil, fmt.Errorf("a trace of %d devices: %w", len(devices), driver.ErrInvalidArgument)
	}
	var now time.Duration
	p := New(&tally{}, o)
	if r != nil {
		r.follow(t.Start, func() time.Duration { return now })
		device := ""
		if len(devices) == 1 {
			device = devices[0]
		}
		p.Record(r, device)
	}
	out := &Outcome{}
	open := map[ID]ID{}
	every := max(1, len(t.Events)/samples)
	for i := range t.Events {
		e := &t.Events[i]
		now = e.At
		if err := out.play(p, open, e); err != nil {
			return nil, fmt.Errorf("event %d: %w", i, err)
		}
		if i%every == 0 || i == len(t.Events)-1 {
			out.sample(p, now)
		}
	}
	out.Stats = p.Stats()
	return out, nil
}

func (out *Outcome) play(p *Pool, open map[ID]ID, e *Event) error {
	switch e.Kind {
	case Hit, Miss, Live:
		b, err := p.Get(e.Bytes, e.Memory, nil)
		switch {
		case errors.Is(err, driver.ErrBudget):
			out.Refused++
		case err != nil:
			return err
		default:
			if before, lost := open[e.ID]; lost { // its Free is not in the trace
				_ = p.Put(before, nil, 0)
			}
			open[e.ID] = b.ID
			if e.Tag != "" {
				p.SetTag(b.ID, e.Tag)
			}
		}
	case Tagged:
		if id, known := open[e.ID]; known {
			p.SetTag(id, e.Tag)
		}
	case Free:
		if id, known := open[e.ID]; known {
			delete(open, e.ID)
			return p.Put(id, nil, 0)
		}
	}
	return nil
}

func (out *Outcome) sample(p *Pool, at time.Duration) {
	s := p.Stats()
	out.Samples = append(out.Samples, Sample{at, s.Live, s.Requested, s.Reserved, s.LargestFree, s.Hits, s.Misses})
}
