package checks

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"math"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/concord-compute/concord/cmd/concord/internal/app"
	"github.com/concord-compute/concord/cmd/concord/internal/apptest"
	"github.com/concord-compute/concord/cmd/concord/internal/devices"
	"github.com/concord-compute/concord/internal/verify"
	"github.com/concord-compute/concord/nn"
	"github.com/concord-compute/concord/runtime"
	"github.com/concord-compute/concord/runtime/parity"
)

// someDigits is the problem of the demo with fewer images.
func someDigits(t *testing.T) *digits {
	t.Helper()
	d, err := loadDigits()
	require.NoError(t, err)
	assert.Equal(t, 9000, d.vectors())
	assert.Equal(t, 1000, d.queries())
	d.base, d.baseLabel = d.base[:200*d.dim], d.baseLabel[:200]
	d.query, d.queryLabel = d.query[:7*d.dim], d.queryLabel[:7]
	return d
}

func TestNeighbours(t *testing.T) {
	ctx := context.Background()
	s, err := runtime.New(app.Exactly)
	require.NoError(t, err)
	defer s.Close()
	d := someDigits(t)
	steps := 0
	ref, err := runNeighbours(ctx, s, devices.Target{Device: "cpu:reference"}, d, 3, func() { steps++ })
	require.NoError(t, err)
	assert.Equal(t, 3, steps)
	assert.Equal(t, 3, d.batches(3))
	for q := range d.queries() { // the reference itself, against the plain definition
		want := make([]float64, d.vectors())
		for v := range want {
			for i := range d.dim {
				diff := float64(d.query[q*d.dim+i]) - float64(d.base[v*d.dim+i])
				want[v] += diff * diff
			}
			require.Equal(t, float32(want[v]), ref.distances[q*d.vectors()+v])
		}
		nearest := slices.Index(want, slices.Min(want))
		assert.EqualValues(t, nearest, ref.indices[q*d.k])
	}
	targets, err := devices.Targets(ctx, s, []string{"cpu:0"})
	require.NoError(t, err)
	require.Len(t, targets, 2)
	for _, target := range targets {
		row := demoTargetRow(ctx, s, target, d, ref)
		if row.Verdict == absent {
			t.Logf("%s: %s", row.Device, row.Reason)
			continue
		}
		assert.Equal(t, concords, row.Verdict, row.Reason)
		assert.Zero(t, row.MaxDifference)
		assert.NotEmpty(t, row.Built)
	}
}

// The judge is shown to find each kind of mistake.
func TestCompareFinds(t *testing.T) {
	d := &digits{baseLabel: make([]uint8, 2), queryLabel: make([]uint8, 1), dim: 1, k: 2}
	ref := func() *neighbours {
		return &neighbours{distances: []float32{4, 1 << 25}, values: []float32{4, 1 << 25}, indices: []uint32{0, 1}}
	}
	diff, reason := ref().compare(ref(), d)
	assert.Zero(t, diff)
	assert.Empty(t, reason)
	for name, spoil := range map[string]func(n *neighbours){
		"small distance": func(n *neighbours) { n.distances[0] = math.Nextafter32(4, 5) },
		"large distance": func(n *neighbours) { n.distances[1] += 1 << 10 },
		"NaN":            func(n *neighbours) { n.distances[0] = float32(math.NaN()) },
		"order":          func(n *neighbours) { n.indices[0], n.indices[1] = 1, 0 },
		"value":          func(n *neighbours) { n.values[0] = 3 },
	} {
		got := ref()
		spoil(got)
		_, reason := got.compare(ref(), d)
		assert.NotEmpty(t, reason, name)
	}
	got := ref()
	got.distances[1] += 4 // one unit in the last place: no whole number is exact there
	diff, reason = got.compare(ref(), d)
	assert.EqualValues(t, 4, diff)
	assert.Empty(t, reason)
}

// The network of the reference is that of the CPU, and a wrong one is found.
func TestDemoNetworks(t *testing.T) {
	s, err := runtime.New(app.Exactly)
	require.NoError(t, err)
	defer s.Close()
	targets, err := devices.Targets(t.Context(), s, []string{"cpu:0"})
	require.NoError(t, err)
	var out bytes.Buffer
	a := app.New(&out, &out)
	rows, err := demoNetworks(t.Context(), a, s, append(targets, devices.Target{Label: "cuda",
		Reason: "not in this build"}),
		nil)
	require.NoError(t, err)
	require.Len(t, rows, 2, "compiled kernels of the CPU have no row of their own, nor have missing devices")
	assert.Equal(t, concords, rows[1].Verdict, rows[1].Reason)
	assert.Less(t, float64(rows[1].MaxDifference), 1e-5)
	assert.Greater(t, float64(rows[1].Accuracy), 0.8)
	rows = append(rows, demoNetwork{Device: "opencl:0", TrainMS: app.Null, Verdict: failed, Reason: "no memory"})
	writeNetworks(a, rows)
	assert.Contains(t, out.String(), "failed: no memory")

	n := func() *trainedNetwork {
		return &trainedNetwork{verify.Trained{Params: []float64{1, 2}, History: &nn.History{ValLoss: []float64{3, 2, 1}}}}
	}
	_, reason := n().compare(n())
	assert.Empty(t, reason)
	for says, spoil := range map[string]func(n *trainedNetwork){
		"parameter 1 is 2.1":         func(n *trainedNetwork) { n.Params[1] = 2.1 },
		"parameter 0 is NaN":         func(n *trainedNetwork) { n.Params[0] = math.NaN() },
		"the loss after epoch 3 is ": func(n *trainedNetwork) { n.History.ValLoss[2] = 1.01 },
	} {
		got := n()
		spoil(got)
		_, reason := got.compare(n())
		assert.Contains(t, reason, says)
	}
}

func TestFinishDemo(t *testing.T) {
	d := &digits{baseLabel: make([]uint8, 2), queryLabel: make([]uint8, 1), dim: 1, k: 2}
	target := devices.Target{Label: "cuda"}
	good := demoRow{Device: "cpu:0", Built: driverNative, Verdict: concords}
	for _, tc := range []struct {
		row    demoRow
		status int
	}{
		{notRun(target, absent, "not in this build"), app.ExitOK},
		{notRun(target, failed, "device lost"), app.ExitFailed},
		{demoRow{Device: "cuda:0", Built: "disk", Verdict: differs, Reason: "neighbours"}, app.ExitFailed},
	} {
		for _, asJSON := range []bool{false, true} {
			var out, errs bytes.Buffer
			a := app.New(&out, &errs)
			a.JSON = asJSON
			err := finishDemo(a, d, []demoRow{good, tc.row}, nil)
			if tc.status == app.ExitOK {
				assert.NoError(t, err)
			} else {
				assert.Equal(t, app.Reported(tc.status), err)
			}
			assert.Contains(t, out.String(), tc.row.Reason)
			assert.Equal(t, asJSON, json.Valid(out.Bytes()))
		}
	}
}

// Every row of the table ends with its verdict; missing devices have a line below it. The
// reference has no row, since its line is printed as soon as its result is known.
func TestDemoTable(t *testing.T) {
	d := &digits{baseLabel: make([]uint8, 2), queryLabel: make([]uint8, 1), dim: 1, k: 2}
	compiled, cuda := devices.Target{Label: "cpu:0 (compiled)"}, devices.Target{Label: "cuda"}
	rows := []demoRow{
		{Device: "cpu:reference", Built: driverNative, KernelMS: 1500, Accuracy: 0.959, Verdict: judge},
		notRun(cuda, absent, "not in this build"),
		{Device: "opencl:0", Built: "disk", Verdict: concords},
		{Device: "cpu:0", Built: driverNative, Verdict: concords},
		notRun(compiled, absent, "no C++ compiler\nand more"),
	}
	var out bytes.Buffer
	require.NoError(t, finishDemo(app.New(&out, &out), d, rows, nil))
	lines := strings.Split(out.String(), "\n")
	require.Len(t, lines, 9, out.String())
	assert.True(t, strings.HasPrefix(lines[1], "DEVICE "))
	for _, row := range lines[2:4] {
		assert.True(t, strings.HasSuffix(row, "  concords"), row)
	}
	assert.Equal(t, []string{"", "Not run: cuda: not in this build", "Not run: cpu:0 (compiled): no C++ compiler",
		"2 results concord with the reference's, 0 do not.", ""}, lines[4:])
	err := finishDemo(app.New(&out, &out), d, rows[:2], nil)
	require.ErrorIs(t, err, runtime.ErrNoDevice, "nothing was compared")
}

func TestNothingToCompare(t *testing.T) {
	for _, command := range []string{"demo", "bench"} {
		status, stdout, stderr := apptest.Run(command, "--device", "cpu:reference", "--json")
		assert.Equal(t, app.ExitFailed, status)
		assert.Contains(t, apptest.Document(t, stdout)["error"], "--device cpu:reference")
		assert.Contains(t, stderr, "invalid argument")
	}
}

// TestParityNamesAbsentBackends checks that the output of parity names the backends that were not judged.
func TestParityNamesAbsentBackends(t *testing.T) {
	var out strings.Builder
	require.NoError(t, finishParity(app.New(&out, io.Discard), []parity.Result{{Verdict: parity.Pass}}, []runtime.Probe{
		{Backend: "here", Devices: make([]runtime.Info, 1)}, {Backend: "absent", Reason: "not in this build"}}))
	assert.Contains(t, out.String(), "skip all of absent: not in this build\n")
	assert.NotContains(t, out.String(), "here")
}

func TestParityVerdicts(t *testing.T) {
	status, stdout, stderr := apptest.Run("parity", "--device", "cpu:0", "--kernel", "copy")
	require.Equal(t, app.ExitOK, status, stderr)
	assert.Contains(t, stdout, " 0 fail")
	b, err := json.Marshal([]app.Number{1.5, app.Number(math.NaN()), app.Number(math.Inf(1))})
	require.NoError(t, err)
	assert.Equal(t, "[1.5,null,null]", string(b))
}

// Nothing is tuned beside what is checked and measured, and that is said.
func TestUntuned(t *testing.T) {
	for _, args := range [][]string{{"parity", "--kernel", "saxpy", "--device", "cpu:0"},
		{"bench", "launch", "--device", "cpu:x"}, {"bench", "train", "--device", "cpu:x"},
		{"verify", "cpu:0", "--only", "no such step"}} {
		t.Setenv("CONCORD_TUNE", "first")
		_, _, stderr := apptest.Run(args...)
		assert.Contains(t, stderr, "concord: CONCORD_TUNE=first is off here", args)
		assert.Empty(t, os.Getenv("CONCORD_TUNE"), "for the processes that it starts, too")
		t.Setenv("CONCORD_TUNE", "off")
		_, _, stderr = apptest.Run(args...)
		assert.NotContains(t, stderr, "CONCORD_TUNE")
	}
}
