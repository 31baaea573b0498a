package tune

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/concord-compute/concord/runtime"
)

func TestLaunchParams2D(t *testing.T) {
	info := func(threads int, shared int64) runtime.Info {
		return runtime.Info{MaxGroupSize: threads, LocalMemory: shared}
	}
	for _, c := range []struct {
		info             runtime.Info
		m, n             int
		b, rows, columns int
	}{
		{info(1024, 48<<10), 1024, 1024, 32, 32, 32}, // 48 KiB hold tiles of 32
		{info(1024, 48<<10), 1, 33, 32, 1, 2},
		{info(1024, 4096), 64, 65, 32, 2, 3},
		{info(1024, 4095), 64, 65, 16, 4, 5},
		{info(1023, 48<<10), 64, 65, 16, 4, 5},
		{info(256, 1024), 64, 65, 16, 4, 5},
		{info(256, 1023), 64, 65, 8, 8, 9},
		{info(255, 48<<10), 64, 65, 8, 8, 9},
		{info(1, 1), 8, 9, 8, 1, 2},
		{runtime.Info{}, 64, 65, 8, 8, 9}, // nothing is known
		{info(1024, 48<<10), math.MaxInt, math.MaxInt, 32, math.MaxInt/32 + 1, math.MaxInt/32 + 1},
	} {
		b, rows, columns, err := LaunchParams2D(c.info, c.m, c.n)
		require.NoError(t, err)
		assert.Equal(t, []int{c.b, c.rows, c.columns}, []int{b, rows, columns}, "%+v", c)
	}
	for _, c := range [][2]int{{0, 1}, {1, 0}, {-5, 5}, {5, math.MinInt}} {
		_, _, _, err := LaunchParams2D(info(1024, 48<<10), c[0], c[1])
		assert.ErrorIs(t, err, runtime.ErrInvalidArgument, "%v", c)
	}
}

func TestAccessPattern(t *testing.T) {
	walk := func(n int, step int64) (list []int64) {
		for i := range n {
			list = append(list, int64(i)*step)
		}
		return list
	}
	for _, tc := range []struct {
		offsets []int64
		want    Access
		step    int64
	}{
		{nil, Random, 0}, {[]int64{7}, Random, 0}, {walk(2, 1), Sequential, 1}, {walk(100, 1), Sequential, 1},
		{walk(100, 64), Strided, 64}, {walk(50, -3), Strided, -3}, {walk(50, 0), Strided, 0},
		{append(walk(100, 4), 1), Strided, 4}, {append(walk(10, 4), 1, 9, 2), Random, 0},
		{[]int64{5, 1, 9, 2, 2, 8, 40}, Random, 0},
	} {
		got, step := AccessPattern(tc.offsets)
		assert.Equal(t, tc.want, got, tc.offsets)
		assert.Equal(t, tc.step, step)
	}
}
