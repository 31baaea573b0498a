package cache

// Tests of sharing between processes: bundles, damaged entries, one compile for several processes.

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/concord-compute/concord/runtime/kernelcache"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// private returns a directory of the test that only its user may access.
func private(t testing.TB) string {
	dir := filepath.Join(t.TempDir(), "cache")
	require.NoError(t, os.Mkdir(dir, 0o700))
	return dir
}

// exported lets one process compile and returns the bundle of its programs.
func exported(t *testing.T, name string) []byte {
	dir := private(t)
	require.Equal(t, "compiled", child(t, name, dir).From)
	var buf bytes.Buffer
	moved, err := kernelcache.Open(kernelcache.Options{Dir: dir}).Export(&buf, nil)
	require.NoError(t, err)
	require.Equal(t, 1, moved.Entries)
	return buf.Bytes()
}

// The first launch of a process that has a bundle compiles nothing: a bundle that
// is built into it, and one that was imported.
func TestBundleCompilesNothing(t *testing.T) {
	for _, name := range devices {
		t.Run(name, func(t *testing.T) {
			bundle := exported(t, name)
			built := t.TempDir()
			require.NoError(t, os.WriteFile(filepath.Join(built, "kernels.bundle"), bundle, 0o600))
			for _, dir := range []string{"off", private(t)} {
				r := child(t, name, dir, bundlesVariable+"="+built)
				assert.Equal(t, "bundle", r.From)
				assert.Zero(t, r.Stats.Compiles)
				assert.EqualValues(t, 1, r.Stats.BundleHits)
			}

			dir := private(t)
			c := kernelcache.Open(kernelcache.Options{Dir: dir})
			moved, err := c.Import(bytes.NewReader(bundle))
			require.NoError(t, err)
			assert.Equal(t, 1, moved.Entries)
			r := child(t, name, dir)
			assert.Equal(t, "disk", r.From)
			assert.Zero(t, r.Stats.Compiles)
			list, err := c.List()
			require.NoError(t, err)
			require.Len(t, list, 1)
			assert.True(t, list[0].Imported)
		})
	}
}

// A machine without a C++ compiler runs programs on cpu:0 that another machine compiled.
func TestBundleInsteadOfACompiler(t *testing.T) {
	const none = "CXX=/no/such/compiler"
	bundle := exported(t, "cpu:0")
	built := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(built, "kernels.bundle"), bundle, 0o600))
	r := child(t, "cpu:0", "off", bundlesVariable+"="+built, none)
	assert.Equal(t, "bundle", r.From)
	assert.Zero(t, r.Stats.Compiles)

	dir := private(t)
	_, err := kernelcache.Open(kernelcache.Options{Dir: dir}).Import(bytes.NewReader(bundle))
	require.NoError(t, err)
	assert.Equal(t, "disk", child(t, "cpu:0", dir, none).From)
	r, err = start(t, "cpu:0", "off", none)()
	require.NoError(t, err)
	assert.Contains(t, r.Skip, "compiler", "without a bundle there is nothing to run")
}

// Whatever is wrong with a file, the process compiles again and does not crash, although some
// drivers would crash on such bytes. CACHE_TEST_FULL=1 tries more kinds of damage.
func TestDamagedEntriesAreCompiledAnew(t *testing.T) {
	for _, name := range devices {
		t.Run(name, func(t *testing.T) {
			dir := private(t)
			require.Equal(t, "compiled", child(t, name, dir).From)
			files, err := filepath.Glob(filepath.Join(dir, "*", "*", "*.kernel"))
			require.NoError(t, err)
			require.Len(t, files, 1)
			good, err := os.ReadFile(files[0])
			require.NoError(t, err)
			half := len(good) / 2
			damage := map[string][]byte{
				"cut":     good[:half],
				"one bit": append(append(bytes.Clone(good[:half]), good[half]^1), good[half+1:]...),
			}
			if os.Getenv("CACHE_TEST_FULL") == "1" {
				damage["empty"] = nil
				damage["cut by one"] = good[:len(good)-1]
				damage["zeros at the end"] = append(bytes.Clone(good[:half]), make([]byte, len(good)-half)...)
				damage["longer than it is"] = append(bytes.Clone(good), good...)
				damage["something else"] = []byte("not a kernel")
			}
			for what, data := range damage {
				require.NoError(t, os.WriteFile(files[0], data, 0o600))
				r := child(t, name, dir)
				assert.Equal(t, "compiled", r.From, what)
				assert.EqualValues(t, 1, r.Stats.Corrupt, what)
				found, err := kernelcache.Open(kernelcache.Options{Dir: dir}).Verify(t.Context())
				require.NoError(t, err)
				assert.Equal(t, 1, found.Checked, "%s: repaired", what)
				assert.Empty(t, found.Corrupt, what)
			}
		})
	}
}

// Processes that need the same program at the same time compile it once.
func TestProcessesShareACompile(t *testing.T) {
	for _, name := range devices {
		t.Run(name, func(t *testing.T) {
			dir := private(t)
			var waits []func() (report, error)
			for range 4 {
				waits = append(waits, start(t, name, dir))
			}
			compiles := 0
			for _, wait := range waits {
				r, err := wait()
				require.NoError(t, err)
				if r.Skip != "" {
					t.Skip(r.Skip)
				}
				assert.Contains(t, []string{"compiled", "disk"}, r.From, fmt.Sprint(r))
				compiles += int(r.Stats.Compiles)
			}
			assert.Equal(t, 1, compiles)
		})
	}
}
