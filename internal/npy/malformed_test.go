package npy

// Tests of malformed files: no panic, no large allocation, always one of the documented errors.

import (
	"bytes"
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	goruntime "runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/concord-compute/concord/runtime/driver"
)

// raw makes the start of a file of format 1.0 with any text as its header.
func raw(text string) string {
	head := binary.LittleEndian.AppendUint16([]byte(magic+"\x01\x00"), uint16(len(text)))
	return string(head) + text
}

func TestMalformedHeaders(t *testing.T) {
	good := "{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }\n"
	data := "12345678"
	_, err := Read(strings.NewReader(raw(good) + data))
	require.NoError(t, err)
	for _, text := range []string{
		"{\"descr\":\"<f4\",\"shape\":(2,),\"fortran_order\":False}",
		"{'shape': (2L,), 'fortran_order': False, 'descr': '<f4'}      \n",
		"  { 'descr' : '<f4' , 'fortran_order' : False , 'shape' : ( 2 , ) , }",
	} {
		_, err := Read(strings.NewReader(raw(text) + data))
		assert.NoError(t, err, text)
	}
	replace := func(old, new string) string { return strings.Replace(good, old, new, 1) }
	for _, text := range []string{
		"", "\n", "{", "{}", "[]", "None", "{'descr'", "{'descr':", "{'descr': '<f4'", "{'descr': '<f4'}", "{,}",
		good + "x", good + good, good[1:], good[:len(good)-2], strings.Repeat("{", 500), strings.Repeat("(", 500),
		replace("'descr'", "descr"), replace("'descr'", "'desc'"), replace("'descr'", "'shape'"),
		replace("}", "'shape': (2,), }"), replace("}", "'more': 1, }"), replace("}", ", }"),
		replace("'<f4'", "<f4"), replace("'<f4'", "'<f4"), replace("'<f4'", "'<f4\""), replace("'<f4'", "4"),
		replace("'<f4'", "''"), replace("'<f4'", "'f4'"), replace("'<f4'", "'=f4'"), replace("'<f4'", "'|f4'"),
		replace("'<f4'", "'!f4'"), replace("'<f4'", "'\\x3cf4'"), replace("'<f4'", "'<f4\x00'"), replace("'<f4'", "'é'"),
		replace("False", "false"), replace("False", "0"), replace("False", "Falsey"), replace("False", ""),
		replace("False", "None"),
		replace("(2,)", "2"), replace("(2,)", "(2)"), replace("(2,)", "[2]"), replace("(2,)", "(,)"),
		replace("(2,)", "(2,,)"),
		replace("(2,)", "(2 1)"), replace("(2,)", "(2,"), replace("(2,)", "(-2,)"), replace("(2,)", "(+2,)"),
		replace("(2,)", "(02,)"),
		replace("(2,)", "(2.0,)"), replace("(2,)", "(0x2,)"), replace("(2,)", "(1_0,)"), replace("(2,)", "('2',)"),
		replace("(2,)", "(2LL,)"),
		replace("(2,)", "(None,)"), replace("(2,)", "((2,),)"), replace("(2,)", "()*2"), replace("(2,)", "(-1, -2)"),
	} {
		_, err := Read(strings.NewReader(raw(text) + data))
		assert.ErrorIs(t, err, driver.ErrFormat, "%q", text)
		assert.ErrorIs(t, err, driver.ErrCorrupt, "the coarse error matches too")
	}
	for _, shape := range []string{
		"(1000000000000000000000,)", "(9223372036854775807,)", "(4294967296, 4294967296)", "(0, 9223372036854775807, 2)",
		"(" + strings.Repeat("1, ", maxDims+1) + ")",
	} {
		_, err := Read(strings.NewReader(raw(replace("(2,)", shape)) + data))
		assert.ErrorIs(t, err, driver.ErrTooLarge, shape)
	}
}

func TestMalformedStarts(t *testing.T) {
	good := raw("{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }\n") + "12345678"
	change := func(at int, b byte) string { return good[:at] + string([]byte{b}) + good[at+1:] }
	for _, file := range []string{
		change(0, 'N'), change(5, 'X'), change(6, 0), change(6, 4), change(6, 255), change(7, 1),
		change(9, 0xff), // a header of 65 KB
		magic + "\x02\x00\xff\xff\xff\xff" + good[10:],
		"PK\x03\x04", strings.Repeat("\x00", 100),
	} {
		_, err := Read(strings.NewReader(file))
		assert.ErrorIs(t, err, driver.ErrFormat, "%q", file[:min(len(file), 12)])
	}
	for i := range good {
		_, err := Read(strings.NewReader(good[:i]))
		assert.ErrorIs(t, err, driver.ErrCorrupt, "cut to %d", i)
	}
	_, err := Read(strings.NewReader(good + "\n"))
	assert.ErrorIs(t, err, driver.ErrCorrupt, "bytes after the data")
}

// The same with regular files, whose size is checked first.
func TestMalformedFiles(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.npy")
	good := raw("{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }\n") + "12345678"
	for i := range len(good) + 3 {
		file := (good + "abc")[:i]
		require.NoError(t, os.WriteFile(path, []byte(file), 0o600))
		_, err := ReadFile(path)
		if i == len(good) {
			assert.NoError(t, err)
			continue
		}
		assert.ErrorIs(t, err, driver.ErrCorrupt, "%d bytes", i)
		assert.ErrorContains(t, err, path)
	}
	_, err := ReadFile(filepath.Dir(path))
	assert.Error(t, err, "a directory")
}

// A short file that claims to be huge takes no more memory than a short file.
func TestClaimsAreNotAllocated(t *testing.T) {
	dir := t.TempDir()
	for _, shape := range []string{"(1000000000000000000,)", "(1000000000, 1000000000)", "(100000000000,)"} {
		for _, order := range []string{"True", "False"} {
			file := raw("{'descr': '|u1', 'fortran_order': "+order+", 'shape': "+shape+"}") + "short"
			path := filepath.Join(dir, "a.npy")
			require.NoError(t, os.WriteFile(path, []byte(file), 0o600))
			var before, after goruntime.MemStats
			goruntime.ReadMemStats(&before)
			_, err := Read(strings.NewReader(file))
			_, errFile := ReadFile(path)
			goruntime.ReadMemStats(&after)
			want := driver.ErrCorrupt
			if strconv.IntSize == 32 {
				want = driver.ErrTooLarge
			}
			assert.ErrorIs(t, err, want)
			assert.ErrorIs(t, errFile, want)
			assert.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(2*firstRead))
		}
	}
}

func FuzzRead(f *testing.F) {
	paths, err := filepath.Glob("testdata/*.npy")
	require.NoError(f, err)
	require.NotEmpty(f, paths)
	for _, path := range paths {
		data, err := os.ReadFile(path)
		require.NoError(f, err)
		f.Add(data)
	}
	f.Add([]byte(raw("{'descr': '<f4', 'fortran_order': False, 'shape': (-1, 02L), }")))
	f.Add([]byte(magic + "\x02\x00\x20\x00\x00\x00{\"descr\": '>i8'"))
	f.Fuzz(func(t *testing.T, data []byte) {
		a, err := Read(bytes.NewReader(data))
		if err != nil {
			documented := errors.Is(err, driver.ErrCorrupt) || errors.Is(err, driver.ErrTooLarge) ||
				errors.Is(err, driver.ErrUnsupported)
			require.True(t, documented, "%v", err)
			return
		}
		require.LessOrEqual(t, len(a.Data), len(data))
		require.Equal(t, a.Len()*a.Type.Size(), len(a.Data))
		var buf bytes.Buffer
		require.NoError(t, Write(&buf, a))
		again, err := Read(&buf)
		require.NoError(t, err)
		require.Equal(t, a, again)
	})
}
