package choice

// The choices of one device.

import (
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
)

// State has the choices of a device, their values, and the table that they are from. Package runtime makes one for each
// device. It is safe for concurrent use.
type State struct {
	choices  []*Choice
	tunedFor string
	driver   string
	choose   func(s *Set)
	mu       sync.Mutex // held while the values change
	set      atomic.Pointer[Set]
	table    atomic.Pointer[Table]
}

// NewState returns the state of a device that reads these choices, with the defaults. tunedFor and driver are what
// [Table.Fits] compares, and choose is called with every new set, nil for the defaults.
func NewState(choices []*Choice, tunedFor, driver string, choose func(s *Set)) *State {
	return &State{choices: choices, tunedFor: tunedFor, driver: driver, choose: choose}
}

// Choices returns the choices that the device reads, by name.
func (s *State) Choices() []*Choice { return slices.Clone(s.choices) }

// TunedFor names what the best values depend on, apart from the driver.
func (s *State) TunedFor() string { return s.tunedFor }

// Of returns the value of a choice.
func (s *State) Of(c *Choice) int { return s.set.Load().Of(c) }

// Table returns the table whose values the device has, without those that do not hold any more, or nil if it has the
// defaults. The caller does not change it.
func (s *State) Table() *Table { return s.table.Load() }

// InUse returns the values of the device, and the table that they are from, both of one moment: a reader that calls Of
// several times, or Of and Table, may meet a change between two calls. The caller changes neither.
func (s *State) InUse() (*Set, *Table) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.set.Load(), s.table.Load()
}

// Fits returns nil if a table holds for the device, or otherwise what differs: see [Table.Fits].
func (s *State) Fits(t *Table) error { return t.Fits(s.tunedFor, s.driver, s.choices) }

// New returns a table for the device with the given values, made now.
func (s *State) New(values map[string]int) *Table {
	t := &Table{For: s.tunedFor, Driver: s.driver, Made: now(), Values: values, Versions: map[string]string{}}
	for _, of := range t.operations() {
		t.Versions[of] = VersionOf(of, s.choices)
	}
	return t
}

// Merged returns a table for the device with the values and trials of an older one, nil for none, for what a newer one
// has not tried. Of a subject that both have tried it has the older trials with values that stay in use, or with the
// defaults, if they were measured for other sizes.
func (s *State) Merged(old, table *Table) *Table {
	if old == nil {
		return table
	}
	old, _ = old.Held(s.choices)
	values := map[string]int{}
	maps.Copy(values, old.Values)
	for _, t := range table.Trials {
		for name := range t.Values {
			delete(values, name)
		}
	}
	maps.Copy(values, table.Values)
	both := s.New(values)
	replaced := func(t Trial) bool { return table.replaces(&t, values) }
	both.Trials = append(slices.DeleteFunc(slices.Clone(old.Trials), replaced), table.Trials...)
	return both
}

// replaces reports whether the trials of a table tell all that an older one does, if these are the values in use.
func (t *Table) replaces(old *Trial, values map[string]int) bool {
	tried, sizes := false, map[string]bool{}
	for i := range t.Trials {
		if t.Trials[i].Subject != old.Subject {
			continue
		}
		if tried = true; t.Trials[i].Version != old.Version {
			return true
		}
		for _, r := range t.Trials[i].Rates {
			sizes[r.Name] = true
		}
	}
	inUse := old.Failed == "" && (old.Final || len(old.Values) == 0)
	for name, v := range old.Values {
		now, ok := values[name]
		inUse = inUse && ok && now == v
	}
	more := slices.ContainsFunc(old.Rates, func(r Rate) bool { return !sizes[r.Name] })
	return tried && !(inUse && more)
}

// Held returns what a table has for the choices of the device: see [Table.Held].
func (s *State) Held(t *Table) (held *Table, changed []string) { return t.Held(s.choices) }

// Use gives the device the values of a table, nil the defaults, for all work that begins after it returns. Values of
// operations whose choices have changed since are left out, as by [Table.Held]. The error wraps [ErrOther] if the table
// is for another device, or no value is left, and [ErrInvalid] if a value is outside its range; nothing changes then.
func (s *State) Use(t *Table) error {
	t, set, err := s.check(t)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.table.Store(t)
	s.try(set)
	return nil
}

// Check returns the error that Use would.
func (s *State) Check(t *Table) error {
	_, _, err := s.check(t)
	return err
}

// check returns what is left of a table, and its values.
func (s *State) check(t *Table) (*Table, *Set, error) {
	if t == nil {
		return nil, nil, nil
	}
	if err := s.Fits(t); err != nil {
		return nil, nil, err
	}
	t, _ = s.Held(t)
	set, err := t.Set()
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", t, err)
	}
	return t, set, nil
}

// Try gives the device other values for a while, nil the defaults, without a table: to measure them.
func (s *State) Try(set *Set) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.try(set)
}

func (s *State) try(set *Set) {
	s.set.Store(set)
	s.choose(set)
}
