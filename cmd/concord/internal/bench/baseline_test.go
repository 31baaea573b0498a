package bench

import (
	"context"
	"encoding/json"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/concord-compute/concord/cmd/concord/internal/app"
	"github.com/concord-compute/concord/cmd/concord/internal/apptest"
	"github.com/concord-compute/concord/runtime"
)

// series of rounds with a cost of 1 and noise as machines have it, a function of random numbers.
var noisy = map[string]func(r *rand.Rand, n int) []float64{
	"quiet": func(r *rand.Rand, n int) []float64 {
		return rounds(n, func(int) float64 { return 1 + 0.005*r.Float64() })
	},
	"other work now and then": func(r *rand.Rand, n int) []float64 {
		return rounds(n, func(int) float64 {
			if r.Float64() < 0.3 {
				return 1 + 2*r.Float64()
			}
			return 1 + 0.02*r.Float64()
		})
	},
	"long tail": func(r *rand.Rand, n int) []float64 {
		return rounds(n, func(int) float64 { return 1 + 0.04*r.ExpFloat64() })
	},
	"drift": func(r *rand.Rand, n int) []float64 {
		slope := 0.1 * r.Float64()
		return rounds(n, func(i int) float64 { return 1 + slope*float64(i)/float64(n) + 0.01*r.Float64() })
	},
	"bursts": func(r *rand.Rand, n int) []float64 {
		slow := false
		return rounds(n, func(int) float64 {
			if r.Float64() < 0.25 {
				slow = !slow
			}
			if slow {
				return 1.6 + 0.2*r.Float64()
			}
			return 1 + 0.02*r.Float64()
		})
	},
	"another process": func(r *rand.Rand, n int) []float64 { // memory lies elsewhere: 2 % for all rounds
		base := 1 + 0.02*r.Float64()
		return rounds(n, func(int) float64 { return base * (1 + 0.02*r.Float64()) })
	},
}

func rounds(n int, f func(i int) float64) []float64 {
	list := make([]float64, n)
	for i := range list {
		list[i] = f(i)
	}
	return list
}

// decided compares as against does, with up to three more measurements of what seems slower.
func decided(before []float64, now func() []float64) judged {
	all := now()
	j := compareCosts(before, all)
	for range 3 {
		if !j.slower() {
			break
		}
		all = append(all, now()...)
		j = compareCosts(before, all)
	}
	return j
}

func TestGuardStatistics(t *testing.T) {
	const runs, n = 100, usualRounds
	for name, series := range noisy {
		r := rand.New(rand.NewPCG(7, 7))
		alarms, found, silent := 0, 0, 0
		for range runs {
			before := series(r, n)
			if decided(before, func() []float64 { return series(r, n) }).slower() {
				alarms++
			}
			j := decided(before, func() []float64 {
				slow := series(r, n)
				for i := range slow {
					slow[i] *= 1.15
				}
				return slow
			})
			switch {
			case j.slower():
				found++
			case j.noise < 0.15:
				silent++
			}
		}
		assert.LessOrEqual(t, alarms, runs/100, "%s: alarms although nothing changed", name)
		assert.LessOrEqual(t, silent, runs*4/100, "%s: 15 %% missed without a word of noise", name)
		if name != "bursts" { // there, whole runs may have hardly a quiet round
			assert.GreaterOrEqual(t, found, runs*98/100, "%s: 15 %% found", name)
		}
	}
	// Noise that hides 15 % is said, and is no alarm.
	r := rand.New(rand.NewPCG(3, 3))
	wild := func() []float64 { return rounds(n, func(int) float64 { return math.Exp(0.5 * r.NormFloat64()) }) }
	hidden := 0
	for range 100 {
		j := compareCosts(wild(), wild())
		if j.noise > 0.15 {
			hidden++
		}
	}
	assert.Greater(t, hidden, 90)
	same := rounds(n, func(int) float64 { return 2 })
	assert.Equal(t, judged{0, math.Expm1(math.Log1p(leastNoise))}, compareCosts(same, same))
	twice := compareCosts(same, rounds(n, func(int) float64 { return 4 }))
	assert.True(t, twice.slower() && !twice.faster())
	assert.InDelta(t, 1, twice.change, 1e-12)
	half := compareCosts(same, rounds(n, func(int) float64 { return 1 }))
	assert.True(t, half.faster() && !half.slower())
	assert.InDelta(t, -0.5, half.change, 1e-12)
}

// In turn, even long bursts of other work hide nothing.
func TestGuardInTurn(t *testing.T) {
	const runs, n = 20, usualRounds
	for name, series := range noisy {
		r := rand.New(rand.NewPCG(9, 9))
		count := func(slow float64) (slower int) {
			for range runs {
				var before, now []float64
				seems := true
				for try := 0; seems && try < 4; try++ { // as confirm does
					both := series(r, 2*n)
					for i := range n {
						before, now = append(before, both[2*i]), append(now, both[2*i+1]*slow)
					}
					seems = compareInTurn(before, now).slower()
				}
				if seems {
					slower++
				}
			}
			return slower
		}
		assert.LessOrEqual(t, count(1), 1, "%s: alarms although nothing changed", name)
		assert.GreaterOrEqual(t, count(1.15), runs-1, "%s: 15 %% found", name)
	}
}

// Another version of the program is run round by round; here it is the same one.
func TestGuardAgainst(t *testing.T) {
	t.Setenv(apptest.AsCommand, "1")
	t.Setenv("CONCORD_CPU_KERNELS", "go")
	status, stdout, stderr := apptest.Run("bench", "launch", "--device", "cpu:0", "--rounds", "8", "--against", os.Args[0],
		"--json")
	require.Contains(t, []int{app.ExitOK, app.ExitFailed}, status,
		stderr) // on a busy machine two programs may differ by chance
	results := apptest.Document(t, stdout)["results"].([]any)
	require.NotEmpty(t, results)
	for _, r := range results {
		assert.Contains(t, []any{asBefore, nowFaster, nowSlower}, r.(map[string]any)["verdict"])
	}
	notOurs := filepath.Join(t.TempDir(), "other")
	require.NoError(t, os.WriteFile(notOurs, []byte("#!/bin/sh\necho no such flag >&2\nexit 2\n"), 0o700))
	for program, says := range map[string]string{filepath.Join(t.TempDir(), "missing"): "no such file",
		notOurs: "no such flag"} {
		status, _, stderr = apptest.Run("bench", "launch", "--device", "cpu:0", "--rounds", "8", "--against", program)
		assert.Equal(t, app.ExitFailed, status)
		assert.Contains(t, stderr, says)
	}
}

// A baseline of something else is an error, before anything is measured.
func TestGuardFiles(t *testing.T) {
	t.Setenv("CONCORD_CPU_KERNELS", "go")
	file := filepath.Join(t.TempDir(), "before.json")
	status, stdout, stderr := apptest.Run("bench", "launch", "--device", "cpu:0", "--rounds", "8", "--baseline", file)
	require.Equal(t, app.ExitOK, status, stderr)
	assert.Regexp(t, `cpu:0 +launch +queue .* go\n`, stdout)
	f, err := readBaseline(t.Context(), file, 8)
	require.NoError(t, err)
	require.NotEmpty(t, f.Devices)
	assert.Len(t, f.Devices[0].Series[0].Rounds, 8)
	text, err := os.ReadFile(file)
	require.NoError(t, err)

	altered := func(change func(f *baseline)) string {
		var f baseline
		require.NoError(t, json.Unmarshal(text, &f))
		change(&f)
		data, err := json.Marshal(f)
		require.NoError(t, err)
		return apptest.TextFile(t, "altered.json", string(data))
	}
	for says, path := range map[string]string{
		"no such file":     filepath.Join(t.TempDir(), "missing.json"),
		"not a baseline":   apptest.TextFile(t, "x.json", "{"),
		"version 9":        altered(func(f *baseline) { f.Version = 9 }),
		"without a device": altered(func(f *baseline) { f.Devices = nil }),
		"positive values":  altered(func(f *baseline) { f.Devices[0].Series[0].Rounds[3] = 0 }),
		"or more": altered(func(f *baseline) {
			f.Devices[0].Series[0].Rounds = f.Devices[0].Series[0].Rounds[:3]
		}),
		"is not the device":    altered(func(f *baseline) { f.Devices[0].Is.Name = "another" }),
		"there are cpu:0, cpu": altered(func(f *baseline) { f.Devices[0].Device = "cpu:7" }),
	} {
		status, stdout, stderr := apptest.Run("bench", "--rounds", "8", "--compare", path)
		assert.Equal(t, app.ExitFailed, status, says)
		assert.Empty(t, stdout)
		assert.Contains(t, stderr, says)
	}
	for _, args := range [][]string{{"saxpy", "--compare", file}, {"--device", "cpu:reference", "--compare", file}} {
		status, stdout, stderr := apptest.Run(append([]string{"bench"}, args...)...)
		assert.Equal(t, app.ExitFailed, status, args)
		assert.Empty(t, stdout)
		assert.Contains(t, stderr, "nothing to measure: the baseline has cpu:0 launch")
	}
	// What the baseline has and is not measured any more is a failure, and what is a hundred times slower.
	missing := altered(func(f *baseline) { f.Devices = f.Devices[:1]; f.Devices[0].Series[0].Name = "vanished" })
	status, stdout, stderr = apptest.Run("bench", "--rounds", "8", "--compare", missing)
	assert.Equal(t, app.ExitFailed, status, stderr)
	assert.Regexp(t, `vanished .* not measured`, stdout)
	slow := altered(func(f *baseline) {
		f.Devices = f.Devices[:1]
		for i := range f.Devices[0].Series[0].Rounds {
			f.Devices[0].Series[0].Rounds[i] /= 100
		}
	})
	status, stdout, stderr = apptest.Run("bench", "--rounds", "8", "--compare", slow, "--json")
	assert.Equal(t, app.ExitFailed, status, stderr)
	results := apptest.Document(t, stdout)["results"].([]any)
	assert.Equal(t, nowSlower, results[0].(map[string]any)["verdict"])
	unused := filepath.Join(t.TempDir(), "unused.json")
	for _, args := range [][]string{{"--baseline", unused, "--compare", "b"}, {"--baseline", unused, "--report", "b"},
		{"--rounds", "7", "--compare", file},
		{"--rounds", "7", "--baseline", unused}, {"--rounds", "1", "--baseline", unused}, {"--rounds", "8", "saxpy"}} {
		status, stdout, stderr := apptest.Run(append([]string{"bench"}, args...)...)
		assert.Equal(t, app.ExitUsage, status, args)
		assert.Empty(t, stdout)
		if args[0] == "--rounds" {
			assert.Regexp(t, `--rounds (must be at least 8, not [17]|is for --baseline)`, stderr)
		}
	}
	assert.NoFileExists(t, unused)
}

// guardVariable is the number of times that TestGuard compares the same, and five times the number of
// those in which it compares with more work.
const guardVariable = "GUARD"

// Real measurements on cpu:0, in turn as --against does, but in one process: nothing is found where
// nothing changed, and a kernel that has 15 % more work than it says is. Other work on the machine goes
// on meanwhile.
func TestGuard(t *testing.T) {
	times, err := strconv.Atoi(os.Getenv(guardVariable))
	if err != nil {
		t.Skip("measures for minutes: " + guardVariable + " is not set")
	}
	a := app.New(io.Discard, io.Discard)
	_, err = a.Open(runtime.Config{Fallback: runtime.Require, CPUThreads: 1})
	require.NoError(t, err)
	defer func() { require.NoError(t, a.Close(t.Context())) }()
	dev, err := a.Session.Open(t.Context(), "cpu:0")
	require.NoError(t, err)
	defer dev.Close()
	only := &baseline{Devices: []deviceBaseline{{Device: "cpu:0",
		Is: identityOf(dev.Info())}}} // without its compiled form
	const n = 1 << 15
	more := 1.0
	// Elements that stay in the second cache, so that the amount of work alone counts.
	work := func(name, family, kernel string, defs string, args func(x []*runtime.Buffer, n int) []any) suite {
		return suite{name, "", func(b *bencher, ctx context.Context) error {
			k, err := b.kernel(ctx, family, kernel)
			if err != nil {
				return err
			}
			x, free, err := b.floats(ctx, 2*n, 2*n)
			if err != nil {
				return err
			}
			defer free()
			real := int(n * more)
			m, err := b.sampleKernel(ctx, k, []int{real}, n, args(x, real)...)
			if err != nil {
				return err
			}
			b.note(defs, "G/s", m, app.Null)
			return nil
		}}
	}
	g := func() *comparison {
		return &comparison{a: a, devices: []string{"cpu:0"}, rounds: usualRounds, time: 4 * time.Millisecond, suites: []suite{
			work("saxpy", "saxpy", "saxpy", "n", func(x []*runtime.Buffer, n int) []any {
				return []any{float32(0), x[0], x[1], uint64(n)}
			}),
			work("activation", "activation", "tanh_act", "n", func(x []*runtime.Buffer, n int) []any {
				return []any{x[0], x[1], uint64(n)}
			}),
		}}
	}
	compare := func(slow float64) (slower int, said []string) {
		round := func(work float64) func(g *comparison) (*baseline, error) {
			return func(g *comparison) (*baseline, error) {
				more = work
				one := *g
				one.rounds = 1
				return one.run(t.Context(), only)
			}
		}
		list, err := g().inTurn(round(1), round(slow))
		require.NoError(t, err)
		require.Len(t, list, 2)
		for _, c := range list {
			if c.Verdict == nowSlower {
				slower++
			}
			said = append(said, c.Suite+": "+percent(float64(c.Change))+" ± "+percent(float64(c.Noise)))
		}
		return slower, said
	}
	alarms, found := 0, 0
	for range times {
		if slower, said := compare(1); slower > 0 {
			alarms++
			t.Log("alarm: ", strings.Join(said, ", "))
		}
	}
	for range times / 5 {
		if slower, said := compare(1.15); slower > 0 {
			found++
		} else {
			t.Log("missed: ", strings.Join(said, ", "))
		}
	}
	t.Logf("%d of %d comparisons of the same are alarms; 15 %% found %d times of %d", alarms, times, found, times/5)
	assert.LessOrEqual(t, alarms, max(1, times/100))
	assert.Equal(t, times/5, found)
}
