package spirv_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/concord-compute/concord/kernels"
)

// TestCatalog: spirv-val accepts the modules of all families of the catalog; with -short of the first case of each.
func TestCatalog(t *testing.T) {
	validator(t)
	programs := 0
	for _, family := range kernels.Families() {
		t.Run(family.ID, func(t *testing.T) {
			seen := map[string]bool{}
			for _, c := range kernels.Cases(family.ID) {
				key := fmt.Sprint(c.Defines)
				if seen[key] || testing.Short() && len(seen) > 0 {
					continue
				}
				seen[key] = true
				u, err := kernels.Unit(family.ID, &vulkanFeatures, c.Defines...)
				require.NoError(t, err, key)
				m, err := u.Module(context.Background())
				if assert.NoError(t, err, key) {
					validate(t, family.ID+key, m)
				}
				programs++
			}
		})
	}
	t.Logf("%d programs", programs)
	assert.NotZero(t, programs)
}
