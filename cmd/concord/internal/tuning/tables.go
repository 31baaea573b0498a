package tuning

// What concord tune says of tables, and what it does with them.

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/concord-compute/concord/cmd/concord/internal/app"
	"github.com/concord-compute/concord/cmd/concord/internal/ui"
	"github.com/concord-compute/concord/runtime"
	"github.com/concord-compute/concord/runtime/choice"
	"github.com/concord-compute/concord/runtime/driver"
	"github.com/concord-compute/concord/runtime/tune"
)

func valuesText(values map[string]int) string {
	var list []string
	for _, name := range slices.Sorted(maps.Keys(values)) {
		list = append(list, fmt.Sprintf("%s=%d", name, values[name]))
	}
	return strings.Join(list, " ")
}

// listed is a choice with its value on a device.
type listed struct {
	Name    string `json:"name"`
	Value   int    `json:"value"`
	Default int    `json:"default"`
	Values  []int  `json:"values"`
	Rounds  bool   `json:"rounds"` // whether results may differ in the order of rounding
	Doc     string `json:"doc"`
	Why     string `json:"why"`
}

func list(_ context.Context, a *app.App, dev *runtime.Device, _ string) error {
	all := []listed{}
	state := dev.Choices()
	for _, c := range state.Choices() {
		all = append(all, listed{c.Name, state.Of(c), c.Default, c.Values, c.Rounds, c.Doc, c.Why})
	}
	subjects, seldom := map[string][]string{}, map[string]string{} // and their sizes; how those are tuned
	for _, s := range tune.Subjects(state.Choices()) {
		if _, natives := dev.Driver().(driver.Natives); natives && s.Points[0].Portable {
			seldom[s.Name] = ", if it is named"
		} else if s.Seldom {
			seldom[s.Name] = ", with less of the time"
		}
		for _, p := range s.Points {
			subjects[s.Name] = append(subjects[s.Name], p.Name)
		}
	}
	return a.Show(map[string]any{"device": dev.Info().ID, "choices": all, "subjects": subjects}, func() {
		t := ui.NewTable("CHOICE", "VALUE", "DEFAULT", "LEAST", "MOST", "MEANING", "REASON OF THE DEFAULT")
		for _, c := range all {
			t.Add(c.Name, fmt.Sprint(c.Value), fmt.Sprint(c.Default), fmt.Sprint(c.Values[0]),
				fmt.Sprint(c.Values[len(c.Values)-1]), c.Doc, c.Why)
		}
		t.Write(a.Stdout, "")
		a.Println("\nWhat is tuned, and its sizes:")
		for _, name := range slices.Sorted(maps.Keys(subjects)) {
			a.Printf("  %s%s: %s\n", name, seldom[name], strings.Join(subjects[name], ", "))
		}
	})
}

// inUse returns the table of the device; one without values if it has the defaults.
func inUse(dev *runtime.Device) *choice.Table {
	if t := dev.Choices().Table(); t != nil {
		return t
	}
	return dev.Choices().New(map[string]int{})
}

// written returns the table of the device for a file. A file without values would have no effect.
func written(dev *runtime.Device) (*choice.Table, error) {
	if t := inUse(dev); len(t.Values) > 0 {
		return t, nil
	}
	return nil, fmt.Errorf("%s has the defaults, and no table that a file could have: concord tune measures one, and "+
		"CONCORD_TUNE=off pins the defaults: %w", dev, runtime.ErrUnsupported)
}

// alone waits until no other process tunes, and gives the device what that has kept. It lasts until unlock is called.
func alone(ctx context.Context, a *app.App, dev *runtime.Device) (unlock func(), err error) {
	unlock, err = tune.Lock(ctx, dev, func(file string) {
		fmt.Fprintf(a.Stderr, "concord: waiting for a process that tunes or changes what is kept, which has the lock %s; "+
			"Ctrl-C ends the wait\n", file)
	})
	if err != nil {
		return nil, fmt.Errorf("lock of what is kept: %w", err)
	}
	if tuned := a.Session.Config().Tune; tuned == "" || tuned == driver.TuneFirst {
		target := dev.TuneTarget() // what was kept when the device was opened may have been reset since
		err = dev.Choices().Use(cmp.Or(target.Tuned(), target.Carried()))
	}
	if err != nil {
		unlock()
		return nil, err
	}
	return unlock, nil
}

func show(_ context.Context, a *app.App, dev *runtime.Device, _ string) error {
	table := inUse(dev)
	return a.Show(table, func() {
		if dev.Choices().Table() == nil {
			a.Printf("%s has the defaults.\n", dev)
			return
		}
		write(a, table, false)
	})
}

// keptIn reports whether a table has the values of a trial.
func keptIn(table *choice.Table, t choice.Trial) bool {
	for name, v := range t.Values {
		if now, ok := table.Values[name]; !ok || now != v {
			return false
		}
	}
	return true
}

// write prints a table, and the fastest trial of each subject beside the defaults.
func write(a *app.App, table *choice.Table, tried bool) {
	a.Printf("%v\n", table)
	for _, name := range slices.Sorted(maps.Keys(table.Values)) {
		a.Printf("  %s = %d\n", name, table.Values[name])
	}
	if len(table.Values) == 0 {
		candidates, failed := 0, false
		for _, t := range table.Trials {
			candidates += min(len(t.Values), 1)
			failed = failed || t.Failed != ""
		}
		switch {
		case candidates == 1:
			a.Println("  the one candidate is not faster than the defaults")
		case candidates > 1:
			a.Printf("  none of %d candidates is faster than the defaults\n", candidates)
		case !failed:
			a.Println("  no candidate was tried: that takes more --minutes, or fewer sizes")
			return
		}
	}
	var subjects []string
	last := map[string]choice.Trial{}
	for _, t := range table.Trials {
		if t.Failed != "" {
			a.Printf("  %s\n", trialText(t))
		} else if old, ok := last[t.Subject]; !ok || t.Final || !old.Final && !t.Slow && t.Score > old.Score {
			last[t.Subject] = t
		}
		if !slices.Contains(subjects, t.Subject) {
			subjects = append(subjects, t.Subject)
		}
	}
	t := ui.NewTable("OPERATION", "SIZE", "DEFAULTS", "TUNED", "TIMES AS FAST")
	for _, s := range subjects {
		if len(last[s].Values) == 0 || len(table.Values) == 0 {
			continue
		}
		rates := ratesOf(table, s)
		if len(rates) == 0 && !keptIn(table, last[s]) {
			a.Printf("  %s: what was tried is no better than the defaults, and is not kept\n", s)
			continue
		}
		if len(rates) == 0 {
			rates = last[s].Rates
		}
		for _, r := range rates {
			t.Add(s, r.Name, nanoseconds(r.Default), nanoseconds(r.Ns), fmt.Sprintf("%.2f", r.Default/r.Ns))
		}
	}
	if len(t.Rows) > 1 {
		t.Write(a.Stdout, "  ")
	}
	writeCosts(a, last)
	if tried {
		a.Println("Nothing was kept.")
	}
}

// ratesOf returns the last rate of each size that a subject was measured with at the end of a search, with values that
// the table has.
func ratesOf(table *choice.Table, subject string) (rates []choice.Rate) {
	for _, t := range table.Trials {
		if t.Subject != subject || !t.Final || t.Failed != "" || !keptIn(table, t) {
			continue
		}
		for _, r := range t.Rates {
			same := func(o choice.Rate) bool { return o.Name == r.Name }
			if i := slices.IndexFunc(rates, same); i >= 0 {
				rates[i] = r
			} else {
				rates = append(rates, r)
			}
		}
	}
	return rates
}

// busy is by how much a quarter of the samples of a cost differs from another one where other work disturbed them.
const busy = 1.5

// writeCosts prints what the values of a subject that is no search follow from.
func writeCosts(a *app.App, last map[string]choice.Trial) {
	for _, s := range slices.Sorted(maps.Keys(last)) {
		t, worst, differ := ui.NewTable("COST", "OF A", "MEDIAN", "QUARTER BELOW", "QUARTER ABOVE"), 0.0, []string{}
		for _, c := range last[s].Costs {
			t.Add(c.Name, c.Of, shortTime(c.Ns), shortTime(c.Low), shortTime(c.High))
			if by := c.High / c.Low; by > busy {
				worst, differ = max(worst, by), append(differ, c.Name)
			}
		}
		if len(last[s].Costs) > 0 {
			t.Write(a.Stdout, "  ")
		}
		if len(differ) > 0 {
			a.Printf("  The machine was busy: %s differ by up to %.1f times between a quarter of the samples and another; "+
				"concord tune %s measures again.\n", strings.Join(differ, ", "), worst, s)
		}
	}
}

// shortTime is a time that may be less than a nanosecond.
func shortTime(ns float64) string {
	switch {
	case ns < 1e3:
		return fmt.Sprintf("%.3g ns", ns)
	case ns < 1e6:
		return fmt.Sprintf("%.3g µs", ns/1e3)
	}
	return nanoseconds(ns)
}

func nanoseconds(ns float64) string { return ui.DurationText(time.Duration(ns)) }

func export(ctx context.Context, a *app.App, dev *runtime.Device, file string) error {
	table, err := written(dev)
	if err != nil {
		return err
	}
	if err := a.Save(ctx, file, func(w io.Writer) error { return table.Write(w) }); err != nil {
		return err
	}
	return a.Show(map[string]any{"file": file, "values": table.Values}, func() {
		a.Printf("%s: %v\n", file, table)
	})
}

func pin(ctx context.Context, a *app.App, dev *runtime.Device, file string) error {
	unlock, err := alone(ctx, a, dev)
	if err != nil {
		return err
	}
	defer unlock()
	table, err := written(dev)
	if err != nil {
		return err
	}
	if err := a.Save(ctx, file, func(w io.Writer) error { return table.Write(w) }); err != nil {
		return err
	}
	path, err := filepath.Abs(file)
	if err != nil {
		return err
	}
	return a.Show(map[string]any{"file": path, "values": table.Values}, func() {
		a.Printf("%s: %v\nPrograms use just that with CONCORD_TUNE=%s\n", file, table, path)
	})
}

func keep(ctx context.Context, a *app.App, dev *runtime.Device, file string) error {
	if err := keeps(a, false); err != nil {
		return err
	}
	f, err := os.Open(file)
	if err != nil {
		return err
	}
	defer f.Close()
	table, err := choice.Read(f)
	if err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	if err := dev.Choices().Check(table); err != nil {
		return fmt.Errorf("%s: %w: %w", file, runtime.ErrInvalidArgument, err)
	}
	table, changed := dev.Choices().Held(table)
	unlock, err := alone(ctx, a, dev)
	if err != nil {
		return err
	}
	defer unlock()
	table = dev.Choices().Merged(dev.TuneTarget().Tuned(), table)
	if err := dev.KeepTuned(ctx, table); err != nil {
		return err
	}
	document := map[string]any{"file": file, "values": table.Values, "left_out": append([]string{}, changed...)}
	return a.Show(document, func() {
		a.Printf("%s: %v\n", dev, table)
		for _, why := range changed {
			a.Printf("  values were left out: %s\n", why)
		}
	})
}

func reset(ctx context.Context, a *app.App, dev *runtime.Device, _ string) error {
	if err := keeps(a, false); err != nil {
		return err
	}
	unlock, err := alone(ctx, a, dev)
	if err != nil {
		return err
	}
	defer unlock()
	removed := dev.TuneTarget().Tuned()
	if err := dev.KeepTuned(ctx, nil); err != nil {
		return err
	}
	return a.Show(map[string]any{"removed": removed, "table": inUse(dev)}, func() {
		if removed == nil {
			a.Println("Nothing was kept.")
		} else {
			a.Printf("Removed: %v\n", removed)
			for _, name := range slices.Sorted(maps.Keys(removed.Values)) {
				a.Printf("  %s = %d\n", name, removed.Values[name])
			}
		}
		if dev.Choices().Table() == nil {
			a.Printf("%s has the defaults.\n", dev)
		} else {
			a.Printf("%s has %v\n", dev, dev.Choices().Table())
		}
	})
}
