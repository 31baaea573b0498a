package verify

import (
	"cmp"
	"errors"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/concord-compute/concord/ann"
	"github.com/concord-compute/concord/kernels"
	"github.com/concord-compute/concord/nn"
	"github.com/concord-compute/concord/quant"
	"github.com/concord-compute/concord/runtime"
)

// TestSteps: the steps that take seconds, on the CPU: each shows what it says.
func TestSteps(t *testing.T) {
	only := []string{"search", "quantized", "sanitizer", "occupancy"}
	if !testing.Short() {
		only = append(only, "golden", "training", "endurance")
	}
	r, err := Run(t.Context(), Options{Device: "cpu:0", Dir: t.TempDir(), Limit: 3 * time.Minute, Command: again("real"),
		Only: only})
	require.NoError(t, err)
	for _, s := range r.Steps {
		switch s.Step {
		case "sanitizer", "occupancy":
			assert.Equal(t, Absent, s.State, s.Step)
		default:
			assert.Contains(t, []State{Done, Cut}, s.State, "%s: %s", s.Step, s.Reason)
			assert.Empty(t, s.Failures, s.Step)
			assert.NotZero(t, s.Passed, s.Step)
		}
	}
	assert.Equal(t, "cpu:0", r.About.Info.ID)
}

// TestNoDevice: a device that is not there ends the run at once, with what helps, and every step is named.
func TestNoDevice(t *testing.T) {
	start := time.Now()
	r, err := Run(t.Context(), Options{Device: "cpu:7", Dir: t.TempDir(), Limit: time.Minute, Command: again("real")})
	require.NoError(t, err)
	assert.Less(t, time.Since(start), 30*time.Second)
	assert.False(t, r.OK)
	assert.Equal(t, NoDevice, r.Steps[0].State)
	assert.NotEmpty(t, r.Steps[0].Reason)
	for _, s := range r.Steps[1:] {
		assert.Equal(t, NotRun, s.State, s.Step)
		assert.Contains(t, s.Reason, "does not open")
	}
	assert.Len(t, r.Steps, len(steps))
}

// TestSanitizer: the summary of the tool decides, by a script in its place that starts the process and speaks as the
// tool does.
func TestSanitizer(t *testing.T) {
	script := func(lines string) string {
		path := filepath.Join(t.TempDir(), "compute-sanitizer")
		require.NoError(t, os.WriteFile(path, []byte("#!/bin/sh\nread job\n"+lines), 0o755))
		return path
	}
	const cases = `echo '{"check":{"name":"a","verdict":"pass"}}'; echo '{"check":{"name":"b","verdict":"pass"}}'` + "\n"
	e := &Env{Device: "cuda:0", out: newWriter(os.Stderr)}
	run := func(lines string) error { return e.sanitize(t.Context(), script(lines), "memcheck", 5*time.Second) }
	assert.NoError(t, run(cases+`echo "========= ERROR SUMMARY: 0 errors"`))
	assert.NoError(t, run(cases+`echo "========= RACECHECK SUMMARY: 0 hazards displayed (0 errors, 0 warnings)"`))
	err :=
		run(cases + `echo "========= Invalid __global__ write of size 4 bytes"; echo "========= ERROR SUMMARY: 3 errors"`)
	assert.ErrorContains(t, err, "ERROR SUMMARY: 3 errors in 2 cases")
	assert.ErrorContains(t, err, "Invalid __global__ write")
	assert.ErrorContains(t, run(`echo "========= ERROR SUMMARY: 0 errors"`), "no case ran under it")
	var s skip
	err = run(`echo "========= Error: Device not supported" >&2; exit 1`)
	require.True(t, errors.As(err, &s))
	assert.Contains(t, err.Error(), "Device not supported")
	start := time.Now()
	err = e.sanitize(t.Context(), script("exec sleep 1005"), "memcheck", time.Second)
	require.True(t, errors.As(err, &s))
	assert.Less(t, time.Since(start), 20*time.Second)
}

// TestRepresentative: each kernel and type of the catalog has one case, and the case is not trivial where the catalog
// has others.
func TestRepresentative(t *testing.T) {
	for _, f := range kernels.Families() {
		best := representative(f)
		kinds := map[string]bool{}
		for _, c := range kernels.Cases(f.ID) {
			kinds[kind(&c)] = true
		}
		assert.Len(t, best, len(kinds), f.ID)
	}
	f, _ := kernels.Find("saxpy")
	for _, name := range representative(f) {
		assert.NotContains(t, name, "n=1 ")
	}
}

// TestJudges: what judges results finds wrong ones.
func TestJudges(t *testing.T) {
	w, err := quant.Pack(quant.Layout{Format: quant.Q80, Rows: 2, Cols: 64}, make([]float32, 128))
	require.NoError(t, err)
	x := make([]float32, 64)
	assert.NoError(t, product([]float32{0, 0}, w, x, 1))
	assert.ErrorContains(t, product([]float32{0, 1e-3}, w, x, 1), "output 1")

	data, q := cloud(searchVectors, 1), cloud(searchQueries, 2)
	found := make([][]ann.Result, searchQueries)
	for i := range found {
		for id := range searchK {
			d, err := ann.Euclidean.Distance(q[i*searchDim:(i+1)*searchDim], data[id*searchDim:(id+1)*searchDim])
			require.NoError(t, err)
			found[i] = append(found[i], ann.Result{ID: int64(id), Distance: d})
		}
	}
	for i := range found {
		slices.SortFunc(found[i], func(a, b ann.Result) int { return cmp.Compare(a.Distance, b.Distance) })
	}
	recall, err := judged(found, data, q, ann.Euclidean, false, 1e-4)
	require.NoError(t, err)
	assert.Less(t, recall, 0.3)
	_, err = judged(found, data, q, ann.Euclidean, true, 1e-4)
	assert.ErrorContains(t, err, "not admitted")
	for want, spoil := range map[string]func(r []ann.Result){
		"not in order":    func(r []ann.Result) { r[0], r[1] = r[1], r[0] },
		"twice":           func(r []ann.Result) { r[1] = r[0] },
		"is NaN, not":     func(r []ann.Result) { r[0].Distance = math.NaN() },
		"the distance of": func(r []ann.Result) { r[0].Distance *= 0.99 },
	} {
		spoiled := slices.Clone(found)
		spoiled[3] = slices.Clone(found[3])
		spoil(spoiled[3])
		_, err = judged(spoiled, data, q, ann.Euclidean, false, 1e-4)
		assert.ErrorContains(t, err, want)
	}

	l := lesson{change: 1e-2, loss: 1e-3}
	trained := func(a, b, loss float64) Trained {
		return Trained{Before: []float64{0, 0}, Params: []float64{a, b}, History: &nn.History{TrainLoss: []float64{loss}}}
	}
	want := trained(1, 1, 2)
	assert.NoError(t, l.compare(trained(1.005, 1, 2.0005), want))
	assert.ErrorContains(t, l.compare(trained(1.1, 1, 2), want), "parameters")
	assert.ErrorContains(t, l.compare(trained(math.NaN(), 1, 2), want), "parameters")
	assert.ErrorContains(t, l.compare(trained(1, 1, 2.1), want), "loss 0")
	assert.ErrorContains(t, l.compare(want, Trained{Before: want.Params, Params: want.Params, History: want.History}),
		"nothing was learned")

	assert.ErrorContains(t, leftOpen(t), "bytes")
}

// leftOpen asks what is left of a device with a buffer that is open.
func leftOpen(t *testing.T) error {
	dev, err := runtime.Open(t.Context(), "cpu:0")
	require.NoError(t, err)
	defer dev.Close()
	before := dev.Info()
	b, err := runtime.Alloc[float32](dev, 100)
	require.NoError(t, err)
	defer b.Close()
	return left(dev, before)
}
