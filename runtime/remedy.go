package runtime

// What to do about a backend that is not there, and about an error.

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/concord-compute/concord/runtime/driver"
)

// Remedy says what would make an unavailable backend available, or "".
func Remedy(p Probe) string {
	if p.State == driver.Available || p.State == driver.Fake {
		return ""
	}
	reason := strings.ToLower(p.Reason)
	switch {
	case strings.Contains(reason, "this version"):
		return "" // nothing that anyone can install
	case strings.Contains(reason, "not in this build"), strings.Contains(reason, "not imported"):
		return p.Reason
	case strings.Contains(reason, "timed out"):
		return "the driver does not answer: look at its log, or allow more with CONCORD_PROBE_TIMEOUT"
	case strings.Contains(reason, "permission"):
		return "add yourself to the group that owns the device node (ls -l /dev/dri /dev/nvidia* /dev/kfd)"
	}
	if p.Backend == "rocm" && strings.Contains(reason, "/dev/kfd is not here") {
		return "there is no AMD GPU, or its driver is not loaded (module amdgpu); a container has to be started with /dev/kfd and /dev/dri"
	}
	switch p.Backend {
	case "cuda":
		return "install the NVIDIA driver (it brings libcuda); is the GPU of another vendor, hidden by CUDA_VISIBLE_DEVICES, used exclusively by another process, or the kernel module not loaded?" + wrongHome("CUDA_HOME")
	case "rocm":
		return "install the ROCm runtime (it brings libamdhip64); is the GPU hidden by ROCR_VISIBLE_DEVICES or HIP_VISIBLE_DEVICES?" + wrongHome("ROCM_PATH")
	case "metal":
		return "Metal exists on macOS only"
	case "opencl":
		return "install an OpenCL loader and a driver (Debian: ocl-icd-libopencl1 with the vendor's ICD; pocl-opencl-icd runs on any CPU)"
	}
	return ""
}

// wrongHome says that a variable points nowhere, if it does.
func wrongHome(name string) string {
	dir := os.Getenv(name)
	if dir == "" {
		return ""
	}
	if _, err := os.Stat(dir); err == nil {
		return ""
	}
	return fmt.Sprintf(" (%s is set to %s, which does not exist)", name, dir)
}

// RemedyFor says what helps against an error, or "".
func RemedyFor(err error) string {
	switch {
	case err == nil:
		return ""
	case errors.Is(err, ErrOutOfMemory):
		return "use a smaller batch, close buffers that are no longer needed, and look at Device.Stats for what is live"
	case errors.Is(err, ErrBudget):
		return "raise CONCORD_MEMORY_LIMIT or close buffers first"
	case errors.Is(err, ErrTimeout):
		return "give each launch less work or more time and look for endless loops; on a GPU check temperature, power limits and a display's watchdog"
	case errors.Is(err, ErrDeviceLost):
		return "open it again: what was on it is gone, and the Devices from before stay lost; other devices are as they were"
	case errors.Is(err, ErrNoKernel):
		return ""
	case errors.Is(err, ErrCompile):
		return "the BuildError's log has the compiler's whole output with lines of the portable source"
	}
	return ""
}
