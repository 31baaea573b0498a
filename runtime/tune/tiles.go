package tune

// Square tiles for two-dimensional problems.

import (
	"fmt"

	"github.com/concord-compute/concord/runtime"
)

// LaunchParams2D returns the tile size and the number of groups for a kernel over m rows and n columns in square
// tiles. A group has b x b items and b*b 4-byte elements of local memory. b is 32, 16 or 8, the largest that the
// device allows, and 8 if the device's limits are unknown. The x axis runs over columns:
//
//	b, rows, cols, err := tune.LaunchParams2D(dev.Info(), m, n)
//	grid := runtime.Items(cols*b, rows*b).InGroups(b, b)
//
// The last tiles extend over the edge, so the kernel has to check its bounds. For a kernel that
// allows smaller groups than its device, set info.MaxGroupSize to its
// [runtime.KernelInfo].MaxGroup.
func LaunchParams2D(info runtime.Info, m, n int) (b, gridRows, gridCols int, err error) {
	if m < 1 || n < 1 {
		return 0, 0, 0, fmt.Errorf("launch parameters for %d rows and %d columns: %w", m, n, runtime.ErrInvalidArgument)
	}
	b = 8
	for _, try := range []int{16, 32} {
		if info.LocalMemory >= int64(4*try*try) && info.MaxGroupSize >= try*try {
			b = try
		}
	}
	return b, (m-1)/b + 1, (n-1)/b + 1, nil
}
