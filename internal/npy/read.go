package npy

// Reading: the data after the header is converted to C order and little-endian.

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/concord-compute/concord/runtime/driver"
)

// firstRead is the size in bytes of the first allocation for data of unknown length. The allocation
// then doubles as data arrives.
const firstRead = 1 << 20

// ReadFile reads an array from a file.
func ReadFile(path string) (Array, error) {
	f, err := os.Open(path)
	if err != nil {
		return Array{}, err
	}
	defer f.Close()
	a, err := Read(f)
	if err != nil {
		return Array{}, fmt.Errorf("%s: %w", path, err)
	}
	return a, nil
}

// Read reads an array; bytes after it are an error. For a regular file it compares the size with
// the header first; for any other reader it allocates at most about twice the bytes that the reader
// delivers.
func Read(r io.Reader) (Array, error) {
	h, n, err := readHeader(r)
	if err != nil {
		return Array{}, err
	}
	want, err := size(h.shape, h.descr.elem.Size())
	if err != nil {
		return Array{}, err
	}
	known, err := checkFile(r, n, want)
	if err != nil {
		return Array{}, err
	}
	data, err := readData(r, want, known)
	if err != nil {
		return Array{}, err
	}
	if h.descr.big {
		swap(data, h.descr.elem.Size())
	}
	if h.fortran {
		data = toC(data, h.shape, h.descr.elem.Size())
	}
	return Array{Type: h.descr.elem, Shape: h.shape, Data: data}, nil
}

// checkFile compares the size of a regular file that is read from its start with the size that its
// header describes. It returns false for readers of unknown size.
func checkFile(r io.Reader, head, want int) (bool, error) {
	f, ok := r.(*os.File)
	if !ok {
		return false, nil
	}
	info, err := f.Stat()
	if err != nil || !info.Mode().IsRegular() {
		return false, nil
	}
	if at, err := f.Seek(0, io.SeekCurrent); err != nil || at != int64(head) {
		return false, nil
	}
	switch have := info.Size() - int64(head); {
	case have < int64(want):
		return false, truncated(int(have), want)
	case have > int64(want):
		return false, trailing()
	}
	return true, nil
}

func truncated(have, want int) error {
	return fmt.Errorf("npy: %d bytes of data where the header says %d: %w", have, want, driver.ErrCorrupt)
}

func trailing() error {
	return fmt.Errorf("npy: bytes after the data: %w", driver.ErrCorrupt)
}

// readData reads exactly want bytes and checks that no more follow. Unless it is known that they
// are present, the buffer grows as they arrive.
func readData(r io.Reader, want int, known bool) ([]byte, error) {
	have := want
	if !known {
		have = min(want, firstRead)
	}
	data, n := make([]byte, have), 0
	for {
		m, err := io.ReadFull(r, data[n:])
		n += m
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			return nil, truncated(n, want)
		}
		if err != nil {
			return nil, fmt.Errorf("npy: %w", err)
		}
		if n == want {
			break
		}
		more := make([]byte, n+min(n, want-n))
		copy(more, data)
		data = more
	}
	var one [1]byte
	if _, err := io.ReadFull(r, one[:]); err == nil {
		return nil, trailing()
	} else if !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("npy: %w", err)
	}
	return data, nil
}

// swap reverses the bytes of each element.
func swap(data []byte, elem int) {
	for i := 0; i+elem <= len(data); i += elem {
		for a, b := i, i+elem-1; a < b; a, b = a+1, b-1 {
			data[a], data[b] = data[b], data[a]
		}
	}
}

// toC converts data from Fortran order, in which the first index changes fastest, to C order. It
// goes through the result in order and tracks the index of the element and its offset in the
// source.
func toC(data []byte, shape []int, elem int) []byte {
	if len(shape) < 2 || len(data) == 0 {
		return data
	}
	strides := make([]int, len(shape)) // of the source, in bytes
	stride := elem
	for i, d := range shape {
		strides[i] = stride
		stride *= d
	}
	out := make([]byte, len(data))
	index := make([]int, len(shape))
	from := 0
	for to := 0; to < len(out); to += elem {
		copy(out[to:to+elem], data[from:from+elem])
		for i := len(shape) - 1; i >= 0; i-- {
			index[i]++
			from += strides[i]
			if index[i] < shape[i] {
				break
			}
			from -= strides[i] * shape[i]
			index[i] = 0
		}
	}
	return out
}
