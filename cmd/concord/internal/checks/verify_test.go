package checks

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/concord-compute/concord/cmd/concord/internal/app"
	"github.com/concord-compute/concord/cmd/concord/internal/apptest"
	"github.com/concord-compute/concord/internal/verify"
)

// TestVerifyCommand: steps run in processes of their own, the report is where it should be, and a second run that
// repeats what failed has nothing to do.
func TestVerifyCommand(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a folder")
	page := filepath.Join(t.TempDir(), "page.html")
	out, err := apptest.Process("verify", "cpu:0", "--only", "search,quantized", "--minutes", "2", "--out", dir, "--html",
		page, "--json").Output()
	require.NoError(t, err, string(out))
	var r verify.Report
	require.NoError(t, json.Unmarshal(out, &r))
	assert.True(t, r.OK)
	require.Len(t, r.Steps, 3)
	assert.Equal(t, "device", r.Steps[0].Step)
	assert.Equal(t, "cpu:0", r.About.Info.ID)
	text, err := os.ReadFile(filepath.Join(dir, "report.md"))
	require.NoError(t, err)
	assert.Contains(t, string(text), "a processor, not a card")
	html, err := os.ReadFile(page)
	require.NoError(t, err)
	assert.Contains(t, string(html), "nearest neighbours")

	out, err = apptest.Process("verify", "cpu:0", "--only", "failed", "--out", dir).Output()
	require.NoError(t, err, string(out))
	assert.Contains(t, string(out), "every step of "+filepath.Join(dir, "report.json")+" passed")
}

// TestVerifyAbsent: a device that is not there is a failure that says so.
func TestVerifyAbsent(t *testing.T) {
	out, err := apptest.Process("verify", "cpu:9", "--minutes", "1", "--out", t.TempDir()).Output()
	require.Error(t, err)
	assert.Contains(t, string(out), "no device")
	assert.Contains(t, string(out), "NOT OPENED")
	assert.NotContains(t, string(out), "passed  ")
}

// TestVerifyUsage: mistakes are told before anything runs.
func TestVerifyUsage(t *testing.T) {
	missing := filepath.Join(t.TempDir(), "report")
	for want, args := range map[string][]string{
		`there is no step "god"; the steps are device,`: {"cpu:0", "--only", "god", "--out", missing},
		"accepts 1 arg":               nil,
		"--minutes -1":                {"cpu:0", "--minutes", "-1"},
		"--minutes NaN":               {"cpu:0", "--minutes", "NaN"},
		"no report of concord verify": {"cpu:0", "--only", "failed", "--out", notReport(t)},
		"there is no report in":       {"cpu:0", "--only", "failed", "--out", t.TempDir()},
		"/dev/null":                   {"cpu:0", "--out", "/dev/null"},
	} {
		status, _, stderr := apptest.Run(append([]string{"verify"}, args...)...)
		assert.NotEqual(t, app.ExitOK, status, want)
		if want != "accepts 1 arg" {
			assert.Contains(t, stderr, want)
		}
	}
	assert.NoDirExists(t, missing)
}

// notReport returns a folder with a file of another program.
func notReport(t *testing.T) string {
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "report.json"), []byte("{}"), 0o644))
	return dir
}

// TestVerifyList: the steps can be read, and their times fit.
func TestVerifyList(t *testing.T) {
	status, stdout, _ := apptest.Run("verify", "--list")
	assert.Equal(t, app.ExitOK, status)
	for _, s := range verify.Steps() {
		assert.Contains(t, stdout, s.Title)
	}
	_, stdout, _ = apptest.Run("verify", "--list", "--json")
	var list []shownStep
	require.NoError(t, json.Unmarshal([]byte(stdout), &list))
	assert.Len(t, list, len(verify.Steps()))
	assert.True(t, strings.HasPrefix(stdout, "["))
}
