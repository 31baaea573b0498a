package parity

// The catalog is open: a family of another module is judged like any other.

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/concord-compute/concord/runtime"
	"github.com/concord-compute/concord/runtime/driver"
	"github.com/concord-compute/concord/runtime/parity"
)

// TestPlantedFault runs the test of a build in which one result is wrong.
func TestPlantedFault(t *testing.T) {
	cmd := exec.CommandContext(t.Context(), "go", "test", "-count=1", "-tags=plantedfault", "-run=^TestPlanted$", "-v",
		"../../runtime/parity")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	assert.Contains(t, string(out), "--- PASS: TestPlanted")
}

// TestOutside runs testdata/outside as a separate module, with the dependencies of this module and
// without network access.
func TestOutside(t *testing.T) {
	root, err := filepath.Abs("../..")
	require.NoError(t, err)
	dir := t.TempDir()
	require.NoError(t, os.CopyFS(dir, os.DirFS("testdata/outside")))
	mod, err := os.ReadFile(filepath.Join(root, "go.mod"))
	require.NoError(t, err)
	mod = regexp.MustCompile(`(?m)^module (.*)$`).ReplaceAll(mod, []byte("module example.org/outside\n\nrequire $1 "+
		"v0.0.0\n\nreplace $1 => "+root))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "go.mod"), mod, 0o600))
	sum, err := os.ReadFile(filepath.Join(root, "go.sum"))
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "go.sum"), sum, 0o600))

	cmd := exec.CommandContext(t.Context(), "go", "run", ".")
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "GOFLAGS=-mod=mod", "GOPROXY=off", "GOWORK=off")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	require.NoError(t, err, "%s", stderr.String())
	var results []parity.Result
	require.NoError(t, json.Unmarshal(out, &results))

	verdicts := map[string]map[string]int{} // by family, type and device
	for _, r := range results {
		at := r.Kernel + " " + r.DType + " " + r.Device
		if verdicts[at] == nil {
			verdicts[at] = map[string]int{}
		}
		verdicts[at][r.Verdict]++
	}
	pass, fail := map[string]int{parity.Pass: 3}, map[string]int{parity.Fail: 3}
	built := pass // the verdict of cases that need a compiler
	d, err := runtime.Open(t.Context(), "cpu:0")
	require.NoError(t, err)
	defer d.Close()
	if _, err := d.Driver().(driver.Compiler).Identity(t.Context()); errors.Is(err, runtime.ErrUnsupported) {
		built = map[string]int{parity.Skip: 3}
	}
	want := map[string]map[string]int{}
	for _, typ := range []string{"f32", "f64"} {
		for _, family := range []string{"limit", "limit_wrong"} {
			want[family+"/limit "+typ+" cpu:0 (compiled)"] = built
		}
		want["limit/limit "+typ+" cpu:0"], want["limit_wrong/limit "+typ+" cpu:0"] = pass, fail
		want["limit_text/limit "+typ+" cpu:0"] = built
	}
	for _, family := range []string{"limit", "limit_text", "limit_wrong"} { // no native implementation supports half
		want[family+"/limit f16 cpu:0"] = built
	}
	for _, typ := range []string{"f32", "f64", "f16"} { // there is nothing to compare
		want["limit_blind/limit "+typ+" cpu:0"] = fail
	}
	assert.Equal(t, want, verdicts)
}
