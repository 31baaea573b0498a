//go:build cgo

package cpu

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/concord-compute/concord/internal/seal"
)

// TestProgramsAreUnloaded checks that loading and closing leave no mapping, no open file and no
// temporary file.
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

	lib, err := openTempObject(bin.Code[seal.Size:]) // the method for systems without memfd
	require.NoError(t, err)
	require.NoError(t, lib.Close())
	_, err = d.Compile(background(t), parse(t, "kernel void other(global int *x) { x[0] = 1; }"), nil)
	require.NoError(t, err)
	entries, err := os.ReadDir(tmp)
	require.NoError(t, err)
	assert.Empty(t, entries, "temporary files are left")
}

// TestWorkingDirectoriesAreOnesOwn checks that no file that will be run is in a directory in which another
// user could replace it.
func TestWorkingDirectoriesAreOnesOwn(t *testing.T) {
	d := openDevice(t)
	needCompiler(t)
	loose := t.TempDir()
	require.NoError(t, os.Chmod(loose, 0o777))
	t.Setenv("TMPDIR", loose)
	watch, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	require.NoError(t, err)
	defer unix.Close(watch)
	_, err = unix.InotifyAddWatch(watch, loose, unix.IN_CREATE|unix.IN_MOVED_TO)
	require.NoError(t, err)

	bin := buildProgram(t, d, parse(t, "kernel void apart(global int *x) { x[0] = 2; }"))
	lib, err := openTempObject(bin.Code[seal.Size:])
	require.NoError(t, err)
	require.NoError(t, lib.Close())
	n, err := unix.Read(watch, make([]byte, 4096))
	assert.ErrorIs(t, err, unix.EAGAIN, "%d bytes of events: a file was created there", n)

	// A directory with the sticky bit, such as /tmp, is safe.
	require.NoError(t, os.Chmod(loose, 0o777|os.ModeSticky))
	require.NoError(t, os.Chmod(filepath.Dir(loose), 0o700))
	buildProgram(t, d, parse(t, "kernel void again(global int *x) { x[0] = 3; }"))
	n, err = unix.Read(watch, make([]byte, 4096))
	require.NoError(t, err)
	assert.Positive(t, n, "the watch reports files that are created")
}
