package npy

// Tests against files that NumPy made, against NumPy itself where it is
// installed, and of round trips for every type.

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/concord-compute/concord/runtime/driver"
	"github.com/concord-compute/concord/runtime/half"
)

// numbers returns the data of testdata/make.py's files: element i is i - 2.
func numbers(t driver.Type, n int) []byte {
	var out []byte
	for i := range n {
		x := int64(i - 2)
		switch t {
		case driver.F16:
			out = binary.LittleEndian.AppendUint16(out, uint16(half.ToFloat16(float64(x))))
		case driver.F32:
			out = binary.LittleEndian.AppendUint32(out, math.Float32bits(float32(x)))
		case driver.F64:
			out = binary.LittleEndian.AppendUint64(out, math.Float64bits(float64(x)))
		default: // two's complement, cut to size
			var b [8]byte
			binary.LittleEndian.PutUint64(b[:], uint64(x))
			out = append(out, b[:t.Size()]...)
		}
	}
	return out
}

func TestFilesMadeByNumPy(t *testing.T) {
	type want struct {
		elem  driver.Type
		shape []int
	}
	files := map[string]want{
		"scalar":        {driver.F32, []int{}},
		"vector":        {driver.F32, []int{3}},
		"vector_big":    {driver.F32, []int{3}},
		"empty":         {driver.F32, []int{0, 3}},
		"empty_fortran": {driver.F32, []int{3, 0, 2}},
		"fortran":       {driver.I32, []int{3, 5}},
		"version2":      {driver.F32, []int{2, 3}},
		"version3":      {driver.F32, []int{2, 3}},
	}
	for name, elem := range kinds {
		if name != "b1" {
			files["little_"+name] = want{elem, []int{2, 3}}
			files["big_fortran_"+name] = want{elem, []int{2, 3, 4}}
		}
	}
	assert.Len(t, files, 30)
	for name, w := range files {
		a, err := ReadFile(filepath.Join("testdata", name+".npy"))
		require.NoError(t, err, name)
		assert.Equal(t, w.elem, a.Type, name)
		assert.Equal(t, w.shape, a.Shape, name)
		assert.Equal(t, numbers(w.elem, a.Len()), append([]byte(nil), a.Data...), name)
	}
	a, err := ReadFile("testdata/bool.npy")
	require.NoError(t, err)
	assert.Equal(t, Array{driver.U8, []int{3}, []byte{1, 0, 1}}, a)
}

func TestFilesOfOtherTypesAreUnsupported(t *testing.T) {
	paths, err := filepath.Glob("testdata/unsupported_*.npy")
	require.NoError(t, err)
	require.Len(t, paths, 6)
	for _, path := range paths {
		_, err := ReadFile(path)
		assert.ErrorIs(t, err, driver.ErrUnsupported, path)
		assert.ErrorContains(t, err, path)
	}
}

// drawArray makes an array of any type and a small shape, with any bytes.
func drawArray(t *rapid.T) Array {
	a := Array{
		Type:  rapid.SampledFrom(driver.Types()).Draw(t, "type"),
		Shape: rapid.SliceOfN(rapid.IntRange(0, 5), 0, 4).Draw(t, "shape"),
	}
	n := a.Len() * a.Type.Size()
	a.Data = rapid.SliceOfN(rapid.Byte(), n, n).Draw(t, "data")
	return a
}

func TestRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a := drawArray(t)
		var buf bytes.Buffer
		require.NoError(t, Write(&buf, a))
		require.Zero(t, (buf.Len()-len(a.Data))%align, "the data starts at a multiple of %d", align)
		for _, r := range []io.Reader{bytes.NewReader(buf.Bytes()), iotest.OneByteReader(bytes.NewReader(buf.Bytes())),
			iotest.DataErrReader(bytes.NewReader(buf.Bytes()))} {
			got, err := Read(r)
			require.NoError(t, err)
			want := a
			if a.Type == driver.BF16 {
				want.Type = driver.U16
			}
			require.Equal(t, want.Type, got.Type)
			require.Equal(t, want.Shape, got.Shape)
			require.True(t, bytes.Equal(want.Data, got.Data))
		}
	})
}

// Files in Fortran order and big-endian are converted, for any shape. The files are made here from
// the definition of Fortran order, element by element.
func TestForeignOrders(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a := drawArray(t)
		elem := a.Type.Size()
		data := make([]byte, len(a.Data))
		for at := range a.Len() {
			rest, to, stride := at, 0, 1
			index := make([]int, len(a.Shape))
			for i := len(a.Shape) - 1; i >= 0; i-- {
				index[i], rest = rest%a.Shape[i], rest/a.Shape[i]
			}
			for i, d := range a.Shape {
				to, stride = to+index[i]*stride, stride*d
			}
			for b := range elem {
				data[to*elem+b] = a.Data[at*elem+elem-1-b]
			}
		}
		name, err := descrOf(a.Type)
		require.NoError(t, err)
		shape := strings.NewReplacer("[", "(", "]", ",)", " ", ", ").Replace(fmt.Sprint(a.Shape))
		if len(a.Shape) == 0 {
			shape = "()"
		}
		got, err := Read(strings.NewReader(raw("{'descr': '>"+name[1:]+"', 'fortran_order': True, 'shape': "+shape+"}") +
			string(data)))
		require.NoError(t, err)
		require.True(t, bytes.Equal(a.Data, got.Data), "%v %v", a.Shape, got.Data)
	})
}

func TestLargeArrayThroughAReaderOfUnknownSize(t *testing.T) {
	a := Array{Type: driver.U8, Shape: []int{3*firstRead + 17}, Data: make([]byte, 3*firstRead+17)}
	for i := range a.Data {
		a.Data[i] = byte(i * 7 >> 3)
	}
	var buf bytes.Buffer
	require.NoError(t, Write(&buf, a))
	got, err := Read(iotest.HalfReader(&buf))
	require.NoError(t, err)
	assert.True(t, bytes.Equal(a.Data, got.Data))
}

func TestWriteRefuses(t *testing.T) {
	for _, tc := range []struct {
		a    Array
		want error
	}{
		{Array{driver.F32, []int{2}, make([]byte, 7)}, driver.ErrDimension},
		{Array{driver.F32, []int{2}, make([]byte, 9)}, driver.ErrDimension},
		{Array{driver.F32, nil, nil}, driver.ErrDimension},
		{Array{driver.F32, []int{-1, -1}, make([]byte, 4)}, driver.ErrInvalidArgument},
		{Array{driver.NoType, []int{1}, nil}, driver.ErrInvalidArgument},
		{Array{driver.Type(99), []int{1}, nil}, driver.ErrInvalidArgument},
		{Array{driver.F32, []int{math.MaxInt, 2}, nil}, driver.ErrTooLarge},
		{Array{driver.F32, []int{0, math.MaxInt, 2}, nil}, driver.ErrTooLarge},
		{Array{driver.F32, make([]int, maxDims+1), nil}, driver.ErrTooLarge},
	} {
		var buf bytes.Buffer
		assert.ErrorIs(t, Write(&buf, tc.a), tc.want, "%v", tc.a)
		assert.Zero(t, buf.Len(), "nothing is written")
	}
	assert.NoError(t, Write(io.Discard, Array{driver.F32, make([]int, maxDims), nil}))
	broken := iotest.ErrReader(io.ErrClosedPipe)
	_, err := Read(broken)
	assert.ErrorIs(t, err, io.ErrClosedPipe, "an error of the reader is not damage of the file")
	assert.NotErrorIs(t, err, driver.ErrCorrupt)
}

func TestWriteFile(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "a.npy")
	first := Array{driver.U8, []int{2}, []byte{1, 2}}
	require.NoError(t, WriteFile(path, first))
	assert.Error(t, WriteFile(path, Array{driver.U8, []int{2}, []byte{1}}))
	got, err := ReadFile(path)
	require.NoError(t, err)
	assert.Equal(t, first, got, "a failed write leaves what was there")
	left, err := os.ReadDir(dir)
	require.NoError(t, err)
	assert.Len(t, left, 1, "no temporary file stays")

	link := filepath.Join(dir, "link.npy")
	require.NoError(t, os.Symlink("a.npy", link))
	second := Array{driver.U8, []int{1}, []byte{9}}
	require.NoError(t, WriteFile(link, second))
	info, err := os.Lstat(link)
	require.NoError(t, err)
	assert.Equal(t, os.ModeSymlink, info.Mode().Type(), "a link stays a link")
	got, err = ReadFile(path)
	require.NoError(t, err)
	assert.Equal(t, second, got)

	require.NoError(t, WriteFile(os.DevNull, first), "what is no regular file is written to")
	info, err = os.Stat(os.DevNull)
	require.NoError(t, err)
	assert.False(t, info.Mode().IsRegular(), "and not replaced")
	assert.ErrorIs(t, WriteFile(filepath.Join(dir, "none", "a.npy"), first), os.ErrNotExist)
	_, err = ReadFile(filepath.Join(dir, "none.npy"))
	assert.ErrorIs(t, err, os.ErrNotExist)
}

// NumPy itself reads files of Write and finds the same numbers, and Read finds them in the files
// that NumPy writes.
func TestNumPyReadsOurFiles(t *testing.T) {
	const python = "/usr/bin/python3"
	if err := exec.Command(python, "-c", "import numpy").Run(); err != nil {
		t.Skipf("no NumPy for %s here: %v", python, err)
	}
	dir := t.TempDir()
	shapes := [][]int{{}, {3}, {2, 3}, {0, 3}, {2, 1, 4}}
	var script strings.Builder
	script.WriteString("import numpy as np\n")
	for _, elem := range driver.Types() {
		for i, shape := range shapes {
			a := Array{Type: elem, Shape: shape}
			name, err := descrOf(elem)
			require.NoError(t, err)
			a.Data = numbers(elem, a.Len()) // bfloat16 is stored as integers and converted here
			path := filepath.Join(dir, fmt.Sprintf("%v-%d.npy", a.Type, i))
			require.NoError(t, WriteFile(path, a))
			tuple := strings.NewReplacer("[", "(", "]", ",)", " ", ", ").Replace(fmt.Sprint(shape))
			if len(shape) == 0 {
				tuple = "()"
			}
			fmt.Fprintf(&script, "a = np.load(%q)\n", path)
			fmt.Fprintf(&script, "assert a.dtype == np.dtype(%q) and a.shape == %s, (a.dtype, a.shape)\n", name, tuple)
			fmt.Fprintf(&script, "assert (a.ravel() == (np.arange(a.size) - 2).astype(a.dtype)).all(), a\n")
			fmt.Fprintf(&script, "np.save(%q, np.asarray(a, a.dtype.newbyteorder('>'), order='F'))\n", path)
		}
	}
	out, err := exec.Command(python, "-c", script.String()).CombinedOutput()
	require.NoError(t, err, "%s", out)
	for _, elem := range driver.Types() {
		for i, shape := range shapes {
			a, err := ReadFile(filepath.Join(dir, fmt.Sprintf("%v-%d.npy", elem, i)))
			require.NoError(t, err)
			assert.Equal(t, shape, a.Shape)
			assert.True(t, bytes.Equal(numbers(a.Type, a.Len()), a.Data))
		}
	}
}
