package tune

import (
	"bytes"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/concord-compute/concord/runtime"
)

var vectorAdd = Baseline{Operation: "vector_add", TargetThroughput: 1e9, Device: "H100",
	Date: time.Date(2026, 1, 31, 0, 0, 0, 0, time.UTC)}

func TestCheckRegression(t *testing.T) {
	for rate, want := range map[float64]bool{0: true, 1: true, 899_999_999: true, 900_000_000: false, 2e9: false} {
		got, err := vectorAdd.CheckRegression("H100", rate)
		require.NoError(t, err)
		assert.Equal(t, want, got, "%v", rate)
	}
	for _, c := range []struct {
		b      Baseline
		device string
		rate   float64
		says   string
	}{
		{vectorAdd, "H200", 1e9, "vector_add on H200 beside a baseline of H100"},
		{vectorAdd, "H100", math.NaN(), "NaN per second"},
		{vectorAdd, "H100", -1, "-1 per second"},
		{vectorAdd, "H100", math.Inf(1), "+Inf per second"},
		{Baseline{Device: "H100"}, "H100", 1, "a baseline of 0 per second"},
		{Baseline{Device: "H100", TargetThroughput: math.NaN()}, "H100", 1, "a baseline of NaN per second"},
	} {
		got, err := c.b.CheckRegression(c.device, c.rate)
		require.ErrorIs(t, err, runtime.ErrInvalidArgument)
		require.ErrorContains(t, err, c.says)
		assert.False(t, got)
	}
}

func TestBaselinesAsText(t *testing.T) {
	var text bytes.Buffer
	list := []Baseline{vectorAdd, {"gemm", 0.1, "PoCL",
		time.Date(2026, 2, 1, 12, 30, 0, 0, time.UTC), []float64{0.09, 0.1, 0.2}}}
	require.NoError(t, WriteBaselines(&text, list))
	got, err := ReadBaselines(&text)
	require.NoError(t, err)
	assert.Equal(t, list, got)
	assert.Error(t, WriteBaselines(&text, []Baseline{{TargetThroughput: math.NaN()}}))

	for _, bad := range []string{"", "{}", "[{}]", "null, 1",
		`[{"operation": "a", "device": "d", "target_throughput": 0, "date": "2026-01-31T00:00:00Z"}]`,
		`[{"operation": "a", "device": "d", "target_throughput": 1}]`,
		`[{"operation": "a", "device": "d", "target_throughput": 1, "date": "2026-01-31T00:00:00Z", "rates": [1, 0]}]`,
		"[", strings.Repeat(" ", mostBaselines+1)} {
		_, err := ReadBaselines(strings.NewReader(bad))
		assert.ErrorIs(t, err, runtime.ErrFormat, "%.60s", bad)
	}
}
