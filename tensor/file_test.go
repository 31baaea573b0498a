package tensor

import (
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/concord-compute/concord/runtime/driver"
)

func TestFiles(t *testing.T) {
	s := scope(t)
	dir := t.TempDir()
	x := From(s, numbers(6), 2, 3)
	truths := From(s, []bool{true, false, true})
	path := filepath.Join(dir, "some.safetensors")
	all := map[string]*Tensor{"x": x.T(), "truths": truths, "half": x.Cast(BF16), "none": Zeros(s, I64, 0, 3), "number": Full(s, F64, 2.5)}
	require.NoError(t, Save(t.Context(), path, all, map[string]string{"made": "by a test"}))
	got, metadata, err := Load(s, path)
	require.NoError(t, err)
	assert.Equal(t, map[string]string{"made": "by a test"}, metadata)
	require.Len(t, got, len(all))
	for name, want := range all {
		assert.Equal(t, want.Type(), got[name].Type(), name)
		assert.ElementsMatch(t, want.Shape(), got[name].Shape(), name)
	}
	assert.Equal(t, []float32{0, 3, 1, 4, 2, 5}, values[float32](t, got["x"]))
	assert.Equal(t, []bool{true, false, true}, values[bool](t, got["truths"]))
	assert.Equal(t, values[float32](t, x), values[float32](t, got["half"].Cast(F32)))
	n, err := Number(t.Context(), got["number"].Mul(2))
	require.NoError(t, err)
	assert.InDelta(t, 5, n, 0)
	assert.Equal(t, []float32{0, 6, 2, 8, 4, 10}, values[float32](t, got["x"].Mul(2)), "mapped memory is read in place")

	array := filepath.Join(dir, "x.npy")
	require.NoError(t, SaveNPY(t.Context(), array, x.T()))
	y, err := LoadNPY(s, array)
	require.NoError(t, err)
	assert.Equal(t, []int{3, 2}, y.Shape())
	assert.Equal(t, []float32{0, 3, 1, 4, 2, 5}, values[float32](t, y))

	_, err = LoadNPY(s, filepath.Join(dir, "missing"))
	require.ErrorIs(t, err, fs.ErrNotExist)
	require.NoError(t, os.WriteFile(array, []byte("nonsense that is long enough"), 0o600))
	_, err = LoadNPY(s, array)
	require.ErrorIs(t, err, driver.ErrFormat)
	_, _, err = Load(s, array)
	require.ErrorIs(t, err, driver.ErrFormat)
	require.ErrorIs(t, Save(t.Context(), filepath.Join(dir, "bad"), map[string]*Tensor{"x": x.MatMul(x)}, nil), ErrShape)

	in := s.Scope()
	_, _, err = Load(in, path)
	require.NoError(t, err)
	require.NoError(t, in.Close())
	_, _, err = Load(in, path)
	require.ErrorIs(t, err, ErrScope)
}
