package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// privateCache makes an empty directory the kernel cache of the test.
func privateCache(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.Chmod(dir, 0o700))
	t.Setenv("CONCORD_CACHE_DIR", dir)
}

func TestCacheExportAndImport(t *testing.T) {
	needsCompiler(t)
	privateCache(t)
	cl := textFile(t, "handed.cl", "kernel void k(global int *x) { x[0] = 7; }")
	bundle := filepath.Join(t.TempDir(), "kernels.bundle")
	status, _, stderr := concord("compile", "--target", "host", cl)
	require.Equal(t, exitOK, status, stderr)
	status, stdout, stderr := concord("cache", "export", bundle)
	require.Equal(t, exitOK, status, stderr)
	assert.Contains(t, stdout, "1 entry, ")

	privateCache(t)
	_, stdout, _ = concord("cache", "stats")
	assert.Contains(t, stdout, "0 entries")
	status, stdout, stderr = concord("cache", "import", "--json", bundle)
	require.Equal(t, exitOK, status, stderr)
	doc := document(t, stdout)
	assert.EqualValues(t, 1, doc["entries"])
	assert.EqualValues(t, 0, doc["known"])
	status, stdout, _ = concord("compile", "--target", "host", "--json", cl)
	require.Equal(t, exitOK, status)
	assert.Equal(t, true, document(t, stdout)["cached"], "the first use here compiles nothing")
	_, stdout, _ = concord("cache", "stats", "--json")
	doc = document(t, stdout)
	assert.EqualValues(t, 0, doc["compiles"])
	assert.EqualValues(t, 1, doc["imported"])
	assert.EqualValues(t, 256<<20, doc["limit"])
	_, stdout, _ = concord("cache", "list")
	assert.Contains(t, stdout, "imported")
	status, stdout, _ = concord("cache", "import", bundle)
	assert.Equal(t, exitOK, status)
	assert.Contains(t, stdout, "1 were there already")

	// Damage is an error, and nothing comes in.
	privateCache(t)
	data, err := os.ReadFile(bundle)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(bundle, data[:len(data)-1], 0o600))
	status, stdout, stderr = concord("cache", "import", "--json", bundle)
	assert.Equal(t, exitFailed, status)
	assert.Contains(t, document(t, stdout)["error"], "ends early")
	assert.Contains(t, stderr, bundle)
	_, stdout, _ = concord("cache", "stats")
	assert.Contains(t, stdout, "0 entries")
}

func TestCacheExportFails(t *testing.T) {
	privateCache(t)
	dir := t.TempDir()
	status, _, _ := concord("cache", "export", filepath.Join(dir, "missing", "b.bundle"))
	assert.Equal(t, exitFailed, status)
	status, _, _ = concord("cache", "export", dir)
	assert.Equal(t, exitFailed, status, "a directory is in the way")
	left, err := filepath.Glob(filepath.Join(filepath.Dir(dir), ".*"))
	require.NoError(t, err)
	assert.Empty(t, left, "no half a bundle stays")
	status, _, _ = concord("cache", "import", filepath.Join(dir, "missing"))
	assert.Equal(t, exitFailed, status)
	status, _, _ = concord("cache", "export")
	assert.Equal(t, exitUsage, status)

	t.Setenv("CONCORD_CACHE_DIR", "off")
	for _, part := range []string{"export", "import"} {
		status, _, stderr := concord("cache", part, filepath.Join(dir, "b.bundle"))
		assert.Equal(t, exitFailed, status)
		assert.Contains(t, stderr, "in memory only")
	}
}

func TestCacheOff(t *testing.T) {
	t.Setenv("CONCORD_CACHE_DIR", "off")
	for _, part := range []string{"stats", "list", "verify", "clear"} {
		status, stdout, _ := concord("cache", part)
		assert.Equal(t, exitOK, status)
		assert.Equal(t, "in memory only, nothing is on disk: CONCORD_CACHE_DIR is off\n", stdout)
	}
	status, _, stderr := concord("cache", "export", "a.bundle")
	assert.Equal(t, exitFailed, status)
	assert.Contains(t, stderr, "CONCORD_CACHE_DIR is off")
}
