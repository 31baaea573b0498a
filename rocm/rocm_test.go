package rocm

import (
	"context"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/concord-compute/concord/runtime/driver"
)

// A backend that is not there is listed with its reason, and opening it says the
// same.
func TestNotThere(t *testing.T) {
	i := slices.IndexFunc(driver.Backends(), func(b driver.Backend) bool { return b.Name() == "rocm" })
	require.GreaterOrEqual(t, i, 0, "the package registers its backend")
	b := driver.Backends()[i]
	p := b.Probe(context.Background(), &driver.Config{})
	assert.Equal(t, state, p.State)
	assert.Equal(t, reason, p.Reason)
	assert.Empty(t, p.Devices)
	_, err := b.Open(context.Background(), 0, &driver.Config{})
	require.ErrorIs(t, err, driver.ErrNoDevice)
	assert.ErrorContains(t, err, reason)
}
