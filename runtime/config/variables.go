package config

// The table of environment variables.

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/concord-compute/concord/runtime/driver"
)

// Variable is one environment variable that Concord reads.
type Variable struct {
	Name    string
	Default string // in the variable's own form; "" if Doc states it or there is none
	Doc     string // one sentence, in lower case and without a period
	set     func(c *driver.Config, value string) error
}

// Variables returns every environment variable that Concord reads.
func Variables() []Variable { return slices.Clone(variables) }

var variables = []Variable{
	{"CONCORD_DEBUG", "0", "1: log discovery, compiles, fallbacks; 2: also launches and allocations",
		set(func(c *driver.Config) *int { return &c.Debug }, between(0, 2))},
	{"CONCORD_DEVICE", "auto", "the device that auto opens: auto, cpu, a backend, backend:index or a merged index",
		text(func(c *driver.Config) *string { return &c.Device })},
	{"CONCORD_TRACE", "", "file for a trace of launches, copies, compiles and waits, for concord trace show and " +
		"ui.perfetto.dev; written while the program works", text(func(c *driver.Config) *string { return &c.Trace })},
	{"CONCORD_VALIDATE", "", "N or N,DIRECTORY: one in N launches of each kernel, as far as half a percent of the " +
		"time allows, is repeated on the float64 reference or on another device, in programs that import " +
		"package runtime/validate, as the command does; differences are logged, and files for " +
		"concord run --repeat written to the directory",
		func(c *driver.Config, v string) (err error) {
			n, dir, _ := strings.Cut(v, ",")
			c.ValidateDir = dir
			c.Validate, err = between(1, math.MaxInt32)(n)
			return err
		}},
	{"CONCORD_MEMORY_POOL", "1", "0: every allocation goes to the driver",
		set(func(c *driver.Config) *bool { return &c.NoMemoryPool }, parseOff)},
	{"CONCORD_MEMORY_LIMIT", "", "hard limit per device in bytes, suffix K, M or G",
		set(func(c *driver.Config) *int64 { return &c.MemoryLimit }, ParseSize)},
	{"CONCORD_MEMORY_IDLE", "30s", "how long unused memory is kept for reuse before it goes back to the driver; off: " +
		"for ever", set(func(c *driver.Config) *time.Duration { return &c.MemoryIdle },
		func(v string) (time.Duration, error) {
			if v == "off" {
				return -1, nil
			}
			return parseDuration(v)
		})},
	{"CONCORD_MEMORY_FILL", "", "zero: new buffers hold zeros; pattern: new buffers hold NaN and closed ones are " +
		"overwritten, to find reads of undefined contents", func(c *driver.Config, v string) error {
		c.MemoryFill = driver.Filling(v)
		return checkFilling(c.MemoryFill)
	}},
	{"CONCORD_MEMORY_TRACE", "", "file for the memory operations of devices, for concord trace memory; written when a " +
		"device is closed", text(func(c *driver.Config) *string { return &c.MemoryTrace })},
	{"CONCORD_CACHE_DIR", "", "directory of the kernel cache; off keeps it in memory",
		text(func(c *driver.Config) *string { return &c.CacheDir })},
	{"CONCORD_CACHE_SIZE", "256M", "disk limit of the kernel cache, suffix K, M or G; the least recently used kernels " +
		"go first", set(func(c *driver.Config) *int64 { return &c.CacheSize }, ParseSize)},
	{"CONCORD_TUNE", "", "file of a table of choices, as concord tune export writes it, which devices that it was made " +
		"for use; off: the defaults; otherwise what concord tune has measured on this machine, or a table that comes " +
		"with Concord; first: the same, and programs that call FirstUse of package runtime/tune, as the command does, " +
		"measure in the background what they use and was not measured",
		text(func(c *driver.Config) *string { return &c.Tune })},
	{"CONCORD_FAKE_DEVICES", "", "backends to fake, for tests: cuda,rocm:2; empty but set: no GPU at all",
		func(c *driver.Config, v string) error {
			c.FakeDevices = &v
			return nil
		}},
	{"CONCORD_STRICT", "0", "1: refuse fakes, unknown CONCORD_ names, files of traces that cannot be written and " +
		"devices for which the table of CONCORD_TUNE is not, and set the fallback to require",
		set(func(c *driver.Config) *bool { return &c.Strict }, parseBool)},
	{"CONCORD_FALLBACK", "prefer", "when an existing device fails to open: require returns the error, prefer opens the " +
		"next best device, at last the CPU", func(c *driver.Config, v string) error {
		c.Fallback = driver.Fallback(strings.ToLower(v))
		return checkFallback(c.Fallback)
	}},
	{"CONCORD_REQUIRE", "", "backends whose absence must fail tests instead of skipping them, and whose devices are " +
		"listed even if they have to be named",
		func(c *driver.Config, v string) error {
			c.Required = strings.FieldsFunc(strings.ToLower(v), func(r rune) bool { return r == ',' || r == ' ' })
			for _, name := range c.Required { // a backend of another module may not be registered yet: see Requires
				if !driver.ValidName(name) {
					return fmt.Errorf("%q is not the name of a backend, such as opencl or sim-cuda", name)
				}
			}
			return nil
		}},
	{"CONCORD_PROBE_CACHE", "1", "0: look for devices at every call",
		set(func(c *driver.Config) *bool { return &c.NoProbeCache }, parseOff)},
	{"CONCORD_PROBE_TIMEOUT", "5s", "time that looking for the devices of one backend may take",
		set(func(c *driver.Config) *time.Duration { return &c.ProbeTimeout }, parseDuration)},
	{"CONCORD_FUSION", "1", "0: tensors are computed operation by operation, not fused into fewer kernels",
		set(func(c *driver.Config) *bool { return &c.NoFusion }, parseOff)},
	{"CONCORD_OPENCL_LIBRARY", "", "path of the OpenCL loader, instead of the usual names",
		text(func(c *driver.Config) *string { return &c.OpenCLLibrary })},
	{"CONCORD_VULKAN_LIBRARY", "", "path of the Vulkan loader, instead of the usual names",
		text(func(c *driver.Config) *string { return &c.VulkanLibrary })},
	{"CONCORD_CUDA_LIBRARY", "", "path of the CUDA driver's library, instead of libcuda.so.1",
		text(func(c *driver.Config) *string { return &c.CUDALibrary })},
	{"CONCORD_NVRTC_LIBRARY", "", "path of NVRTC, the compiler for NVIDIA devices, instead of the usual names",
		text(func(c *driver.Config) *string { return &c.NVRTCLibrary })},
	{"CONCORD_HIP_LIBRARY", "", "path of AMD's libamdhip64, with hipRTC inside or beside it, instead of the usual names",
		text(func(c *driver.Config) *string { return &c.HIPLibrary })},
	{"CONCORD_NVML_LIBRARY", "", "path of NVML, for the telemetry of NVIDIA devices, instead of libnvidia-ml.so.1",
		text(func(c *driver.Config) *string { return &c.NVMLLibrary })},
	{"CONCORD_ROCM_SMI_LIBRARY", "", "path of ROCm SMI, for the telemetry of AMD devices, instead of the usual names",
		text(func(c *driver.Config) *string { return &c.ROCmSMILibrary })},
	{"CONCORD_MPI_LIBRARY", "", "path of the MPI library, instead of the launcher's and the usual names",
		text(func(c *driver.Config) *string { return &c.MPILibrary })},
	{"CONCORD_SIM_DIR", "", "directory of simulated vendor libraries; if set, the build's simulated backends (sim-cuda, " +
		"sim-rocm, sim-metal) are listed; without it they open by name only, from build/sim",
		text(func(c *driver.Config) *string { return &c.SimDir })},
	{"CONCORD_CPU_THREADS", "", "threads of the cpu backend; default GOMAXPROCS",
		set(func(c *driver.Config) *int { return &c.CPUThreads }, between(1, 4096))},
	{"CONCORD_CPU_KERNELS", "", "instructions of the cpu backend's own kernels: avx512, avx2, neon or go; default the " +
		"widest that the processor has", func(c *driver.Config, v string) error {
		c.CPUKernels = strings.ToLower(v)
		if known := []string{"avx512", "avx2", "neon", "go"}; !slices.Contains(known, c.CPUKernels) {
			return fmt.Errorf("%q is not one of %v", v, known)
		}
		return nil
	}},
}

// set returns the setter of a field, whose text parse reads.
func set[T any](field func(*driver.Config) *T, parse func(string) (T, error)) func(*driver.Config, string) error {
	return func(c *driver.Config, v string) (err error) {
		*field(c), err = parse(v)
		return err
	}
}

// text returns the setter of a field that takes any text.
func text(field func(*driver.Config) *string) func(*driver.Config, string) error {
	return set(field, func(v string) (string, error) { return v, nil })
}
