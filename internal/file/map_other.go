//go:build !unix

package file

import (
	"io"
	"os"
	"unsafe"
)

// mapFile reads the file into memory that is aligned as a mapping is.
func mapFile(f *os.File, size int) ([]byte, error) {
	const align = 64
	data := make([]byte, size+align)
	start := -int(uintptr(unsafe.Pointer(&data[0]))) & (align - 1)
	data = data[start : start+size : start+size]
	_, err := io.ReadFull(f, data)
	return data, err
}

func unmapFile([]byte) error { return nil }
