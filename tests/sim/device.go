package sim

import (
	"context"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/concord-compute/concord/runtime/driver"
)

// Registered returns the backend of that name, which the package under test registers.
func Registered(t *testing.T, name string) driver.Backend {
	t.Helper()
	i := slices.IndexFunc(driver.Backends(), func(b driver.Backend) bool { return b.Name() == name })
	require.GreaterOrEqual(t, i, 0, "%s is not registered", name)
	return driver.Backends()[i]
}

// Open opens a device of a backend and closes it at the end of the test.
func Open(t *testing.T, name string, ordinal int, cfg *driver.Config) driver.Device {
	t.Helper()
	d, err := Registered(t, name).Open(context.Background(), ordinal, cfg)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, d.Close()) })
	return d
}

// NotInThisBuild checks the probe and the errors of a backend whose shim is not in the build, which have to give
// the reason missing. It fails if CONCORD_REQUIRE names the backend.
func NotInThisBuild(t *testing.T, name, missing string) {
	t.Helper()
	require.False(t, required(t, name), "CONCORD_REQUIRE names %s: %s", name, missing)
	b := Registered(t, name)
	p := b.Probe(context.Background(), &driver.Config{})
	assert.Equal(t, driver.Disabled, p.State)
	assert.NotEmpty(t, missing)
	assert.Equal(t, missing, p.Reason)
	assert.Equal(t, missing, p.Remedy)
	assert.Empty(t, p.Devices)
	_, err := b.Open(context.Background(), 0, &driver.Config{})
	assert.ErrorIs(t, err, driver.ErrNoDevice)
	assert.ErrorContains(t, err, missing)
}
