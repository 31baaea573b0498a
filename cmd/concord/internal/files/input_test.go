//go:build unix

package files

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestNamesOfStandardOutput(t *testing.T) {
	dir := t.TempDir()
	link, far := filepath.Join(dir, "link"), filepath.Join(dir, "far")
	require.NoError(t, os.Symlink("/dev/stdout", link))
	require.NoError(t, os.Symlink("link", far))
	require.NoError(t, os.Symlink("round", filepath.Join(dir, "round")))
	for _, path := range []string{"-", "/dev/stdout", "/dev/../dev/fd/1", "/proc/self/fd/1", "/proc/thread-self/fd/1",
		link, far} {
		assert.True(t, IsStdout(path), path)
	}
	for _, path := range []string{"stdout", "/dev/null", "/dev/fd/2", dir, filepath.Join(dir, "round"), ""} {
		assert.False(t, IsStdout(path), path)
	}
}
