package verify

// What passes between the processes.

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/concord-compute/concord/internal/verify/rates"
	"github.com/concord-compute/concord/runtime/driver"
)

// The verdicts of a check.
const (
	Pass = "pass"
	Fail = "fail"
	Skip = "skip" // it does not apply to this device, for the reason given
)

// Check is the outcome of one check.
type Check struct {
	Name    string  `json:"name"`
	Verdict string  `json:"verdict"`
	Reason  string  `json:"reason,omitempty"` // of a failure or a skip
	Seconds float64 `json:"seconds"`
}

// Fact is something that was read, not checked: a version, a path, an amount.
type Fact struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// job is the line that a process is given.
type job struct {
	Step    string   `json:"step"`
	Device  string   `json:"device"`
	Seconds float64  `json:"seconds"`        // after which the step stops between two checks
	Done    []string `json:"done,omitempty"` // checks that an earlier process has begun
	Quick   bool     `json:"quick"`
	Times   int      `json:"times,omitempty"` // how often stepOnce does its work
	What    string   `json:"what,omitempty"`  // of stepOnce: a rate
}

// record is a line that a process writes. One field is set.
type record struct {
	Doing string      `json:"doing,omitempty"` // the check that begins now
	Check *Check      `json:"check,omitempty"`
	Rate  *rates.Rate `json:"rate,omitempty"`
	Fact  *Fact       `json:"fact,omitempty"`
	About *About      `json:"about,omitempty"`
	// Libraries are those that are open now, more than when About was told.
	Libraries []driver.Library `json:"libraries,omitempty"`
	End       *end             `json:"end,omitempty"`
}

// end is the last record of a process that was not ended by something else.
type end struct {
	State  State  `json:"state"`
	Reason string `json:"reason,omitempty"`
}

// writer writes records. It may be used from any goroutine.
type writer struct {
	mu  sync.Mutex
	enc *json.Encoder
}

func newWriter(w io.Writer) *writer {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	return &writer{enc: enc}
}

// put writes a record. A record that JSON cannot have, such as one with a rate that is infinite, becomes a failure.
// Any other error means that the parent is gone, which also ends this process.
func (w *writer) put(r record) {
	w.mu.Lock()
	defer w.mu.Unlock()
	err := w.enc.Encode(r)
	if _, bad := errors.AsType[*json.UnsupportedValueError](err); bad {
		_ = w.enc.Encode(record{Check: &Check{Name: "a record", Verdict: Fail, Reason: fmt.Sprintf("%v, in %+v", err, r)}})
	}
}
