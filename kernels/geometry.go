package kernels

// The geometry of launches: the grid of a kernel for the sizes of what it computes.

import (
	"fmt"
	"math"
	"slices"

	"github.com/concord-compute/concord/source"
)

// Group is the number of items of a group in kernels in which a group computes a row,
// unless the program was parsed with another value of GROUP.
const Group = 128

// productTile is Family.Tile of gemm, conv2d and l2_distance.
func productTile(*source.Unit, string) (rows, cols int) { return 64, 64 }

// Geometry returns the grid for a launch of a kernel of u, a program of the catalog: the number of items, and
// that of the items of a group, as the fields of runtime's Grid. Both follow from the definitions that the
// program was parsed with, such as GROUP and TILE. A group of zeros leaves the choice to the runtime, as the
// kernel runs in groups of any size.
//
// sizes are the dimensions of what the kernel computes, outermost first:
//
//	an item for each element     n                       most kernels, also sort_merge and those that end in _columns
//	a group for each row         rows                    softmax, layer_norm, rms_norm, topk, nearest_merge,
//	                                                     quantize_rows
//	                             parts, queries          nearest
//	                             rows, parts             scan_sum
//	                             outer, inner            reduce_sum and its like
//	an item for several elements n                       vector_add
//	a group for several results  m                       gemv
//	                             rows, n                 sort_blocks
//	a group for a tile           m, n                    gemm, gemm_bias, gemm_i8, w2a8, gemm_q; gemm_batch has
//	                                                     batch, m, n
//	                             queries, vectors        l2_distance_fp32 and its like
//	                             n, groups, k/groups, outH*outW
//	                                                     conv2d; with -D CNHW=1 1, groups, k/groups, n*outH*outW
//	                             batch, rows, cols       transpose, of what it reads
//
// An array of elements, rows or matrices may have any number of dimensions, or be given as their product. If a
// size is 0, the grid is the smallest one, since no grid is empty. The error is an [ArgumentError]: the program
// is not of the catalog or lacks the kernel, sizes are too few or negative, or a dimension has more items than
// an int counts. The limits of devices, such as 65535 groups in the third dimension, are the launch's to check.
// Geometry allocates nothing.
func Geometry(u *source.Unit, kernel string, sizes ...int) (items, group [3]int, err error) {
	k, there := u.Kernel(kernel)
	f, ok := Find(u.Family())
	if !there || !ok {
		return items, group, ArgumentError(fmt.Sprintf("%v is not a program of the catalog with a kernel %q", u, kernel))
	}
	rows, cols := 0, 1
	if f.Tile != nil {
		rows, cols = f.Tile(u, kernel)
	}
	if len(sizes) < 1 || rows > 0 && len(sizes) < 2 {
		return items, group, ArgumentError(fmt.Sprintf("%s: the grid follows from at least %d sizes, not %d", kernel,
			1+min(rows, 1), len(sizes)))
	}
	counts, unit := [3]int{1, 1, 1}, k.ReqdLocal
	empty := slices.Contains(sizes, 0)
	for i := range sizes {
		n, d, each := sizes[len(sizes)-1-i], 0, 1
		switch {
		case i == 0:
			each = cols
		case i == 1 && rows > 0:
			d, each = 1, rows
		case rows > 0:
			d = 2
		}
		if n < 0 {
			return items, group, ArgumentError(fmt.Sprintf("%s: a size of %d", kernel, n))
		}
		if empty {
			n = 1
		}
		if n = (n-1)/each + 1; n > math.MaxInt/counts[d] {
			return items, group, tooManyItems(kernel)
		}
		counts[d] *= n
	}
	if unit == [3]int{} { // many group sizes divide a multiple of 64
		unit, counts[0] = [3]int{64, 1, 1}, (counts[0]-1)/64+1
	}
	for d := range items {
		if counts[d] > math.MaxInt/unit[d] {
			return items, group, tooManyItems(kernel)
		}
		items[d] = counts[d] * unit[d]
	}
	return items, k.ReqdLocal, nil
}

func tooManyItems(kernel string) error {
	return ArgumentError(kernel + ": the sizes need more items in a dimension than an int counts")
}

// ReduceParts returns the number of parts into which the axis of a reduction of outer × axis × inner elements
// should be divided, so that a first launch computes the results of parts, and a second one those of all. One launch
// without parts (1) is enough for short axes, and for so many results that a GPU has enough groups. The number depends
// on the sizes alone, and so do results.
func ReduceParts(outer, axis, inner int) int {
	const groups, each = 1024, 64 * Group // groups that fill a large GPU, and elements that are worth a group
	if results := outer * inner; results > 0 && results < groups/2 {
		return max(min(axis/each, groups/results), 1)
	}
	return 1
}
