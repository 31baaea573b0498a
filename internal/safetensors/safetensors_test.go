package safetensors

// Tests of files that follow the description of the format, which testdata/make.py makes, and of round
// trips.

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"os"
	"path/filepath"
	goruntime "runtime"
	"slices"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/concord-compute/concord/runtime/driver"
	"github.com/concord-compute/concord/runtime/half"
)

// numbers returns the data of testdata/make.py's files.
func numbers(t Type, n int) []byte {
	out := []byte{}
	for i := range n {
		x := int64(i - 2)
		switch t {
		case Bool:
			out = append(out, byte(i%2))
		case "f16":
			out = binary.LittleEndian.AppendUint16(out, uint16(half.ToFloat16(float64(x))))
		case "bf16":
			out = binary.LittleEndian.AppendUint16(out, uint16(half.ToBFloat16(float64(x))))
		case "f32":
			out = binary.LittleEndian.AppendUint32(out, math.Float32bits(float32(x)))
		case "f64":
			out = binary.LittleEndian.AppendUint64(out, math.Float64bits(float64(x)))
		default: // two's complement, cut to size
			elem, err := t.Elem()
			if err != nil {
				panic(err)
			}
			var b [8]byte
			binary.LittleEndian.PutUint64(b[:], uint64(x))
			out = append(out, b[:elem.Size()]...)
		}
	}
	return out
}

// usable are the types whose elements package driver has, and Bool.
func usable() []Type {
	list := []Type{Bool}
	for _, t := range driver.Types() {
		list = append(list, Type(t.String()))
	}
	return list
}

func open(t testing.TB, path string) *File {
	t.Helper()
	f, err := Open(path)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, f.Close()) })
	return f
}

func TestEveryType(t *testing.T) {
	f := open(t, "testdata/types.safetensors")
	assert.Equal(t, map[string]string{"format": "np"}, f.Metadata())
	names := f.Names()
	assert.Len(t, names, 2*len(usable())+3)
	assert.Equal(t, []string{"u64.1", "u64.2", "i64.1", "i64.2", "f64.1", "f64.2"},
		slices.DeleteFunc(names[:7:7], func(s string) bool { return s == "nothing" }), "the order of the data")
	for _, typ := range usable() {
		for i, shape := range [][]int{{3}, {2, 3}} {
			e, ok := f.Tensor(fmt.Sprintf("%s.%d", typ, i+1))
			require.True(t, ok)
			assert.Equal(t, typ, e.Type)
			assert.Equal(t, shape, e.Shape)
			assert.Equal(t, numbers(typ, e.Len()), e.Data, "%s", typ)
			assert.True(t, e.Aligned(), "%s", typ)
		}
	}
	e, ok := f.Tensor("scalar")
	require.True(t, ok)
	assert.Equal(t, Entry{"scalar", "f32", []int{}, numbers("f32", 1)}, e)
	e, ok = f.Tensor("nothing")
	require.True(t, ok)
	assert.Equal(t, Entry{"nothing", "f64", []int{0, 3}, []byte{}}, e)
	assert.Zero(t, e.Len())
	_, ok = f.Tensor("ein \"Name\" <&> ü中😀\n")
	assert.True(t, ok)
	_, ok = f.Tensor("none")
	assert.False(t, ok)
}

func TestFileWithoutTensors(t *testing.T) {
	f := open(t, "testdata/empty.safetensors")
	assert.Empty(t, f.Names())
	assert.Nil(t, f.Metadata())
}

// Data that lies anywhere and types that nobody here computes with leave a file usable.
func TestForeignFile(t *testing.T) {
	f := open(t, "testdata/foreign.safetensors")
	assert.Equal(t, []string{"eight", "nothing", "four", "new", "zü😀/"}, f.Names())
	assert.Equal(t, map[string]string{"source": "a\tb", "": "no name"}, f.Metadata())
	e, ok := f.Tensor("zü😀/")
	require.True(t, ok)
	assert.Equal(t, numbers("f32", 2), e.Data)
	assert.NotZero(t, uintptr(unsafe.Pointer(&e.Data[0]))%4)
	assert.False(t, e.Aligned())
	for name, want := range map[string]Entry{
		"eight": {"eight", "f8_e4m3", []int{3}, []byte{1, 2, 3}},
		"four":  {"four", "f4", []int{2, 2}, []byte{0x12, 0x34}},
		"new":   {"new", "q7_x", []int{5}, []byte{5, 6, 7, 8}},
	} {
		e, ok := f.Tensor(name)
		require.True(t, ok)
		assert.Equal(t, want, e)
		_, err := e.Type.Elem()
		assert.ErrorIs(t, err, driver.ErrUnsupported)
		assert.ErrorContains(t, err, string(want.Type))
		assert.False(t, e.Aligned())
	}
	elem, err := Bool.Elem()
	require.NoError(t, err)
	assert.Equal(t, driver.U8, elem)
}

func TestClose(t *testing.T) {
	f, err := Open("testdata/types.safetensors")
	require.NoError(t, err)
	require.NoError(t, f.Close())
	require.NoError(t, f.Close(), "closing again does nothing")
	assert.Empty(t, f.Names())
	_, ok := f.Tensor("scalar")
	assert.False(t, ok)
}

// all returns the tensors of a file.
func all(f *File) []Entry {
	list := []Entry{}
	for _, name := range f.Names() {
		e, _ := f.Tensor(name)
		list = append(list, e)
	}
	return list
}

// Write has the reference implementation's layout, but for more spaces behind the header.
func TestWriteAsTheReferenceDoes(t *testing.T) {
	for _, name := range []string{"types", "empty"} {
		path := filepath.Join("testdata", name+".safetensors")
		f := open(t, path)
		list := all(f)
		slices.Reverse(list)
		ours := filepath.Join(t.TempDir(), "a.safetensors")
		require.NoError(t, Write(ours, list, f.Metadata()))
		head, data := parts(t, path)
		ourHead, ourData := parts(t, ours)
		assert.Zero(t, (lengthBytes+len(ourHead))%align)
		assert.Equal(t, string(bytes.TrimRight(head, " ")), string(bytes.TrimRight(ourHead, " ")))
		assert.Equal(t, data, ourData)
	}
}

// parts returns the header and the data of a file.
func parts(t *testing.T, path string) (head, data []byte) {
	t.Helper()
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	n := binary.LittleEndian.Uint64(text)
	return text[lengthBytes : lengthBytes+n], text[lengthBytes+n:]
}

// drawEntry makes a tensor of any known type and a small shape, with any bytes.
func drawEntry(t *rapid.T) Entry {
	e := Entry{
		Name:  rapid.String().Draw(t, "name"),
		Type:  rapid.SampledFrom(kinds).Draw(t, "type").name,
		Shape: append([]int{}, rapid.SliceOfN(rapid.IntRange(0, 5), 0, 4).Draw(t, "shape")...),
	}
	size, whole := e.Type.sizeOf(uint64(e.Len()))
	if !whole {
		e.Type = "u8"
		size = uint64(e.Len())
	}
	e.Data = append([]byte{}, rapid.SliceOfN(rapid.Byte(), int(size), int(size)).Draw(t, "data")...)
	return e
}

func TestRoundTrip(t *testing.T) {
	dir := t.TempDir()
	rapid.Check(t, func(t *rapid.T) {
		list := rapid.SliceOfNDistinct(rapid.Custom(drawEntry), 0, 8, func(e Entry) string { return e.Name }).Draw(t,
			"entries")
		metadata := rapid.MapOfN(rapid.String(), rapid.String(), 0, 4).Draw(t, "metadata")
		if len(metadata) == 0 {
			metadata = nil
		}
		path := filepath.Join(dir, "a.safetensors")
		require.NoError(t, Write(path, list, metadata))
		f, err := Open(path)
		require.NoError(t, err)
		defer f.Close()
		require.Equal(t, metadata, f.Metadata())
		require.Len(t, f.Names(), len(list))
		for _, want := range list {
			got, ok := f.Tensor(want.Name)
			require.True(t, ok)
			require.Equal(t, want, got)
			_, err := want.Type.Elem()
			require.Equal(t, err == nil, got.Aligned())
		}
		// Other orders give the same file.
		first, err := os.ReadFile(path)
		require.NoError(t, err)
		var again bytes.Buffer
		require.NoError(t, Encode(&again, rapid.Permutation(list).Draw(t, "order"), metadata))
		require.True(t, bytes.Equal(first, again.Bytes()))
	})
}

func TestWriteRefuses(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "a.safetensors")
	good := Entry{"a", "u8", []int{2}, []byte{1, 2}}
	require.NoError(t, Write(path, []Entry{good}, nil))
	before, err := os.ReadFile(path)
	require.NoError(t, err)
	for _, tc := range []struct {
		list     []Entry
		metadata map[string]string
		want     error
	}{
		{[]Entry{good, good}, nil, driver.ErrInvalidArgument},
		{[]Entry{good, {"a", "f32", []int{0}, nil}}, nil, driver.ErrInvalidArgument},
		{[]Entry{{"__metadata__", "u8", []int{2}, []byte{1, 2}}}, nil, driver.ErrInvalidArgument},
		{[]Entry{{"\xff", "u8", []int{2}, []byte{1, 2}}}, nil, driver.ErrInvalidArgument},
		{[]Entry{{"a", "U8", []int{2}, []byte{1, 2}}}, nil, driver.ErrInvalidArgument},
		{[]Entry{{"a", "q7_x", []int{2}, []byte{1, 2}}}, nil, driver.ErrInvalidArgument},
		{[]Entry{{"a", "", []int{2}, []byte{1, 2}}}, nil, driver.ErrInvalidArgument},
		{[]Entry{{"a", "u8", []int{-2}, []byte{1, 2}}}, nil, driver.ErrInvalidArgument},
		{[]Entry{{"a", "u8", []int{math.MaxInt, 3, 0}, nil}}, nil, driver.ErrInvalidArgument},
		{[]Entry{{"a", "u8", make([]int, maxDims+1), nil}}, nil, driver.ErrInvalidArgument},
		{[]Entry{{"a", "u16", []int{2}, []byte{1, 2}}}, nil, driver.ErrDimension},
		{[]Entry{{"a", "u8", nil, []byte{1, 2}}}, nil, driver.ErrDimension},
		{[]Entry{{"a", "f4", []int{3}, []byte{1, 2}}}, nil, driver.ErrDimension},
		{nil, map[string]string{"a": "\xff"}, driver.ErrInvalidArgument},
		{nil, map[string]string{"\xff": "a"}, driver.ErrInvalidArgument},
		{nil, map[string]string{"a": string(make([]byte, maxHeader/6+1))}, driver.ErrTooLarge},
	} {
		assert.ErrorIs(t, Write(path, tc.list, tc.metadata), tc.want, "%v", tc.list)
		after, err := os.ReadFile(path)
		require.NoError(t, err)
		require.Equal(t, before, after, "a failed write leaves what was there")
	}
	left, err := os.ReadDir(dir)
	require.NoError(t, err)
	assert.Len(t, left, 1, "no temporary file stays")
}

// Write needs no memory for data that is in memory already.
func TestWriteCopiesNothing(t *testing.T) {
	data := make([]byte, 32<<20)
	path := filepath.Join(t.TempDir(), "a.safetensors")
	var before, after goruntime.MemStats
	goruntime.ReadMemStats(&before)
	require.NoError(t, Write(path, []Entry{{"a", "f32", []int{8 << 20}, data}}, nil))
	f := open(t, path)
	_, ok := f.Tensor("a")
	require.True(t, ok)
	goruntime.ReadMemStats(&after)
	assert.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(1<<20))
}
