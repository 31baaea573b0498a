package gguf

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"math/bits"
	"os"
	"path/filepath"
	goruntime "runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/concord-compute/concord/internal/safetensors"
	"github.com/concord-compute/concord/quant"
	"github.com/concord-compute/concord/runtime/driver"
)

func pattern(n int) []float32 {
	x := make([]float32, n)
	for i := range x {
		x[i] = float32(i*37%101-50) / 16
	}
	return x
}

// A file that ggml wrote.
func TestGGML(t *testing.T) {
	f, err := Open("testdata/ggml.gguf")
	require.NoError(t, err)
	defer f.Close()
	assert.EqualValues(t, 3, f.Version)
	assert.Equal(t, 32, f.Align)
	assert.Equal(t, []Pair{
		{"test.u8", uint8(200)}, {"test.i8", int8(-100)}, {"test.u16", uint16(60000)}, {"test.i16", int16(-30000)},
		{"test.u32", uint32(4000000000)},
		{"test.i32", int32(-2000000000)}, {"test.f32", float32(1.5)}, {"test.u64", uint64(1 << 63)},
		{"test.i64", int64(-1 << 62)}, {"test.f64", -0.1}, {"test.bool", true},
		{"general.name", "grün"}, {"test.numbers", []int32{1, -2, 3}}, {"test.texts", []string{"a", "", "\xff\xfe"}},
	}, f.Metadata())
	assert.Nil(t, f.Value("test.none"))
	var names []string
	for _, tensor := range f.Tensors() {
		names = append(names, fmt.Sprintf("%s %v %v", tensor.Name, tensor.Type, tensor.Shape))
		require.NoError(t, f.Validate(tensor, 0))
		got := make([]float32, f.Numbers(tensor))
		require.NoError(t, f.Floats(got, tensor, 0))
		want := pattern(tensor.Len())
		switch tensor.Name {
		case "plain", "halves":
			assert.Equal(t, want, got)
		case "bytes":
			for i := range want {
				require.InDelta(t, want[i], got[i], 0.014)
			}
		case "trits":
			m, err := quant.New(quant.Layout{Format: quant.TQ20, Rows: 2, Cols: 256})
			require.NoError(t, err)
			require.NoError(t, quant.Encode(m, want))
			assert.Equal(t, m.Data, tensor.Data)
		}
	}
	assert.Equal(t, []string{"plain F32 [2 3]", "bytes Q8_0 [2 64]", "trits TQ2_0 [2 256]", "halves F16 [5]"}, names)
	_, ok := f.Tensor("none")
	assert.False(t, ok)
}

// Blocks of 5 bits that ggml made are written with its numbers of types, and read as ggml decodes them.
func TestFiveBits(t *testing.T) {
	golden, err := safetensors.Open("../testdata/ggml.safetensors")
	require.NoError(t, err)
	defer golden.Close()
	for kind, name := range map[Type]string{6: "Q5_0", 13: "Q5_K"} {
		blocks, ok := golden.Tensor(name)
		require.True(t, ok)
		decoded, ok := golden.Tensor(name + ".decoded")
		require.True(t, ok)
		assert.Equal(t, name, kind.String())
		var out bytes.Buffer
		require.NoError(t, write(&out, 3, nil, []Entry{{"t", kind, []int{16, 256}, len(blocks.Data), func() ([]byte, error) {
			return blocks.Data, nil
		}}}))
		// The tensor's name, two dimensions, the fastest first, and the type.
		assert.Contains(t, out.String(), "\x01\x00\x00\x00\x00\x00\x00\x00t\x02\x00\x00\x00\x00\x01\x00\x00\x00\x00\x00\x00"+
			"\x10\x00\x00\x00\x00\x00\x00\x00"+string([]byte{byte(kind), 0, 0, 0}))
		f, err := parse(out.Bytes())
		require.NoError(t, err)
		tensor := f.Tensors()[0]
		require.NoError(t, f.Validate(tensor, 0))
		assert.Equal(t, blocks.Data, tensor.Data)
		got := make([]float32, f.Numbers(tensor))
		require.NoError(t, f.Floats(got, tensor, 0))
		for i, v := range got {
			require.Equal(t, binary.LittleEndian.Uint32(decoded.Data[4*i:]), math.Float32bits(v), "%s %d", name, i)
		}
	}
}

// What is written is read again: every kind of value, both versions, any alignment.
func TestWrite(t *testing.T) {
	metadata := []Pair{
		{"a", uint8(1)}, {"b", int8(-1)}, {"c", uint16(1)}, {"d", int16(-1)}, {"e", uint32(1)}, {"f", int32(-1)},
		{"g", uint64(1)}, {"h", int64(-1)}, {"i", float32(0.5)}, {"j", 0.25},
		{"k", false}, {"l", "text\x00\xff"}, {"m", ""}, {"A", []uint8{1, 2}}, {"B", []int8{-1}}, {"C", []uint16{}},
		{"D", []int16{-1}}, {"E", []uint32{1}}, {"F", []int32{-1}},
		{"G", []uint64{1}}, {"H", []int64{-1}}, {"I", []float32{0.5}}, {"J", []float64{0.25}}, {"K", []bool{true, false}},
		{"L", []string{"", "x"}},
		{"M", []any{[]int32{1, 2}, []string{"y"}, []any{[]bool{true}}, []any{}}},
	}
	x := pattern(2 * 256)
	var entries []Entry
	for _, f := range []quant.Format{quant.Q40, quant.Q80, quant.Q4K, quant.Q6K, quant.TQ10, quant.TQ20} {
		m, err := quant.New(quant.Layout{Format: f, Rows: 2, Cols: 256})
		require.NoError(t, err)
		require.NoError(t, quant.Encode(m, x))
		e, pairs, err := NewEntry(f.String(), m)
		require.NoError(t, err)
		assert.Empty(t, pairs)
		entries = append(entries, e)
	}
	raw := func(b []byte) func() ([]byte, error) { return func() ([]byte, error) { return b, nil } }
	entries = append(entries, Entry{Name: "scalar", Type: F64, Shape: []int{}, Data: raw(make([]byte, 8))},
		Entry{Name: "none", Type: I8, Shape: []int{3, 0}, Data: raw(nil)},
		Entry{Name: "new", Type: 99, Shape: []int{1, 2, 3, 4}, Size: 5, Data: raw([]byte("12345"))})
	for _, version := range []uint32{2, 3} {
		for _, align := range []uint32{0, 8, 32, 4096} {
			metadata := metadata
			if align != 0 {
				metadata = append([]Pair{{"general.alignment", align}}, metadata...)
			} else {
				align = 32
			}
			var out bytes.Buffer
			require.NoError(t, write(&out, version, metadata, entries))
			assert.Zero(t, out.Len()%int(align))
			f, err := parse(out.Bytes())
			require.NoError(t, err)
			assert.Equal(t, version, f.Version)
			assert.Equal(t, metadata, f.Metadata())
			require.Len(t, f.Tensors(), len(entries))
			for i, tensor := range f.Tensors() {
				want, _ := entries[i].Data()
				assert.Equal(t, entries[i].Name, tensor.Name)
				assert.Equal(t, entries[i].Shape, tensor.Shape)
				if tensor.Type == 99 {
					assert.True(t, bytes.HasPrefix(tensor.Data, want))
					assert.ErrorIs(t, f.Validate(tensor, 0), driver.ErrUnsupported)
					continue
				}
				assert.True(t, bytes.Equal(want, tensor.Data))
				require.NoError(t, f.Validate(tensor, 0))
			}
		}
	}
	path := filepath.Join(t.TempDir(), "a.gguf")
	require.NoError(t, Save(path, metadata, entries))
	f, err := Open(path)
	require.NoError(t, err)
	assert.Len(t, f.Tensors(), len(entries))
	require.NoError(t, f.Close())
	require.NoError(t, f.Close())
}

func TestWriteRefuses(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.gguf")
	require.NoError(t, os.WriteFile(path, []byte("as it was"), 0o600))
	data := func() ([]byte, error) { return make([]byte, 4), nil }
	good := Entry{Name: "a", Type: F32, Shape: []int{1}, Data: data}
	broken := errors.New("broken")
	for _, c := range []struct {
		want     error
		metadata []Pair
		entries  []Entry
	}{
		{driver.ErrInvalidArgument, []Pair{{"a", 1}}, nil}, {driver.ErrInvalidArgument, []Pair{{"a", nil}}, nil},
		{driver.ErrInvalidArgument, []Pair{{"a", []any{1}}}, nil},
		{driver.ErrInvalidArgument, []Pair{{"a", []any{uint8(1)}}}, nil},
		{driver.ErrInvalidArgument, []Pair{{"a", uint8(1)}, {"a", uint8(2)}}, nil},
		{driver.ErrInvalidArgument, []Pair{{"general.alignment", uint64(32)}}, nil},
		{driver.ErrInvalidArgument, []Pair{{"general.alignment", uint32(24)}}, nil},
		{driver.ErrInvalidArgument, []Pair{{"general.alignment", uint32(2 << 20)}}, nil},
		{driver.ErrInvalidArgument, []Pair{{"", "x"}}, nil},
		{driver.ErrInvalidArgument, nil, []Entry{{Name: "a\x00b", Type: F32, Shape: []int{1}, Data: data}}},
		{driver.ErrInvalidArgument, nil, []Entry{good, good}},
		{driver.ErrInvalidArgument, nil, []Entry{{Name: "a", Type: F32, Shape: []int{1}}}},
		{driver.ErrInvalidArgument, nil, []Entry{{Name: "a", Type: F32, Shape: []int{1, 1, 1, 1, 1}, Data: data}}},
		{driver.ErrInvalidArgument, nil, []Entry{{Name: "a", Type: F32, Shape: []int{-1}, Data: data}}},
		{driver.ErrDimension, nil, []Entry{{Name: "a", Type: F32, Shape: []int{2}, Data: data}}},
		{driver.ErrDimension, nil, []Entry{{Name: "a", Type: F32, Shape: []int{1}, Size: 5, Data: data}}},
		{driver.ErrDimension, nil, []Entry{{Name: "a", Type: Q80, Shape: []int{31}, Data: data}}},
		{driver.ErrTooLarge, nil, []Entry{{Name: "a", Type: F32, Shape: []int{math.MaxInt, 2}, Data: data}}},
		{
			broken, nil, []Entry{good, {Name: "b", Type: F32, Shape: []int{1}, Data: func() ([]byte, error) {
				return nil, broken
			}}}},
	} {
		assert.ErrorIs(t, Save(path, c.metadata, c.entries), c.want, "%v %v", c.metadata, c.entries)
		was, err := os.ReadFile(path)
		require.NoError(t, err)
		assert.Equal(t, "as it was", string(was))
	}
	// As many lists in lists as are read, and one more.
	var list any = []uint8{1}
	for range maxDepth - 1 {
		list = []any{list}
	}
	var out bytes.Buffer
	require.NoError(t, write(&out, 3, []Pair{{"a", list}}, nil))
	f, err := parse(out.Bytes())
	require.NoError(t, err)
	assert.Equal(t, list, f.Value("a"))
	assert.ErrorIs(t, write(&out, 3, []Pair{{"a", []any{list}}}, nil), driver.ErrInvalidArgument)

	_, _, err = NewEntry("a", quant.Matrix{Layout: quant.Layout{Format: quant.RA, Rows: 1, Cols: 32}})
	assert.ErrorIs(t, err, driver.ErrUnsupported)
	_, _, err = NewEntry("a", quant.Matrix{Layout: quant.Layout{Format: quant.Q40, Rows: 1, Cols: 32},
		Data: make([]byte, 17)})
	assert.ErrorIs(t, err, driver.ErrDimension)
}

// An alignment that is read can be written, and ggml's rule is that of both: a power of two.
func TestAlignments(t *testing.T) {
	data := func() ([]byte, error) { return make([]byte, 4), nil }
	for a := range uint32(200) {
		pair := Pair{"general.alignment", a}
		file := append(header(3, 0, 1, pair.Key, kindU32, a), make([]byte, 1<<10)...)
		_, read := parse(file)
		written := write(io.Discard, 3, []Pair{pair}, []Entry{{Name: "a", Type: F32, Shape: []int{1}, Data: data}})
		if a >= 8 && bits.OnesCount32(a) == 1 {
			assert.NoError(t, read, a)
			assert.NoError(t, written, a)
			continue
		}
		assert.ErrorIs(t, read, driver.ErrFormat, a)
		assert.ErrorIs(t, written, driver.ErrInvalidArgument, a)
	}
}

// Numbers with several meanings are read if a format is named, and only then.
func TestSeveralMeanings(t *testing.T) {
	x := make([]float32, 64*384)
	for i := range x {
		x[i] = float32(i*7%3-1) * 0.5
	}
	for _, l := range []quant.Layout{
		{Format: quant.I2SM1, Rows: 64, Cols: 384}, {Format: quant.I2SM2, Rows: 64, Cols: 384},
		{Format: quant.MTL1, Rows: 64, Cols: 384, Tile: quant.Tile{BM: 32, BY: 64, Sub: 32}},
		{Format: quant.MTL2, Rows: 64, Cols: 384, Tile: quant.Tile{BM: 32, BY: 96, Sub: 32}},
	} {
		m, err := quant.Pack(l, x)
		require.NoError(t, err)
		e, pairs, err := NewEntry("w", m)
		require.NoError(t, err)
		require.NotEmpty(t, pairs)
		read := func(pairs []Pair, named quant.Format) ([]float32, error) {
			var out bytes.Buffer
			require.NoError(t, write(&out, 3, pairs, []Entry{e}))
			f, err := parse(out.Bytes())
			require.NoError(t, err)
			w, ok := f.Tensor("w")
			require.True(t, ok)
			y := make([]float32, f.Numbers(w))
			err = f.Floats(y, w, named)
			assert.Equal(t, err == nil, f.Validate(w, named) == nil)
			return y, err
		}
		y, err := read(pairs, 0)
		require.NoError(t, err)
		assert.Equal(t, x, y, l.Format)
		_, err = read(nil, 0)
		assert.ErrorIs(t, err, driver.ErrFormat)
		assert.ErrorContains(t, err, "of ggml, and nothing says which")
		if e.Type == I2S {
			assert.ErrorContains(t, err, "I2S_M1")
			assert.ErrorContains(t, err, "I2S_M2")
			y, err = read(nil, l.Format)
			require.NoError(t, err)
			assert.Equal(t, x, y)
		}
		_, err = read(pairs, quant.TQ20)
		assert.ErrorIs(t, err, driver.ErrFormat)
		assert.ErrorContains(t, err, "and not TQ2_0")
		_, err = read(nil, quant.TQ20)
		assert.ErrorIs(t, err, driver.ErrFormat)
		assert.ErrorContains(t, err, "TQ2_0 is none of these")
		y, err = read(pairs, l.Format)
		require.NoError(t, err)
		assert.Equal(t, x, y)
		if e.Type == I2S { // the file knows its own order, and the other one would decode to other numbers
			_, err = read(pairs, quant.I2SM1+quant.I2SM2-l.Format)
			assert.ErrorIs(t, err, driver.ErrFormat)
			assert.ErrorContains(t, err, "the file's metadata says that type 36 is "+l.Format.String())
		}
		_, err = read([]Pair{{pairs[0].Key, "nonsense"}}, 0)
		assert.ErrorIs(t, err, driver.ErrInvalidArgument)
	}
	f := &File{}
	for _, none := range []Tensor{{Type: Q80, Shape: []int{0, 32}}, {Type: F32, Shape: []int{0}},
		{Type: I2S, Shape: []int{3, 0}}} {
		assert.NoError(t, f.Floats(nil, none, quant.I2SM1))
		assert.NoError(t, f.Validate(none, quant.I2SM1))
	}
	_, err := f.Format(Tensor{Name: "w", Type: 37}, quant.I8All)
	assert.ErrorIs(t, err, driver.ErrFormat)
	assert.ErrorContains(t, err, "I8_S")
	_, err = f.Format(Tensor{Name: "w", Type: 3}, 0)
	assert.ErrorIs(t, err, driver.ErrUnsupported)
	_, err = f.Matrix(Tensor{Name: "w", Type: F32}, 0)
	assert.ErrorIs(t, err, driver.ErrUnsupported)
	for f, want := range map[quant.Format]Type{quant.Q40: Q40, quant.I2SM2: I2S, quant.MTL2: TL2} {
		got, ok := TypeOf(f)
		assert.True(t, ok)
		assert.Equal(t, want, got)
	}
	_, ok := TypeOf(quant.RA)
	assert.False(t, ok)
	assert.Equal(t, "type 1000", Type(1000).String())
}

// Padded columns keep the number that is meant.
func TestColumns(t *testing.T) {
	x := pattern(3 * 70)
	m, err := quant.Pack(quant.Layout{Format: quant.Q80, Rows: 3, Cols: 70}, x)
	require.NoError(t, err)
	e, pairs, err := NewEntry("w", m)
	require.NoError(t, err)
	assert.Equal(t, []Pair{{"concord.columns.w", uint64(70)}}, pairs)
	for _, k := range []any{uint64(70), uint64(0), uint64(97), uint32(70), "70"} {
		pairs[0].Value = k
		var out bytes.Buffer
		require.NoError(t, write(&out, 3, pairs, []Entry{e}))
		f, err := parse(out.Bytes())
		require.NoError(t, err)
		w, _ := f.Tensor("w")
		y := make([]float32, f.Numbers(w))
		if k != uint64(70) {
			assert.ErrorIs(t, f.Floats(y, w, 0), driver.ErrFormat)
			continue
		}
		require.NoError(t, f.Floats(y, w, 0))
		for i := range x {
			require.InDelta(t, x[i], y[i], 0.014)
		}
		assert.ErrorIs(t, f.Floats(y[1:], w, 0), driver.ErrDimension)
	}
}

// Plain numbers of every type.
func TestPlain(t *testing.T) {
	le := binary.LittleEndian
	for typ, c := range map[Type]struct{ good, bad []byte }{
		F32:  {le.AppendUint32(nil, math.Float32bits(-2)), le.AppendUint32(nil, 0x7f800000)},
		F16:  {[]byte{0, 0xc0}, []byte{0, 0x7c}},
		BF16: {[]byte{0, 0xc0}, []byte{0x81, 0xff}},
		F64:  {le.AppendUint64(nil, math.Float64bits(-2)), le.AppendUint64(nil, math.Float64bits(math.NaN()))},
		I8:   {[]byte{0xfe}, nil}, I16: {[]byte{0xfe, 0xff}, nil}, I32: {[]byte{0xfe, 0xff, 0xff, 0xff}, nil},
		I64: {[]byte{0xfe, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff}, nil},
	} {
		f, w := &File{}, Tensor{Name: "w", Type: typ, Shape: []int{1}, Data: c.good}
		x := make([]float32, 1)
		require.NoError(t, f.Floats(x, w, 0))
		assert.EqualValues(t, -2, x[0], typ)
		assert.NoError(t, f.Validate(w, 0))
		if c.bad != nil {
			w.Shape, w.Data = []int{2}, append(c.good, c.bad...)
			err := f.Validate(w, 0)
			assert.ErrorIs(t, err, driver.ErrCorrupt, typ)
			assert.ErrorContains(t, err, "number 1 ")
		}
	}
	w := Tensor{Name: "w", Type: F64, Shape: []int{2}, Data: le.AppendUint64(make([]byte, 8), math.Float64bits(1e300))}
	err := new(File).Floats(make([]float32, 2), w, 0)
	assert.ErrorIs(t, err, driver.ErrInvalidArgument)
	assert.ErrorContains(t, err, "number 1 is 1e+300")
}

// A tensor without elements is good in every type.
func TestNoElements(t *testing.T) {
	f := &File{}
	for _, typ := range []Type{F32, I8, Q80, TQ10} {
		w := Tensor{Name: "w", Type: typ, Shape: []int{0, 256}}
		assert.NoError(t, f.Validate(w, 0), typ)
		assert.NoError(t, f.Floats(nil, w, 0), typ)
	}
	assert.ErrorIs(t, f.Validate(Tensor{Name: "w", Type: I2S, Shape: []int{0}}, 0), driver.ErrFormat)
}

// header makes the beginning of a file.
func header(version uint32, tensors, pairs uint64, rest ...any) []byte {
	b := binary.LittleEndian.AppendUint32([]byte(magic), version)
	b = binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint64(b, tensors), pairs)
	for _, v := range rest {
		if s, ok := v.(string); ok {
			b = appendText(b, s)
		} else {
			b, _ = binary.Append(b, binary.LittleEndian, v)
		}
	}
	return b
}

// Malformed files are errors of the documented kinds, and take no memory that is not in proportion to them.
func TestMalformed(t *testing.T) {
	padded := func(b []byte) []byte { return append(b, make([]byte, 64)...) }
	huge := uint64(math.MaxUint64)
	for name, c := range map[string]struct {
		want error
		data []byte
	}{
		"empty": {driver.ErrFormat, nil}, "magic": {driver.ErrFormat, []byte("GGML\x03\x00\x00\x00")},
		"magic only": {driver.ErrFormat, []byte("GGUF")},
		"version 1":  {driver.ErrUnsupported, header(1, 0, 0)}, "version 4": {driver.ErrUnsupported, header(4, 0, 0)},
		"big-endian":   {driver.ErrUnsupported, header(3<<24, 0, 0)},
		"many tensors": {driver.ErrFormat, padded(header(3, huge, 0))},
		"many pairs":   {driver.ErrFormat, padded(header(3, 0, 1<<40))}, "some tensors": {driver.ErrFormat, header(3, 1, 0)},
		"long key":      {driver.ErrFormat, padded(header(3, 0, 1, huge))},
		"long text":     {driver.ErrFormat, padded(header(3, 0, 1, "k", kindString, uint64(1000)))},
		"kind":          {driver.ErrFormat, padded(header(3, 0, 1, "k", uint32(13)))},
		"kind of list":  {driver.ErrFormat, padded(header(3, 0, 1, "k", kindArray, uint32(99), uint64(1)))},
		"long list":     {driver.ErrFormat, padded(header(3, 0, 1, "k", kindArray, kindF64, uint64(1<<61)))},
		"many texts":    {driver.ErrFormat, padded(header(3, 0, 1, "k", kindArray, kindString, uint64(1<<40)))},
		"many lists":    {driver.ErrFormat, padded(header(3, 0, 1, "k", kindArray, kindArray, uint64(1<<40)))},
		"bool":          {driver.ErrFormat, padded(header(3, 0, 1, "k", kindBool, uint8(2)))},
		"bools":         {driver.ErrFormat, padded(header(3, 0, 1, "k", kindArray, kindBool, uint64(2), uint8(1), uint8(2)))},
		"twice":         {driver.ErrFormat, padded(header(3, 0, 2, "k", kindU8, uint8(1), "k", kindU8, uint8(1)))},
		"alignment":     {driver.ErrFormat, padded(header(3, 0, 1, keyAlignment, kindU32, uint32(0)))},
		"alignment 12":  {driver.ErrFormat, padded(header(3, 0, 1, keyAlignment, kindU32, uint32(12)))},
		"alignment i64": {driver.ErrFormat, padded(header(3, 0, 1, keyAlignment, kindI64, int64(32)))},
		"alignment 2M":  {driver.ErrFormat, padded(header(3, 0, 1, keyAlignment, kindU32, uint32(2<<20)))},
		"alignment big": {
			driver.ErrCorrupt, padded(header(3, 1, 1, keyAlignment, kindU32, uint32(1<<20), "t", uint32(1), uint64(8),
				uint32(F32), uint64(0)))},
		"dimensions": {
			driver.ErrFormat, padded(header(3, 1, 0, "t", uint32(5), uint64(1), uint64(1), uint64(1), uint64(1), uint64(1),
				uint32(0), uint64(0)))},
		"all dims": {
			driver.ErrFormat, padded(header(3, 1, 0, "t", uint32(math.MaxUint32), uint64(1), uint32(0), uint64(0)))},
		"negative": {driver.ErrFormat, padded(header(3, 1, 0, "t", uint32(1), huge, uint32(0), uint64(0)))},
		"overflow": {
			driver.ErrFormat, padded(header(3, 1, 0, "t", uint32(3), uint64(1<<31), uint64(1<<31), uint64(4), uint32(0),
				uint64(0)))},
		"zero overflow": {
			driver.ErrFormat, padded(header(3, 1, 0, "t", uint32(3), uint64(1<<62), uint64(0), uint64(1<<62), uint32(0),
				uint64(0)))},
		"no blocks":   {driver.ErrFormat, padded(header(3, 1, 0, "t", uint32(1), uint64(33), uint32(Q80), uint64(0)))},
		"short":       {driver.ErrCorrupt, padded(header(3, 1, 0, "t", uint32(1), uint64(100), uint32(F32), uint64(0)))},
		"far":         {driver.ErrCorrupt, padded(header(3, 1, 0, "t", uint32(1), uint64(1), uint32(F32), uint64(1<<63)))},
		"not aligned": {driver.ErrFormat, padded(header(3, 1, 0, "t", uint32(1), uint64(1), uint32(F32), uint64(8)))},
		"same name": {
			driver.ErrFormat, padded(header(3, 2, 0, "t", uint32(1), uint64(1), uint32(F32), uint64(0), "t", uint32(1),
				uint64(1), uint32(F32), uint64(32)))},
		"overlap": {
			driver.ErrFormat, padded(header(3, 2, 0, "t", uint32(1), uint64(9), uint32(F32), uint64(0), "u", uint32(1),
				uint64(1), uint32(F32), uint64(32)))},
		"deep": {
			driver.ErrFormat, padded(header(3, 0, 1, "k", kindArray, kindArray, uint64(1), kindArray, uint64(1), kindArray,
				uint64(1), kindArray, uint64(1), kindArray, uint64(1), kindU8, uint64(0)))},
	} {
		var before, after goruntime.MemStats
		goruntime.ReadMemStats(&before)
		_, err := parse(c.data)
		goruntime.ReadMemStats(&after)
		assert.ErrorIs(t, err, c.want, name)
		assert.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(1<<16), name)
	}
	f, err := parse(header(2, 0, 0))
	require.NoError(t, err)
	assert.Empty(t, f.Tensors())
	path := filepath.Join(t.TempDir(), "bad.gguf")
	require.NoError(t, os.WriteFile(path, header(1, 0, 0), 0o600))
	_, err = Open(path)
	assert.ErrorIs(t, err, driver.ErrUnsupported)
	assert.True(t, strings.HasPrefix(err.Error(), path), err)
	_, err = Open(path + "x")
	assert.ErrorIs(t, err, os.ErrNotExist)
}

// FuzzParse reads any bytes: it never panics or reads outside, and what is read once is written and read equally.
func FuzzParse(f *testing.F) {
	data, err := os.ReadFile("testdata/ggml.gguf")
	require.NoError(f, err)
	f.Add(data)
	f.Add(data[:300])
	f.Add(header(2, 1, 1, "general.alignment", kindU32, uint32(8), "t", uint32(1), uint64(0), uint32(I2S), uint64(0)))
	f.Add(header(3, 0, 1, "k", kindArray, kindArray, uint64(1), kindArray, uint64(1), kindU8, uint64(0)))
	f.Fuzz(func(t *testing.T, data []byte) {
		file, err := parse(data)
		if err != nil {
			if !errors.Is(err, driver.ErrCorrupt) && !errors.Is(err, driver.ErrUnsupported) {
				t.Fatal(err)
			}
			return
		}
		var entries []Entry
		for _, tensor := range file.Tensors() {
			for _, named := range []quant.Format{0, quant.I2SM1, quant.I2SM2, quant.MTL1, quant.MTL2} {
				valid := file.Validate(tensor, named)
				if n := file.Numbers(tensor); n < 1<<20 {
					x := make([]float32, n)
					if err := file.Floats(x, tensor, named); valid == nil && n == tensor.Len() && n > 0 {
						require.NoError(t, err)
					}
				}
			}
			entries = append(entries, Entry{tensor.Name, tensor.Type, tensor.Shape, len(tensor.Data), func() ([]byte, error) {
				return tensor.Data, nil
			}})
		}
		var out bytes.Buffer
		if err := write(&out, file.Version, file.Metadata(), entries); err != nil {
			require.ErrorIs(t, err, driver.ErrInvalidArgument) // names and keys that ggml does not read
			return
		}
		again, err := parse(out.Bytes())
		require.NoError(t, err)
		require.Len(t, again.Tensors(), len(entries))
		require.Equal(t, fmt.Sprint(file.Metadata()), fmt.Sprint(again.Metadata()))
	})
}

// A name may have 63 bytes, as in ggml.
func TestLongNames(t *testing.T) {
	for n, want := range map[int]error{63: nil, 64: driver.ErrInvalidArgument} {
		e := Entry{Name: strings.Repeat("n", n), Type: I8, Shape: []int{1}, Data: func() ([]byte, error) {
			return []byte{1}, nil
		}}
		assert.ErrorIs(t, write(&bytes.Buffer{}, 3, nil, []Entry{e}), want)
	}
}
