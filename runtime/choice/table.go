package choice

// Values that were measured, and what they hold for.

import (
	"cmp"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strings"
	"sync"
	"time"
)

// Table has values that were measured, and what they hold for.
type Table struct {
	For    string         `json:"for"`              // the processor or card: State's TunedFor, or its first parts
	Driver string         `json:"driver,omitempty"` // its version; "": any
	Made   time.Time      `json:"made"`
	Values map[string]int `json:"values"`           // those that are better than the defaults or are costs, by name
	Trials []Trial        `json:"trials,omitempty"` // all that was measured

	// Left are the subjects for which a tuning had no time, or not enough. What is kept has none.
	Left []string `json:"left,omitempty"`

	// Versions has what [VersionOf] returned, when the table was made, for each operation that has values.
	Versions map[string]string `json:"versions"`
}

// Trial is what a set of values was measured with.
type Trial struct {
	Subject string         `json:"subject"`           // what was computed: "gemm f32"
	Values  map[string]int `json:"values"`            // that differed from the defaults
	Rates   []Rate         `json:"rates,omitempty"`   // for each size
	Score   float64        `json:"score,omitempty"`   // the geometric mean of how many times as fast as the defaults
	Final   bool           `json:"final,omitempty"`   // the best values of the subject, measured again and for longer
	Slow    bool           `json:"slow,omitempty"`    // not measured to the end: the last rate is far behind the defaults
	Failed  string         `json:"failed,omitempty"`  // why the values cannot be used: a wrong result, a crash, a hang
	Costs   []Cost         `json:"costs,omitempty"`   // of which the values follow, if they are not searched for
	Version string         `json:"version,omitempty"` // of all choices of the subject, also those that have no value
}

// Cost is how long something takes on the device, by which others decide what it does.
type Cost struct {
	Name string  `json:"name"` // "launch"
	Of   string  `json:"of"`   // what takes that time: "launch", "byte", "element", "operation", "multiply-add"
	Ns   float64 `json:"ns"`   // the median of the samples
	Low  float64 `json:"low"`  // a quarter of the samples is below
	High float64 `json:"high"` // a quarter is above
}

// Rate is what one size was measured with.
type Rate struct {
	Name    string  `json:"name"`    // "1024"
	Ns      float64 `json:"ns"`      // the median time of a launch
	Default float64 `json:"default"` // the same with the defaults, in turn
}

// ErrOther is the error of a table that does not hold for a device. The defaults hold there.
var ErrOther = errors.New("the table is for another device")

// Fits returns nil if the table holds for a device: one that is named so up to a comma, with such a driver, and that
// has the same choices for at least one operation of the table. Otherwise the error wraps [ErrOther] and says what
// differs. A table without values holds whatever the choices are.
func (t *Table) Fits(tunedFor, driver string, choices []*Choice) error {
	switch {
	case t.For != tunedFor && !strings.HasPrefix(tunedFor, t.For+","):
		return fmt.Errorf("%w: it was made for %q, and this is %q", ErrOther, t.For, tunedFor)
	case t.Driver != "" && t.Driver != driver:
		return fmt.Errorf("%w: it was made with driver %q, and this is %q", ErrOther, t.Driver, driver)
	}
	if held, changed := t.Held(choices); len(held.Values) == 0 && len(changed) > 0 {
		return fmt.Errorf("%w: %s", ErrOther, strings.Join(changed, "; "))
	}
	return nil
}

// Held returns the table with only those values that still mean what they did when it was made: the choices for their
// operation are the same among those of a device. changed has a sentence for each other operation, whose values, and
// the trials of them, were left out; it is nil where none was, and the table is t then.
func (t *Table) Held(choices []*Choice) (held *Table, changed []string) {
	gone := map[string]bool{}
	for _, of := range t.operations() {
		if was, now := t.Versions[of], VersionOf(of, choices); was != now {
			gone[of] = true
			changed = append(changed, fmt.Sprintf("it was made with version %s of the choices for %s, and this is %s",
				cmp.Or(was, "none"), of, now))
		}
	}
	if changed == nil {
		return t, nil
	}
	held = &Table{For: t.For, Driver: t.Driver, Made: t.Made, Values: maps.Clone(t.Values),
		Versions: maps.Clone(t.Versions)}
	maps.DeleteFunc(held.Values, func(name string, _ int) bool { return gone[operation(name)] })
	maps.DeleteFunc(held.Versions, func(of, _ string) bool { return gone[of] })
	for _, trial := range t.Trials {
		if !slices.ContainsFunc(slices.Collect(maps.Keys(trial.Values)), func(name string) bool {
			return gone[operation(name)]
		}) {
			held.Trials = append(held.Trials, trial)
		}
	}
	return held, changed
}

// operations returns the operations that have values.
func (t *Table) operations() []string {
	var list []string
	for name := range t.Values {
		list = append(list, operation(name))
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// Operation returns what the choice is for, among whose choices it is: its name without the last part.
func (c *Choice) Operation() string { return operation(c.Name) }

func operation(name string) string { return name[:max(0, strings.LastIndexByte(name, '.'))] }

// VersionOf names what the values of an operation mean among the choices of a device. These are the choices whose names
// are that of the operation and one part more. It changes with their names, values and defaults, and with no other
// choice.
func VersionOf(of string, choices []*Choice) string {
	mine := slices.DeleteFunc(slices.Clone(choices), func(c *Choice) bool { return c.Operation() != of })
	slices.SortFunc(mine, func(a, b *Choice) int { return strings.Compare(a.Name, b.Name) })
	h := sha256.New()
	for _, c := range mine {
		fmt.Fprintf(h, "%s %d %v %t\n", c.Name, c.Default, c.Values, c.Only)
	}
	return hex.EncodeToString(h.Sum(nil))[:16]
}

// Set returns the table's values as a set. The error wraps [ErrInvalid].
func (t *Table) Set() (*Set, error) { return NewSet(t.Values) }

// String describes the table: "2 values for GenuineIntel family 6 model 207, 2026-01-31, 40 trials".
func (t *Table) String() string {
	return fmt.Sprintf("%s for %s, %s, %s", count(len(t.Values), "value"), t.For, t.Made.Format(time.DateOnly),
		count(len(t.Trials), "trial"))
}

// count returns a number of things: "1 value", "2 values".
func count(n int, thing string) string {
	if n != 1 {
		thing += "s"
	}
	return fmt.Sprintf("%d %s", n, thing)
}

// Write writes the table as JSON.
func (t *Table) Write(w io.Writer) error {
	text, err := json.MarshalIndent(t, "", "  ")
	if err != nil {
		return fmt.Errorf("table of choices: %w", err)
	}
	_, err = w.Write(append(text, '\n'))
	return err
}

// mostText is the size of a table above which none is read.
const mostText = 4 << 20

// Read reads what Write wrote. The error wraps [ErrInvalid] if the text is something else or longer than 4 MiB. The
// values are not checked: a later version may have other choices, and the table does not fit then.
func Read(r io.Reader) (*Table, error) {
	text, err := io.ReadAll(io.LimitReader(r, mostText+1))
	if err != nil {
		return nil, fmt.Errorf("table of choices: %w", err)
	}
	if len(text) > mostText {
		return nil, fmt.Errorf("table of choices: more than %d bytes: %w", mostText, ErrInvalid)
	}
	return Parse(text)
}

// Parse is [Read] of a text. A table of a version of Concord that had one version of all its choices is an error that
// says so: nothing tells which of its values still mean the same.
func Parse(text []byte) (*Table, error) {
	var read struct {
		Table
		Choices string `json:"choices"` // of earlier tables, in place of Versions
	}
	t := &read.Table
	if err := json.Unmarshal(text, &read); err != nil {
		return nil, fmt.Errorf("table of choices: %w: %w", ErrInvalid, err)
	}
	switch {
	case t.For == "" || t.Made.IsZero() || t.Versions == nil && read.Choices == "":
		return nil, fmt.Errorf("table of choices: it does not say what it is for, of which choices and when it was made: %w",
			ErrInvalid)
	case t.Versions == nil:
		return nil, fmt.Errorf("table of choices: it was made by an earlier version of Concord, whose tables do not say "+
			"which version of its choices each operation had: %w", ErrInvalid)
	}
	return t, nil
}

//go:embed tables
var tables embed.FS

// Shipped returns the tables that come with this version of the module, the newest first. They have what was at least
// 3 % faster than the defaults in each of three runs at some sizes, and slower nowhere but within the spread of runs.
// They name the processor, its caches and the number of threads. With other values results may differ in the order of
// rounding (Choice.Rounds); CONCORD_TUNE=off has the defaults.
func Shipped() []*Table { return shipped() }

var shipped = sync.OnceValue(func() []*Table {
	files, err := tables.ReadDir("tables")
	if err != nil {
		panic(err)
	}
	var list []*Table
	for _, f := range files {
		text, err := tables.ReadFile("tables/" + f.Name())
		if err != nil {
			panic(err)
		}
		t, err := Parse(text)
		if err != nil {
			continue // no table: the note in the directory
		}
		list = append(list, t)
	}
	slices.SortStableFunc(list, func(a, b *Table) int { return cmp.Compare(b.Made.Unix(), a.Made.Unix()) })
	return list
})

func now() time.Time { return time.Now().UTC().Truncate(time.Second) }

// Score returns the geometric mean of how many times as fast as the defaults the rates are; 0 of none.
func Score(rates []Rate) float64 {
	sum := 0.0
	for _, r := range rates {
		sum += math.Log(r.Default / r.Ns)
	}
	if len(rates) == 0 {
		return 0
	}
	return math.Exp(sum / float64(len(rates)))
}
