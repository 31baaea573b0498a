package nvml

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/concord-compute/concord/runtime/driver"
)

func TestRegistered(t *testing.T) {
	list := driver.Telemetries()
	i := slices.IndexFunc(list, func(t driver.Telemetry) bool { return t.Name() == "cuda" })
	require.GreaterOrEqual(t, i, 0)
	if _, err := list[i].Sample(t.Context(), &driver.Config{}); err != nil {
		require.ErrorIs(t, err, driver.ErrNoDevice)
		assert.ErrorContains(t, err, "cuda: telemetry")
	}
}
