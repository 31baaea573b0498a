package cpu

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/concord-compute/concord/runtime/driver"
)

var _ driver.Targeter = (*device)(nil)

// TestTargetIsNotTheCompilers checks that Target needs no compiler and does not depend on one: compiled
// programs run on all machines with the same target.
func TestTargetIsNotTheCompilers(t *testing.T) {
	d := openDevice(t)
	before := d.Target()
	assert.Contains(t, before, "-ffp-contract=off", "options that change results are part of the target")
	t.Setenv("CXX", "/no/such/compiler")
	assert.Equal(t, before, d.Target())
	_, err := d.Identity(background(t))
	assert.ErrorIs(t, err, driver.ErrUnsupported)
}
