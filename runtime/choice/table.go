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
	"math"
	"slices"
	"strings"
	"sync"
	"time"
)

// Table has values that were measured, and what they hold for.
type Table struct {
	For     string         `json:"for"`              // the processor or card: State's TunedFor, or its first parts
	Driver  string         `json:"driver,omitempty"` // its version; "": any
	Choices string         `json:"choices"`          // what VersionOf returned when it was made
	Made    time.Time      `json:"made"`
	Values  map[string]int `json:"values"`           // those that are better than the defaults or are costs, by name
	Trials  []Trial        `json:"trials,omitempty"` // all that was measured
}

// Trial is what a set of values was measured with.
type Trial struct {
	Subject string         `json:"subject"`          // what was computed: "gemm f32"
	Values  map[string]int `json:"values"`           // that differed from the defaults
	Rates   []Rate         `json:"rates,omitempty"`  // for each size
	Score   float64        `json:"score,omitempty"`  // the geometric mean of how many times as fast as the defaults
	Final   bool           `json:"final,omitempty"`  // the best values of the subject, measured again and for longer
	Slow    bool           `json:"slow,omitempty"`   // not measured to the end: the last rate is far behind the defaults
	Failed  string         `json:"failed,omitempty"` // why the values cannot be used: a wrong result, a crash, a hang
	Costs   []Cost         `json:"costs,omitempty"`  // of which the values follow, if they are not searched for
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
// reads these choices. Otherwise the error wraps [ErrOther] and says what differs.
func (t *Table) Fits(tunedFor, driver string, choices []*Choice) error {
	switch version := t.VersionOf(choices); {
	case t.For != tunedFor && !strings.HasPrefix(tunedFor, t.For+","):
		return fmt.Errorf("%w: it was made for %q, and this is %q", ErrOther, t.For, tunedFor)
	case t.Driver != "" && t.Driver != driver:
		return fmt.Errorf("%w: it was made with driver %q, and this is %q", ErrOther, t.Driver, driver)
	case t.Choices != version:
		return fmt.Errorf("%w: it was made with version %s of the choices, and this is %s", ErrOther, t.Choices, version)
	}
	return nil
}

// VersionOf names what the table's values mean among the choices of a device: it changes with the names, the values and
// the defaults of those choices and of the other ones for the same operation, whose names differ in the last part only.
func (t *Table) VersionOf(choices []*Choice) string {
	operation := func(name string) string { return name[:max(0, strings.LastIndexByte(name, '.'))] }
	mine := map[string]bool{}
	for name := range t.Values {
		mine[operation(name)] = true
	}
	h := sha256.New()
	for _, c := range choices {
		if mine[operation(c.Name)] {
			fmt.Fprintf(h, "%s %d %v\n", c.Name, c.Default, c.Values)
		}
	}
	return hex.EncodeToString(h.Sum(nil))[:16]
}

// Set returns the table's values as a set. The error wraps [ErrInvalid].
func (t *Table) Set() (*Set, error) { return NewSet(t.Values) }

// String describes the table: "2 values for GenuineIntel family 6 model 207, 2026-01-31, 40 trials".
func (t *Table) String() string {
	return fmt.Sprintf("%d values for %s, %s, %d trials", len(t.Values), t.For, t.Made.Format(time.DateOnly),
		len(t.Trials))
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

// Parse is [Read] of a text.
func Parse(text []byte) (*Table, error) {
	t := new(Table)
	if err := json.Unmarshal(text, t); err != nil {
		return nil, fmt.Errorf("table of choices: %w: %w", ErrInvalid, err)
	}
	if t.For == "" || t.Choices == "" || t.Made.IsZero() {
		return nil, fmt.Errorf("table of choices: it does not say what it is for, of which choices and when it was made: %w",
			ErrInvalid)
	}
	return t, nil
}

//go:embed tables
var tables embed.FS

// Shipped returns the tables that come with this version of the module, the newest first. There are none yet: on the
// machines that were at hand the defaults were the fastest, or the gain was no more than chance.
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
