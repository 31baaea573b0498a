package cpu

// One launch of a Go kernel on a device of this package.

import (
	"context"

	"github.com/concord-compute/concord/kernels"
	"github.com/concord-compute/concord/runtime/choice"
)

// call is a kernels.Call with the device that runs it. It is the Host of that Call.
type call struct {
	kernels.Call
	device *device
	ctx    context.Context
	chosen *choice.Set // the device's when the launch began
	// What the check of the arguments found, which a launch that a graph repeats needs once.
	checked checked
}

type checked int

const (
	unchecked checked = iota
	work              // the arguments are right
	nothing           // they are, and there is nothing to do
)

// Context implements kernels.Host.
func (c *call) Context() context.Context { return c.ctx }

// Threads implements kernels.Host.
func (c *call) Threads() int { return c.device.threads }
