package kernels

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/concord-compute/concord/runtime/choice"
	"github.com/concord-compute/concord/source"
)

func TestChosen(t *testing.T) {
	set, err := choice.NewSet(map[string]int{"kernels.gemm.items": 16, "kernels.gemm.wide": 4})
	require.NoError(t, err)
	half := []source.Define{{Name: "T", Value: "f16"}}
	want := append(half, source.Define{Name: "ITEMS", Value: "16"}, source.Define{Name: "WIDE", Value: "4"})
	for _, family := range []string{"gemm", "gemm_batch", "gemm_bias"} {
		assert.Equal(t, want, Chosen(family, half, set.Of))
		assert.Equal(t, want[1:], Chosen(family, nil, set.Of))
		u, err := Unit(family, nil, Chosen(family, half, set.Of)...)
		require.NoError(t, err)
		sizes, batch := []int{129, 65}, 1
		if family == "gemm_batch" {
			sizes, batch = []int{3, 129, 65}, 3
		}
		items, group, err := Geometry(u, family, sizes...)
		require.NoError(t, err)
		assert.Equal(t, [3]int{16, 16, 1}, group)
		assert.Equal(t, [3]int{32, 32, batch}, items, "tiles of 128 rows and 64 columns")
	}
	double := []source.Define{{Name: "T", Value: "f64"}}
	assert.Equal(t, double, Chosen("gemm", double, set.Of), "its tile takes twice the memory")
	assert.Equal(t, half, Chosen("gemm", half, (*choice.Set)(nil).Of), "the defaults")
	assert.Equal(t, half, Chosen("gemm_i8", half, set.Of), "another family")
	assert.Len(t, half, 1)
	own := []source.Define{{Name: "WIDE", Value: "8"}}
	assert.Equal(t, own, Chosen("gemm", own, set.Of), "parts of two tiles")
}
