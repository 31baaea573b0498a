package npy

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/concord-compute/concord/runtime/driver"
)

// Of each file that NumPy made, Map gives what ReadFile gives, or says why not.
func TestMapFilesMadeByNumPy(t *testing.T) {
	paths, err := filepath.Glob("testdata/*.npy")
	require.NoError(t, err)
	require.NotEmpty(t, paths)
	for _, path := range paths {
		m, err := Map(path)
		big := strings.Contains(path, "big") && !strings.HasSuffix(path, "1.npy")
		if big || strings.Contains(path, "unsupported") {
			assert.ErrorIs(t, err, driver.ErrUnsupported, path)
			assert.ErrorContains(t, err, path)
			continue
		}
		require.NoError(t, err, path)
		want, err := ReadFile(path)
		require.NoError(t, err)
		// NumPy says of an empty array that it is in C order.
		assert.Equal(t, strings.Contains(path, "fortran") && len(m.Data) > 0, m.Fortran, path)
		got := Array{m.Type, m.Shape, append([]byte{}, m.Data...)}
		if m.Fortran {
			got.Data = toC(got.Data, m.Shape, m.Type.Size())
		}
		assert.Equal(t, want, got, path)
		assert.Equal(t, strings.Contains(path, "bool"), m.Bool, path)
		require.NoError(t, m.Close())
		assert.Nil(t, m.Data)
		assert.NoError(t, m.Close(), "closing again does nothing")
	}
}

func TestMapRefuses(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.npy")
	good := raw("{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }\n") + "12345678"
	require.Zero(t, (len(good)-8)%4)
	says := func(file string, want error, text string) {
		t.Helper()
		require.NoError(t, os.WriteFile(path, []byte(file), 0o600))
		m, err := Map(path)
		assert.Nil(t, m)
		assert.ErrorIs(t, err, want)
		assert.ErrorContains(t, err, text)
	}
	require.NoError(t, os.WriteFile(path, []byte(good), 0o600))
	m, err := Map(path)
	require.NoError(t, err)
	assert.Equal(t, "12345678", string(m.Data))
	require.NoError(t, m.Close())

	says("", driver.ErrFormat, path)
	says(good[:len(good)-1], driver.ErrCorrupt, "7 bytes of data where the header says 8")
	says(good+"\n", driver.ErrCorrupt, "bytes after the data")
	says(raw("{'descr': '<f4', 'fortran_order': False, 'shape': (2,), } \n")+"12345678", driver.ErrUnsupported,
		"data at byte 69 is not used in place")
	says(strings.Replace(good, "<f4", ">f4", 1), driver.ErrUnsupported, "big-endian")
	says(raw("{'descr': '<f4', 'fortran_order': False, 'shape': (9223372036854775807,)}"), driver.ErrTooLarge, "shape")
	_, err = Map(filepath.Dir(path))
	assert.ErrorIs(t, err, driver.ErrUnsupported, "a directory")
	_, err = Map(filepath.Join(filepath.Dir(path), "none.npy"))
	assert.ErrorIs(t, err, os.ErrNotExist)
}
