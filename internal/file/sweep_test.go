package file

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// What a killed process left is removed by the next that writes there, and nothing else.
func TestCreateSweeps(t *testing.T) {
	dir := t.TempDir()
	left := filepath.Join(dir, ".concord-ABCDEFGHIJKLMNOPQRSTUVWX27")
	others := []string{".concord-ABCDEFGHIJKLMNOPQRSTUVWX2", ".concord-ABCDEFGHIJKLMNOPQRSTUVW.py", ".concord-",
		"ABCDEFGHIJKLMNOPQRSTUVWX27"}
	young := filepath.Join(dir, ".concord-BBCDEFGHIJKLMNOPQRSTUVWX27")
	long := time.Now().Add(-2 * staleAfter)
	for _, name := range append(others, filepath.Base(left), filepath.Base(young)) {
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, nil, 0o600))
		if path != young {
			require.NoError(t, os.Chtimes(path, long, long))
		}
	}
	require.NoError(t, os.Mkdir(filepath.Join(dir, ".concord-CBCDEFGHIJKLMNOPQRSTUVWX27"), 0o700))
	require.NoError(t, Replace(filepath.Join(dir, "a"), text("a")))
	assert.NoFileExists(t, left)
	assert.FileExists(t, young, "it may be in use")
	assert.DirExists(t, filepath.Join(dir, ".concord-CBCDEFGHIJKLMNOPQRSTUVWX27"))
	for _, name := range others {
		assert.FileExists(t, filepath.Join(dir, name))
	}
}

func TestTarget(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	t.Chdir(dir)
	require.NoError(t, os.Mkdir("sub", 0o700))
	require.NoError(t, os.Symlink("sub", "way"))
	require.NoError(t, os.Symlink("../new", "sub/link"))
	for path, want := range map[string]string{"new": "new", "./new": "new", "sub/../new": "new", "way/link": "new",
		"sub/link": "new",
		"way/a":    "sub/a", filepath.Join(dir, "new"): "new"} {
		got, err := Target(path)
		require.NoError(t, err)
		assert.Equal(t, filepath.Join(dir, want), got, path)
	}
	_, err = Target("missing/new")
	assert.ErrorIs(t, err, os.ErrNotExist)
	assert.ErrorContains(t, err, "missing/new")
}
