package mempool

// Traces in files: JSON lines. The first line describes the file; each line after it
// is one event, in the order of time. Fields that are zero are left out.
//
//	{"format":"concord-memory-trace","version":1,"start":"…","dropped":0,"pools":[{"device":"cuda:0","mode":"split",…}]}
//	{"t":1530,"d":"cuda:0","k":"miss","n":1000,"s":1024,"slab":1,"id":4294967296}
//
// t is in nanoseconds since start, d the device, k the kind, n the requested bytes, and s the bytes
// of the block, which begins off bytes after the beginning of that slab.

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/concord-compute/concord/runtime/driver"
)

const (
	traceFormat  = "concord-memory-trace"
	traceVersion = 1
	longestLine  = 1 << 20
)

// traceHead is the first line of a file.
type traceHead struct {
	Format  string     `json:"format"`
	Version int        `json:"version"`
	Start   time.Time  `json:"start"`
	Dropped int64      `json:"dropped"`
	Pools   []PoolInfo `json:"pools"`
}

// Write writes a trace as ReadTrace reads it.
func (t *Trace) Write(w io.Writer) error {
	out := bufio.NewWriter(w)
	enc := json.NewEncoder(out)
	if err := enc.Encode(traceHead{traceFormat, traceVersion, t.Start, t.Dropped, t.Pools}); err != nil {
		return err
	}
	for i := range t.Events {
		if err := enc.Encode(&t.Events[i]); err != nil {
			return err
		}
	}
	return out.Flush()
}

// ReadTrace reads the output of Write. Invalid input is ErrInvalidArgument, with the number of the
// line. Unknown fields and kinds of events are skipped.
func ReadTrace(r io.Reader) (*Trace, error) {
	scan := bufio.NewScanner(r)
	scan.Buffer(nil, longestLine)
	line := 0
	wrong := func(why any) error {
		return fmt.Errorf("memory trace, line %d: %v: %w", line, why, driver.ErrInvalidArgument)
	}
	next := func(v any) (bool, error) {
		line++
		if !scan.Scan() {
			if errors.Is(scan.Err(), bufio.ErrTooLong) {
				return false, wrong(scan.Err())
			}
			return false, scan.Err()
		}
		if err := json.Unmarshal(scan.Bytes(), v); err != nil {
			return false, wrong(err)
		}
		return true, nil
	}
	var head traceHead
	there, err := next(&head)
	switch {
	case err != nil:
		return nil, err
	case !there:
		return nil, wrong("the file is empty")
	case head.Format != traceFormat:
		return nil, wrong("this is not a memory trace of Concord")
	case head.Version != traceVersion:
		return nil, wrong(fmt.Sprintf("version %d, this program reads %d", head.Version, traceVersion))
	}
	for _, p := range head.Pools {
		if !p.sound() {
			return nil, wrong("a pool with impossible values")
		}
	}
	t := &Trace{Start: head.Start, Dropped: max(0, head.Dropped), Pools: head.Pools}
	extent := int64(1)
	for {
		var e Event
		if there, err = next(&e); err != nil {
			return nil, err
		}
		if !there {
			return t, nil
		}
		if !e.sound() {
			return nil, wrong("an event with impossible values")
		}
		t.Events = append(t.Events, e)
		extent = max(extent, e.extent())
		if int64(len(t.Events)) > mostBytes/extent {
			return nil, wrong("more memory than is possible")
		}
	}
}

// mostBytes limits the number of events of a file times the largest range in it, so that no sum
// over events overflows, nor an address in an Arena.
const mostBytes = 1 << 61

// sound reports whether the values are possible for a pool.
func (p *PoolInfo) sound() bool {
	return p.Align >= 0 && p.Align <= mostAlign && p.Align&(p.Align-1) == 0 &&
		p.SoftLimit >= 0 && p.SoftLimit <= 1<<60 && p.HardLimit >= 0 && p.HardLimit <= 1<<60
}

// extent returns the end of the part of a slab that an event concerns.
func (e *Event) extent() int64 {
	switch e.Kind {
	case Hit, Miss, Live, Free, Tagged, Grow, Shrink:
		return e.Offset + e.Size
	}
	return 0
}

// sound reports whether the numbers of an event cannot cause an overflow.
func (e *Event) sound() bool {
	for _, n := range []int64{int64(e.At), e.Bytes, e.Size, e.Offset, e.Slab} {
		if n < 0 || n > 1<<60 {
			return false
		}
	}
	switch e.Kind {
	case Hit, Miss, Live, Free, Tagged, Grow:
		return e.Size > 0 && e.Size <= 2*largest && e.Bytes > 0 && e.Bytes <= e.Size && e.Offset <= 2*largest
	case Shrink:
		return e.Size <= 2*largest && e.Offset == 0
	}
	return true
}

// UnmarshalText parses a mode in the form of String.
func (m *Mode) UnmarshalText(text []byte) error {
	for i, name := range modeNames {
		if name == string(text) {
			*m = Mode(i)
			return nil
		}
	}
	return fmt.Errorf("mode %.40q is not one of %v: %w", text, modeNames, driver.ErrInvalidArgument)
}

// MarshalText returns the mode in the form of String.
func (m Mode) MarshalText() ([]byte, error) { return []byte(m.String()), nil }

var modeNames = [...]string{"split", "whole", "exact", "off"}

// String returns the mode as a word; PassThrough is off.
func (m Mode) String() string {
	if m >= 0 && int(m) < len(modeNames) {
		return modeNames[m]
	}
	return fmt.Sprintf("Mode(%d)", int(m))
}
