//go:build !cgo || !opencl || !(linux || darwin)

package opencl

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/concord-compute/concord/runtime/driver"
)

// TestDisabled: a build without OpenCL lists the backend and says what to do.
func TestDisabled(t *testing.T) {
	p := disabled{}.Probe(t.Context(), nil)
	assert.Equal(t, driver.Disabled, p.State)
	assert.Contains(t, p.Reason, "not in this build: ")
	assert.Equal(t, p.Reason, p.Remedy)
	assert.Empty(t, p.Devices)
	_, err := disabled{}.Open(t.Context(), 0, nil)
	require.ErrorIs(t, err, driver.ErrNoDevice)
	assert.Contains(t, err.Error(), "-tags opencl")
}
