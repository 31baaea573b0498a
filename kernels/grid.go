package kernels

// How large a grid each kind of kernel wants. Grids count items, as in OpenCL; a
// local size of zeros leaves the choice to the runtime.

// Group is the number of items of a group in kernels that give a row to a group,
// unless their program was made with another GROUP.
const Group = 128

// Tile is the side of the square groups of transpose, unless defined.
const Tile = 16

// tileItems and tileSpan are the group and the piece of the result that it
// computes in gemm and l2_distance.
const tileItems, tileSpan = 8, 64

// ElementsGrid is for kernels with one item per element: n items, rounded up so
// that a good local size divides them.
func ElementsGrid(n int) (global, local [3]int) {
	return [3]int{blocks(n, 64) * 64, 1, 1}, [3]int{}
}

// RowsGrid is for kernels with one group per row or result: reduce_*, softmax,
// topk.
func RowsGrid(rows int) (global, local [3]int) {
	return [3]int{max(rows, 1) * Group, 1, 1}, [3]int{Group, 1, 1}
}

// TransposeGrid is for transpose of a batch of matrices.
func TransposeGrid(rows, cols, batch int) (global, local [3]int) {
	return [3]int{blocks(cols, Tile) * Tile, blocks(rows, Tile) * Tile, max(batch, 1)},
		[3]int{Tile, Tile, 1}
}

// GemmGrid is for gemm and gemm_bias with a result of m×n.
func GemmGrid(m, n int) (global, local [3]int) {
	return [3]int{blocks(n, tileSpan) * tileItems, blocks(m, tileSpan) * tileItems, 1},
		[3]int{tileItems, tileItems, 1}
}

// GemmBatchGrid is for gemm_batch with that many results of m×n. Devices have a largest
// third dimension, some no more than 65535.
func GemmBatchGrid(m, n, batch int) (global, local [3]int) {
	global, local = GemmGrid(m, n)
	global[2] = max(batch, 1)
	return global, local
}

// Conv2DGrid is for conv2d of n images with k filters in groups and an output of
// outH×outW.
func Conv2DGrid(n, k, groups, outH, outW int) (global, local [3]int) {
	global, local = GemmGrid(k/max(groups, 1), outH*outW)
	global[2] = max(n*groups, 1)
	return global, local
}

// L2Grid is for the l2_distance kernels.
func L2Grid(queries, vectors int) (global, local [3]int) { return GemmGrid(queries, vectors) }

// blocks is how many blocks of that size cover n; at least 1, as no grid is empty.
func blocks(n, size int) int { return max((n+size-1)/size, 1) }
