//go:build !cgo || !opencl || !(linux || darwin)

package opencl

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/concord-compute/concord/tests/sim"
)

// TestNotInThisBuild checks that a build without OpenCL lists the backend and says how to build with it.
func TestNotInThisBuild(t *testing.T) {
	assert.Contains(t, missing, "not in this build: ")
	assert.Contains(t, missing, "-tags opencl")
	sim.NotInThisBuild(t, "opencl", missing)
}
