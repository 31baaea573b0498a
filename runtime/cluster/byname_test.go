package cluster

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/concord-compute/concord/runtime"
)

// TestRunnerByName gives a Runner a device that is in no list, as the processor is as a Vulkan device.
func TestRunnerByName(t *testing.T) {
	const name = "vulkan:0"
	session, err := runtime.New(runtime.Config{})
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, session.Close()) })
	dev, err := session.Open(t.Context(), name)
	if err != nil || !dev.Info().ByName {
		t.Skipf("no device that has to be named: %v", err)
	}
	require.NoError(t, dev.Close())
	r, err := Failover{Session: session}.NewRunner(t.Context(), name)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, r.Close()) })
	var on string
	require.NoError(t, r.Run(t.Context(), "where", func(_ context.Context, dev *runtime.Device) error {
		on = dev.String()
		return nil
	}))
	assert.Equal(t, name, on)
	_, err = Failover{Session: session}.NewRunner(t.Context(), "vulkan:*")
	assert.ErrorIs(t, err, runtime.ErrNoDevice)
	assert.ErrorContains(t, err, "has to be named")
}
