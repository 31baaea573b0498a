//go:build plantedfault

package parity

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	_ "github.com/concord-compute/concord/cpu"
	"github.com/concord-compute/concord/kernels"
)

// TestPlanted: the planted result, and no other, is a failure that names kernel, type and element.
func TestPlanted(t *testing.T) {
	results, err := Run(t.Context(), Options{Devices: []string{"cpu:0"}, Kernels: []string{"saxpy", "fill"},
		Keep: func(c *kernels.Case) bool { return c.Shape == "n=257" || c.Kernel == "fill" }})
	require.NoError(t, err)
	failed := 0
	for _, r := range results {
		if r.Kernel == "saxpy/saxpy" && r.DType == "f32" && r.Verdict != Skip {
			failed++
			assert.Equal(t, Fail, r.Verdict)
			assert.Contains(t, r.Reason, "element 256")
			continue
		}
		assert.NotEqual(t, Fail, r.Verdict, "%+v", r)
	}
	assert.NotZero(t, failed)
}
