package tensors

import (
	"context"
	"encoding/binary"
	"math"
	"math/big"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/concord-compute/concord/cmd/concord/internal/app"
	"github.com/concord-compute/concord/cmd/concord/internal/apptest"
	"github.com/concord-compute/concord/cmd/concord/internal/ui"
	"github.com/concord-compute/concord/internal/npy"
	"github.com/concord-compute/concord/internal/safetensors"
	"github.com/concord-compute/concord/quant"
	"github.com/concord-compute/concord/quant/gguf"
	"github.com/concord-compute/concord/runtime/driver"
)

// doubles returns numbers as the data of a tensor.
func doubles(list ...float64) []byte {
	out := []byte{}
	for _, x := range list {
		out = binary.LittleEndian.AppendUint64(out, math.Float64bits(x))
	}
	return out
}

func TestTensorSafetensors(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.safetensors")
	nan, inf := math.NaN(), math.Inf(1)
	require.NoError(t, safetensors.Write(path, []safetensors.Entry{
		{Name: "w", Type: "f64", Shape: []int{2, 3}, Data: doubles(nan, 1, inf, 4, 0, -inf)},
		{Name: "none", Type: "f64", Shape: []int{2}, Data: doubles(nan, inf)},
		{Name: "mask", Type: "bool", Shape: []int{4}, Data: []byte{1, 0, 1, 1}},
		{Name: "zero size", Type: "i32", Shape: []int{0, 3}},
		{Name: "half", Type: "f16", Shape: nil, Data: []byte{0x00, 0xc2}},
		{Name: "brain", Type: "bf16", Shape: []int{1}, Data: []byte{0x40, 0x40}},
		{Name: "bad\x1b[31m\u202e", Type: "u32", Shape: []int{1}, Data: []byte{255, 255, 255, 255}},
		{Name: "eight", Type: "f8_e4m3", Shape: []int{2}, Data: []byte{1, 2}},
	}, map[string]string{"by": "a\x1b]0;title\a", "long": strings.Repeat("ü", 1000)}))

	status, stdout, stderr := apptest.Run("tensor", path)
	require.Equal(t, app.ExitOK, status, stderr)
	assert.NotContains(t, stdout, "\x1b")
	assert.Equal(t, path+`: 8 tensors, 17 elements, 78 B
  by: "a\x1b]0;title\a"
  long: `+strings.Repeat("ü", 100)+`…
TENSOR               TYPE     SHAPE   BYTES  MIN         MAX         MEAN        STD       NAN  INF  ZEROS
none                 f64      [2]     16 B   -           -           -           -         1    1    0
w                    f64      [2, 3]  48 B   0           4           1.66667     1.69967   1    2    1
"bad\x1b[31m\u202e"  u32      [1]     4 B    4294967295  4294967295  4294967295  0         0    0    0
zero size            i32      [0, 3]  0 B    -           -           -           -         0    0    0
brain                bf16     [1]     2 B    3           3           3           0         0    0    0
half                 f16      []      2 B    -3          -3          -3          0         0    0    0
eight                f8_e4m3  [2]     2 B    -           -           -           -         -    -    -
mask                 bool     [4]     4 B    0           1           0.75        0.433013  0    0    1
`, stdout)

	status, stdout, stderr = apptest.Run("tensor", "--no-stats", path)
	require.Equal(t, app.ExitOK, status, stderr)
	assert.Contains(t, stdout, "TENSOR               TYPE     SHAPE   BYTES\nnone                 f64      [2]     16 B\n")

	status, stdout, stderr = apptest.Run("tensor", "--json", path)
	require.Equal(t, app.ExitOK, status, stderr)
	file := apptest.Document(t, stdout)["files"].([]any)[0].(map[string]any)
	assert.Equal(t, path, file["file"])
	assert.Equal(t, "safetensors", file["format"])
	assert.EqualValues(t, 78, file["bytes"])
	assert.Equal(t, "a\x1b]0;title\a", file["metadata"].(map[string]any)["by"])
	rows := map[string]map[string]any{}
	for _, row := range file["tensors"].([]any) {
		rows[row.(map[string]any)["name"].(string)] = row.(map[string]any)
	}
	require.Len(t, rows, 8)
	assert.Equal(t, map[string]any{
		"name": "mask", "type": "bool", "shape": []any{4.0}, "elements": 4.0, "bytes": 4.0,
		"stats": map[string]any{"min": 0.0, "max": 1.0, "mean": 0.75, "std": math.Sqrt(0.1875), "nan": 0.0, "inf": 0.0,
			"zeros": 1.0},
	}, rows["mask"])
	assert.Equal(t, []any{}, rows["half"]["shape"], "not null")
	assert.Nil(t, rows["none"]["stats"].(map[string]any)["mean"])
	assert.NotContains(t, rows["eight"], "stats")
}

func TestTensorArrays(t *testing.T) {
	dir := filepath.Join("..", "..", "..", "..", "internal", "npy", "testdata")
	status, stdout, stderr := apptest.Run("tensor", filepath.Join(dir, "bool.npy"), filepath.Join(dir, "empty.npy"),
		filepath.Join(dir, "fortran.npy"), filepath.Join(dir, "big_fortran_f2.npy"), filepath.Join(dir, "scalar.npy"))
	require.Equal(t, app.ExitOK, status, stderr)
	assert.Equal(t, 5, strings.Count(stdout, ": 1 tensor, "))
	assert.Regexp(t, `(?m)^- +bool +\[3\] +3 B +0 +1 +0.666667 +0.471405 +0 +0 +1$`, stdout)
	assert.Regexp(t, `(?m)^- +f32 +\[0, 3\] +0 B +- +- +- +- +0 +0 +0$`, stdout)
	assert.Regexp(t, `(?m)^- +i32 +\[3, 5\] +60 B +-2 +12 +5 +4.32049 +0 +0 +1$`, stdout)
	assert.Regexp(t, `(?m)^- +f16 +\[2, 3, 4\] +48 B +-2 +21 +9.5 +6.92219 +0 +0 +1$`, stdout)
	assert.Regexp(t, `(?m)^- +f32 +\[\] +4 B +-2 +-2 +-2 +0 +0 +0 +0$`, stdout)
}

// Plain tensors of a GGUF file are read in place and quantized ones decoded, without their padding; of others
// there is no more than the header.
func TestTensorGGUF(t *testing.T) {
	m, err := quant.Pack(quant.Layout{Format: quant.TQ20, Rows: 2, Cols: 3}, []float32{2, 0, -2, 2, 2, 0})
	require.NoError(t, err)
	w, pairs, err := gguf.NewEntry("w", m)
	require.NoError(t, err)
	plain := func(name string, typ gguf.Type, data []byte, shape ...int) gguf.Entry {
		return gguf.Entry{Name: name, Type: typ, Shape: shape, Size: len(data), Data: func() ([]byte, error) {
			return data, nil
		}}
	}
	ternary, err := quant.Pack(quant.Layout{Format: quant.I2SM1, Rows: 1, Cols: 128}, slices.Repeat([]float32{-1, 1}, 64))
	require.NoError(t, err)
	path := filepath.Join(t.TempDir(), "a.gguf")
	require.NoError(t, gguf.Save(path, append(pairs, gguf.Pair{Key: "list", Value: make([]int32, 9)}), []gguf.Entry{
		w, plain("doubles", gguf.F64, doubles(1, 3), 2), plain("none", gguf.Q80, nil, 0, 32),
		plain("other", 11, make([]byte, 110), 256), plain("i2s", gguf.I2S, ternary.Data, 1, 128),
	}))
	status, stdout, stderr := apptest.Run("tensor", path)
	require.Equal(t, app.ExitOK, status, stderr)
	assert.Equal(t, path+`: 5 tensors, 392 elements, 322 B
  concord.columns.w: 3
  list: [0 0 0 0 0 0] and 3 more
TENSOR   TYPE             SHAPE     BYTES  MIN  MAX  MEAN      STD      NAN  INF  ZEROS
w        TQ2_0            [2, 3]    132 B  -2   2    0.666667  1.49071  0    0    2
doubles  f64              [2]       16 B   1    3    2         1        0    0    0
none     Q8_0             [0, 32]   0 B    -    -    -         -        0    0    0
other    Q3_K             [256]     110 B  -    -    -         -        -    -    -
i2s      I2_S|IQ4_NL_4_4  [1, 128]  64 B   -    -    -         -        -    -    -
`, stdout)
	status, stdout, stderr = apptest.Run("tensor", "--as", "I2S_M1", path)
	require.Equal(t, app.ExitOK, status, stderr)
	assert.Regexp(t, `(?m)^i2s +I2S_M1 +\[1, 128\] +64 B +-1 +1 +0 +1 +0 +0 +0$`, stdout)
	status, _, stderr = apptest.Run("tensor", "--as", "MTL1", path)
	assert.Equal(t, app.ExitFailed, status)
	assert.Contains(t, stderr, "MTL1 is none of these")
	status, stdout, stderr = apptest.Run("tensor", "--json", path)
	require.Equal(t, app.ExitOK, status, stderr)
	row := apptest.Document(t, stdout)["files"].([]any)[0].(map[string]any)["tensors"].([]any)[0].(map[string]any)
	assert.EqualValues(t, 6, row["elements"])
	assert.EqualValues(t, 132, row["bytes"])
	assert.EqualValues(t, 2, row["stats"].(map[string]any)["max"])
}

func TestTensorRefuses(t *testing.T) {
	good := filepath.Join("..", "..", "..", "..", "internal", "npy", "testdata", "vector.npy")
	bad := apptest.TextFile(t, "bad.safetensors", "no header of any kind")
	for _, tc := range []struct {
		status int
		says   string
		args   []string
	}{
		{app.ExitUsage, "it is called as concord tensor FILE...", nil},
		{app.ExitUsage, "x.pt: the name of a file ends in .npy, .safetensors or .gguf", []string{good, "x.pt"}},
		{app.ExitFailed, "none.npy: no such file", []string{good, "none.npy"}},
		{app.ExitFailed, "none.safetensors: no such file", []string{"none.safetensors"}},
		{app.ExitFailed, bad + ": safetensors: it does not begin with the length of a header", []string{good, bad}},
		{app.ExitFailed, "npy: no NumPy magic", []string{apptest.TextFile(t, "bad.NPY", "no header of any kind")}},
		{app.ExitFailed, `element type "|O"`, []string{filepath.Join(filepath.Dir(good), "unsupported_object.npy")}},
	} {
		status, stdout, stderr := apptest.Run(append([]string{"tensor"}, tc.args...)...)
		assert.Equal(t, tc.status, status, stderr)
		assert.Contains(t, stderr, tc.says)
		rest := 0 // files that can be read
		if tc.status == app.ExitFailed {
			rest = len(tc.args) - 1
		}
		assert.Equal(t, rest, strings.Count(stdout, ": 1 tensor, "))
		status, stdout, _ = apptest.Run(append([]string{"tensor", "--json"}, tc.args...)...)
		assert.Equal(t, tc.status, status)
		d := apptest.Document(t, stdout)
		assert.Contains(t, d, "error")
		if rest > 0 {
			assert.Len(t, d["files"], rest)
		}
	}
}

// fileShrinks is a variable that makes this binary the test's own process.
const fileShrinks = "_CONCORD_TEST_FILE_SHRINKS"

// A file that becomes shorter while it is mapped is an error and not the end of the process. The
// test is a process of its own, since other tests load OpenCL drivers whose compiler, LLVM, handles
// faults before Go does.
func TestTensorFileBecomesShorter(t *testing.T) {
	if os.Getenv(fileShrinks) == "" {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		cmd := exec.CommandContext(ctx, os.Args[0], "-test.run=^"+t.Name()+"$")
		cmd.Env = append(os.Environ(), fileShrinks+"=1")
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, "%s", out)
		return
	}
	path := filepath.Join(t.TempDir(), "a.npy")
	require.NoError(t, npy.WriteFile(path, npy.Array{Type: driver.U8, Shape: []int{1 << 20}, Data: make([]byte, 1<<20)}))
	f, err := openTensors(path, 0)
	require.NoError(t, err)
	defer f.close()
	require.NoError(t, os.Truncate(path, 128))
	a := app.New(os.Stdout, os.Stderr)
	err = readTensors(t.Context(), a, []*tensorFile{f})
	if err == nil {
		t.Skip("this system reads a file that it cannot map")
	}
	assert.ErrorIs(t, err, driver.ErrCorrupt)
	assert.ErrorContains(t, err, path+": it became shorter")
}

func TestReadable(t *testing.T) {
	for s, want := range map[string]string{
		"model.layers.0.weight": "model.layers.0.weight", "ü 中": "ü 中", "": `""`, " a": `" a"`, "a\nb": `"a\nb"`,
		"\x1b[2J": `"\x1b[2J"`, "\u009b2J": `"\u009b2J"`, "\u202eabc": `"\u202eabc"`, "\xff": `"\xff"`,
		`say "a"`: `"say \"a\""`, "\u200b": `"\u200b"`,
	} {
		assert.Equal(t, want, ui.Readable(s))
	}
}

// summary computes the statistics of a tensor of doubles.
func summary(t require.TestingT, list []float64) *tensorStats {
	s, err := statistics(context.Background(), driver.F64, doubles(list...), func(int) {})
	require.NoError(t, err)
	return s
}

// The mean and the deviation are those that exact arithmetic gives, wherever the numbers lie.
func TestStatisticsAreExact(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.SampledFrom([]int{1, 2, 3, 5, 100, statBlock - 1, statBlock, statBlock + 1, 3*statBlock + 7}).Draw(t, "n")
		offset := rapid.SampledFrom([]float64{0, 1, -1e9, 1e15, 1e300}).Draw(t, "offset")
		scale := rapid.SampledFrom([]float64{0, 1e-300, 1e-3, 1, 1e9, 1e300}).Draw(t, "scale")
		seed := rapid.Uint64Range(1, 1<<32).Draw(t, "seed")
		list := make([]float64, n)
		for i := range list {
			seed = seed*6364136223846793005 + 1442695040888963407
			list[i] = offset + scale*(float64(seed>>11)/(1<<53)-0.5)
		}
		mean, std := exactMoments(list)
		s := summary(t, list)
		require.Equal(t, slices.Min(list), float64(s.Min))
		require.Equal(t, slices.Max(list), float64(s.Max))
		widest := float64(s.Max) - float64(s.Min)
		require.InDelta(t, mean, float64(s.Mean), 1e-15*math.Abs(mean)+1e-13*widest)
		require.InDelta(t, std, float64(s.Std), 1e-10*std+1e-15*math.Abs(mean)/math.Sqrt(float64(n)))
		if widest == 0 {
			require.Zero(t, s.Std)
		}
	})
}

func exactMoments(list []float64) (mean, std float64) {
	const precision = 2400
	of := func(x float64) *big.Float { return new(big.Float).SetPrec(precision).SetFloat64(x) }
	sum, n := of(0), of(float64(len(list)))
	for _, x := range list {
		sum.Add(sum, of(x))
	}
	sum.Quo(sum, n)
	squares := of(0)
	for _, x := range list {
		d := of(x)
		d.Sub(d, sum)
		squares.Add(squares, d.Mul(d, d))
	}
	squares.Quo(squares, n)
	mean, _ = sum.Float64()
	std, _ = squares.Sqrt(squares).Float64()
	return mean, std
}

func TestStatisticsOfExtremes(t *testing.T) {
	largest, smallest := math.MaxFloat64, math.SmallestNonzeroFloat64
	s := summary(t, []float64{largest, -largest})
	assert.EqualValues(t, 0, s.Mean)
	assert.InEpsilon(t, largest, float64(s.Std), 1e-15)
	s = summary(t, slices.Concat(slices.Repeat([]float64{largest}, statBlock),
		slices.Repeat([]float64{-largest}, statBlock)))
	assert.EqualValues(t, 0, s.Mean)
	assert.InEpsilon(t, largest, float64(s.Std), 1e-15)
	s = summary(t, slices.Repeat([]float64{largest, largest / 2}, 2*statBlock))
	assert.InEpsilon(t, largest/4*3, float64(s.Mean), 1e-15)
	assert.InEpsilon(t, largest/4, float64(s.Std), 1e-15)
	s = summary(t, []float64{smallest, smallest, smallest})
	assert.EqualValues(t, smallest, s.Mean)
	assert.Zero(t, s.Std)
	s = summary(t, []float64{1e-200, 3e-200})
	assert.InEpsilon(t, 1e-200, float64(s.Std), 1e-15)
	s = summary(t, append(slices.Repeat([]float64{math.NaN(), math.Inf(-1)}, statBlock), 7))
	assert.Equal(t, tensorStats{7, 7, 7, 0, statBlock, statBlock, 0, 1}, *s)
}

// Every type is read as what it is, at any address.
func TestStatisticsOfEveryType(t *testing.T) {
	list, err := safetensors.Open(filepath.FromSlash("../../../../internal/safetensors/testdata/types.safetensors"))
	require.NoError(t, err)
	defer list.Close()
	for _, elem := range driver.Types() {
		e, ok := list.Tensor(elem.String() + ".2") // -2, -1, 0, 1, 2, 3
		require.True(t, ok)
		s, err := statistics(context.Background(), elem, append([]byte{0}, e.Data...)[1:], func(n int) {
			assert.Equal(t, len(e.Data), n)
		})
		require.NoError(t, err)
		low, high := -2.0, 3.0
		if elem.String()[0] == 'u' {
			low, high = 0, math.Ldexp(1, 8*elem.Size())-1
		}
		assert.EqualValues(t, low, s.Min, "%v", elem)
		assert.EqualValues(t, high, s.Max, "%v", elem)
		assert.EqualValues(t, 1, s.Zeros, "%v", elem)
	}
}
