package tune

import (
	"os/exec"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/concord-compute/concord/runtime"
	"github.com/concord-compute/concord/runtime/choice"
)

// napRun tunes subjects of the device of backend nap, which has the table.
func napRun(t *testing.T, table *choice.Table, d *runtime.Device, o Options) *choice.Table {
	t.Helper()
	require.NoError(t, d.Choices().Use(table))
	o.Command = func() *exec.Cmd { return child("nap:0") }
	found, err := Run(t.Context(), d, o)
	require.NoError(t, err)
	return d.Choices().Merged(table, found)
}

// A tuning of one size keeps what was kept for others, of its own subject and of others that read the choice.
func TestRunKeepsGains(t *testing.T) {
	_, d := using(t, "off", "")
	one := Options{Only: []string{"nap other"}, Sizes: []string{"18"}}
	assert.Empty(t, napRun(t, nil, d, one).Values, "nothing is better for this size")

	kept := d.Choices().New(map[string]int{"nap.other": 1})
	got := napRun(t, kept, d, one)
	assert.Equal(t, kept.Values, got.Values, "nothing says for which sizes it was good")
	last := got.Trials[len(got.Trials)-1]
	assert.Contains(t, last.Failed, "not kept: nap other, 50 takes ")

	s := &Subject{Name: "nap other", Reads: []string{"nap.other"}}
	final := choice.Trial{Subject: s.Name, Version: s.version(d.Choices().Choices()), Values: kept.Values, Final: true,
		Rates: []choice.Rate{{Name: "50", Ns: 1e6, Default: 72e6}}}
	kept.Trials = []choice.Trial{final}
	got = napRun(t, kept, d, one)
	assert.Equal(t, kept.Values, got.Values)
	assert.Equal(t, final, got.Trials[0], "its rates, too")
	final.Rates[0].Name = "18"
	assert.Empty(t, napRun(t, kept, d, one).Values, "it was kept for this size")

	kept = d.Choices().New(map[string]int{"nap.shared": 1})
	got = napRun(t, kept, d, Options{Only: []string{"nap loss"}})
	assert.Equal(t, kept.Values, got.Values)
	assert.Contains(t, got.Trials[len(got.Trials)-1].Failed, "not kept: nap gain, 70 takes ")
}

// Each subject gets a share of the time, and those that got none, or not enough, are named.
func TestRunDivides(t *testing.T) {
	_, d := using(t, "off", "")
	names := []string{"nap pause", "nap other"}
	var told []Progress
	got := napRun(t, nil, d, Options{Only: names, Time: 3 * time.Minute,
		Progress: func(p Progress) { told = append(told, p) }})
	assert.Empty(t, got.Left)
	assert.Equal(t, map[string]int{"nap.pause": 2}, got.Values)
	assert.InDelta(t, 90, told[0].Share.Seconds(), 1)
	assert.Greater(t, told[len(told)-1].Share, 2*time.Minute, "what the first one did not use")

	assert.Equal(t, names, napRun(t, nil, d, Options{Only: names, Time: time.Millisecond}).Left)
	all := []Subject{{}, {Seldom: true}}
	assert.Greater(t, (&Options{}).weight(&all[0]), (&Options{}).weight(&all[1]))
	assert.Equal(t, (&Options{Only: names}).weight(&all[0]), (&Options{Only: names}).weight(&all[1]))

	assert.Equal(t, 1, affordable([]float64{9, 1}, 50, time.Second), "one at least")
	assert.Equal(t, 2, affordable([]float64{0.1, 0.2, 0.4}, 10, 4*time.Second))
	assert.Equal(t, 3, affordable([]float64{0.1, 0.2, 0.4}, 0, 0))
}

// With a limit, sizes that would take longer are not begun.
func TestLimit(t *testing.T) {
	s, d := using(t, "off", "off")
	m := &measurement{session: s, dev: d, doing: func(string) error { return nil }}
	m.free()
	defer m.free()
	m.request = request{Subject: "nap pause", For: d.Choices().TunedFor(), Points: []string{"24", "40"}, Seconds: 1e-9,
		Values: map[string]int{"nap.pause": 2}, Limit: 1e-9}
	var a answer
	require.NoError(t, m.run(t.Context(), &a))
	assert.Len(t, a.Rates, 1)
	m.Limit = 60
	require.NoError(t, m.run(t.Context(), &a))
	assert.Len(t, a.Rates, 3)
}

// Best values are not kept if a size that they were not searched with takes longer.
func TestLast(t *testing.T) {
	_, d := using(t, "off", "")
	c := &children{command: func() *exec.Cmd { return child("nap:0") }}
	defer c.stop()
	tuned := &tuner{opt: Options{Patience: time.Minute}, state: d.Choices(), children: c}
	s := Subject{Name: "nap other", Points: []Point{{Name: "50"}, {Name: "18"}}}
	some := Subject{Name: "nap other", Points: []Point{{Name: "50"}}}
	got := tuned.last(t.Context(), &s, &some, map[string]int{"nap.other": 1})
	assert.Contains(t, got.Failed, "not kept: 18 takes 2.")
	assert.True(t, got.Final)
	assert.Empty(t, tuned.last(t.Context(), &some, &some, map[string]int{"nap.other": 1}).Failed)
}
