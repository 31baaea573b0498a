package profile

import (
	"encoding/csv"
	"errors"
	"math"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/concord-compute/concord/runtime/driver"
)

// points reads a table of testdata, without its comments.
func points(t *testing.T, name string) [][]string {
	t.Helper()
	f, err := os.Open("testdata/" + name)
	require.NoError(t, err)
	defer f.Close()
	r := csv.NewReader(f)
	r.Comma, r.Comment = '\t', '#'
	rows, err := r.ReadAll()
	require.NoError(t, err)
	return rows
}

func number(t *testing.T, s string) int {
	t.Helper()
	n, err := strconv.Atoi(s)
	require.NoError(t, err)
	return n
}

func limits(t *testing.T, target string, subgroup int) Limits {
	t.Helper()
	l, err := LimitsOf(target, subgroup)
	require.NoError(t, err)
	return l
}

// The points are what NVIDIA's own header computes: testdata/cuda.tsv says how.
func TestOccupancyNVIDIA(t *testing.T) {
	rows := points(t, "cuda.tsv")
	require.GreaterOrEqual(t, len(rows), 300)
	letters := map[Resource]string{ByItems: "w", BySubgroups: "w", ByRegisters: "r", ByLocal: "s", ByGroups: "b"}
	targets := map[string]bool{}
	for _, row := range rows {
		l := limits(t, row[0], 0)
		got := Occupancy(l, Request{Registers: number(t, row[1]), Local: int64(number(t, row[2]))}, number(t, row[3]))
		assert.Equal(t, number(t, row[4]), got.Groups, "%v: %v", row, got)
		if got.Limit == NoLimit {
			assert.Equal(t, l.Subgroups, got.Subgroups, "%v", row)
		} else {
			assert.Contains(t, row[5], letters[got.Limit], "%v: %v", row, got)
		}
		targets[row[0]] = true
	}
	assert.Len(t, targets, 12)
}

// The points are what AMD's compiler is tested for: testdata/amdgpu.tsv says where. A group is one
// wavefront, so that there are four times as many as on one SIMD unit.
func TestOccupancyAMD(t *testing.T) {
	rows := points(t, "amdgpu.tsv")
	same := map[string][]string{"gfx1030": {"gfx1102", "gfx1150"}, "gfx1100": {"gfx1101", "gfx1151", "gfx1200"}}
	checked := 0
	for i, column := range rows[0][1:] {
		base, wave, _ := strings.Cut(column, ":w")
		subgroup := 0
		if wave != "" {
			subgroup = number(t, wave)
		}
		for _, target := range append([]string{base}, same[base]...) {
			l := limits(t, target, subgroup)
			for _, row := range rows[1:] {
				got := Occupancy(l, Request{Registers: number(t, row[0])}, l.SubgroupSize)
				assert.Equal(t, 4*number(t, row[i+1]), got.Groups, "%s, %s registers: %v", column, row[0], got)
				checked++
			}
		}
	}
	assert.GreaterOrEqual(t, checked, 200)
}

// Local memory, and scalar registers beside the system's own 16: from the same test of LLVM's, there in
// wavefronts per SIMD unit, rounded up.
func TestOccupancyAMDShared(t *testing.T) {
	for _, c := range []struct {
		target   string
		subgroup int
		waves    map[int]int // by group size, each group with 8,252 bytes
	}{
		{"gfx900", 64, map[int]int{64: 2, 96: 4, 128: 4, 192: 6, 256: 7, 512: 10, 1024: 8}},
		{"gfx950", 64, map[int]int{64: 5, 96: 8, 128: 8, 192: 8, 256: 8, 512: 8, 1024: 8}},
		{"gfx1010", 64, map[int]int{64: 4, 96: 8, 128: 8, 192: 12, 256: 15, 512: 20, 1024: 20}},
		{"gfx1010", 32, map[int]int{64: 8, 96: 12, 128: 15, 192: 20, 256: 20, 512: 20, 1024: 16}},
		{"gfx1030", 32, map[int]int{32: 4, 64: 8, 96: 12, 128: 15, 192: 15, 256: 16, 512: 16, 1024: 16}},
		{"gfx1100", 64, map[int]int{64: 4, 96: 8, 128: 8, 192: 12, 256: 15, 512: 16, 1024: 16}},
		{"gfx1200", 32, map[int]int{32: 4, 64: 8, 96: 12, 128: 15, 192: 15, 256: 16, 512: 16, 1024: 16}},
	} {
		for group, want := range c.waves {
			got := Occupancy(limits(t, c.target, c.subgroup), Request{Local: 8252}, group)
			assert.Equal(t, want, (got.Subgroups+3)/4, "%s, wavefronts of %d, groups of %d: %v", c.target, c.subgroup, group,
				got)
		}
	}
	for scalars, want := range map[int][2]int{80: {8, 7}, 88: {7, 7}, 100: {6, 6}} {
		for i, target := range []string{"gfx900", "gfx950"} {
			hidden := 6 * i // registers for the address of private memory, which gfx950 counts besides
			got := Occupancy(limits(t, target, 0), Request{Scalars: scalars + hidden}, 64)
			assert.Equal(t, 4*want[i], got.Groups, "%s, %d scalar registers", target, scalars)
		}
	}
	assert.Equal(t, 64, Occupancy(limits(t, "gfx1030", 0), Request{Scalars: 100}, 32).Groups)
}

// Points of the specification.
func TestOccupancyIllustrations(t *testing.T) {
	for _, c := range []struct {
		target string
		r      Request
		group  int
		groups int
		says   string
	}{
		{"sm_86", Request{}, 1024, 1, "1 group of 1024 items, 32 of 48 warps (66.7 %), limited by items"},
		{"sm_80", Request{}, 1024, 2, "2 groups of 1024 items, 64 of 64 warps (100 %)"},
		{"sm_75", Request{}, 256, 4, "4 groups of 256 items, 32 of 32 warps (100 %)"},
		{"sm_89", Request{Local: 16 << 10}, 256, 5,
			"5 groups of 256 items, 40 of 48 warps (83.3 %), limited by local memory"},
		{"sm_80", Request{Registers: 40}, 256, 6, "6 groups of 256 items, 48 of 64 warps (75 %), limited by registers"},
		{"sm_120", Request{Local: 99 << 10}, 64, 1, "1 group of 64 items, 2 of 48 warps (4.17 %), limited by local memory"},
		{"sm_100a", Request{}, 32, 32, "32 groups of 32 items, 32 of 64 warps (50 %), limited by groups"},
		{"gfx90a:xnack-", Request{Registers: 128}, 256, 4, "4 groups of 256 items, 16 of 32 wavefronts (50 %), limited by " +
			"registers"},
		{"sm_90", Request{Registers: 256}, 32, 0, "no group of 32 items can run: its registers do not fit"},
		{"sm_90", Request{Local: 227<<10 + 1}, 32, 0, "no group of 32 items can run: its local memory does not fit"},
		{"sm_90", Request{}, 1025, 0, "no group of 1025 items can run: this kernel cannot have that size on sm_90"},
		{"sm_90", Request{MaxGroup: 128}, 129, 0,
			"no group of 129 items can run: this kernel cannot have that size on sm_90"},
	} {
		got := Occupancy(limits(t, c.target, 0), c.r, c.group)
		assert.Equal(t, c.groups, got.Groups, c.says)
		assert.Equal(t, c.says, got.String())
		assert.Equal(t, got.Limit == NoLimit, got.Advice() == "", c.says)
		if c.groups == 0 {
			assert.Zero(t, got.Subgroups+got.Items)
			assert.Zero(t, got.Fraction)
			assert.False(t, got.Enough)
		}
	}
	r := Occupancy(limits(t, "sm_80", 0), Request{Registers: 40, MinGroups: 7}, 256)
	assert.Equal(t, 6, r.Groups, "a wish does not make room")
	assert.False(t, r.Enough)
	assert.True(t, r.Good() && r.Excellent())
}

// Invalid numbers give no groups, and no panic.
func TestOccupancyOdd(t *testing.T) {
	for _, group := range []int{math.MinInt, -1, 0, math.MaxInt} {
		for _, target := range []string{"sm_90", "gfx1100"} {
			r := Occupancy(limits(t, target, 0), Request{Registers: 32, Local: 100}, group)
			assert.Zero(t, r.Groups, group)
			assert.Equal(t, ByItems, r.Limit)
		}
	}
	l := limits(t, "sm_90", 0)
	assert.Zero(t, Occupancy(l, Request{Registers: math.MaxInt}, 32).Groups)
	assert.Zero(t, Occupancy(l, Request{Local: math.MaxInt64}, 32).Groups)
	assert.Equal(t, Occupancy(l, Request{}, 32), Occupancy(l, Request{Registers: -5, Local: -1 << 62, Scalars: -1}, 32))
	none := Occupancy(Limits{}, Request{Registers: 3}, 64)
	assert.Zero(t, none.Groups)
	assert.Contains(t, none.String(), "no limit is known")
}

func TestLimitsOf(t *testing.T) {
	for _, target := range []string{"", "sm_", "sm_10", "sm_99", "sm_130", "sm_-75", "gfx", "gfx803", "gfx1250",
		"gfx9-generic", "znver4", "nonsense"} {
		_, err := LimitsOf(target, 0)
		assert.ErrorIs(t, err, driver.ErrUnsupported, target)
	}
	for target, subgroup := range map[string]int{"sm_90": 64, "gfx90a": 32, "gfx1100": 16, "gfx1030": -1} {
		_, err := LimitsOf(target, subgroup)
		assert.ErrorIs(t, err, driver.ErrInvalidArgument, target)
	}
}

func TestDeviceLimits(t *testing.T) {
	cpu, err := DeviceLimits(driver.Info{ID: "cpu:0", Kind: driver.CPU, Arch: "avx512", ComputeUnits: 8,
		MaxGroupSize: 4096, LocalMemory: 1 << 20})
	require.NoError(t, err)
	assert.Equal(t, "1 group of 256 items (100 %)", Occupancy(cpu, Request{}, 256).String())
	assert.Zero(t, Occupancy(cpu, Request{Local: 1<<20 + 1}, 256).Groups)
	assert.Zero(t, Occupancy(cpu, Request{}, 4097).Groups)

	// A driver's numbers go before the table, here 8.6 with less than all of its shared memory.
	ga, err := DeviceLimits(driver.Info{ID: "cuda:0", Kind: driver.Discrete, Arch: "sm_86", SubgroupSize: 32,
		ComputeUnits: 84, MaxGroupSize: 1024,
		ItemsPerComputeUnit: 1024, GroupsPerComputeUnit: 16, LocalMemory: 48 << 10, LocalMemoryOptIn: 64 << 10,
		LocalMemoryPerComputeUnit: 65 << 10, RegistersPerComputeUnit: 65536})
	require.NoError(t, err)
	assert.Equal(t, 84, ga.Units)
	assert.Equal(t, 4, Occupancy(ga, Request{}, 256).Groups)
	assert.Zero(t, Occupancy(ga, Request{Local: 65 << 10}, 256).Groups)

	// A capability that the table does not have is planned by what the driver says.
	next, err := DeviceLimits(driver.Info{ID: "cuda:0", Kind: driver.Discrete, Arch: "sm_200", SubgroupSize: 32,
		MaxGroupSize:        1024,
		ItemsPerComputeUnit: 2048, GroupsPerComputeUnit: 64, LocalMemoryPerComputeUnit: 228 << 10,
		RegistersPerComputeUnit: 131072})
	require.NoError(t, err)
	assert.Equal(t, 64, Occupancy(next, Request{}, 32).Groups)
	assert.Equal(t, 8, Occupancy(next, Request{Registers: 64}, 256).Groups)

	wave64, err := DeviceLimits(driver.Info{ID: "rocm:0", Kind: driver.Discrete, Arch: "gfx1100", SubgroupSize: 64,
		MaxGroupSize: 1024})
	require.NoError(t, err)
	assert.Equal(t, 64, wave64.SubgroupSize)

	_, err = DeviceLimits(driver.Info{ID: "opencl:0", Kind: driver.Discrete, MaxGroupSize: 1024, LocalMemory: 64 << 10})
	assert.ErrorIs(t, err, driver.ErrUnsupported)
	assert.ErrorContains(t, err, "opencl:0")
}

func TestBestGroup(t *testing.T) {
	l := limits(t, "sm_80", 0)
	c, err := BestGroup(l, Request{}, 0)
	require.NoError(t, err)
	assert.Equal(t, 64, c.Group, "the smallest that is fully occupied")
	assert.InDelta(t, 1, c.Score, 1e-9)
	c, err = BestGroup(l, Request{Group: 96}, 1000)
	require.NoError(t, err)
	assert.Equal(t, 96, c.Group)
	assert.Equal(t, 11, c.Grid)
	c, err = BestGroup(l, Request{MaxGroup: 63}, 0)
	require.NoError(t, err)
	assert.Equal(t, 32, c.Group)
	c, err = BestGroup(l, Request{MaxGroup: 4}, 10)
	require.NoError(t, err)
	assert.Equal(t, 4, c.Group, "smaller than a subgroup, since the kernel is")
	assert.Equal(t, 3, c.Grid)
	// 40 registers: 48 warps in all; three quarters at most, to which powers of two up to 256 come.
	c, err = BestGroup(l, Request{Registers: 40}, 0)
	require.NoError(t, err)
	assert.InDelta(t, 0.75, c.Fraction, 1e-9)
	half, err := BestGroup(limits(t, "gfx90a", 0), Request{}, 0)
	require.NoError(t, err)
	assert.Equal(t, 64, half.Group, "not half of a wavefront")
	// Few items: 4 groups for each of 108 units are not there, so that smaller groups are better.
	l.Units = 108
	many, err := BestGroup(l, Request{Registers: 128}, 1<<26)
	require.NoError(t, err)
	few, err := BestGroup(l, Request{Registers: 128}, 10000)
	require.NoError(t, err)
	assert.Less(t, few.Group, many.Group)
	for _, group := range candidates {
		r := Occupancy(l, Request{Registers: 128}, group)
		assert.LessOrEqual(t, r.Fraction, many.Fraction)
	}
	cpu, err := DeviceLimits(driver.Info{Kind: driver.CPU, ComputeUnits: 2, MaxGroupSize: 4096})
	require.NoError(t, err)
	c, err = BestGroup(cpu, Request{}, 1<<20)
	require.NoError(t, err)
	assert.Equal(t, 1024, c.Group)
	c, err = BestGroup(cpu, Request{}, 1)
	require.NoError(t, err)
	assert.Equal(t, 1, c.Grid)

	_, err = BestGroup(l, Request{Local: 1 << 20}, 0)
	assert.ErrorIs(t, err, driver.ErrLaunch)
	assert.ErrorContains(t, err, "local memory")
	_, err = BestGroup(l, Request{}, -1)
	assert.ErrorIs(t, err, driver.ErrInvalidArgument)
	assert.False(t, errors.Is(err, driver.ErrLaunch))
}
