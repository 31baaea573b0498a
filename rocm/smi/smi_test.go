package smi

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/concord-compute/concord/runtime/driver"
	"github.com/concord-compute/concord/runtime/telemetry"
)

func TestRegistered(t *testing.T) {
	list := telemetry.Readers()
	i := slices.IndexFunc(list, func(t telemetry.Reader) bool { return t.Name() == "rocm" })
	require.GreaterOrEqual(t, i, 0)
	if _, err := list[i].Sample(t.Context(), &driver.Config{}); err != nil {
		require.ErrorIs(t, err, driver.ErrNoDevice)
		assert.ErrorContains(t, err, "rocm: telemetry")
	}
}
