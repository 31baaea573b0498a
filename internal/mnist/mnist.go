// Package mnist reads images and labels in MNIST's IDX format, and has the 10,000 test images that
// are part of Concord as real data for the demo, examples and tests. All functions may be called
// from any goroutine.
package mnist

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"

	"github.com/concord-compute/concord/runtime/driver"
	mnistdata "github.com/concord-compute/concord/testdata/mnist"
)

// maxSize is the limit for the size of unpacked data in bytes: more than any published set has, so
// that a damaged header cannot claim more.
const maxSize = 1 << 30

// The magic numbers: two zeros, unsigned bytes, the number of dimensions.
const (
	imageMagic = 0x00000803
	labelMagic = 0x00000801
)

// Set holds gray images of one size: one byte per pixel, 0 (background) to 255, image by image and
// in each image row by row.
type Set struct {
	Pixels        []uint8
	N, Rows, Cols int
}

// Image returns the pixels of image i as a part of s.Pixels. It panics if there is no image i.
func (s Set) Image(i int) []uint8 {
	size := s.Rows * s.Cols
	return s.Pixels[i*size : (i+1)*size : (i+1)*size]
}

// Images returns the 10,000 test images of 28 by 28 pixels. They are unpacked at the first call.
// All callers share them, so that they must not be changed.
func Images() (Set, error) { return images() }

// Labels returns, for each of Images, the digit that it shows, 0 to 9. They are unpacked at the
// first call. All callers share them, so that they must not be changed.
func Labels() ([]uint8, error) { return labels() }

var (
	images = sync.OnceValues(func() (Set, error) { return ParseImages(mnistdata.Images) })
	labels = sync.OnceValues(func() ([]uint8, error) { return ParseLabels(mnistdata.Labels) })
)

// ParseImages reads a file of images in its published form: IDX, three dimensions, compressed with
// gzip. An invalid file is an error that matches driver.ErrCorrupt, driver.ErrFormat or
// driver.ErrTooLarge.
func ParseImages(file []byte) (Set, error) {
	data, shape, err := parse(file, imageMagic, 3)
	if err != nil {
		return Set{}, fmt.Errorf("mnist: images: %w", err)
	}
	return Set{Pixels: data, N: shape[0], Rows: shape[1], Cols: shape[2]}, nil
}

// ParseLabels reads a file of labels in its published form: IDX, one dimension, compressed with
// gzip. Its errors are those of ParseImages; a label above 9 is driver.ErrCorrupt.
func ParseLabels(file []byte) ([]uint8, error) {
	data, _, err := parse(file, labelMagic, 1)
	if err != nil {
		return nil, fmt.Errorf("mnist: labels: %w", err)
	}
	if i := slices.IndexFunc(data, func(d uint8) bool { return d > 9 }); i >= 0 {
		return nil, fmt.Errorf("mnist: labels: label %d is %d and not a digit: %w", i, data[i], driver.ErrCorrupt)
	}
	return data, nil
}

// parse unpacks a file and returns its data and its dimensions. None of them is zero. The memory
// that it takes grows with the data that is present, not with the size that the header claims.
func parse(file []byte, magic uint32, dims int) ([]byte, []int, error) {
	zip, err := gzip.NewReader(bytes.NewReader(file))
	if err != nil {
		return nil, nil, fmt.Errorf("not a gzip file: %v: %w", err, driver.ErrFormat)
	}
	head := make([]byte, 4+4*dims)
	if _, err := io.ReadFull(zip, head); err != nil {
		return nil, nil, unpacking(err)
	}
	if m := binary.BigEndian.Uint32(head); m != magic {
		return nil, nil, fmt.Errorf("magic number %#08x, not %#08x: %w", m, magic, driver.ErrFormat)
	}
	shape, size := make([]int, dims), 1
	for i := range shape {
		n := binary.BigEndian.Uint32(head[4+4*i:])
		if n == 0 {
			return nil, nil, fmt.Errorf("dimension %d is 0: %w", i, driver.ErrFormat)
		}
		if uint64(n)*uint64(size) > maxSize {
			return nil, nil, fmt.Errorf("more than %d bytes: %w", maxSize, driver.ErrTooLarge)
		}
		shape[i] = int(n)
		size *= int(n)
	}
	data, err := io.ReadAll(io.LimitReader(zip, int64(size)+1)) // one byte more, to detect data after the end
	switch {
	case err != nil:
		return nil, nil, unpacking(err)
	case len(data) < size:
		return nil, nil, fmt.Errorf("%d bytes where the header says %d: %w", len(data), size, driver.ErrCorrupt)
	case len(data) > size:
		return nil, nil, fmt.Errorf("bytes after the data: %w", driver.ErrCorrupt)
	}
	return slices.Clip(data), shape, nil
}

// unpacking turns an error of gzip into ErrCorrupt. Other errors are not possible, since the file
// is in memory.
func unpacking(err error) error {
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return fmt.Errorf("unpacking: %v: %w", err, driver.ErrCorrupt)
}
