package file

import (
	"io/fs"
	"os"
	"path/filepath"
	goruntime "runtime"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// A directory that takes no new file is named: the file itself could be written to.
func TestReplaceInAClosedDirectory(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "a")
	require.NoError(t, os.WriteFile(path, []byte("old"), 0o666))
	require.NoError(t, os.Chmod(path, 0o666))
	require.NoError(t, os.Chmod(dir, 0o555))
	defer os.Chmod(dir, 0o700)
	replace := func(path string) error {
		done := make(chan error)
		go func() {
			if os.Getuid() == 0 { // the superuser may write everywhere
				goruntime.LockOSThread() // and it is not unlocked: the thread ends with the goroutine
				if err := unix.Setfsuid(65534); err != nil {
					done <- err
					return
				}
			}
			done <- Replace(path, text("new"))
		}()
		return <-done
	}
	if os.Getuid() == 0 {
		require.NoError(t, os.Chmod(filepath.Dir(dir), 0o755))
	}
	err := replace(path)
	require.ErrorIs(t, err, fs.ErrPermission)
	assert.ErrorContains(t, err, "no file can be made in "+dir)
	assert.Equal(t, "old", read(t, path))
	err = replace(filepath.Join(dir, "b"))
	require.ErrorIs(t, err, fs.ErrPermission)
	assert.NotContains(t, err.Error(), "concord-", "it names the file that was asked for")
}
