package ann

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/concord-compute/concord/internal/npy"
	"github.com/concord-compute/concord/runtime"
)

// TestVectors reads files of every format, and damaged ones.
func TestVectors(t *testing.T) {
	dir := t.TempDir()
	want := []float32{1, -2, 3, 4, 5, 6.5}
	for _, name := range []string{"a.fvecs", "a.npy"} {
		path := filepath.Join(dir, name)
		require.NoError(t, SaveVectors(path, want, 3))
		got, dim, err := LoadVectors(path)
		require.NoError(t, err)
		assert.Equal(t, 3, dim)
		assert.Equal(t, want, got)
	}
	assert.ErrorIs(t, SaveVectors(filepath.Join(dir, "b.fvecs"), want, 4), runtime.ErrDimension)
	assert.ErrorIs(t, SaveVectors(filepath.Join(dir, "b.txt"), want, 3), runtime.ErrUnsupported)

	read := func(name string, data ...byte) ([]float32, int, error) {
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, data, 0o600))
		return LoadVectors(path)
	}
	got, dim, err := read("c.bvecs", 2, 0, 0, 0, 7, 255, 2, 0, 0, 0, 0, 1)
	require.NoError(t, err)
	assert.Equal(t, 2, dim)
	assert.Equal(t, []float32{7, 255, 0, 1}, got)
	got, dim, err = read("c.ivecs", 1, 0, 0, 0, 254, 255, 255, 255)
	require.NoError(t, err)
	assert.Equal(t, 1, dim)
	assert.Equal(t, []float32{-2}, got)
	places, _, err := LoadPlaces(filepath.Join(dir, "c.ivecs"))
	require.NoError(t, err)
	assert.Equal(t, []int32{-2}, places)
	_, _, err = read("c.ivecs", 1, 0, 0, 0, 1, 0, 0, 1)
	assert.ErrorIs(t, err, runtime.ErrUnsupported, "2^24 + 1")
	for what, c := range map[string]struct {
		data []byte
		want error
	}{
		"empty": {nil, runtime.ErrCorrupt}, "no dimension": {[]byte{0, 0, 0, 0, 1}, runtime.ErrFormat},
		"negative": {[]byte{0, 0, 0, 255, 1}, runtime.ErrFormat},
		"cut":      {[]byte{2, 0, 0, 0, 7}, runtime.ErrCorrupt}, "two dimensions": {[]byte{1, 0, 0, 0, 7, 2, 0, 0, 0, 7},
			runtime.ErrCorrupt},
	} {
		_, _, err := read("d.bvecs", c.data...)
		assert.ErrorIs(t, err, c.want, what)
	}
	_, _, err = read("d.npy", 1, 2, 3)
	assert.ErrorIs(t, err, runtime.ErrFormat)
	_, _, err = read("d.txt", 1, 2, 3)
	assert.ErrorIs(t, err, runtime.ErrUnsupported)

	for _, a := range []npy.Array{
		{Type: runtime.F16, Data: bytesOf([]runtime.Float16{runtime.ToFloat16(3), runtime.ToFloat16(-4)})},
		{Type: runtime.F64, Data: bytesOf([]float64{3, -4})},
		{Type: runtime.I8, Data: bytesOf([]int8{3, -4})}, {Type: runtime.I64, Data: bytesOf([]int64{3, -4})},
		{Type: runtime.I16, Data: bytesOf([]int16{3, -4})},
	} {
		a.Shape = []int{1, 2}
		path := filepath.Join(dir, "e.npy")
		require.NoError(t, npy.WriteFile(path, a))
		got, dim, err := LoadVectors(path)
		require.NoError(t, err)
		assert.Equal(t, 2, dim)
		assert.Equal(t, []float32{3, -4}, got, a.Type)
		for _, wide := range []npy.Array{
			{Type: runtime.I64, Data: bytesOf([]int64{1, -1<<24 - 1})},
			{Type: runtime.U32, Data: bytesOf([]uint32{1, 1<<24 + 1})}, {Type: runtime.F64, Data: bytesOf([]float64{1, -1e39})},
		} {
			wide.Shape = []int{1, 2}
			require.NoError(t, npy.WriteFile(path, wide))
			_, _, err := LoadVectors(path)
			assert.ErrorIs(t, err, runtime.ErrUnsupported, wide.Type)
			assert.ErrorContains(t, err, "component 1 of vector 0")
		}
		a.Shape = []int{2}
		require.NoError(t, npy.WriteFile(path, a))
		_, _, err = LoadVectors(path)
		assert.ErrorIs(t, err, runtime.ErrDimension)
	}
}
