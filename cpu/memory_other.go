//go:build !unix

package cpu

// Blocks on systems other than Unix: Go memory. There are no guard pages. Only Go kernels run there, and these
// have bounds checks.

// maxBlock is far below the size for which the Go runtime ends the process.
const maxBlock = 1 << 40

func mapBlock(n int64) (b block, err error) {
	if int64(int(n+wideAlign)) != n+wideAlign {
		return block{}, errNoRoom
	}
	defer func() {
		if recover() != nil { // makeslice: len out of range
			err = errNoRoom
		}
	}()
	return goBlock(n), nil
}

func unmapBlock(block) error { return nil }
