package kernels

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/concord-compute/concord/source"
)

// TestGeometry checks the grids of kernels with different definitions. That they cover all results is shown by
// the cases of parity, some with other groups and tiles than the usual.
func TestGeometry(t *testing.T) {
	def := func(list ...string) (d []source.Define) {
		for i := 0; i < len(list); i += 2 {
			d = append(d, source.Define{Name: list[i], Value: list[i+1]})
		}
		return d
	}
	auto, usual, square := [3]int{}, [3]int{128, 1, 1}, [3]int{8, 8, 1}
	for _, c := range []struct {
		family, kernel string
		defines        []source.Define
		sizes          []int
		items, group   [3]int
	}{
		{"saxpy", "saxpy", nil, []int{0}, [3]int{64, 1, 1}, auto},
		{"saxpy", "saxpy", nil, []int{64}, [3]int{64, 1, 1}, auto},
		{"gather", "gather", nil, []int{5, 13}, [3]int{128, 1, 1}, auto},
		{"reduce", "reduce_sum_columns", nil, []int{2, 3, 11}, [3]int{128, 1, 1}, auto},
		{"reduce", "reduce_sum", nil, []int{2, 3, 11}, [3]int{66 * 128, 1, 1}, usual},
		{"topk", "topk", def("GROUP", "32"), []int{7}, [3]int{7 * 32, 1, 1}, [3]int{32, 1, 1}},
		{"softmax", "softmax", nil, []int{0}, usual, usual},
		{"nearest", "nearest", def("GROUP", "64"), []int{3, 5}, [3]int{15 * 64, 1, 1}, [3]int{64, 1, 1}},
		{"sort_pairs", "sort_blocks", nil, []int{3, 1025}, [3]int{6 * 128, 1, 1}, usual},
		{"sort_pairs", "sort_merge", nil, []int{3, 1025}, [3]int{49 * 64, 1, 1}, auto},
		{"gemv", "gemv", nil, []int{33}, [3]int{3 * 128, 1, 1}, usual},
		{"gemv", "gemv", def("GROUP", "256"), []int{33}, [3]int{2 * 256, 1, 1}, [3]int{256, 1, 1}},
		{"gemv", "gemv", def("GROUP", "4"), []int{33}, [3]int{33 * 4, 1, 1}, [3]int{4, 1, 1}},
		{"gemv", "gemv", def("TRANS_A", "1"), []int{33}, [3]int{2 * 128, 1, 1}, usual},
		{"gemv", "gemv", def("TRANS_A", "1", "T", "f64"), []int{33}, [3]int{3 * 128, 1, 1}, usual},
		{"gemv", "gemv", def("TRANS_A", "1", "T", "f16", "GROUP", "2"), []int{33}, [3]int{3 * 2, 1, 1}, [3]int{2, 1, 1}},
		{"gemm", "gemm", nil, []int{65, 64}, [3]int{8, 16, 1}, square},
		{"gemm_batch", "gemm_batch", nil, []int{2, 3, 1, 129}, [3]int{24, 8, 6}, square},
		{"gemm_batch", "gemm_batch", nil, []int{0, 100, 100}, [3]int{8, 8, 1}, square},
		{"conv2d", "conv2d", nil, []int{2, 3, 64, 65}, [3]int{16, 8, 6}, square},
		{"l2_distance", "l2_distance_int8", nil, []int{1, 1000}, [3]int{128, 8, 1}, square},
		{"vector_add", "vector_add", nil, []int{257}, [3]int{128, 1, 1}, auto},
		{"vector_add", "vector_add", def("WIDTH", "16"), []int{1025}, [3]int{128, 1, 1}, auto},
		{"vector_add", "vector_add", def("WIDTH", "1"), []int{64}, [3]int{64, 1, 1}, auto},
		{"transpose", "transpose", nil, []int{2, 17, 16}, [3]int{16, 32, 2}, [3]int{16, 16, 1}},
		{"transpose", "transpose", def("TILE", "1"), []int{2, 17, 16}, [3]int{16, 17, 2}, [3]int{1, 1, 1}},
	} {
		u, err := Unit(c.family, nil, c.defines...)
		require.NoError(t, err)
		items, group, err := Geometry(u, c.kernel, c.sizes...)
		require.NoError(t, err)
		assert.Equal(t, [2][3]int{c.items, c.group}, [2][3]int{items, group}, "%s %v %v", c.kernel, c.defines, c.sizes)
	}
}

func TestGeometryRefuses(t *testing.T) {
	gemm, err := Unit("gemm", nil)
	require.NoError(t, err)
	softmax, err := Unit("softmax", nil)
	require.NoError(t, err)
	own, err := source.Parse("kernel void softmax(global int *x) { x[0] = 1; }", source.Options{})
	require.NoError(t, err)
	for _, c := range []struct {
		u      *source.Unit
		kernel string
		sizes  []int
		want   string
	}{
		{gemm, "gemm", []int{3}, "gemm: the grid follows from at least 2 sizes, not 1"},
		{softmax, "softmax", nil, "softmax: the grid follows from at least 1 sizes, not 0"},
		{softmax, "softmax", []int{3, -1}, "softmax: a size of -1"},
		{softmax, "softmax", []int{0, -1}, "softmax: a size of -1"},
		{softmax, "softmax", []int{math.MaxInt / 100}, "more items in a dimension than an int counts"},
		{softmax, "softmax", []int{math.MaxInt / 2, 3}, "more items in a dimension than an int counts"},
		{gemm, "softmax", []int{3, 4}, `gemm.cl (gemm) is not a program of the catalog with a kernel "softmax"`},
		{own, "softmax", []int{3}, "is not a program of the catalog"},
	} {
		_, _, err := Geometry(c.u, c.kernel, c.sizes...)
		assert.ErrorContains(t, err, c.want)
		assert.ErrorAs(t, err, new(ArgumentError))
	}
}

func TestGeometryAllocatesNothing(t *testing.T) {
	u, err := Unit("gemm_batch", nil)
	require.NoError(t, err)
	assert.Zero(t, testing.AllocsPerRun(100, func() { _, _, _ = Geometry(u, "gemm_batch", 7, 100, 100) }))
}

// TestCasesWithOtherGroups checks that parity judges every kernel whose group a definition chooses with several groups.
func TestCasesWithOtherGroups(t *testing.T) {
	for _, f := range Families() {
		groups := map[string]map[[3]int]bool{}
		for _, c := range Cases(f.ID) {
			u, err := Unit(c.Family, nil, c.Defines...)
			require.NoError(t, err)
			if k, _ := u.Kernel(c.Kernel); k.ReqdLocal != [3]int{} {
				if groups[c.Kernel] == nil {
					groups[c.Kernel] = map[[3]int]bool{}
				}
				groups[c.Kernel][k.ReqdLocal] = true
			}
		}
		for _, d := range f.Defines {
			for k, seen := range groups {
				if d == "GROUP" || d == "TILE" {
					assert.Greater(t, len(seen), 1, "%s/%s has no case with another %s", f.ID, k, d)
				}
			}
		}
	}
}
