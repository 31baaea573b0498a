package tensors

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/concord-compute/concord/cmd/concord/internal/app"
	"github.com/concord-compute/concord/cmd/concord/internal/apptest"
	"github.com/concord-compute/concord/internal/safetensors"
	"github.com/concord-compute/concord/nn"
	"github.com/concord-compute/concord/quant"
	"github.com/concord-compute/concord/quant/gguf"
	"github.com/concord-compute/concord/runtime/accounts"
	"github.com/concord-compute/concord/runtime/driver"
)

// smallModel writes a file with a matrix of 3 × 300, one of 2 × 2 × 32 halves, a bias and integers.
func smallModel(t *testing.T) (path string, w []float32) {
	path = filepath.Join(t.TempDir(), "m.safetensors")
	w = make([]float32, 900)
	for i := range w {
		w[i] = float32(i*37%101-50) / 16
	}
	data, err := binary.Append(nil, binary.LittleEndian, w)
	require.NoError(t, err)
	require.NoError(t, safetensors.Write(path, []safetensors.Entry{
		{Name: "a.weight", Type: "f32", Shape: []int{3, 300}, Data: data},
		{Name: "b.weight", Type: "f16", Shape: []int{2, 2, 32}, Data: make([]byte, 256)},
		{Name: "a.bias", Type: "f32", Shape: []int{2}, Data: []byte{0, 0, 0x80, 0x3f, 0, 0, 0, 0x40}},
		{Name: "steps", Type: "i64", Shape: []int{1}, Data: []byte{7, 0, 0, 0, 0, 0, 0, 0}},
	}, map[string]string{"general.name": "small", "general.quantization_version": "2", "general.file_type": "7"}))
	return path, w
}

func TestQuantize(t *testing.T) {
	in, w := smallModel(t)
	out := filepath.Join(t.TempDir(), "m.gguf")
	picture := filepath.Join(t.TempDir(), "e.png")
	status, stdout, stderr := apptest.Run("quantize", in, out, "--format", "q8_0", "--report", "--histogram", picture)
	require.Equal(t, app.ExitOK, status, stderr)
	assert.Contains(t, stdout, "TENSOR    SHAPE       FROM  TO    BYTES   SNR      MAX ERROR\n")
	assert.Contains(t, stdout, "b.weight  [2, 2, 32]  F16   Q8_0  136 B   exact    0\n")
	assert.Contains(t, stdout, "a.bias    [2]         F32   F32   8 B     -        -\n")
	assert.Contains(t, stdout, "became 1.1 KiB, signal to noise 48.9 dB")
	assert.Contains(t, stdout, "Device: CPU | Total: 4 ops (4 quantize, 0 matmul) | Time: ")
	assert.Regexp(t, `\nRan: encode Q8_0 \w+, decode Q8_0 \w+\n`, stdout)
	png, err := os.ReadFile(picture)
	require.NoError(t, err)
	assert.Equal(t, "\x89PNG", string(png[:4]))

	f, err := gguf.Open(out)
	require.NoError(t, err)
	defer f.Close()
	assert.Equal(t, "small", f.Value("general.name"))
	assert.Equal(t, uint32(2), f.Value("general.quantization_version"))
	assert.Nil(t, f.Value("general.file_type"))
	a, ok := f.Tensor("a.weight")
	require.True(t, ok)
	assert.Equal(t, []int{3, 320}, a.Shape)
	x := make([]float32, 900)
	require.NoError(t, f.Floats(x, a, 0))
	m, err := quant.Pack(quant.Layout{Format: quant.Q80, Rows: 3, Cols: 300}, w)
	require.NoError(t, err)
	assert.Equal(t, m.Data, a.Data)

	// The quantized file is a model, too.
	again := filepath.Join(t.TempDir(), "again.gguf")
	status, stdout, stderr = apptest.Run("quantize", out, again, "--format", "TQ2_0", "--method", "absmean", "--only",
		"a.*",
		"--json")
	require.Equal(t, app.ExitOK, status, stderr)
	var doc struct {
		SNR     float64 `json:"snr_db"`
		Summary string
		Receipt accounts.Receipt
		Tensors []struct {
			Name, From, Format string
			Shape              []int
			SNR                *float64 `json:"snr_db"`
		}
	}
	require.NoError(t, json.Unmarshal([]byte(stdout), &doc))
	require.Len(t, doc.Tensors, 4)
	assert.Contains(t, doc.Summary, "Total: 2 ops (2 quantize, 0 matmul)")
	assert.NoError(t, doc.Receipt.Validate())
	assert.Len(t, doc.Receipt.Kernels, 2)
	for _, q := range doc.Tensors {
		switch q.Name {
		case "a.weight":
			assert.Equal(t, "Q8_0 TQ2_0", q.From+" "+q.Format)
			assert.Equal(t, []int{3, 300}, q.Shape)
			require.NotNil(t, q.SNR)
			assert.InDelta(t, doc.SNR, *q.SNR, 1e-9)
			assert.InDelta(t, 8, *q.SNR, 2)
		case "b.weight":
			assert.Equal(t, "Q8_0 F32", q.From+" "+q.Format)
		}
	}
	status, stdout, stderr = apptest.Run("gguf", "check", out, again)
	require.Equal(t, app.ExitOK, status, stderr)
	assert.Equal(t, out+": 4 of 4 tensors are good\n"+again+": 4 of 4 tensors are good\n", stdout)
}

// Ternary formats ask for a method, and then store its numbers exactly.
func TestQuantizeTernary(t *testing.T) {
	in, w := smallModel(t)
	out := filepath.Join(t.TempDir(), "m.gguf")
	status, _, stderr := apptest.Run("quantize", in, out, "--format", "I2S_M1")
	assert.Equal(t, app.ExitFailed, status)
	assert.Contains(t, stderr, "--method absmean makes them")
	_, err := os.Stat(out)
	assert.ErrorIs(t, err, os.ErrNotExist)

	status, _, stderr = apptest.Run("quantize", in, out, "--format", "Q4_0", "--method", "exact")
	assert.Equal(t, app.ExitFailed, status)
	assert.Contains(t, stderr, "--method exact takes ternary numbers; --method absmean makes them")

	status, _, stderr = apptest.Run("quantize", in, out, "--format", "I2S_M1", "--method", "absmean")
	require.Equal(t, app.ExitOK, status, stderr)
	back := filepath.Join(t.TempDir(), "back.safetensors")
	status, _, stderr = apptest.Run("gguf", "convert", out, back)
	require.Equal(t, app.ExitOK, status, stderr)
	f, err := safetensors.Open(back)
	require.NoError(t, err)
	defer f.Close()
	e, ok := f.Tensor("a.weight")
	require.True(t, ok)
	assert.Equal(t, []int{3, 300}, e.Shape)
	s, err := quant.Scale(quant.AbsMean, w)
	require.NoError(t, err)
	require.NoError(t, quant.Ternary(w, w, s))
	for i, v := range w {
		require.Equal(t, v, math.Float32frombits(binary.LittleEndian.Uint32(e.Data[4*i:])))
	}
	steps, ok := f.Tensor("steps")
	require.True(t, ok)
	assert.EqualValues(t, "i64", steps.Type)
	assert.Equal(t, "small", f.Metadata()["general.name"])

	status, _, stderr = apptest.Run("gguf", "convert", back, out)
	require.Equal(t, app.ExitOK, status, stderr)
	status, stdout, stderr := apptest.Run("gguf", "ls", out)
	require.Equal(t, app.ExitOK, status, stderr)
	assert.Contains(t, stdout, "general.name: small\n")
	assert.Contains(t, stdout, "a.weight  F32   [3, 300]")
	status, after, stderr := apptest.Run("gguf", "ls", filepath.Join(t.TempDir(), "none.gguf"), out)
	assert.Equal(t, app.ExitFailed, status)
	assert.Contains(t, stderr, "none.gguf")
	assert.Equal(t, stdout, after, "the others are listed")
	status, stdout, stderr = apptest.Run("gguf", "ls", "--json", out)
	require.Equal(t, app.ExitOK, status, stderr)
	assert.True(t, json.Valid([]byte(stdout)))
}

// A file whose types have several meanings is listed, and checked when it is told which.
func TestGGUFSeveralMeanings(t *testing.T) {
	m, err := quant.Pack(quant.Layout{Format: quant.I2SM2, Rows: 2, Cols: 64}, make([]float32, 128))
	require.NoError(t, err)
	e, pairs, err := gguf.NewEntry("w\x1b", m)
	require.NoError(t, err)
	path := filepath.Join(t.TempDir(), "m.gguf")
	require.NoError(t, gguf.Save(path, []gguf.Pair{{Key: "f", Value: float32(math.Inf(1))},
		{Key: "list", Value: make([]int32, 100)}, {Key: "bytes", Value: []any{[]uint8{1, 255}}}}, []gguf.Entry{e}))
	status, stdout, _ := apptest.Run("gguf", "ls", path)
	assert.Equal(t, app.ExitOK, status)
	assert.Contains(t, stdout, "list: [0 0 0 0 0 0] and 94 more\n")
	assert.Contains(t, stdout, `"w\x1b"  I2_S|IQ4_NL_4_4  [2, 64]  64 B`)
	status, stdout, _ = apptest.Run("gguf", "ls", "--json", path)
	assert.Equal(t, app.ExitOK, status)
	var doc struct {
		Files []struct{ Metadata map[string]any }
	}
	require.NoError(t, json.Unmarshal([]byte(stdout), &doc))
	assert.Equal(t, []any{[]any{1., 255.}}, doc.Files[0].Metadata["bytes"])
	status, _, stderr := apptest.Run("gguf", "check", path)
	assert.Equal(t, app.ExitFailed, status)
	assert.Contains(t, stderr, "I2S_M1")
	status, _, stderr = apptest.Run("gguf", "check", "--as", "I2S_M2", path)
	assert.Equal(t, app.ExitOK, status, stderr)
	status, _, stderr = apptest.Run("gguf", "convert", path, filepath.Join(t.TempDir(), "x.safetensors"))
	assert.Equal(t, app.ExitFailed, status)
	assert.Contains(t, stderr, "I2S_M2")

	// The file is not read against its own metadata.
	said := filepath.Join(t.TempDir(), "said.gguf")
	require.NoError(t, gguf.Save(said, pairs, []gguf.Entry{e}))
	for _, args := range [][]string{{"check", said}, {"convert", said, filepath.Join(t.TempDir(), "x.safetensors")}} {
		status, _, stderr = apptest.Run(append([]string{"gguf"}, append(args, "--as", "I2S_M1")...)...)
		assert.Equal(t, app.ExitFailed, status, args)
		assert.Contains(t, stderr, "says that type 36 is I2S_M2, and not I2S_M1")
	}

	// Nor is a file quantized whose types nothing names.
	again := filepath.Join(t.TempDir(), "again.gguf")
	status, _, stderr = apptest.Run("quantize", path, again, "--format", "Q8_0")
	assert.Equal(t, app.ExitFailed, status)
	assert.Contains(t, stderr, "nothing says which")
	status, _, stderr = apptest.Run("quantize", path, again, "--format", "Q8_0", "--as", "nonsense")
	assert.Equal(t, app.ExitUsage, status, stderr)
	status, _, stderr = apptest.Run("quantize", path, again, "--format", "Q8_0", "--as", "I2S_M2")
	assert.Equal(t, app.ExitOK, status, stderr)

	// Damage.
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	data[len(data)-64] = 0xff
	require.NoError(t, os.WriteFile(path, data, 0o600))
	status, stdout, stderr = apptest.Run("gguf", "check", "--as", "I2S_M2", path)
	assert.Equal(t, app.ExitFailed, status)
	assert.Contains(t, stdout, "0 of 1 tensors are good")
	assert.Contains(t, stderr, "byte 0 is neither a code of the format nor of a finite scale")
	require.NoError(t, os.WriteFile(path, data[:40], 0o600))
	status, _, stderr = apptest.Run("gguf", "check", path)
	assert.Equal(t, app.ExitFailed, status)
	assert.Contains(t, stderr, "header")
}

// A model that becomes shorter while it is read is an error, whichever goroutine reads.
func TestModelBecomesShorter(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "m.gguf")
	data := func(n int) func() ([]byte, error) {
		return func() ([]byte, error) { return make([]byte, n), nil }
	}
	require.NoError(t, gguf.Save(path, nil,
		[]gguf.Entry{{Name: "codes", Type: gguf.Q80, Shape: []int{1024, 1024}, Data: data(1024 * 1024 / 32 * 34)},
			{Name: "numbers", Type: gguf.I32, Shape: []int{1 << 18}, Data: data(1 << 20)}}))
	m, err := openModel(path, 0)
	require.NoError(t, err)
	defer m.close()
	if err := os.Truncate(path, 4096); err != nil {
		t.Skip("a mapped file does not become shorter here: ", err)
	}
	for _, w := range m.weights {
		_, err := w.entry(t.Context()).Data()
		assert.ErrorIs(t, err, driver.ErrCorrupt, w.name)
	}
}

// A shape that the data cannot have takes no memory, also where the type does not say how long the data is.
func TestQuantizeHugeShape(t *testing.T) {
	in, dir := filepath.Join(t.TempDir(), "m.gguf"), t.TempDir()
	require.NoError(t, gguf.Save(in, []gguf.Pair{{Key: "concord.type.36", Value: "I2S_M1"}},
		[]gguf.Entry{{Name: "w", Type: gguf.I2S, Shape: []int{1 << 20, 1 << 36}, Size: 64, Data: func() ([]byte, error) {
			return make([]byte, 64), nil
		}}}))
	for _, args := range [][]string{{"quantize", in, filepath.Join(dir, "x.gguf"), "--format", "Q4_0"},
		{"gguf", "convert", in, filepath.Join(dir, "x.safetensors")}, {"gguf", "check", in}} {
		status, _, stderr := apptest.Run(args...)
		assert.Equal(t, app.ExitFailed, status, args)
		assert.Contains(t, stderr, "bytes needed, 64 present", args)
	}
	files, err := os.ReadDir(dir)
	require.NoError(t, err)
	assert.Empty(t, files)
}

// countdown is a context that ends when it has been asked some times.
type countdown struct {
	context.Context
	left atomic.Int64
}

func (c *countdown) Err() error {
	if c.left.Add(-1) < 0 {
		return context.Canceled
	}
	return nil
}

// An interrupt at any moment leaves the file that was there, and nothing beside it.
func TestQuantizeInterrupted(t *testing.T) {
	in, _ := smallModel(t)
	out := apptest.TextFile(t, "m.gguf", "GGUF as it was")
	for n := int64(0); ; n++ {
		require.Less(t, n, int64(1000))
		ctx := &countdown{Context: t.Context()}
		ctx.left.Store(n)
		a := app.New(io.Discard, io.Discard)
		err := quantize(ctx, a, in, out, &quantizeFlags{format: "Q8_0"})
		if a.Session != nil {
			require.NoError(t, a.Session.Close())
		}
		if err == nil {
			assert.Greater(t, n, int64(8))
			return
		}
		require.ErrorIs(t, err, context.Canceled, n)
		text, err := os.ReadFile(out)
		require.NoError(t, err)
		require.Equal(t, "GGUF as it was", string(text))
		files, err := os.ReadDir(filepath.Dir(out))
		require.NoError(t, err)
		require.Len(t, files, 1)
	}
}

// A mistake of the model is told of the model, and one of the result once. An interrupt does not wait for a
// tensor that is read.
func TestQuantizeSaysWhich(t *testing.T) {
	dir := t.TempDir()
	in := filepath.Join(dir, "m.safetensors")
	x := make([]byte, 4*64)
	binary.LittleEndian.PutUint32(x[4*33:], math.Float32bits(float32(math.NaN())))
	require.NoError(t, safetensors.Write(in, []safetensors.Entry{{Name: "w", Type: "f32", Shape: []int{2, 32}, Data: x}},
		nil))
	status, _, stderr := apptest.Run("quantize", in, filepath.Join(dir, "x.gguf"), "--format", "Q8_0")
	assert.Equal(t, app.ExitFailed, status)
	assert.Contains(t, stderr, in+": tensor w: quant: Q8_0: number 33 is NaN")
	assert.NotContains(t, stderr, "x.gguf")
	binary.LittleEndian.PutUint32(x[4*33:], math.Float32bits(-3e38))
	require.NoError(t, safetensors.Write(in, []safetensors.Entry{{Name: "w", Type: "f32", Shape: []int{2, 32}, Data: x}},
		nil))
	_, _, stderr = apptest.Run("quantize", in, filepath.Join(dir, "x.gguf"), "--format", "Q8_0")
	assert.Contains(t, stderr, "number 33 is -3e+38, which needs a scale that is too large for a float16")
	assert.EqualError(t, notWritten("x.gguf", &fs.PathError{Op: "create", Path: "x.gguf", Err: fs.ErrPermission}),
		"create x.gguf: permission denied")
	assert.EqualError(t, notWritten("x.gguf", driver.ErrInvalidArgument), "x.gguf: "+driver.ErrInvalidArgument.Error())
	status, stdout, _ := apptest.Run("gguf", "convert", in, filepath.Join(dir, "y.gguf"))
	assert.Equal(t, app.ExitOK, status)
	assert.Contains(t, stdout, "y.gguf: 1 tensor\n")

	ctx, cancel := context.WithCancel(t.Context())
	release := make(chan struct{})
	defer close(release)
	w := &weight{name: "w", shape: []int{1}, floats: func() ([]float32, error) {
		cancel()
		<-release
		return []float32{1}, nil
	}}
	_, err := watched(ctx, app.New(io.Discard, io.Discard).Progress(1), in, w.entry(ctx))()
	assert.Equal(t, context.Canceled, err)
}

// Of a checkpoint the model alone is quantized, and the command says what it left out. Tensors of other files
// may have any names.
func TestQuantizeCheckpoint(t *testing.T) {
	history, err := json.Marshal(map[string]any{"Version": 1, "Network": []string{}, "Config": []string{},
		"History": nn.History{BestEpoch: -1}})
	require.NoError(t, err)
	for _, metadata := range []map[string]string{{"concord.nn": string(history)}, {}} {
		in, out := filepath.Join(t.TempDir(), "m.safetensors"), filepath.Join(t.TempDir(), "m.gguf")
		data := make([]byte, 4*64)
		require.NoError(t, safetensors.Write(in, []safetensors.Entry{
			{Name: "0.weight", Type: "f32", Shape: []int{2, 32}, Data: data},
			{Name: "training/optimizer.m", Type: "f32", Shape: []int{64}, Data: data},
			{Name: "training/best.params", Type: "f32", Shape: []int{64}, Data: data}}, metadata))
		status, stdout, stderr := apptest.Run("quantize", in, out, "--format", "Q8_0")
		require.Equal(t, app.ExitOK, status, stderr)
		f, err := gguf.Open(out)
		require.NoError(t, err)
		defer f.Close()
		if len(metadata) > 0 {
			assert.Len(t, f.Tensors(), 1)
			assert.Contains(t, stdout, "is a checkpoint: 2 tensors of its training, such as the optimizer's states, left out\n")
			assert.Contains(t, stdout, "256 B of tensors became")
		} else {
			assert.Len(t, f.Tensors(), 3)
			assert.NotContains(t, stdout, "checkpoint")
		}
	}
}

func TestQuantizeRefuses(t *testing.T) {
	in, _ := smallModel(t)
	out := filepath.Join(t.TempDir(), "m.gguf")
	for _, args := range [][]string{
		{in, out}, {in, out, "--format", "Q9"}, {in, out, "--format", "I2_S"}, {in, out, "--format", "R_A"},
		{in, out, "--format", "I2S_M3"}, {in, out, "--format", "Q4_0", "--method", "best"},
		{in, out, "--format", "MTL1", "--tile", "1,2"}, {in, out, "--format", "MTL1", "--tile", "1,2,x"},
		{in, out, "--format", "Q4_0", "--only", "["}, {in, out, "--format", "Q4_0", "--histogram", "x.gif"},
		{in, out, "--format", "MTL1"}, {in, out, "--format", "Q4_0", "--tile", "128,32,32"}, {in, in, "--format", "Q4_0"},
		{"x.bin", out, "--format", "Q4_0"}, {in, "--format", "Q4_0"},
	} {
		status, _, stderr := apptest.Run(append([]string{"quantize"}, args...)...)
		assert.Equal(t, app.ExitUsage, status, "%v: %s", args, stderr)
		assert.NotEmpty(t, stderr)
	}
	for _, args := range [][]string{{in, out, "--format", "Q4_0", "--only", "z*"},
		{in + ".safetensors", out, "--format", "Q4_0"}, {in, out, "--format", "MTL1", "--tile", "128,32,32"}} {
		status, _, stderr := apptest.Run(append([]string{"quantize"}, args...)...)
		assert.Equal(t, app.ExitFailed, status, "%v: %s", args, stderr)
		assert.Equal(t, slices.Contains(args, "--tile"), strings.Contains(stderr, "(--tile 128,32,32)"), stderr)
		_, err := os.Stat(out)
		assert.ErrorIs(t, err, os.ErrNotExist)
	}
	// Errors name the formats that would have been right, and those alone.
	status, _, stderr := apptest.Run("quantize", in, out, "--format", "Q9")
	assert.Equal(t, app.ExitUsage, status)
	assert.Contains(t, stderr, `"Q9", but with I2S_M1, I2S_M2, TQ1_0, TQ2_0, Q4_0, Q8_0, Q4_K, Q6_K, MTL1, MTL2`)
	status, _, stderr = apptest.Run("gguf", "check", in, "--as", "Q4_0")
	assert.Equal(t, app.ExitUsage, status)
	assert.Contains(t, stderr, `"Q4_0" is not one of I2S_M1, I2S_M2, I2S_M3, MTL1, MTL2`)

	// Files of safetensors have no types with several meanings.
	for _, args := range [][]string{{"quantize", in, out, "--format", "Q4_0"}, {"gguf", "convert", in, out}} {
		status, _, stderr = apptest.Run(append(args, "--as", "I2S_M1")...)
		assert.Equal(t, app.ExitUsage, status)
		assert.Contains(t, stderr, "--as I2S_M1")
	}

	// Types that GGUF lacks are widened, and do not end the work.
	small := filepath.Join(t.TempDir(), "small.safetensors")
	require.NoError(t, safetensors.Write(small, []safetensors.Entry{
		{Name: "b", Type: "bool", Shape: []int{3}, Data: []byte{1, 0, 1}},
		{Name: "u", Type: "u16", Shape: []int{2}, Data: []byte{1, 2, 255, 255}},
		{Name: "large", Type: "u64", Shape: []int{1}, Data: []byte{1, 0, 0, 0, 0, 0, 0, 127}}}, nil))
	wide := filepath.Join(t.TempDir(), "wide.gguf")
	status, _, stderr = apptest.Run("gguf", "convert", small, wide)
	require.Equal(t, app.ExitOK, status, stderr)
	g, err := gguf.Open(wide)
	require.NoError(t, err)
	defer g.Close()
	bools, _ := g.Tensor("b")
	assert.Equal(t, gguf.Tensor{Name: "b", Type: gguf.I8, Shape: []int{3}, Data: []byte{1, 0, 1}}, bools)
	words, _ := g.Tensor("u")
	assert.Equal(t, gguf.Tensor{Name: "u", Type: gguf.I32, Shape: []int{2}, Data: []byte{1, 2, 0, 0, 255, 255, 0, 0}},
		words)

	large, _ := g.Tensor("large")
	assert.Equal(t, gguf.Tensor{Name: "large", Type: gguf.I64, Shape: []int{1}, Data: []byte{1, 0, 0, 0, 0, 0, 0, 127}},
		large)
	require.NoError(t, safetensors.Write(small, []safetensors.Entry{
		{Name: "large", Type: "u64", Shape: []int{2}, Data: []byte{15: 128}}}, nil))
	status, _, stderr = apptest.Run("gguf", "convert", small, wide)
	assert.Equal(t, app.ExitFailed, status)
	assert.Contains(t, stderr, "small.safetensors: tensor large: number 1 is too large for GGUF's integers of 64 bits")

	// A file that is something else is not replaced.
	whole := filepath.Join(t.TempDir(), "whole.gguf")
	status, _, stderr = apptest.Run("gguf", "convert", in, whole)
	require.Equal(t, app.ExitOK, status, stderr)
	foreign := filepath.Join(t.TempDir(), "letter.safetensors")
	require.NoError(t, os.WriteFile(foreign, []byte("Dear reader,\n"), 0o600))
	status, _, stderr = apptest.Run("gguf", "convert", whole, foreign)
	assert.Equal(t, app.ExitFailed, status)
	assert.Contains(t, stderr, "is no file of safetensors")
	text, err := os.ReadFile(foreign)
	require.NoError(t, err)
	assert.Equal(t, "Dear reader,\n", string(text))
	// A picture that cannot be written is found before the model is.
	model := filepath.Join(t.TempDir(), "whole.gguf")
	status, _, stderr = apptest.Run("quantize", whole, model, "--format", "Q4_0", "--histogram",
		filepath.Join(t.TempDir(), "none", "h.png"))
	assert.Equal(t, app.ExitFailed, status)
	assert.Contains(t, stderr, "no such file")
	assert.NoFileExists(t, model)
	again := filepath.Join(t.TempDir(), "again.safetensors")
	for range 2 { // one that is of the kind is
		status, _, stderr = apptest.Run("gguf", "convert", whole, again)
		assert.Equal(t, app.ExitOK, status, stderr)
	}
	for _, args := range [][]string{{"convert", in, "x.bin"}, {"convert", in, in}, {"check", "--as", "Q9", in}, {"ls"},
		{}} {
		status, _, _ := apptest.Run(append([]string{"gguf"}, args...)...)
		assert.Equal(t, app.ExitUsage, status, args)
	}
}
