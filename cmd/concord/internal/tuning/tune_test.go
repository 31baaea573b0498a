package tuning

import (
	"bufio"
	"bytes"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/concord-compute/concord/cmd/concord/internal/app"
	"github.com/concord-compute/concord/cmd/concord/internal/apptest"
	"github.com/concord-compute/concord/runtime"
	"github.com/concord-compute/concord/runtime/choice"
	"github.com/concord-compute/concord/runtime/tune"
	_ "github.com/concord-compute/concord/tensor"
)

func TestMain(m *testing.M) { apptest.Main(m, Command) }

// withoutTable gives devices the kernels for which no table comes with Concord, whatever the processor.
func withoutTable(t *testing.T) { t.Setenv("CONCORD_CPU_KERNELS", "go") }

// Costs are measured in a child, kept, and shown with their spread until they are forgotten.
func TestTuneCosts(t *testing.T) {
	withoutTable(t)
	t.Setenv("CONCORD_CACHE_DIR", t.TempDir())
	t.Setenv(apptest.AsCommand, "1") // of the child
	status, stdout, stderr := apptest.Run("tune", "costs", "--json")
	require.Equal(t, app.ExitOK, status, stderr)
	table := apptest.Document(t, stdout)
	values := table["values"].(map[string]any)
	assert.Len(t, values, len(choice.Of("tensor")))
	assert.Positive(t, values["tensor.task"])

	status, stdout, stderr = apptest.Run("tune", "show")
	require.Equal(t, app.ExitOK, status, stderr)
	assert.Contains(t, stdout, "  tensor.task = ")
	assert.Regexp(t, `(?m)^  launch +launch +[\d.]+ (ns|µs|ms) `, stdout)
	assert.Contains(t, stdout, "QUARTER ABOVE")

	status, stdout, stderr = apptest.Run("tune", "reset")
	require.Equal(t, app.ExitOK, status, stderr)
	assert.Regexp(t, `^Removed: 7 values for .*\n(  tensor\.\S+ = \d+\n){7}cpu:0 has the defaults\.\n$`, stdout)
	status, stdout, stderr = apptest.Run("tune", "reset")
	require.Equal(t, app.ExitOK, status, stderr)
	assert.Equal(t, "Nothing was kept.\ncpu:0 has the defaults.\n", stdout)
	status, stdout, stderr = apptest.Run("tune", "list")
	require.Equal(t, app.ExitOK, status, stderr)
	assert.Contains(t, stdout, "\n  costs: launch, upload, copy, add, move.1m, ")
}

// A table of trials that all failed says why.
func TestShowFailed(t *testing.T) {
	t.Setenv("CONCORD_CACHE_DIR", t.TempDir())
	dev, err := runtime.Open(t.Context(), "cpu:0")
	require.NoError(t, err)
	defer dev.Close()
	table := dev.Choices().New(map[string]int{})
	table.Trials = []choice.Trial{{Subject: "costs", Failed: "the device is lost"}}
	var text bytes.Buffer
	require.NoError(t, table.Write(&text))
	status, _, stderr := apptest.Run("tune", "import", apptest.TextFile(t, "table.json", text.String()))
	require.Equal(t, app.ExitOK, status, stderr)
	status, stdout, stderr := apptest.Run("tune", "show")
	require.Equal(t, app.ExitOK, status, stderr)
	assert.Contains(t, stdout, "costs, the defaults: the device is lost\n")
	assert.NotContains(t, stdout, "no candidate was tried")
}

// A name that is none is wrong usage.
func TestTuneRefuses(t *testing.T) {
	for says, args := range map[string][]string{
		`no subject "gemn" (gemm?)`:                          {"gemn"},
		`no subject "conv2" (conv2d?)`:                       {"conv2"},
		"concord tune list has the subjects and their sizes": {"nothing like it"},
		`no size "65" among 64`:                              {"gemm", "--size", "64,65"},
		"--size: a size is empty":                            {"gemm", "--size", ""},
		"--size: a size is empty; conc":                      {"gemm", "--size", "64,"},
		"--minutes 0: it is above 0":                         {"--minutes", "0"},
		`"x" is not an index`:                                {"--device", "cpu:x"},
	} {
		status, stdout, stderr := apptest.Run(append([]string{"tune", "--try"}, args...)...)
		assert.Equal(t, app.ExitUsage, status, stderr)
		assert.Empty(t, stdout)
		assert.Contains(t, stderr, says)
	}
}

// Import names the values of a table that do not hold any more, and keeps the others.
func TestTuneImports(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("CONCORD_CACHE_DIR", filepath.Join(dir, "cache"))
	t.Setenv("CONCORD_TUNE", "first") // which keeps tables, too
	s, err := runtime.New(app.Exactly)
	require.NoError(t, err)
	defer s.Close()
	d, err := s.Open(t.Context(), "cpu:0")
	require.NoError(t, err)
	table := d.Choices().New(map[string]int{"cpu.transpose.ranges": 2, "kernels.gemm.items": 4})
	table.Versions["cpu.transpose"] = "0"
	name := filepath.Join(dir, "table.json")
	f, err := os.Create(name)
	require.NoError(t, err)
	require.NoError(t, table.Write(f))
	require.NoError(t, f.Close())
	status, stdout, stderr := apptest.Run("tune", "import", name)
	require.Equal(t, app.ExitOK, status, stderr)
	assert.Contains(t, stdout, ": 1 value for ")
	assert.Contains(t, stdout, "values were left out: it was made with version 0 of the choices for cpu.transpose")
	status, stdout, stderr = apptest.Run("tune", "show")
	require.Equal(t, app.ExitOK, status, stderr)
	assert.Contains(t, stdout, "kernels.gemm.items = 4")
	assert.NotContains(t, stdout, "cpu.transpose")
}

// device opens cpu:0 in a session with what is kept in the cache directory.
func device(t *testing.T) *runtime.Device {
	t.Helper()
	s, err := runtime.New(app.Exactly)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, s.Close()) })
	d, err := s.Open(t.Context(), "cpu:0")
	require.NoError(t, err)
	return d
}

// tableFile writes a table of cpu:0 into a file.
func tableFile(t *testing.T, d *runtime.Device, values map[string]int) string {
	t.Helper()
	var text bytes.Buffer
	require.NoError(t, d.Choices().New(values).Write(&text))
	return apptest.TextFile(t, "table.json", text.String())
}

// Commands of several processes at once keep what each of them has.
func TestTuneAtOnce(t *testing.T) {
	t.Setenv("CONCORD_CACHE_DIR", t.TempDir())
	d, want := device(t), map[string]int{}
	var started []*exec.Cmd
	for name, v := range map[string]int{"cpu.transpose.ranges": 2, "kernels.gemm.items": 4, "tensor.task": 20000,
		"tensor.many": 1024} {
		want[name] = v
		cmd := apptest.Process("tune", "import", tableFile(t, d, map[string]int{name: v}))
		var stderr bytes.Buffer
		cmd.Stderr = &stderr
		require.NoError(t, cmd.Start())
		t.Cleanup(func() { _ = cmd.Process.Kill() })
		started = append(started, cmd)
	}
	for _, cmd := range started {
		require.NoError(t, cmd.Wait(), "%s", cmd.Stderr)
	}
	assert.Equal(t, want, device(t).Choices().Table().Values)
}

// Commands that change what is kept wait for a process that has the lock, say so, and end when they are interrupted.
func TestTuneWaits(t *testing.T) {
	withoutTable(t)
	dir := t.TempDir()
	t.Setenv("CONCORD_CACHE_DIR", dir)
	d := device(t)
	unlock, err := tune.Lock(t.Context(), d, nil)
	require.NoError(t, err)
	require.NoError(t, d.KeepTuned(t.Context(), d.Choices().New(map[string]int{"tensor.task": 20000})))
	file := filepath.Join(t.TempDir(), "table.json")
	for _, args := range [][]string{{"tune", "reset"}, {"tune", "pin", file}, {"tune", "transpose", "--minutes", "0.05"},
		{"tune", "import", tableFile(t, d, map[string]int{"tensor.many": 1024})}} {
		cmd := apptest.Process(args...)
		out, err := cmd.StderrPipe()
		require.NoError(t, err)
		require.NoError(t, cmd.Start())
		line, err := bufio.NewReader(out).ReadString('\n')
		require.NoError(t, err, args)
		assert.Contains(t, line, "waiting for a process that tunes or changes what is kept, which has the lock "+dir)
		require.NoError(t, cmd.Process.Signal(os.Interrupt))
		assert.Equal(t, app.ExitFailed, apptest.ExitCode(cmd.Wait()), args)
	}
	assert.NoFileExists(t, file)
	assert.Equal(t, map[string]int{"tensor.task": 20000}, device(t).Choices().Table().Values, "nothing changed")
	reset := apptest.Process("tune", "reset")
	require.NoError(t, reset.Start())
	require.NoError(t, d.KeepTuned(t.Context(), d.Choices().New(map[string]int{"tensor.many": 1024})))
	unlock()
	require.NoError(t, reset.Wait())
	assert.Nil(t, device(t).Choices().Table(), "what was kept while it waited, too")

	// What is reset while a command waits does not come back by it.
	require.NoError(t, d.KeepTuned(t.Context(), d.Choices().New(map[string]int{"tensor.many": 1024})))
	unlock, err = tune.Lock(t.Context(), d, nil)
	require.NoError(t, err)
	pin := apptest.Process("tune", "pin", file)
	out, err := pin.StderrPipe()
	require.NoError(t, err)
	require.NoError(t, pin.Start())
	lines := bufio.NewReader(out)
	_, err = lines.ReadString('\n')
	require.NoError(t, err)
	require.NoError(t, d.KeepTuned(t.Context(), nil))
	unlock()
	rest, err := io.ReadAll(lines)
	require.NoError(t, err)
	assert.Equal(t, app.ExitFailed, apptest.ExitCode(pin.Wait()))
	assert.Contains(t, string(rest), "cpu:0 has the defaults")
	assert.NoFileExists(t, file)
}

// A file of no values would have no effect.
func TestTuneWritesNothing(t *testing.T) {
	withoutTable(t)
	t.Setenv("CONCORD_CACHE_DIR", t.TempDir())
	for _, command := range []string{"export", "pin"} {
		file := filepath.Join(t.TempDir(), "table.json")
		status, _, stderr := apptest.Run("tune", command, file)
		assert.Equal(t, app.ExitFailed, status)
		assert.Contains(t, stderr, "cpu:0 has the defaults, and no table that a file could have: concord tune measures one")
		assert.NoFileExists(t, file)
	}
}

// What there was no time for is named, with the command that goes on.
func TestTuneLeft(t *testing.T) {
	t.Setenv("CONCORD_CACHE_DIR", t.TempDir())
	t.Setenv(apptest.AsCommand, "1") // of the child
	status, stdout, stderr := apptest.Run("tune", "gemm f32", "transpose", "--size", "64,512x512", "--minutes", "1e-9")
	require.Equal(t, app.ExitOK, status, stderr)
	assert.Contains(t, stdout, "There was no time, or not enough, for 2 operations of what is tuned. "+
		"This goes on with it:\n"+
		`  concord tune "gemm f32" "transpose f32" --size "64,512x512" --minutes 1e-09`+"\n")
	status, stdout, stderr = apptest.Run("tune", "costs", "--json")
	require.Equal(t, app.ExitOK, status, stderr)
	assert.NotContains(t, apptest.Document(t, stdout), "left")
	assert.Regexp(t, `(?m)^1/1 costs: about 5m0s; at most \d+m\d+s more for all$`, stderr)
}

// Costs whose samples differ say that the machine was busy.
func TestTuneBusy(t *testing.T) {
	quiet := choice.Cost{Name: "launch", Of: "launch", Ns: 100, Low: 90, High: 110}
	busy := choice.Cost{Name: "copy", Of: "byte", Ns: 1, Low: 0.5, High: 1.5}
	for says, costs := range map[string][]choice.Cost{"": {quiet}, "  The machine was busy: copy differ by up to 3.0 " +
		"times between a quarter of the samples and another; concord tune costs measures again.\n": {quiet, busy}} {
		var text bytes.Buffer
		writeCosts(app.New(&text, &text), map[string]choice.Trial{"costs": {Costs: costs}})
		assert.Equal(t, says != "", strings.HasSuffix(text.String(), "again.\n"))
		assert.Contains(t, text.String(), says)
	}
}
