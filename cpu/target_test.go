package cpu

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/concord-compute/concord/runtime/driver"
)

var _ driver.Targeter = (*device)(nil)

// What is compiled here runs wherever the target is the same: nothing of the
// compiler is in it, and it needs none.
func TestTargetIsNotTheCompilers(t *testing.T) {
	d := openDevice(t)
	before := d.Target()
	assert.Contains(t, before, "-ffp-contract=off", "what results mean is part of it")
	t.Setenv("CXX", "/no/such/compiler")
	assert.Equal(t, before, d.Target())
	_, err := d.Identity(background(t))
	assert.ErrorIs(t, err, driver.ErrUnsupported)
}
