package driver_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/concord-compute/concord/runtime/driver"
)

func TestMissing(t *testing.T) {
	b := driver.Missing("abacus", driver.Unavailable, "no beads")
	assert.Equal(t, "abacus", b.Name())
	assert.Equal(t, driver.Probe{Backend: "abacus", State: driver.Unavailable, Reason: "no beads"},
		b.Probe(context.Background(), nil))
	assert.Equal(t, "use another build", driver.Missing("abacus", driver.Disabled,
		"use another build").Probe(context.Background(), nil).Remedy)
	_, err := b.Open(context.Background(), 0, nil)
	require.ErrorIs(t, err, driver.ErrNoDevice)
	assert.EqualError(t, err, "abacus: open: no beads: no such device")
}
