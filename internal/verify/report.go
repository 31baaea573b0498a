package verify

// The report: what was shown, what was not, and of which device.

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/concord-compute/concord/internal/verify/rates"
	"github.com/concord-compute/concord/runtime"
	"github.com/concord-compute/concord/runtime/driver"
)

// State says how a step ended.
type State string

// The states of a step.
const (
	Done     State = "done"        // every check was made
	Cut      State = "cut off"     // its time was over before every check was made
	Hung     State = "hung"        // a check did not come back, and its process was killed
	Crashed  State = "crashed"     // its process ended by itself in the middle
	Lost     State = "device lost" // the driver gave the device up
	Broken   State = "broken"      // it could not go on, for the reason given
	Absent   State = "not here"    // this machine or device lacks what it needs
	NoDevice State = "no device"   // the device does not open
	NotRun   State = "not run"     // it was not begun
)

// Report is the document of a run.
type Report struct {
	Schema  string    `json:"schema"`
	Program string    `json:"program"` // the version of concord
	Device  string    `json:"device"`  // as it was named
	About   *About    `json:"about,omitempty"`
	Started time.Time `json:"started"`
	Seconds float64   `json:"seconds"`
	Limit   float64   `json:"limit_seconds"`
	// the run came to its end; otherwise it was ended, and this is what there was
	Over  bool     `json:"over"`
	OK    bool     `json:"ok"`             // something was shown, and nothing failed
	Note  string   `json:"note,omitempty"` // what became of an earlier report
	Steps []Result `json:"steps"`
}

// schema names the form of the document.
const schema = "concord verify 1"

// About describes the device and the machine.
type About struct {
	Info      runtime.Info     `json:"info"`
	Libraries []driver.Library `json:"libraries,omitempty"` // of the vendor, that are open
	System    string           `json:"system"`
	Processor string           `json:"processor"`
	Cores     int              `json:"cores"`
}

// Result is the outcome of a step.
type Result struct {
	Step    string    `json:"step"`
	Title   string    `json:"title"`
	Area    string    `json:"area"`
	State   State     `json:"state"`
	Reason  string    `json:"reason,omitempty"`
	Begun   time.Time `json:"begun,omitzero"`
	Seconds float64   `json:"seconds"`
	Budget  float64   `json:"budget_seconds"`
	Earlier bool      `json:"earlier,omitempty"` // from the report that this one replaced

	Passed   int            `json:"passed"`
	Failed   int            `json:"failed"`
	Skipped  int            `json:"skipped"`
	Failures []Check        `json:"failures,omitempty"`
	Skips    map[string]int `json:"skips,omitempty"` // how many checks were skipped for a reason
	Endings  []Ending       `json:"endings,omitempty"`
	Facts    []Fact         `json:"facts,omitempty"`
	Rates    []rates.Rate   `json:"rates,omitempty"`
}

// Ending is the end of a process that did not finish.
type Ending struct {
	State State  `json:"state"`
	Check string `json:"check,omitempty"` // under way at the end
	Words string `json:"words,omitempty"` // what the process wrote last
}

// bad reports whether the step shows a fault of the device or of Concord, or did not come to its end for one.
func (r *Result) bad() bool {
	return r.Failed > 0 || len(r.Endings) > 0 || slices.Contains([]State{Hung, Crashed, Lost, Broken, NoDevice}, r.State)
}

// shown reports whether anything was shown.
func (r *Result) shown() bool { return r.Passed > 0 || r.measured() > 0 }

// measured is the number of rates that have a value.
func (r *Result) measured() (n int) {
	for i := range r.Rates {
		if r.Rates[i].Median > 0 {
			n++
		}
	}
	return n
}

// Verdict is the outcome in a word or two.
func (r *Result) Verdict() string {
	switch {
	case r.State != Done && r.State != Cut:
		return string(r.State)
	case r.bad():
		return "FAILED"
	case r.State == Cut:
		return string(Cut)
	case !r.shown():
		return "nothing shown"
	}
	return "passed"
}

// Summary counts what was shown.
func (r *Result) Summary() string {
	var parts []string
	for _, c := range []struct {
		n    int
		what string
	}{{r.Passed, "passed"}, {r.Failed, "failed"}, {r.Skipped, "skipped"}, {r.measured(), "rates"},
		{len(r.Rates) - r.measured(), "rates not measured"}} {
		if c.n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", c.n, c.what))
		}
	}
	if len(parts) == 0 && r.Reason != "" {
		return firstLine(r.Reason)
	}
	return strings.Join(parts, ", ")
}

// Open reports whether the step has still to be shown: it failed, or was not done to its end.
func (r *Result) Open() bool { return r.bad() || r.State == NotRun || r.State == Cut }

// Kind says what the device is, so that nobody takes a simulation for a card.
func (r *Report) Kind() string {
	switch {
	case r.About == nil:
		return "NOT OPENED"
	case r.About.Info.Simulated:
		return "SIMULATED, NOT A CARD"
	case r.About.Info.Fake:
		return "FAKE, NOT A CARD"
	case r.About.Info.Kind == driver.CPU:
		return "a processor, not a card"
	}
	return string(r.About.Info.Kind) + " device"
}

// Headline says in a sentence what the run showed.
func (r *Report) Headline() string {
	var failed, cut, left, absent, passed int
	for i := range r.Steps {
		s := &r.Steps[i]
		switch passed += s.Passed; {
		case s.bad():
			failed++
		case s.State == Cut:
			cut++
		case s.State == NotRun:
			left++
		case !s.shown():
			absent++
		}
	}
	text := plural(passed, "check") + " passed"
	if failed > 0 {
		text += fmt.Sprintf("; %d of %s FAILED", failed, plural(len(r.Steps), "step"))
	} else {
		text += "; nothing failed"
	}
	if cut > 0 {
		text += fmt.Sprintf("; %s cut off", plural(cut, "step"))
	}
	if left > 0 {
		text += fmt.Sprintf("; %s not run", plural(left, "step"))
	}
	if absent > 0 {
		text += fmt.Sprintf("; %s not available here", plural(absent, "step"))
	}
	if !r.Over {
		text += "; the run did not come to its end"
	}
	return text
}

func plural(n int, what string) string {
	if n != 1 {
		what += "s"
	}
	return fmt.Sprintf("%d %s", n, what)
}

// Again is the command that goes on with what was not shown, or "". dir is the folder of the report.
func (r *Report) Again(dir string) string {
	if r.About == nil || len(r.open()) == 0 {
		return ""
	}
	return fmt.Sprintf("concord verify %s --only failed --out %q", r.Device, dir)
}

// settle computes OK.
func (r *Report) settle() {
	r.OK = false
	for i := range r.Steps {
		s := &r.Steps[i]
		if s.bad() || s.State == NotRun {
			r.OK = false
			return
		}
		r.OK = r.OK || s.shown()
	}
}

// take notes a record in the result.
func (s *Result) take(r record) {
	switch {
	case r.Check != nil:
		s.count(*r.Check)
	case r.Rate != nil:
		if i := slices.IndexFunc(s.Rates, func(old rates.Rate) bool { return old.Name == r.Rate.Name }); i >= 0 {
			s.Rates[i] = *r.Rate // with what a profiler found
			return
		}
		s.Rates = append(s.Rates, *r.Rate)
		if r.Rate.Failed {
			s.count(Check{Name: r.Rate.Name, Verdict: Fail, Reason: r.Rate.Reason})
		}
	case r.Fact != nil:
		if !slices.Contains(s.Facts, *r.Fact) { // another process of the step reads the same
			s.Facts = append(s.Facts, *r.Fact)
		}
	}
}

// mostFailures is the number of failures of a step that the report lists; the archive has all.
const mostFailures = 100

func (s *Result) count(c Check) {
	switch c.Verdict {
	case Pass:
		s.Passed++
	case Skip:
		s.Skipped++
		if s.Skips == nil {
			s.Skips = map[string]int{}
		}
		s.Skips[shorten(firstLine(c.Reason), 300)]++
	default:
		s.Failed++
		if len(s.Failures) < mostFailures {
			s.Failures = append(s.Failures, c)
		}
	}
}

func firstLine(text string) string {
	line, _, _ := strings.Cut(text, "\n")
	return line
}
