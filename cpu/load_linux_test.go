//go:build cgo

package cpu

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Loading and closing leaves no mapping, no open file and no temporary file.
func TestProgramsAreUnloaded(t *testing.T) {
	d := openDevice(t)
	needCompiler(t)
	u := parse(t, saxpyText)
	bin := buildProgram(t, d, u)
	tmp := t.TempDir()
	t.Setenv("TMPDIR", tmp)
	left := func() (maps, files int) {
		text, err := os.ReadFile("/proc/self/maps")
		require.NoError(t, err)
		fds, err := os.ReadDir("/proc/self/fd")
		require.NoError(t, err)
		return strings.Count(string(text), "concord-program"), len(fds)
	}
	maps, files := left()
	for range 50 {
		m, err := d.Load(background(t), u, bin)
		require.NoError(t, err)
		require.NoError(t, m.Close())
	}
	mapsAfter, filesAfter := left()
	assert.Equal(t, maps, mapsAfter, "a closed program is still mapped")
	assert.LessOrEqual(t, filesAfter, files+1)

	lib, err := openTempObject(bin.Code[binaryHeader:]) // the way without memfd
	require.NoError(t, err)
	require.NoError(t, lib.Close())
	_, err = d.Compile(background(t), parse(t, "kernel void other(global int *x) { x[0] = 1; }"), nil)
	require.NoError(t, err)
	entries, err := os.ReadDir(tmp)
	require.NoError(t, err)
	assert.Empty(t, entries, "temporary files are left")
}
