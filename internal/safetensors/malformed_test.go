package safetensors

// Tests of malformed files: no panic, no large allocation, always one of the documented errors.

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	goruntime "runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/concord-compute/concord/runtime/driver"
)

// raw makes a file with any text as its header.
func raw(header, data string) string {
	return string(binary.LittleEndian.AppendUint64(nil, uint64(len(header)))) + header + data
}

func TestMalformedHeaders(t *testing.T) {
	const good, data = `{"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},"__metadata__":{"k":"v"}}`, "12345678"
	with := func(old, new string) string {
		require.Contains(t, good, old)
		return strings.Replace(good, old, new, 1)
	}
	for _, text := range []string{
		good, good + " \t\r\n", with(`"a":{`, "\"a\"\n: {\t"), with(`"a"`, `""`), with(`"a"`, `"\u00e4\ud83d\ude00\/\\\""`),
		with("[2]", "[ 2 , 1 ]"), with("[2]", "[1,2,1]"), with(`{"k":"v"}`, "{}"),
		`{"a":{"data_offsets":[0,8],"shape":[2],"dtype":"F32"},"b":{"dtype":"F64","shape":[0],"data_offsets":[8,8]}}`,
		`{"a":{"dtype":"NEW","shape":[2,77],"data_offsets":[0,8]}}`,
		`{"b":{"dtype":"U8","shape":[3],"data_offsets":[5,8]},"a":{"dtype":"U8","shape":[5],"data_offsets":[0,5]}}`,
	} {
		_, err := parse([]byte(raw(text, data)))
		assert.NoError(t, err, text)
	}
	for _, text := range []string{
		"", " ", "{", "}", "[]", "null", "1", `"a"`, "{,}", `{"a"`, `{"a":`, `{"a":{`, `{"a":{}}`, "{} {}", "{}x", "{}\x00",
		" " + good, "\ufeff" + good,
		good[1:], good[:len(good)-1], good + "}", strings.Repeat("{", 500), strings.Repeat(`{"a":`, 500),
		strings.Repeat("[", 500),
		with(`"a"`, "a"), with(`"a"`, `'a'`), with(`"a"`, `"a`), with(`"a"`, `"\x61"`), with(`"a"`, `"\u00"`),
		with(`"a"`, `"\u00zz"`),
		with(`"a"`, `"\ud83d"`), with(`"a"`, `"\ud83da"`), with(`"a"`, `"\ud83d\ud83d"`), with(`"a"`, `"\ude00"`),
		with(`"a"`, `"\ud83d\u0041"`), with(`"a"`, `"\u+041"`),
		with(`"a"`, "\"\n\""), with(`"a"`, "\"\\\\\n\""), with(`"a"`, "\"\xff\""), with(`"a"`, "\"\\n\xff\""),
		with(`"a"`, `"\`), with(`"a":`, `"a",`),
		with("]},", "]}"), with("]},", "]},,"), with("]},", "],},"), with("}}", "},}"),
		with(`"F32"`, "32"), with(`"F32"`, `""`), with(`"F32"`, `"f32"`), with(`"F32"`, `"F 32"`), with(`"F32"`, "null"),
		with(`"F32"`, `"`+strings.Repeat("F", maxTypeName+1)+`"`),
		with(`"F32"`, `"F64"`), with(`"F32"`, `"F16"`), with(`"dtype":"F32"`, `"dtype":"F32","dtype":"F32"`),
		with(`"dtype":"F32",`, ""),
		with(`"shape"`, `"Shape"`), with(`"shape"`, `"more":[[[[{}]]]],"shape"`), with(`"shape":[2],`, ""),
		with(`"shape":[2],`, `"shape":[2],"shape":[2],`),
		with("[2]", "2"), with("[2]", "[]"), with("[2]", "[2,]"), with("[2]", "[,2]"), with("[2]", "[2 1]"),
		with("[2]", "[2"), with("[2]", "[-2]"), with("[2]", "[+2]"), with("[2]", "[02]"),
		with("[2]", "[2.0]"), with("[2]", "[2e0]"), with("[2]", "[2E0]"), with("[2]", "[0x2]"), with("[2]", `["2"]`),
		with("[2]", "[[2]]"), with("[2]", "[null]"), with("[2]", "[3]"),
		with("[2]", "[18446744073709551616]"), with("[2]", "[18446744073709551615]"),
		with("[2]", "["+strings.Repeat("9", 100_000)+"]"), with("[2]", "[9223372036854775807,2]"),
		with("[2]", "[2,9223372036854775807]"),
		with("[2]", "[4294967296,4294967296,2]"), with("[2]", "[4611686018427387906]"),
		with("[2]", "["+strings.Repeat("1,", maxDims)+"2]"), with("[2]", "[0,9223372036854775807,3]"),
		with("[0,8]", "[0]"), with("[0,8]", "[]"), with("[0,8]", "[0,8,8]"), with("[0,8]", "[8,0]"), with("[0,8]", "[-8,0]"),
		with("[0,8]", "[0,-8]"), with("[0,8]", "[0.0,8]"), with("[0,8]", "8"),
		with("[0,8]", "[1,9]"), with("[0,8]", "[18446744073709551608,0]"), with("[0,8]", "[18446744073709551615,7]"),
		with("[0,8]", "[0,18446744073709551616]"), with("[0,8]", `{"0":8}`),
		with("__metadata__", "a"), with(`"k":"v"`, `"k":"v","k":"v"`), with(`"k":"v"`, `"k":1`), with(`"k":"v"`, `"k":{}`),
		with(`"k":"v"`, `"k":null`), with(`{"k":"v"}`, "null"), with(`{"k":"v"}`, "[]"), with(`{"k":"v"}`, `"v"`),
		with("}}", `},"__metadata__":{}}`),
		// Two tensors: gaps and overlaps.
		`{"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]},"b":{"dtype":"U8","shape":[3],"data_offsets":[5,8]}}`,
		`{"a":{"dtype":"U8","shape":[5],"data_offsets":[0,5]},"b":{"dtype":"U8","shape":[4],"data_offsets":[4,8]}}`,
		`{"a":{"dtype":"U8","shape":[8],"data_offsets":[0,8]},"b":{"dtype":"U8","shape":[8],"data_offsets":[0,8]}}`,
		`{"a":{"dtype":"U8","shape":[8],"data_offsets":[0,8]},"b":{"dtype":"U8","shape":[0],"data_offsets":[4,4]}}`,
		`{"a":{"dtype":"U8","shape":[8],"data_offsets":[0,8]},"b":{"dtype":"U8","shape":[0],"data_offsets":[9,9]}}`,
		`{"a":{"dtype":"F4","shape":[15],"data_offsets":[0,8]}}`,
	} {
		_, err := parse([]byte(raw(text, data)))
		assert.ErrorIs(t, err, driver.ErrFormat, "%.200q", text)
	}
}

func TestMalformedSizes(t *testing.T) {
	const head = `{"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}}`
	good := raw(head, "12345678")
	path := filepath.Join(t.TempDir(), "a.safetensors")
	for i := range len(good) + 3 {
		require.NoError(t, os.WriteFile(path, []byte((good + "abc")[:i]), 0o600))
		f, err := Open(path)
		if i == len(good) {
			require.NoError(t, err)
			require.NoError(t, f.Close())
			continue
		}
		assert.Nil(t, f)
		assert.ErrorIs(t, err, driver.ErrCorrupt, "%d bytes", i)
		assert.Equal(t, i < 8+len(head), errors.Is(err, driver.ErrFormat), "%d bytes", i)
		assert.ErrorContains(t, err, path)
	}
	for _, n := range []uint64{0, 1, uint64(len(head)) - 1, maxHeader, maxHeader + 1, 1 << 40, 1<<63 - 1, 1 << 63,
		1<<64 - 8, 1<<64 - 1} {
		_, err := parse(append(binary.LittleEndian.AppendUint64(nil, n), good[8:]...))
		assert.ErrorIs(t, err, driver.ErrFormat, "length %d", n)
	}
	_, err := Open(filepath.Dir(path))
	assert.ErrorIs(t, err, driver.ErrUnsupported, "a directory")
	_, err = Open(path + ".none")
	assert.ErrorIs(t, err, os.ErrNotExist)
}

// What a header claims takes no memory, and what it has takes memory in proportion to its size.
func TestMemoryOfHeaders(t *testing.T) {
	parsed := func(header string) (uint64, error) {
		text := []byte(raw(header, ""))
		var before, after goruntime.MemStats
		goruntime.ReadMemStats(&before)
		_, err := parse(text)
		goruntime.ReadMemStats(&after)
		return after.TotalAlloc - before.TotalAlloc, err
	}
	for _, header := range []string{
		`{"a":{"dtype":"U8","shape":[1000000000000],"data_offsets":[0,1000000000000]}}`,
		`{"a":{"dtype":"U8","shape":[` + strings.Repeat("1,", 500_000) + `1],"data_offsets":[0,1]}}`,
		strings.Repeat(`{"a":`, 200_000), strings.Repeat("[", 1_000_000), `{"` + strings.Repeat(`\\`, 10),
	} {
		bytes, err := parsed(header)
		assert.ErrorIs(t, err, driver.ErrCorrupt)
		assert.Less(t, bytes, uint64(16<<10), "%.40s", header)
	}
	var many strings.Builder
	for i := range 20_000 {
		fmt.Fprintf(&many, `%s"%d":{"dtype":"U8","shape":[0],"data_offsets":[0,0]}`,
			map[bool]string{true: "{", false: ","}[i == 0], i)
	}
	bytes, err := parsed(many.String() + "}")
	require.NoError(t, err)
	assert.Less(t, bytes, uint64(40*many.Len()))
}

func FuzzOpen(f *testing.F) {
	paths, err := filepath.Glob("testdata/*.safetensors")
	require.NoError(f, err)
	require.NotEmpty(f, paths)
	for _, path := range paths {
		data, err := os.ReadFile(path)
		require.NoError(f, err)
		f.Add(data)
	}
	f.Add(
		[]byte(raw(`{"\ud83d\ude00":{"dtype":"F4","shape":[2,18446744073709551615],"data_offsets":[18446744073709551615,0]}}`,
			"")))
	f.Add([]byte(raw(`{"__metadata__":{"a":"\u0000"},"a":{"dtype":"X","shape":[],"data_offsets":[0,1]}}`, "1")))
	f.Fuzz(func(t *testing.T, contents []byte) {
		file, err := parse(contents)
		if err != nil {
			require.ErrorIs(t, err, driver.ErrCorrupt)
			return
		}
		list, known, bytesOfData := all(file), []Entry{}, 0
		require.Len(t, list, len(file.index))
		for _, e := range list {
			bytesOfData += len(e.Data)
			if e.Type.rank() >= 0 {
				known = append(known, e)
			}
		}
		require.LessOrEqual(t, bytesOfData, len(contents))
		var buf bytes.Buffer
		require.NoError(t, Encode(&buf, known, file.Metadata()))
		again, err := parse(buf.Bytes())
		require.NoError(t, err)
		require.Len(t, again.list, len(known))
		for _, want := range known {
			got, ok := again.Tensor(want.Name)
			require.True(t, ok)
			require.Equal(t, want.Type, got.Type)
			require.Equal(t, want.Shape, got.Shape)
			require.True(t, bytes.Equal(want.Data, got.Data))
		}
	})
}
