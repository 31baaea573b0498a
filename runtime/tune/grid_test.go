package tune

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/concord-compute/concord/runtime"
)

func TestSelectGrid(t *testing.T) {
	device := func(units, items, groups int) runtime.Info {
		return runtime.Info{ComputeUnits: units, ItemsPerComputeUnit: items, GroupsPerComputeUnit: groups,
			MaxGroupSize: 1024, SubgroupSize: 32}
	}
	for _, c := range []struct {
		info         runtime.Info
		n            int
		items, group int
	}{
		{device(132, 2048, 32), 1 << 30, 132 * 2048, 1024},
		{device(66, 2048, 32), 1 << 30, 66 * 2048, 1024}, // half the units, half the grid
		{device(132, 2048, 32), 100_000, 98 * 1024, 1024},
		{device(132, 2048, 32), 100, 2 * 96, 96}, // it covers the elements
		{device(10, 2048, 1), 1 << 30, 10 * 1024, 1024},
		{device(10, 512, 0), 1 << 30, 10 * 1024, 1024}, // one group of a unit at least
		{device(10, 0, 0), 1 << 30, 40 * 1024, 1024},
		{device(0, 0, 0), 1 << 20, 1 << 20, 1024},
		{runtime.Info{ComputeUnits: 2, MaxGroupSize: 64, MaxGroupCount: 3}, 1 << 20, 192, 64},
	} {
		got, err := SelectGrid(c.info, c.n)
		require.NoError(t, err)
		assert.Equal(t, runtime.Items(c.items).InGroups(c.group), got, "%+v", c)
	}
	_, err := SelectGrid(runtime.Info{}, 0)
	assert.ErrorIs(t, err, runtime.ErrInvalidArgument)
	_, err = SelectGrid(runtime.Info{MaxGroupSize: 64, SubgroupSize: 64, MaxItems: 32}, 100)
	assert.ErrorIs(t, err, runtime.ErrTooLarge)
}

// TestGridsFit: no grid for a random device exceeds its limits, and more units or elements never make one smaller.
func TestGridsFit(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	or0 := func(n int) int { return r.IntN(n) * min(r.IntN(4), 1) }
	for range 100_000 {
		info := runtime.Info{MaxGroupSize: or0(2048), MaxGroups: [3]int{or0(1 << 20)}, MaxGroupCount: or0(1 << 20),
			MaxItems: or0(1 << 30), SubgroupSize: or0(65), ComputeUnits: or0(300), ItemsPerComputeUnit: or0(4096),
			GroupsPerComputeUnit: or0(64)}
		n := 1 + r.IntN(1<<r.IntN(40))
		g, err := SelectGrid(info, n)
		if err != nil {
			require.ErrorIs(t, err, runtime.ErrTooLarge)
			continue
		}
		items, group := g.Items[0], g.Group[0]
		require.Zero(t, items%group)
		require.GreaterOrEqual(t, items, group)
		for limit, x := range map[int]int{info.MaxGroupSize: group, info.MaxItems: items} {
			require.True(t, limit == 0 || x <= limit, "%v, %+v", g, info)
		}
		for _, limit := range []int{info.MaxGroups[0], info.MaxGroupCount} {
			require.True(t, limit == 0 || items/group <= limit, "%v, %+v", g, info)
		}
		if info.ComputeUnits > 0 {
			more := info
			more.ComputeUnits += 1 + r.IntN(300)
			larger, err := SelectGrid(more, n)
			require.NoError(t, err)
			require.GreaterOrEqual(t, larger.Items[0], items)
		}
	}
}
