package tensor

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/concord-compute/concord/quant"
	"github.com/concord-compute/concord/quant/gguf"
	"github.com/concord-compute/concord/runtime/driver"
)

func TestFiles(t *testing.T) {
	s := scope(t)
	dir := t.TempDir()
	x := From(s, numbers(6), 2, 3)
	truths := From(s, []bool{true, false, true})
	path := filepath.Join(dir, "some.safetensors")
	all := map[string]*Tensor{"x": x.T(), "truths": truths, "half": x.Cast(BF16), "none": Zeros(s, I64, 0, 3),
		"number": Full(s, F64, 2.5)}
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

// quantized writes a GGUF file with tensors of several types and returns its path, and the numbers of its
// matrix "w" of 3 rows in 4 bits.
func quantized(t *testing.T) (path string, want []float32) {
	t.Helper()
	m, err := quant.Pack(quant.Layout{Format: quant.Q40, Rows: 3, Cols: 40}, numbers(120)) // rows are padded to 64
	require.NoError(t, err)
	want = make([]float32, 120)
	require.NoError(t, quant.Decode(want, m))
	w, pairs, err := gguf.NewEntry("w", m)
	require.NoError(t, err)
	plain := func(name string, typ gguf.Type, data []byte, shape ...int) gguf.Entry {
		return gguf.Entry{Name: name, Type: typ, Shape: shape, Size: len(data), Data: func() ([]byte, error) {
			return data, nil
		}}
	}
	i2s, err := quant.Pack(quant.Layout{Format: quant.I2SM1, Rows: 2, Cols: 128}, make([]float32, 256))
	require.NoError(t, err)
	path = filepath.Join(t.TempDir(), "some.gguf")
	require.NoError(t, gguf.Save(path, append(pairs, gguf.Pair{Key: "made", Value: []uint32{1, 2}}), []gguf.Entry{
		w, plain("bias", gguf.F32, bytesOf([]float32{1, -2, 4}), 3), plain("half", gguf.F16, []byte{0, 0x3c, 0, 0xc0}, 1, 2),
		plain("numbers", gguf.I32, bytesOf([]int32{7, -7}), 2), plain("none", gguf.Q80, nil, 0, 32),
		plain("other", 11, make([]byte, 110), 1, 256), plain("several", gguf.I2S, i2s.Data, 2, 128),
	}))
	return path, want
}

// TestLoadGGUF: plain numbers keep their types, and quantized ones are decoded when something is computed from
// them, and not before.
func TestLoadGGUF(t *testing.T) {
	path, want := quantized(t)
	s := scope(t)
	ts, metadata, err := LoadGGUF(s, path, 0)
	require.NoError(t, err)
	assert.Equal(t, []uint32{1, 2}, metadata["made"])
	require.Len(t, ts, 7)
	assert.Equal(t, []float32{1, -2, 4}, values[float32](t, ts["bias"]))
	assert.Equal(t, []float32{1, -2}, values[float32](t, ts["half"].Cast(F32)))
	assert.Equal(t, F16, ts["half"].Type())
	assert.Equal(t, []int{1, 2}, ts["half"].Shape())
	assert.Equal(t, []int32{7, -7}, values[int32](t, ts["numbers"]))
	assert.Equal(t, []int{0, 32}, ts["none"].Shape())
	assert.Empty(t, values[float32](t, ts["none"]))
	require.ErrorIs(t, ts["other"].Err(), driver.ErrUnsupported)
	require.ErrorIs(t, Eval(t.Context(), ts["several"].Mul(2)), driver.ErrFormat)

	w := ts["w"]
	assert.Equal(t, F32, w.Type())
	assert.Equal(t, []int{3, 40}, w.Shape())
	y := w.Mul(2).Sum(1).Add(ts["bias"])
	_, err = Explain(y, w)
	require.NoError(t, err)
	assert.Equal(t, "f32[3 40] = data, not computed", w.String())
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, Eval(canceled, w), context.Canceled)
	assert.NotNil(t, w.data.load, "nothing has needed the numbers")
	sums := []float32{1, -2, 4}
	for i, x := range want {
		sums[i/40] += 2 * x
	}
	assert.InDeltaSlice(t, sums, values[float32](t, y), 1e-3)
	assert.Nil(t, w.data.load)
	held := w.data.buf
	assert.Equal(t, want, values[float32](t, w))
	assert.Same(t, held, w.data.buf, "they are decoded once")
	assert.Contains(t, w.String(), "f32[3 40]\n")

	named, _, err := LoadGGUF(s, path, quant.I2SM1)
	require.NoError(t, err)
	assert.Equal(t, make([]float32, 256), values[float32](t, named["several"].Flatten()))
}

// TestLoadGGUFFirst: whatever needs the numbers first decodes them.
func TestLoadGGUFFirst(t *testing.T) {
	path, want := quantized(t)
	s := scope(t)
	double := make([]float32, len(want))
	for i, x := range want {
		double[i] = 2 * x
	}
	load := func(s *Scope) *Tensor {
		ts, _, err := LoadGGUF(s, path, 0)
		require.NoError(t, err)
		require.NotNil(t, ts["w"].data.load)
		return ts["w"]
	}
	assert.Equal(t, want, values[float32](t, load(s)))
	assert.Equal(t, want[40:80], values[float32](t, load(s).Narrow(0, 1, 1).Flatten()))
	assert.Equal(t, want, values[float32](t, load(s).T().Copy().T()))

	constant := load(s)
	f := Compile(s, func(a ...*Tensor) []*Tensor { return []*Tensor{a[0].Add(constant)} })
	for range 3 {
		out, err := f.Call(t.Context(), load(s))
		require.NoError(t, err)
		assert.Equal(t, double, values[float32](t, out[0]))
	}

	x := load(s)
	g := values[float32](t, Grad(x.Mul(x).Sum(), x)[0])
	assert.Equal(t, double, g)

	in := s.Scope()
	kept, err := load(in).Keep(t.Context())
	require.NoError(t, err)
	late := load(in)
	require.NoError(t, in.Close())
	assert.Equal(t, want, values[float32](t, kept), "it does not end with the file")
	require.ErrorIs(t, Eval(t.Context(), late), ErrScope)
	_, err = Read[float32](t.Context(), late.Mul(2))
	require.ErrorIs(t, err, ErrScope)
	_, _, err = LoadGGUF(in, path, 0)
	require.ErrorIs(t, err, ErrScope)
	_, _, err = LoadGGUF(s, path+"x", 0)
	require.ErrorIs(t, err, fs.ErrNotExist)
	require.NoError(t, os.WriteFile(path+"x", []byte("nonsense that is long enough"), 0o600))
	_, _, err = LoadGGUF(s, path+"x", 0)
	require.ErrorIs(t, err, driver.ErrFormat)
}
