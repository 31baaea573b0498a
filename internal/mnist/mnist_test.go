package mnist

// Tests of the data that is part of Concord, and of malformed files.

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	goruntime "runtime"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/concord-compute/concord/runtime/driver"
	mnistdata "github.com/concord-compute/concord/testdata/mnist"
)

func TestFilesAreThePublishedOnes(t *testing.T) {
	for sum, file := range map[string][]byte{
		"8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6": mnistdata.Images,
		"f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6": mnistdata.Labels,
	} {
		assert.Equal(t, sum, fmt.Sprintf("%x", sha256.Sum256(file)))
	}
}

func TestImagesAndLabels(t *testing.T) {
	set, err := Images()
	require.NoError(t, err)
	assert.Equal(t, []int{10000, 28, 28}, []int{set.N, set.Rows, set.Cols})
	assert.Len(t, set.Pixels, 10000*28*28)
	labels, err := Labels()
	require.NoError(t, err)
	assert.Len(t, labels, 10000)
	assert.Equal(t, []uint8{7, 2, 1, 0, 4, 1, 4, 9, 5, 9}, labels[:10], "the first test images, as in every paper")
	var counts [10]int
	for _, d := range labels {
		counts[d]++
	}
	assert.Equal(t, [10]int{980, 1135, 1032, 1010, 982, 892, 958, 1028, 974, 1009}, counts)

	// The first image is a 7: a bar at its top, nothing in its lower left corner.
	seven := set.Image(0)
	require.Len(t, seven, 28*28)
	assert.Greater(t, seven[8*28+10], uint8(200))
	assert.Zero(t, seven[24*28+3])
	assert.Equal(t, set.Pixels[28*28:2*28*28], set.Image(1))
	assert.Len(t, set.Image(9999), 28*28)

	again, err := Images()
	require.NoError(t, err)
	assert.Same(t, &set.Pixels[0], &again.Pixels[0], "unpacked once")
}

// idx makes a file: magic number, dimensions, data.
func idx(magic uint32, dims []uint32, data []byte) []byte {
	raw := binary.BigEndian.AppendUint32(nil, magic)
	for _, d := range dims {
		raw = binary.BigEndian.AppendUint32(raw, d)
	}
	return pack(append(raw, data...))
}

func pack(raw []byte) []byte {
	var buf bytes.Buffer
	w := gzip.NewWriter(&buf)
	_, _ = w.Write(raw) // neither fails on a buffer
	_ = w.Close()
	return buf.Bytes()
}

func TestMalformedImages(t *testing.T) {
	good := idx(imageMagic, []uint32{2, 1, 3}, []byte("abcdef"))
	set, err := ParseImages(good)
	require.NoError(t, err)
	assert.Equal(t, Set{Pixels: []byte("abcdef"), N: 2, Rows: 1, Cols: 3}, set)
	assert.Equal(t, []byte("def"), set.Image(1))

	for what, tc := range map[string]struct {
		file []byte
		want error
	}{
		"empty":             {nil, driver.ErrFormat},
		"not gzip":          {[]byte("hello, this is not a gzip file"), driver.ErrFormat},
		"empty inside":      {pack(nil), driver.ErrCorrupt},
		"short header":      {pack([]byte{0, 0, 8, 3, 0, 0}), driver.ErrCorrupt},
		"labels":            {idx(labelMagic, []uint32{12}, make([]byte, 12)), driver.ErrFormat},
		"other element":     {idx(0x0D03, []uint32{2, 1, 3}, make([]byte, 24)), driver.ErrFormat},
		"little-endian":     {idx(0x03080000, []uint32{2, 1, 3}, []byte("abcdef")), driver.ErrFormat},
		"no images":         {idx(imageMagic, []uint32{0, 1, 3}, nil), driver.ErrFormat},
		"no rows":           {idx(imageMagic, []uint32{2, 0, 3}, nil), driver.ErrFormat},
		"no columns":        {idx(imageMagic, []uint32{2, 1, 0}, nil), driver.ErrFormat},
		"no data":           {idx(imageMagic, []uint32{2, 1, 3}, nil), driver.ErrCorrupt},
		"a byte less":       {idx(imageMagic, []uint32{2, 1, 3}, []byte("abcde")), driver.ErrCorrupt},
		"a byte more":       {idx(imageMagic, []uint32{2, 1, 3}, []byte("abcdefg")), driver.ErrCorrupt},
		"claims a lot":      {idx(imageMagic, []uint32{1 << 20, 28, 28}, []byte("abc")), driver.ErrCorrupt},
		"claims too much":   {idx(imageMagic, []uint32{1 << 22, 28, 28}, []byte("abc")), driver.ErrTooLarge},
		"claims everything": {idx(imageMagic, []uint32{1<<32 - 1, 1<<32 - 1, 1<<32 - 1}, nil), driver.ErrTooLarge},
		"bytes after gzip":  {append(bytes.Clone(good), "more"...), driver.ErrCorrupt},
	} {
		_, err := ParseImages(tc.file)
		assert.ErrorIs(t, err, tc.want, what)
	}
	for i := range good {
		_, err := ParseImages(good[:i])
		assert.ErrorIs(t, err, driver.ErrCorrupt, "cut to %d", i)
	}
	claim := idx(imageMagic, []uint32{1 << 20, 28, 28}, []byte("abc"))
	var before, after goruntime.MemStats
	goruntime.ReadMemStats(&before)
	_, err = ParseImages(claim)
	goruntime.ReadMemStats(&after)
	assert.ErrorIs(t, err, driver.ErrCorrupt)
	assert.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(1<<20), "a claim of 800 MB is not allocated")
}

// gzip has a checksum of the data, so that every changed byte of the data is noticed.
func TestChangedBytesAreNoticed(t *testing.T) {
	good := idx(imageMagic, []uint32{2, 1, 3}, []byte("abcdef"))
	for i := range good {
		bad := bytes.Clone(good)
		bad[i] ^= 0x10
		set, err := ParseImages(bad)
		if i >= 4 && i < 10 { // time, flags and system of gzip's header: data unharmed, or refused
			if err == nil {
				assert.Equal(t, []byte("abcdef"), set.Pixels)
			}
			continue
		}
		assert.True(t, errors.Is(err, driver.ErrCorrupt) || errors.Is(err, driver.ErrTooLarge), "byte %d: %v", i, err)
	}
}

func TestMalformedLabels(t *testing.T) {
	labels, err := ParseLabels(idx(labelMagic, []uint32{3}, []byte{9, 0, 5}))
	require.NoError(t, err)
	assert.Equal(t, []uint8{9, 0, 5}, labels)
	for what, file := range map[string][]byte{
		"no digit": idx(labelMagic, []uint32{3}, []byte{9, 10, 5}),
		"images":   idx(imageMagic, []uint32{1, 1, 3}, []byte{9, 0, 5}),
		"short":    idx(labelMagic, []uint32{4}, []byte{9, 0, 5}),
		"long":     idx(labelMagic, []uint32{2}, []byte{9, 0, 5}),
	} {
		_, err := ParseLabels(file)
		assert.ErrorIs(t, err, driver.ErrCorrupt, what)
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte{0, 0, 8, 3, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 2, 7, 8})
	f.Add([]byte{0, 0, 8, 1, 0, 0, 0, 2, 7, 8})
	f.Fuzz(func(t *testing.T, raw []byte) {
		file := pack(raw)
		set, err := ParseImages(file)
		if err == nil {
			require.Equal(t, set.N*set.Rows*set.Cols, len(set.Pixels))
			require.Equal(t, set.Image(set.N-1), set.Pixels[len(set.Pixels)-set.Rows*set.Cols:])
		} else {
			require.True(t, errors.Is(err, driver.ErrCorrupt) || errors.Is(err, driver.ErrTooLarge))
		}
		_, err = ParseLabels(file)
		require.True(t, err == nil || errors.Is(err, driver.ErrCorrupt) || errors.Is(err, driver.ErrTooLarge))
	})
}
