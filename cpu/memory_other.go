//go:build !unix

package cpu

// Blocks on systems other than Unix: Go memory, kept alive by the table of blocks. There are no guard
// pages. Only Go kernels run there, and these have bounds checks.

// maxBlock is far below the size for which the Go runtime ends the process.
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
