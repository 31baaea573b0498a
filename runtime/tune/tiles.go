package tune

// Square tiles for problems of rows and columns.

import (
	"fmt"

	"github.com/concord-compute/concord/runtime"
)

// LaunchParams2D returns how to launch a kernel over m rows and n columns in square
// tiles: b x b items in a group, which has b*b 4-byte elements of local memory, and
// the number of groups. b is 32, 16 or 8, the largest that the device allows, and
// 8 where nothing is known. The x axis runs over columns:
//
//	b, rows, cols, err := tune.LaunchParams2D(dev.Info(), m, n)
//	grid := runtime.Items(cols*b, rows*b).InGroups(b, b)
//
// The last tiles reach over the edge, so the kernel checks its bounds. For a kernel that
// allows smaller groups than its device ([runtime.KernelInfo].MaxGroup) lower
// info.MaxGroupSize to that.
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
