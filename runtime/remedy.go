package runtime

// Advice for errors.

import (
	"errors"
	"syscall"

	"github.com/concord-compute/concord/runtime/driver"
)

// Remedy returns an instruction that helps against an error, or "". Probe.Remedy says how a
// backend's devices become available.
func Remedy(err error) string {
	switch {
	case err == nil:
		return ""
	case errors.Is(err, syscall.EMFILE), errors.Is(err, syscall.ENFILE):
		return "raise the limit of open files (ulimit -n), or close some"
	case errors.Is(err, ErrOutOfMemory):
		return "use a smaller batch, close buffers that are no longer needed, and look at Device.Stats for what is live"
	case errors.Is(err, ErrBudget):
		return "raise CONCORD_MEMORY_LIMIT or close buffers first"
	case errors.Is(err, driver.ErrLocalMemory):
		return "build the program with definitions that give smaller groups or tiles; Info.LocalMemory tells what the " +
			"device has"
	case errors.Is(err, driver.ErrTimeout):
		return "give each launch less work or more time and look for endless loops; on a GPU check temperature, power " +
			"limits and a display's watchdog"
	case errors.Is(err, ErrDeviceLost):
		return "open it again: what was on it is gone, and the Devices from before stay lost; other devices are as they were"
	case errors.Is(err, driver.ErrNoCompiler):
		return "install the compiler that the error names, or load a bundle that was made on a machine with one"
	case errors.Is(err, driver.ErrNoKernel):
		return ""
	case errors.Is(err, ErrCompile):
		return "the BuildError's log has the compiler's whole output with lines of the portable source"
	}
	return ""
}
