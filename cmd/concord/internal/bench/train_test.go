package bench

import (
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/concord-compute/concord/cmd/concord/internal/app"
	"github.com/concord-compute/concord/cmd/concord/internal/apptest"
	"github.com/concord-compute/concord/nn"
	"github.com/concord-compute/concord/runtime"
	"github.com/concord-compute/concord/runtime/tune"
	"github.com/concord-compute/concord/tensor"
)

// The networks have the sizes that their table promises, and as many parameters as nn counts.
func TestNetworks(t *testing.T) {
	limits := []float64{0, 1e6, 1e7, 1e8, math.Inf(1)}
	for i, n := range networks {
		assert.True(t, float64(n.parameters()) >= limits[i] && float64(n.parameters()) < limits[i+1], n.name)
	}
	assert.Equal(t, 535_818, networks[0].parameters())
	s, err := runtime.New(app.Exactly)
	require.NoError(t, err)
	defer s.Close()
	dev, err := s.Open(t.Context(), "cpu:0")
	require.NoError(t, err)
	scope := tensor.NewScope(dev)
	defer scope.Close()
	for _, n := range networks[:2] {
		m, err := nn.Build(t.Context(), scope, 1, nn.Spec{Type: tensor.F32, Shape: []int{pixels}}, n.layers()...)
		require.NoError(t, err)
		assert.Equal(t, n.parameters(), m.Count())
	}
	assert.Equal(t, []string{"7", "1,000", "535,818", "107,000,001"},
		[]string{thousands(7), thousands(1000), thousands(535818), thousands(107000001)})
}

// A rate is measured, written, compared with itself, and with one that was far higher.
func TestBenchTrain(t *testing.T) {
	file := filepath.Join(t.TempDir(), "rates.json")
	args := []string{"bench", "train", "--size", "s", "--device", "cpu:0", "--time", "0s", "--batch", "16"}
	status, stdout, stderr := apptest.Run(append(args, "--baseline", file)...)
	require.Equal(t, app.ExitOK, status, stderr)
	assert.Regexp(t, `NETWORK +PARAMETERS +DEVICE +EXAMPLES/S +SPREAD +STEP +GFLOP/S +VS CPU\n`+
		`S +535,818 +cpu:0 +\d+ .* 1\n$`, stdout)
	data, err := os.Open(file)
	require.NoError(t, err)
	defer data.Close()
	list, err := tune.ReadBaselines(data)
	require.NoError(t, err)
	require.Len(t, list, 1, "the CPU once, though it is named, too")
	assert.Equal(t, "train S, batch 16", list[0].Operation)

	assert.GreaterOrEqual(t, len(list[0].Rates), fewestRounds, "epochs enough for a comparison")

	epochs := true // whether the file has them
	compare := func(rate float64, device string, want int) string {
		var text strings.Builder
		b := list[0]
		b.TargetThroughput *= rate
		b.Rates = nil
		for _, r := range list[0].Rates {
			if epochs {
				b.Rates = append(b.Rates, r*rate)
			}
		}
		b.Device += device
		other := list[0]
		other.Operation = "train XL, batch 16"
		require.NoError(t, tune.WriteBaselines(&text, []tune.Baseline{b, other}))
		require.NoError(t, os.WriteFile(file, []byte(text.String()), 0o644))
		status, stdout, stderr := apptest.Run(append(args, "--compare", file, "--json")...)
		require.Equal(t, want, status, stderr)
		return stdout + stderr
	}
	whole := apptest.Document(t, compare(1e-3, "", app.ExitOK))
	require.Len(t, whole["not_measured"], 1)
	assert.Equal(t, "train XL, batch 16", whole["not_measured"].([]any)[0].(map[string]any)["operation"])
	document := whole["results"].([]any)[0].(map[string]any)
	assert.NotContains(t, document, "slower")
	assert.Positive(t, document["baseline"])
	assert.Positive(t, document["noise"])
	for _, epochs = range []bool{true, false} {
		document = apptest.Document(t, compare(1e3, "", app.ExitFailed))["results"].([]any)[0].(map[string]any)
		assert.Equal(t, true, document["slower"])
		assert.Greater(t, document["change"], 100.0)
		assert.Equal(t, epochs, document["noise"] != nil)
	}
	assert.Contains(t, compare(1, "-2", app.ExitFailed), "no rate of what was measured on these devices")
	require.NoError(t, os.WriteFile(file, []byte("[]x"), 0o644))
	status, _, stderr = apptest.Run(append(args, "--compare", file)...)
	assert.Equal(t, app.ExitFailed, status)
	assert.Contains(t, stderr, "--compare")
}

func TestBenchTrainRefuses(t *testing.T) {
	for says, args := range map[string][]string{
		"--size XS: there are S, M, L and XL": {"--size", "S,XS"},
		"--batch 0":                           {"--batch", "0"},
		"it cannot be negative":               {"--time", "-1s"},
		"none of the others":                  {"--baseline", "a", "--compare", "b"},
	} {
		status, stdout, stderr := apptest.Run(append([]string{"bench", "train"}, args...)...)
		assert.Equal(t, app.ExitUsage, status)
		assert.Empty(t, stdout)
		assert.Contains(t, stderr, says)
	}
	f := trainFlags{batch: 1}
	s, err := runtime.New(app.Exactly)
	require.NoError(t, err)
	defer s.Close()
	_, err = f.rate(t.Context(), s, "cpu:0", network{"huge", []int{1 << 22, 1 << 22}, 1})
	assert.ErrorIs(t, err, errNoRoom)
}

// What differs by less than the noise of either measurement is not slower, and what does by more is. Without epochs
// nine tenths count. What seems slower is measured again.
func TestCompareRates(t *testing.T) {
	quiet, wild := make([]float64, 12), make([]float64, 12)
	for i := range quiet {
		quiet[i] = 100 + float64(i%3)/10
		wild[i] = []float64{60, 100, 75, 140, 90, 55}[i%6]
	}
	times := func(list []float64, by float64) (scaled []float64) {
		for _, v := range list {
			scaled = append(scaled, by*v)
		}
		return scaled
	}
	for _, c := range []struct {
		before, now []float64
		slower      bool
	}{
		{quiet, times(quiet, 0.97), false}, {quiet, times(quiet, 0.93), true}, {quiet, times(quiet, 1.2), false},
		{wild, times(wild, 0.88), false}, {wild, times(wild, 0.3), true},
		{nil, times(quiet, 0.91), false}, {nil, times(quiet, 0.89), true}, {quiet[:3], times(quiet, 0.91), false},
	} {
		again := 0
		row := trained{Network: "S", Batch: 1, Name: "d", rates: c.now,
			again: func() ([]float64, error) { again++; return c.now, nil }}
		row.sum()
		b := tune.Baseline{Operation: row.operation(), Device: "d", TargetThroughput: 100, Rates: c.before}
		if c.before != nil {
			b.TargetThroughput = summed(slices.Clone(c.before)).median
		}
		rows := []trained{row}
		left, err := confirmRates(rows, []tune.Baseline{b})
		require.NoError(t, err)
		assert.Empty(t, left)
		assert.Equal(t, c.slower, rows[0].Slower, "%v beside %v", c.now, c.before)
		assert.Equal(t, c.slower, again > 0)
	}
	// The machine did something else at first.
	row := trained{Network: "S", Batch: 1, Name: "d", rates: times(quiet, 0.5),
		again: func() ([]float64, error) { return quiet, nil }}
	row.sum()
	rows := []trained{row}
	_, err := confirmRates(rows, []tune.Baseline{{Operation: row.operation(), Device: "d", TargetThroughput: 100,
		Rates: quiet}})
	require.NoError(t, err)
	assert.False(t, rows[0].Slower)
	assert.InDelta(t, 100, float64(rows[0].Rate), 1)
}
