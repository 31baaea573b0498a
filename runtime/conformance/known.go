package conformance

import (
	"strings"

	"github.com/concord-compute/concord/runtime/driver"
)

// Known lists what devices of this module's backends do not have or do wrong, as far as their Info does not say so.
// The caller may add to the lists: a machine without a compiler for the device lists "kernel/compiler" as unsupported.
func Known(info driver.Info) Exceptions {
	e := Exceptions{Unsupported: map[string]string{}, Failing: map[string]string{}}
	switch strings.TrimPrefix(info.Backend, "sim-") {
	case "cpu":
		e.Unsupported["kernel/occupancy"] = "a processor runs one group at a time on each thread"
	case "opencl":
		e.Unsupported["kernel/occupancy"] = "OpenCL has no call that tells"
		e.Unsupported["kinds/prefetch"] = "OpenCL 1.2 has no unified memory"
		if info.Simulated { // the simulator oclgrind
			e.Failing["kernel/no_such_dimension"] = "oclgrind says that a fourth dimension has 0 items, not 1"
		}
	case "vulkan":
		e.Unsupported["kernel/occupancy"] = "Vulkan has no call that tells"
	case "metal":
		e.Unsupported["kernel/occupancy"] = "Metal has no call that tells"
	}
	return e
}
