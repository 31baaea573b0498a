package choice

// The choices, and their values on a device.

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"
)

// ErrInvalid is the error of values that no device can use.
var ErrInvalid = errors.New("invalid choice")

// Choice is a number on which speed depends. Its owner makes it with [New], once, and reads its value from the [Set]
// of a device.
type Choice struct {
	Name    string // "cpu.gemm.depth": the backend or package, the operation, and what is chosen
	Doc     string // what the number is, with its unit
	Why     string // where the default comes from
	Default int
	Values  []int // what is worth trying, ascending, with the default
	Only    bool  // only Values are valid; otherwise all between the first and the last are
	Rounds  bool  // whether results may differ in the order of rounding

	at int // its place in sets, from 1; 0 of one that is not registered
}

var (
	mu   sync.RWMutex
	list []*Choice
	name = regexp.MustCompile(`^[a-z0-9]+(\.[a-z0-9]+)+$`)
)

// New registers a choice and returns it. It is meant for variables of packages. It panics, with a sentence that gives
// the reason, if a part is missing, the values are not ascending or lack the default, or the name is taken.
func New(x Choice) *Choice {
	mu.Lock()
	defer mu.Unlock()
	taken := slices.ContainsFunc(list, func(o *Choice) bool { return o.Name == x.Name })
	why := ""
	switch {
	case !name.MatchString(x.Name):
		why = "has no name such as cpu.gemm.depth"
	case taken:
		why = "is registered twice"
	case x.Doc == "" || x.Why == "":
		why = "needs a meaning, and a reason of its default"
	case !slices.IsSorted(x.Values) || len(slices.Compact(slices.Clone(x.Values))) != len(x.Values):
		why = "has values that are not ascending"
	case !slices.Contains(x.Values, x.Default):
		why = "has a default that is not among its values"
	}
	if why != "" {
		panic(fmt.Sprintf("choice: %q %s", x.Name, why))
	}
	list = append(list, &x)
	x.at = len(list)
	return &x
}

// All returns the choices of all packages of the program, by name.
func All() []*Choice {
	mu.RLock()
	defer mu.RUnlock()
	return slices.SortedFunc(slices.Values(list), func(a, b *Choice) int { return strings.Compare(a.Name, b.Name) })
}

// Of returns the choices whose names begin with one of the prefixes and a dot, or are one of them.
func Of(prefixes ...string) []*Choice {
	return slices.DeleteFunc(All(), func(c *Choice) bool {
		return !slices.ContainsFunc(prefixes, func(p string) bool { return c.Name == p || strings.HasPrefix(c.Name, p+".") })
	})
}

// String describes the choice: "cpu.gemm.depth = 512 (64 to 1024)".
func (c *Choice) String() string {
	return fmt.Sprintf("%s = %d (%d to %d)", c.Name, c.Default, c.Values[0], c.Values[len(c.Values)-1])
}

// Check returns an error, which wraps [ErrInvalid], if the value is outside the choice's range.
func (c *Choice) Check(value int) error {
	if least, most := c.Values[0], c.Values[len(c.Values)-1]; value < least || value > most {
		return fmt.Errorf("%s is %d, and not %d to %d: %w", c.Name, value, least, most, ErrInvalid)
	}
	if c.Only && !slices.Contains(c.Values, value) {
		return fmt.Errorf("%s is %d, and not one of %v: %w", c.Name, value, c.Values, ErrInvalid)
	}
	return nil
}

// Set has the values of choices on a device. It never changes, so that goroutines may share it. A nil *Set has the
// defaults.
type Set struct {
	values []int // by Choice.at, less one
}

// NewSet returns the set that has the given values, by name, and otherwise the defaults. The error wraps [ErrInvalid]
// if a name is not that of a choice, or a value is outside its range.
func NewSet(values map[string]int) (*Set, error) {
	all := All()
	s := &Set{make([]int, len(all))}
	for _, c := range all {
		s.values[c.at-1] = c.Default
	}
	for _, n := range slices.Sorted(maps.Keys(values)) {
		i := slices.IndexFunc(all, func(c *Choice) bool { return c.Name == n })
		if i < 0 {
			return nil, fmt.Errorf("no choice is named %q: %w", n, ErrInvalid)
		}
		if err := all[i].Check(values[n]); err != nil {
			return nil, err
		}
		s.values[all[i].at-1] = values[n]
	}
	return s, nil
}

// Changed returns the values that differ from the defaults, by name.
func (s *Set) Changed() map[string]int {
	changed := map[string]int{}
	for _, c := range All() {
		if v := s.Of(c); v != c.Default {
			changed[c.Name] = v
		}
	}
	return changed
}
