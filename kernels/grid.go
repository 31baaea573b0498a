package kernels

// The grid to launch each kind of kernel with. Grids count items, as in OpenCL; a
// local size of zeros leaves the choice to the runtime.

// Group is the number of items of a group in kernels in which a group computes a row,
// unless the program was parsed with another value of GROUP.
const Group = 128

// Tile is the number of items along each side of the square groups of transpose, unless the
// program was parsed with another value of TILE.
const Tile = 16

// In gemm and l2_distance a group has tileItems×tileItems items and computes tileSpan×tileSpan
// results.
const tileItems, tileSpan = 8, 64

// ElementsGrid returns the grid of kernels with one item per element, among them sort_merge: n items, rounded up to a
// multiple of 64 so that a good local size divides them.
func ElementsGrid(n int) (global, local [3]int) {
	return [3]int{blocks(n, 64) * 64, 1, 1}, [3]int{}
}

// RowsGrid returns the grid of kernels with one group per row or result, or partial result: reduce_*, softmax,
// layer_norm, rms_norm, topk; nearest (a row for each query and part), nearest_merge (for each query) and
// sort_blocks (for each block of [SortBlock] elements of each row).
func RowsGrid(rows int) (global, local [3]int) {
	return [3]int{max(rows, 1) * Group, 1, 1}, [3]int{Group, 1, 1}
}

// ReduceParts returns the number of parts into which the axis of a reduction of outer × axis × inner elements
// should be divided (see STAGE in reduce.cl), or 1 if one launch without parts is enough: for short axes, and if there are
// so many results that a GPU has enough groups. It depends on the sizes alone, and so do results.
func ReduceParts(outer, axis, inner int) int {
	const groups, each = 1024, 64 * Group // groups that fill a large GPU, and elements that are worth a group
	if results := outer * inner; results > 0 && results < groups/2 {
		return max(min(axis/each, groups/results), 1)
	}
	return 1
}

// TransposeGrid returns the grid of transpose for batch matrices of rows×cols.
func TransposeGrid(rows, cols, batch int) (global, local [3]int) {
	return [3]int{blocks(cols, Tile) * Tile, blocks(rows, Tile) * Tile, max(batch, 1)},
		[3]int{Tile, Tile, 1}
}

// GemmGrid returns the grid of gemm, gemm_bias and gemm_i8 for a result of m×n.
func GemmGrid(m, n int) (global, local [3]int) {
	return [3]int{blocks(n, tileSpan) * tileItems, blocks(m, tileSpan) * tileItems, 1},
		[3]int{tileItems, tileItems, 1}
}

// GemvGrid returns the grid of gemv for a result of m elements and a matrix of type t, transposed or not: a group
// computes as many results as it has rows of 8 items, or columns of eight times 16 bytes.
func GemvGrid(t string, m int, transposed bool) (global, local [3]int) {
	span := Group / 8
	if transposed {
		span = 8 * 16 / SizeOf(t)
	}
	return RowsGrid(blocks(m, span))
}

// GemmBatchGrid returns the grid of gemm_batch for batch results of m×n. Devices limit the third
// dimension of a grid, some to 65535.
func GemmBatchGrid(m, n, batch int) (global, local [3]int) {
	global, local = GemmGrid(m, n)
	global[2] = max(batch, 1)
	return global, local
}

// Conv2DGrid returns the grid of conv2d for n images, k filters in groups, and an output of
// outH×outW elements per image and filter.
func Conv2DGrid(n, k, groups, outH, outW int) (global, local [3]int) {
	global, local = GemmGrid(k/max(groups, 1), outH*outW)
	global[2] = max(n*groups, 1)
	return global, local
}

// L2Grid returns the grid of the l2_distance kernels.
func L2Grid(queries, vectors int) (global, local [3]int) { return GemmGrid(queries, vectors) }

// blocks returns the number of blocks of a size that cover n: at least 1, as no grid is empty.
func blocks(n, size int) int { return max((n+size-1)/size, 1) }
