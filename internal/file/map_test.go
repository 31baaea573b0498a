package file

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/concord-compute/concord/runtime/driver"
)

func TestMap(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a")
	for _, n := range []int{0, 1, 4096, 100_001} {
		want := bytes.Repeat([]byte{1, 2, 3}, n)[:n]
		require.NoError(t, os.WriteFile(path, want, 0o600))
		m, err := Map(path)
		require.NoError(t, err)
		assert.True(t, bytes.Equal(want, m.Data), "%d bytes", n)
		if n > 0 {
			assert.Zero(t, uintptr(unsafe.Pointer(&m.Data[0]))%64)
		}
		require.NoError(t, m.Close())
		assert.Nil(t, m.Data)
		assert.NoError(t, m.Close(), "closing again does nothing")
	}
}

// A file that is replaced while it is mapped is what it was.
func TestMapThenReplace(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a")
	require.NoError(t, os.WriteFile(path, []byte("old"), 0o600))
	m, err := Map(path)
	require.NoError(t, err)
	defer m.Close()
	require.NoError(t, Replace(path, text("new and longer")))
	assert.Equal(t, "old", string(m.Data))
}

func TestMapRefuses(t *testing.T) {
	dir := t.TempDir()
	_, err := Map(filepath.Join(dir, "none"))
	assert.ErrorIs(t, err, fs.ErrNotExist)
	for _, path := range []string{dir, os.DevNull} {
		_, err := Map(path)
		assert.ErrorIs(t, err, driver.ErrUnsupported)
		assert.ErrorContains(t, err, path+": it is no regular file")
	}
}
