package devices

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/concord-compute/concord/cmd/concord/internal/app"
	"github.com/concord-compute/concord/cmd/concord/internal/apptest"
)

// privateCache makes an empty directory the kernel cache of the test.
func privateCache(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.Chmod(dir, 0o700))
	t.Setenv("CONCORD_CACHE_DIR", dir)
}

func TestCacheExportAndImport(t *testing.T) {
	apptest.NeedsCompiler(t)
	privateCache(t)
	cl := apptest.TextFile(t, "handed.cl", "kernel void k(global int *x) { x[0] = 7; }")
	bundle := filepath.Join(t.TempDir(), "kernels.bundle")
	status, _, stderr := apptest.Run("compile", "--target", "host", cl)
	require.Equal(t, app.ExitOK, status, stderr)
	status, stdout, stderr := apptest.Run("cache", "export", bundle)
	require.Equal(t, app.ExitOK, status, stderr)
	assert.Contains(t, stdout, "1 entry, ")

	privateCache(t)
	_, stdout, _ = apptest.Run("cache", "stats")
	assert.Contains(t, stdout, "0 entries")
	status, stdout, stderr = apptest.Run("cache", "import", "--json", bundle)
	require.Equal(t, app.ExitOK, status, stderr)
	doc := apptest.Document(t, stdout)
	assert.EqualValues(t, 1, doc["entries"])
	assert.EqualValues(t, 0, doc["known"])
	status, stdout, _ = apptest.Run("compile", "--target", "host", "--json", cl)
	require.Equal(t, app.ExitOK, status)
	assert.Equal(t, true, apptest.Document(t, stdout)["cached"], "the first use here compiles nothing")
	_, stdout, _ = apptest.Run("cache", "stats", "--json")
	doc = apptest.Document(t, stdout)
	assert.EqualValues(t, 0, doc["compiles"])
	assert.EqualValues(t, 1, doc["imported"])
	assert.EqualValues(t, 256<<20, doc["limit"])
	_, stdout, _ = apptest.Run("cache", "list")
	assert.Contains(t, stdout, "imported")
	status, stdout, _ = apptest.Run("cache", "import", bundle)
	assert.Equal(t, app.ExitOK, status)
	assert.Contains(t, stdout, "1 were there already")

	// Damage is an error, and nothing comes in.
	privateCache(t)
	data, err := os.ReadFile(bundle)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(bundle, data[:len(data)-1], 0o600))
	status, stdout, stderr = apptest.Run("cache", "import", "--json", bundle)
	assert.Equal(t, app.ExitFailed, status)
	assert.Contains(t, apptest.Document(t, stdout)["error"], "ends early")
	assert.Contains(t, stderr, bundle)
	_, stdout, _ = apptest.Run("cache", "stats")
	assert.Contains(t, stdout, "0 entries")
}

func TestCacheExportFails(t *testing.T) {
	privateCache(t)
	dir := t.TempDir()
	status, _, _ := apptest.Run("cache", "export", filepath.Join(dir, "missing", "b.bundle"))
	assert.Equal(t, app.ExitFailed, status)
	status, _, _ = apptest.Run("cache", "export", dir)
	assert.Equal(t, app.ExitFailed, status, "a directory is in the way")
	left, err := filepath.Glob(filepath.Join(filepath.Dir(dir), ".*"))
	require.NoError(t, err)
	assert.Empty(t, left, "no half a bundle stays")
	status, _, _ = apptest.Run("cache", "import", filepath.Join(dir, "missing"))
	assert.Equal(t, app.ExitFailed, status)
	status, _, _ = apptest.Run("cache", "export")
	assert.Equal(t, app.ExitUsage, status)

	t.Setenv("CONCORD_CACHE_DIR", "off")
	for _, part := range []string{"export", "import"} {
		status, _, stderr := apptest.Run("cache", part, filepath.Join(dir, "b.bundle"))
		assert.Equal(t, app.ExitFailed, status)
		assert.Contains(t, stderr, "in memory only")
	}
}

func TestCacheOff(t *testing.T) {
	t.Setenv("CONCORD_CACHE_DIR", "off")
	for _, part := range []string{"stats", "list", "verify", "clear"} {
		status, stdout, _ := apptest.Run("cache", part)
		assert.Equal(t, app.ExitOK, status)
		assert.Equal(t, "in memory only, nothing is on disk: CONCORD_CACHE_DIR is off\n", stdout)
	}
	status, _, stderr := apptest.Run("cache", "export", "a.bundle")
	assert.Equal(t, app.ExitFailed, status)
	assert.Contains(t, stderr, "CONCORD_CACHE_DIR is off")
}
