package tune

// How many groups a launch should have whose items take several elements each.

import (
	"fmt"

	"github.com/concord-compute/concord/runtime"
)

// residentGroups are the groups of a compute unit at a time where the device does not say how many items it runs: with
// four of them, one computes while others wait for memory.
const residentGroups = 4

// SelectGrid returns the launch of a kernel whose items go through n elements in steps of the whole grid, as
//
//	for (size_t i = get_global_id(0); i < n; i += get_global_size(0))
//
// Groups are those of [SelectElementwise]. There are as many as all compute units of the device run at a time, but no
// more than cover n elements, so that a larger device gets a larger grid, and more elements only longer loops. Where
// the device does not say how many items or groups a unit runs, 4 groups of each are assumed, and where it does not
// say how many units there are, the grid covers n. The error is ErrInvalidArgument if n is below 1, and ErrTooLarge
// if not even one group is allowed.
func SelectGrid(info runtime.Info, n int) (runtime.Grid, error) {
	group, err := SelectElementwise(info, n)
	if err != nil {
		return runtime.Grid{}, err
	}
	groups := (n-1)/group + 1
	if info.ComputeUnits > 0 {
		resident := residentGroups
		if info.ItemsPerComputeUnit > 0 {
			resident = max(info.ItemsPerComputeUnit/group, 1)
		}
		if most := info.GroupsPerComputeUnit; most > 0 {
			resident = min(resident, most)
		}
		groups = min(groups, resident*info.ComputeUnits)
	}
	if groups = min(groups, groupsLimit(info, group)); groups < 1 {
		return runtime.Grid{}, fmt.Errorf("a group of %d items, and %d in all: %w", group, info.MaxItems, runtime.ErrTooLarge)
	}
	return runtime.Items(groups * group).InGroups(group), nil
}
