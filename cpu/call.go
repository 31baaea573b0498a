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
}

// Context implements kernels.Host.
func (c *call) Context() context.Context { return c.ctx }

// Threads implements kernels.Host.
func (c *call) Threads() int { return c.device.threads }
