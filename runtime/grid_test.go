package runtime

import (
	"math"
	"testing"

	"github.com/concord-compute/concord/runtime/driver"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// counting is a device that counts groups and items in few bits.
func counting() *nullBackend {
	return &nullBackend{change: func(i *Info) {
		i.MaxGroups, i.MaxGroupCount, i.MaxItems = [3]int{0, 1 << 20, 0}, math.MaxInt32, math.MaxUint32
	}}
}

func TestGridErrorsNameDimensionValueAndLimit(t *testing.T) {
	b := counting()
	_, d := open(t, b, Config{})
	k := kernel(t, d, "axpy")
	x := buffer(t, d, F32, 4)
	for want, g := range map[string]Grid{
		"grid of 4 dimensions, at most 3: invalid argument": Items(1, 1, 1,
			1),
		"grid of 5 dimensions, at most 3: invalid argument": Items(
			4).InGroups(1, 1, 1, 1, 1),
		"grid 0: 0 items in dimension 0, at least 1: invalid argument":           Items(0),
		"grid 5x-3: -3 items in dimension 1, at least 1: invalid argument":       Items(5, -3),
		"grid -7 in 4: -7 items in dimension 0, at least 1: invalid argument":    Cover(-7, 4),
		"grid 7 in -1: group of -1 in dimension 0, at least 1: invalid argument": Cover(7, 0),
		"grid 5x5 in 5x-2: group of -2 in dimension 1, at least 1: invalid argument": Items(5,
			5).InGroups(5, -2),
		"grid 6 in 4: 6 items in dimension 0 are no multiple of the group's 4: invalid argument": Items(
			6).InGroups(4),
		"grid 4294967296: 4294967296 items in dimension 0, at most 4294967295: can never fit": Items(
			1 << 32),
		"grid 1x2097152 in 1x1: 2097152 groups in dimension 1, at most 1048576: can never fit": Items(1,
			1<<21).InGroups(1, 1),
		"grid 2147483648x1048576 in 256x1: 8796093022208 groups of 256x1x1, at most 2147483647: can never fit": Items(1<<31,
			1<<20).InGroups(256, 1),
		"grid 4294967295x4294967295x4294967295: more than 9223372036854775807 items: can never fit": Items(
			math.MaxUint32, math.MaxUint32, math.MaxUint32),
	} {
		err := d.Stream().Launch(k, g, float32(1), x, x, 4)
		if assert.Error(t, err, want) {
			assert.Equal(t, "cuda:0: launch axpy: "+want, err.Error())
		}
	}
	assert.Zero(t, b.launches.Load(), "the driver was not asked")
	require.ErrorIs(t, d.Stream().Launch(k, Items(1<<31, 1<<31), float32(1), x, x, 4), ErrTooLarge, "whatever the group")
}

// Where there would be too many groups of the usual size, they are larger.
func TestGroupsGrowUntilTheyCanBeCounted(t *testing.T) {
	b := counting()
	_, d := open(t, b, Config{})
	k := kernel(t, d, "axpy")
	x := buffer(t, d, F32, 4)
	require.NoError(t, d.Stream().Launch(k, Items(1<<20, 1<<20), float32(1), x, x, 4))
	assert.Equal(t, [3]int{1024, 1, 1}, b.last.Local, "2^30 groups of 2^10, where 2^31 can not be counted")
	require.NoError(t, d.Stream().Launch(k, Items(1<<20), float32(1), x, x, 4))
	assert.Equal(t, [3]int{256, 1, 1}, b.last.Local)
}

func TestTooMuchLocalMemory(t *testing.T) {
	b := &nullBackend{}
	_, d := open(t, b, Config{})
	odd := kernel(t, d, "odd")
	x := buffer(t, d, F32, 4)
	for _, n := range []Local{1 << 40, math.MaxInt, 48<<10 + 1} {
		err := d.Stream().Launch(odd, Items(1), x, n, uint32(1), uint64(1), make([]byte, 8), x)
		require.ErrorIs(t, err, driver.ErrLocalMemory)
		assert.ErrorContains(t, err, "bytes of local memory, the device has 49152 for a group")
	}
	err := d.Stream().Launch(odd, Items(1), x, Local(1<<40), uint32(1), uint64(1), make([]byte, 8), x)
	assert.ErrorContains(t, err, "odd asks for 1099511627776 bytes")
	for _, n := range []Local{-1, 0, 3, math.MinInt} {
		err := d.Stream().Launch(odd, Items(1), x, n, uint32(1), uint64(1), make([]byte, 8), x)
		assert.ErrorIs(t, err, ErrInvalidArgument)
	}
	assert.Zero(t, b.launches.Load())
}
