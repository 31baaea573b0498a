//go:build !unix

package cpu

// Blocks where the system's calls are not known here: Go memory, kept alive by
// the table of blocks. There are no guard pages; only Go kernels run here, and
// they have bounds checks.

// maxBlock is far below what makes the Go runtime give up.
const maxBlock = 1 << 40

func mapBlock(n int64) (b block, err error) {
	if int64(int(n+baseAlign)) != n+baseAlign {
		return block{}, errNoRoom
	}
	defer func() {
		if recover() != nil { // makeslice: len out of range
			err = errNoRoom
		}
	}()
	raw := make([]byte, n+baseAlign)
	skip := -address(raw) & (baseAlign - 1)
	return block{data: raw[skip : int64(skip)+n : int64(skip)+n]}, nil
}

func unmapBlock(block) error { return nil }
