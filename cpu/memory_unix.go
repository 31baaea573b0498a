//go:build unix

package cpu

// Blocks between guard pages: a kernel that writes far enough past the end of its buffer accesses
// an inaccessible page, so that its launch fails and the data of other buffers stays correct.

import (
	"errors"
	"fmt"
	"math"
	"os"

	"golang.org/x/sys/unix"
)

// maxBlock leaves room for the guard pages.
const maxBlock = math.MaxInt64 / 2

// hugeAbove is the size from which huge pages are requested. They save most of the page faults
// when memory is used for the first time.
const hugeAbove = 4 << 20

// mapBlock returns n bytes of zeros. They end as close to the guard page behind
// them as their alignment permits. So if n is not a multiple of baseAlign, an overrun of less than
// baseAlign bytes may not be detected.
func mapBlock(n int64) (block, error) {
	page := int64(os.Getpagesize())
	used := roundUp(n, baseAlign)
	inner := roundUp(used, page)
	if int64(int(inner)) != inner {
		return block{}, errNoRoom
	}
	mapping, err := unix.Mmap(-1, 0, int(inner+2*page), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
	if errors.Is(err, unix.ENOMEM) || errors.Is(err, unix.EAGAIN) {
		return block{}, errNoRoom
	}
	if err != nil {
		return block{}, fmt.Errorf("mmap: %w", err)
	}
	for _, guard := range [][]byte{mapping[:page], mapping[page+inner:]} {
		if err := unix.Mprotect(guard, unix.PROT_NONE); err != nil {
			_ = unix.Munmap(mapping) // the error that matters is the first one
			if errors.Is(err, unix.ENOMEM) {
				return block{}, errNoRoom // too many mappings in this process
			}
			return block{}, fmt.Errorf("mprotect: %w", err)
		}
	}
	if n >= hugeAbove {
		adviseHuge(mapping[page : page+inner])
	}
	start := page + inner - used
	return block{data: mapping[start : start+n : start+n], mapping: mapping}, nil
}

func unmapBlock(b block) error { return unix.Munmap(b.mapping) }
