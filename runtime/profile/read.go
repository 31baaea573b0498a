package profile

// Traces that were written are read again.

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/concord-compute/concord/runtime/driver"
)

// MaxEvents is the number of events that ReadTrace reads at most. So many take 0.7 GB, and room for their names.
const MaxEvents = 1 << 22

// written is an event of the trace-event format, as WriteTrace writes it.
type written struct {
	Ph   string  `json:"ph"`
	Name string  `json:"name"`
	Cat  string  `json:"cat"`
	Pid  int     `json:"pid"`
	Tid  int     `json:"tid"`
	Ts   float64 `json:"ts"`
	Dur  float64 `json:"dur"`
	Args struct {
		Name   string   `json:"name"`
		Stream int64    `json:"stream"`
		Items  string   `json:"items"`
		Group  string   `json:"group"`
		Flops  float64  `json:"flops"`
		Bytes  float64  `json:"bytes"`
		Queued *float64 `json:"queued_us"`
		Times  string   `json:"times"`
		Detail string   `json:"detail"`
		Error  string   `json:"error"`
	} `json:"args"`
}

// ReadTrace reads what WriteTrace has written, with its events in the order of their starts.
// Times count from the first start; errors have the text of those that were
// written and match nothing. A file of another program is ErrInvalidArgument, and so is one with more than
// MaxEvents events; other errors are those of r.
func ReadTrace(r io.Reader) (Trace, error) {
	var t Trace
	from := &source{r: r}
	in := json.NewDecoder(from)
	devices, streams := map[int]string{}, map[int]int64{}
	total := int64(0) // of all durations, which a summary adds
	read := func() error {
		if err := expect(in, json.Delim('{')); err != nil {
			return err
		}
		for in.More() {
			key, err := in.Token()
			if err != nil {
				return err
			}
			switch key {
			case "otherData":
				var other struct {
					Dropped int64
					Roofs   map[string]Roof
				}
				if err := in.Decode(&other); err != nil {
					return err
				}
				t.Dropped, t.Roofs = max(other.Dropped, 0), other.Roofs
			case "traceEvents":
				if err := expect(in, json.Delim('[')); err != nil {
					return err
				}
				for in.More() {
					var w written
					if err := in.Decode(&w); err != nil {
						return err
					}
					switch {
					case w.Ph == "M" && w.Name == "process_name":
						devices[w.Pid] = w.Args.Name
					case w.Ph == "M":
						streams[w.Tid] = w.Args.Stream
					default:
						e, err := w.event(devices[w.Pid], streams[w.Tid])
						if err != nil {
							return err
						}
						if len(t.Events) == MaxEvents {
							return fmt.Errorf("a trace of more than %d events: %w", MaxEvents, driver.ErrInvalidArgument)
						}
						if total += e.End - e.Start; total > math.MaxInt64/2 {
							return fmt.Errorf("a trace of more than %v: %w", time.Duration(math.MaxInt64/2), driver.ErrInvalidArgument)
						}
						t.Events = append(t.Events, e)
					}
				}
				if err := expect(in, json.Delim(']')); err != nil {
					return err
				}
			default:
				var ignored any
				if err := in.Decode(&ignored); err != nil {
					return err
				}
			}
		}
		return expect(in, json.Delim('}'))
	}
	if err := read(); err != nil {
		if from.err == nil && !errors.Is(err, driver.ErrInvalidArgument) { // it is the text that is wrong
			err = fmt.Errorf("not a trace of Concord: %w: %w", err, driver.ErrInvalidArgument)
		}
		return Trace{}, err
	}
	return t, nil
}

// source is a reader that remembers its error.
type source struct {
	r   io.Reader
	err error // nil at the end
}

// Read implements io.Reader.
func (s *source) Read(b []byte) (n int, err error) {
	n, err = s.r.Read(b)
	if err != nil && err != io.EOF {
		s.err = err
	}
	return n, err
}

// expect reads a token.
func expect(in *json.Decoder, want json.Delim) error {
	t, err := in.Token()
	if err == nil && t != want {
		err = fmt.Errorf("not a trace of Concord: %q where %v is expected: %w", fmt.Sprint(t), want,
			driver.ErrInvalidArgument)
	}
	return err
}

// event converts an event of the format.
func (w *written) event(device string, stream int64) (Event, error) {
	k := slices.Index(kindNames[:], w.Cat)
	const most = float64(math.MaxInt64) / 8e3 // microseconds, so that sums of three times are numbers of nanoseconds
	a := &w.Args
	queued := 0.0
	if a.Queued != nil {
		queued = *a.Queued
	}
	if w.Ph != "X" || k < 0 || !(math.Abs(w.Ts) < most && w.Dur >= 0 && w.Dur < most && queued >= 0 && queued < most) {
		return Event{}, fmt.Errorf("not a trace of Concord: an event %q of category %q: %w", w.Name, w.Cat,
			driver.ErrInvalidArgument)
	}
	if device == "host" {
		device = ""
	}
	e := Event{Kind: Kind(k), Name: w.Name, Device: device, Stream: stream, Start: nanos(w.Ts), Flops: a.Flops,
		Bytes: a.Bytes, Detail: a.Detail}
	e.End = e.Start + nanos(w.Dur)
	e.DeviceTime = e.Kind.OnDevice() && a.Times != "host"
	if a.Queued != nil {
		e.Queued = e.Start - nanos(queued)
	}
	for _, s := range []struct {
		text string
		to   *[3]int
	}{{a.Items, &e.Items}, {a.Group, &e.Group}} {
		if s.text != "" && !parseSizes(s.text, s.to) {
			return Event{}, fmt.Errorf("not a trace of Concord: sizes %q: %w", s.text, driver.ErrInvalidArgument)
		}
	}
	if a.Error != "" {
		e.Err = errors.New(a.Error)
	}
	return e, nil
}

// parseSizes reads what appendSizes writes.
func parseSizes(text string, to *[3]int) bool {
	parts := strings.Split(text, "x")
	if len(parts) != len(to) {
		return false
	}
	for i, part := range parts {
		n, err := strconv.ParseUint(part, 10, strconv.IntSize-1)
		if err != nil {
			return false
		}
		to[i] = int(n)
	}
	return true
}

// nanos converts microseconds.
func nanos(us float64) int64 { return int64(math.Round(us * float64(time.Microsecond))) }
