package tune

// Tiles for products of matrices, and groups for element-wise kernels, within the limits of any device.

import (
	"fmt"
	"math"
	"math/bits"

	"github.com/concord-compute/concord/runtime"
)

// What is assumed of a device that does not state a limit: every graphics processor has as much.
const (
	unknownGroup  = 64
	unknownMemory = 16 << 10
)

// The least sides of a tile, where the device's limits allow them.
const (
	leastSide  = 16
	leastDepth = 8
)

// Tile is how the product of matrices is divided: a group of items computes M rows and N columns of the result, K
// elements of the depth at a time, from M·K elements of the left and K·N of the right matrix in local memory.
type Tile struct {
	M, N, K    int
	PerItem    int   // results that an item computes; fewer in a tile of fewer than that
	Items      int   // of a group
	LocalBytes int64 // of a group
	Groups     int   // that cover the result
}

// Grid returns the launch of all groups, along one dimension. The last tiles may extend over the edge.
func (t Tile) Grid() runtime.Grid { return runtime.Items(t.Groups * t.Items).InGroups(t.Items) }

// String describes the tile: "128x128x32, 16 results per item, 1024 groups of 1024 items, 32768 bytes".
func (t Tile) String() string {
	return fmt.Sprintf("%dx%dx%d, %d results per item, %d groups of %d items, %d bytes", t.M, t.N, t.K, t.PerItem,
		t.Groups, t.Items, t.LocalBytes)
}

// SelectTile returns the tile for the product of an m x k and a k x n matrix of elements of type elem, of which each
// item computes perItem results. No tile exceeds a limit of the device; where the device does not state one,
// 64 items and 16 KiB are assumed. The rules are those of a device that nothing was measured on:
//
//   - 64x64x16; 128x32 of a result that is more than four times as high as wide, and 32x128 of one more than four
//     times as wide. From compute capability 8 on twice these sides, at most 128, and a depth of 32; of 7 at most 96.
//   - The larger side is halved until a group has items enough. Then the depth, and after it the larger side, are
//     halved until local memory suffices. A side is 16 and the depth 8 at least, unless the device's limits are below.
//   - Items are rounded up to whole subgroups, where the device allows it.
//
// The error is ErrInvalidArgument if a number is below 1, and ErrTooLarge if one element of each matrix exceeds local
// memory or the result needs more groups than a launch may have.
func SelectTile(info runtime.Info, m, n, k int, elem runtime.Type, perItem int) (Tile, error) {
	size := elem.Size()
	if m < 1 || n < 1 || k < 1 || perItem < 1 || size < 1 {
		return Tile{}, fmt.Errorf("a tile for %dx%dx%d of %v with %d results per item: %w", m, n, k, elem, perItem,
			runtime.ErrInvalidArgument)
	}
	group := groupLimit(info)
	memory := info.LocalMemory
	if memory <= 0 {
		memory = unknownMemory
	}
	t := Tile{M: 64, N: 64, K: 16, PerItem: perItem}
	if m/4 > n || m/4 == n && m%4 > 0 {
		t.M, t.N = 128, 32
	} else if n/4 > m || n/4 == m && n%4 > 0 {
		t.M, t.N = 32, 128
	}
	switch {
	case info.ComputeMajor >= 8:
		t.M, t.N, t.K = min(2*t.M, 128), min(2*t.N, 128), 32
	case info.ComputeMajor == 7:
		t.M, t.N = min(t.M, 96), min(t.N, 96)
	}
	for least := leastSide; t.items() > group; least = 1 {
		t.shrink(least, func() bool { return t.items() > group })
	}
	for least, depth := leastSide, leastDepth; t.bytes(size) > memory; least, depth = 1, 1 {
		for t.K > depth && t.bytes(size) > memory {
			t.K = max(t.K/2, depth)
		}
		if t.M == 1 && t.N == 1 && t.K == 1 {
			break
		}
		t.shrink(least, func() bool { return t.bytes(size) > memory })
	}
	// No larger than the problem, but for the least sides.
	t.M, t.N, t.K = min(t.M, max(m, leastSide)), min(t.N, max(n, leastSide)), min(t.K, max(k, leastDepth))
	t.Items, t.LocalBytes = t.items(), t.bytes(size)
	if t.LocalBytes > memory {
		return Tile{}, fmt.Errorf("two elements of %v in %d bytes of local memory: %w", elem, memory, runtime.ErrTooLarge)
	}
	if s := info.SubgroupSize; s > 0 && (t.Items-1)/s+1 <= group/s {
		t.Items = ((t.Items-1)/s + 1) * s
	}
	high, low := bits.Mul64(uint64((m-1)/t.M+1), uint64((n-1)/t.N+1))
	if limit := groupsLimit(info, t.Items); high > 0 || low > uint64(limit) {
		return Tile{}, fmt.Errorf("tiles of %dx%d for a result of %dx%d: more than %d groups: %w", t.M, t.N, m, n, limit,
			runtime.ErrTooLarge)
	}
	t.Groups = int(low)
	return t, nil
}

// shrink halves the larger side while a limit is exceeded, and no side is below least.
func (t *Tile) shrink(least int, exceeded func() bool) {
	for exceeded() && max(t.M, t.N) > least {
		if t.M >= t.N {
			t.M = max(t.M/2, least)
		} else {
			t.N = max(t.N/2, least)
		}
	}
}

func (t *Tile) items() int           { return (t.M*t.N-1)/t.PerItem + 1 }
func (t *Tile) bytes(size int) int64 { return int64(size) * int64(t.K) * int64(t.M+t.N) }

// groupLimit is the number of items that a group along one dimension may have.
func groupLimit(info runtime.Info) int {
	limit := info.MaxGroupSize
	if first := info.MaxGroupSizes[0]; limit <= 0 || 0 < first && first < limit {
		limit = first
	}
	if limit <= 0 {
		return unknownGroup
	}
	return limit
}

// groupsLimit is the number of groups of so many items that a launch along one dimension may have.
func groupsLimit(info runtime.Info, items int) int {
	limit := math.MaxInt32
	for _, n := range []int{info.MaxGroups[0], info.MaxGroupCount, info.MaxItems / items} {
		if n > 0 {
			limit = min(limit, n)
		}
	}
	if info.MaxItems > 0 && info.MaxItems < items {
		return 0
	}
	return limit
}

// SelectElementwise returns the items of a group for a kernel with one item for each of n elements: the whole
// subgroups among n and the device's limit, and at least one subgroup, or as many items as a smaller limit allows.
// The error is ErrInvalidArgument if n is below 1.
func SelectElementwise(info runtime.Info, n int) (int, error) {
	if n < 1 {
		return 0, fmt.Errorf("a group for %d elements: %w", n, runtime.ErrInvalidArgument)
	}
	limit, subgroup := groupLimit(info), max(info.SubgroupSize, 1)
	return min(max(min(n, limit)/subgroup*subgroup, subgroup), limit), nil
}
