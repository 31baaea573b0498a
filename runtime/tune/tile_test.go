package tune

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/concord-compute/concord/runtime"
	"github.com/concord-compute/concord/runtime/driver"
)

func TestSelectTile(t *testing.T) {
	device := func(major, threads int, local int64) runtime.Info {
		return runtime.Info{ComputeMajor: major, MaxGroupSize: threads, LocalMemory: local, SubgroupSize: 32}
	}
	h := device(9, 1024, 48<<10)
	for _, c := range []struct {
		info    runtime.Info
		m, n, k int
		elem    runtime.Type
		per     int
		want    Tile
	}{
		{h, 4096, 4096, 4096, runtime.F32, 1, Tile{32, 32, 32, 1, 1024, 8192, 128 * 128}},
		{h, 4096, 4096, 4096, runtime.F32, 16, Tile{128, 128, 32, 16, 1024, 32768, 32 * 32}},
		{h, 4096, 4096, 4096, runtime.F64, 16, Tile{128, 128, 16, 16, 1024, 32768, 32 * 32}}, // of 64 KiB there is no room
		{h, 4096, 4096, 4096, runtime.I8, 16, Tile{128, 128, 32, 16, 1024, 8192, 32 * 32}},
		{h, 4096, 512, 4096, runtime.F32, 16, Tile{128, 64, 32, 16, 512, 24576, 32 * 8}},    // more than four times as high
		{h, 4096, 1024, 4096, runtime.F32, 16, Tile{128, 128, 32, 16, 1024, 32768, 32 * 8}}, // not more
		{h, 512, 4096, 4096, runtime.F32, 16, Tile{64, 128, 32, 16, 512, 24576, 8 * 32}},
		{device(7, 1024, 48<<10), 4096, 4096, 64, runtime.F32, 16, Tile{64, 64, 16, 16, 256, 8192, 64 * 64}},
		{device(7, 1024, 48<<10), 4096, 64, 64, runtime.F32, 16, Tile{96, 32, 16, 16, 192, 8192, 43 * 2}},
		{device(0, 256, 32<<10), 4096, 4096, 64, runtime.F32, 16, Tile{64, 64, 16, 16, 256, 8192, 64 * 64}},
		{device(0, 256, 32<<10), 4096, 4096, 64, runtime.F32, 1, Tile{16, 16, 16, 1, 256, 2048, 256 * 256}},
		{device(0, 256, 1<<10), 4096, 4096, 64, runtime.F32, 1, Tile{16, 16, 8, 1, 256, 1024, 256 * 256}},
		{device(0, 256, 1<<9), 4096, 4096, 64, runtime.F32, 1, Tile{16, 16, 4, 1, 256, 512, 256 * 256}},
		{device(0, 8, 8), 3, 3, 3, runtime.F32, 1, Tile{1, 1, 1, 1, 1, 8, 9}},
		{h, 1, 1, 1, runtime.F32, 1, Tile{16, 16, 8, 1, 256, 1024, 1}},
		{h, 100, 20, 7, runtime.F32, 1, Tile{32, 20, 8, 1, 640, 1664, 4}},
		{runtime.Info{}, 4096, 4096, 4096, runtime.F32, 1, Tile{8, 8, 16, 1, 64, 1024, 512 * 512}},
	} {
		got, err := SelectTile(c.info, c.m, c.n, c.k, c.elem, c.per)
		require.NoError(t, err)
		assert.Equal(t, c.want, got, "%dx%dx%d of %v", c.m, c.n, c.k, c.elem)
	}
}

// TestTilesFit tries random devices and problems: no tile exceeds a limit, and all tiles cover the result.
func TestTilesFit(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	size := func(most float64) int { return int(math.Exp2(r.Float64() * most)) }
	or0 := func(n int) int { return n * min(r.IntN(4), 1) }
	refused := 0
	for range 200_000 {
		info := runtime.Info{
			ComputeMajor: r.IntN(13), MaxGroupSize: or0(size(12)), MaxGroupSizes: [3]int{or0(size(12)), 64, 64},
			MaxGroups: [3]int{or0(1000 + size(31))}, MaxGroupCount: or0(1000 + size(40)), MaxItems: or0(100_000 + size(40)),
			LocalMemory: int64(or0(size(20))), SubgroupSize: or0(size(7)),
		}
		m, n, k, per := size(14), size(14), size(20), size(8)
		if r.IntN(8) == 0 {
			m = size(62)
		}
		elem := driver.Types()[r.IntN(len(driver.Types()))]
		tile, err := SelectTile(info, m, n, k, elem, per)
		if err != nil {
			refused++
			require.ErrorIs(t, err, runtime.ErrTooLarge)
			continue
		}
		within := func(x, limit int, what string) {
			require.True(t, x > 0 && (limit <= 0 || x <= limit), "%d %s, limit %d: %v, %+v", x, what, limit, tile, info)
		}
		within(tile.Items, info.MaxGroupSize, "items")
		within(tile.Items, info.MaxGroupSizes[0], "items along x")
		within(tile.Groups, info.MaxGroups[0], "groups along x")
		within(tile.Groups, info.MaxGroupCount, "groups")
		within(tile.Groups, math.MaxInt32, "groups")
		within(tile.Grid().Items[0], info.MaxItems, "items in all")
		within(int(tile.LocalBytes), int(info.LocalMemory), "bytes")
		require.Equal(t, int64(elem.Size()*(tile.M*tile.K+tile.K*tile.N)), tile.LocalBytes)
		require.GreaterOrEqual(t, tile.Items*per, tile.M*tile.N, "every result has an item: %v", tile)
		require.Equal(t, ((m-1)/tile.M+1)*((n-1)/tile.N+1), tile.Groups)
		require.LessOrEqual(t, tile.K, 32)
	}
	assert.Less(t, refused, 100_000)
	assert.NotZero(t, refused)
}

func TestSelectTileRefuses(t *testing.T) {
	for _, n := range [][4]int{{0, 1, 1, 1}, {1, -1, 1, 1}, {1, 1, 0, 1}, {1, 1, 1, 0}} {
		_, err := SelectTile(runtime.Info{}, n[0], n[1], n[2], runtime.F32, n[3])
		assert.ErrorIs(t, err, runtime.ErrInvalidArgument)
	}
	_, err := SelectTile(runtime.Info{LocalMemory: 7}, 1, 1, 1, runtime.F32, 1)
	assert.ErrorIs(t, err, runtime.ErrTooLarge)
	_, err = SelectTile(runtime.Info{}, math.MaxInt, math.MaxInt, 1, runtime.F32, 1)
	assert.ErrorIs(t, err, runtime.ErrTooLarge)
}

func TestSelectElementwise(t *testing.T) {
	for _, c := range []struct{ most, subgroup, n, want int }{
		{1024, 32, 1 << 20, 1024}, {1024, 32, 100, 96}, {1024, 32, 31, 32}, {1024, 32, 1, 32}, {1000, 32, 1 << 20, 992},
		{16, 32, 100, 16}, {0, 0, 100, 64}, {0, 0, 7, 7}, {1, 1, 5, 1}, {256, 64, math.MaxInt, 256},
	} {
		got, err := SelectElementwise(runtime.Info{MaxGroupSize: c.most, SubgroupSize: c.subgroup}, c.n)
		require.NoError(t, err)
		assert.Equal(t, c.want, got, "%+v", c)
	}
	_, err := SelectElementwise(runtime.Info{}, 0)
	assert.ErrorIs(t, err, runtime.ErrInvalidArgument)
}
