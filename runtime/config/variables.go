package config

// The table of environment variables.

import (
	"fmt"
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
		func(c *driver.Config, v string) (err error) {
			c.Debug, err = parseInt(v, 0, 2)
			return err
		}},
	{"CONCORD_DEVICE", "auto", "the device that auto opens: auto, cpu, a backend, backend:index or a merged index",
		func(c *driver.Config, v string) error {
			c.Device = v
			return nil
		}},
	{"CONCORD_TRACE", "", "file for a trace of launches, copies, compiles and waits, for concord trace show and " +
		"ui.perfetto.dev; written while the program works", func(c *driver.Config, v string) error {
		c.Trace = v
		return nil
	}},
	{"CONCORD_MEMORY_POOL", "1", "0: every allocation goes to the driver", func(c *driver.Config, v string) error {
		on, err := parseBool(v)
		c.NoMemoryPool = !on
		return err
	}},
	{"CONCORD_MEMORY_LIMIT", "", "hard limit per device in bytes, suffix K, M or G",
		func(c *driver.Config, v string) (err error) {
			c.MemoryLimit, err = ParseSize(v)
			return err
		}},
	{"CONCORD_MEMORY_IDLE", "30s", "how long unused memory is kept for reuse before it goes back to the driver; off: " +
		"for ever", func(c *driver.Config, v string) (err error) {
		if v == "off" {
			c.MemoryIdle = -1
			return nil
		}
		c.MemoryIdle, err = time.ParseDuration(v)
		if err == nil && c.MemoryIdle <= 0 {
			err = fmt.Errorf("%q is not positive", v)
		}
		return err
	}},
	{"CONCORD_MEMORY_FILL", "", "zero: new buffers hold zeros; pattern: new buffers hold NaN and closed ones are " +
		"overwritten, to find reads of undefined contents", func(c *driver.Config, v string) error {
		c.MemoryFill = driver.Filling(v)
		return checkFilling(c.MemoryFill)
	}},
	{"CONCORD_MEMORY_TRACE", "", "file for the memory operations of devices, for concord trace memory; written when a " +
		"device is closed", func(c *driver.Config, v string) error {
		c.MemoryTrace = v
		return nil
	}},
	{"CONCORD_CACHE_DIR", "", "directory of the kernel cache; off keeps it in memory",
		func(c *driver.Config, v string) error {
			c.CacheDir = v
			return nil
		}},
	{"CONCORD_CACHE_SIZE", "256M", "disk limit of the kernel cache, suffix K, M or G; the least recently used kernels " +
		"go first", func(c *driver.Config, v string) (err error) {
		c.CacheSize, err = ParseSize(v)
		return err
	}},
	{"CONCORD_FAKE_DEVICES", "", "backends to fake, for tests: cuda,rocm:2; empty but set: no GPU at all",
		func(c *driver.Config, v string) error {
			c.FakeDevices = &v
			return nil
		}},
	{"CONCORD_STRICT", "0", "1: refuse fakes, unknown CONCORD_ names and files of traces that cannot be written, and " +
		"set the fallback to require", func(c *driver.Config, v string) (err error) {
		c.Strict, err = parseBool(v)
		return err
	}},
	{"CONCORD_FALLBACK", "prefer", "when an existing device fails to open: require returns the error, prefer opens the " +
		"next best device, at last the CPU", func(c *driver.Config, v string) error {
		c.Fallback = driver.Fallback(strings.ToLower(v))
		return checkFallback(c.Fallback)
	}},
	{"CONCORD_REQUIRE", "", "backends whose absence must fail tests instead of skipping them",
		func(c *driver.Config, v string) error {
			c.Required = strings.FieldsFunc(strings.ToLower(v), func(r rune) bool { return r == ',' || r == ' ' })
			for _, name := range c.Required { // a backend of another module may not be registered yet: see Requires
				if !driver.ValidName(name) {
					return fmt.Errorf("%q is not the name of a backend, such as opencl or sim-cuda", name)
				}
			}
			return nil
		}},
	{"CONCORD_PROBE_CACHE", "1", "0: look for devices at every call", func(c *driver.Config, v string) error {
		on, err := parseBool(v)
		c.NoProbeCache = !on
		return err
	}},
	{"CONCORD_PROBE_TIMEOUT", "5s", "time that looking for the devices of one backend may take",
		func(c *driver.Config, v string) (err error) {
			c.ProbeTimeout, err = time.ParseDuration(v)
			if err == nil && c.ProbeTimeout <= 0 {
				err = fmt.Errorf("%q is not positive", v)
			}
			return err
		}},
	{"CONCORD_FUSION", "1", "0: tensors are computed operation by operation, not fused into fewer kernels",
		func(c *driver.Config, v string) error {
			on, err := parseBool(v)
			c.NoFusion = !on
			return err
		}},
	{"CONCORD_OPENCL_LIBRARY", "", "path of the OpenCL loader, instead of the usual names",
		func(c *driver.Config, v string) error {
			c.OpenCLLibrary = v
			return nil
		}},
	{"CONCORD_CUDA_LIBRARY", "", "path of the CUDA driver's library, instead of libcuda.so.1",
		func(c *driver.Config, v string) error {
			c.CUDALibrary = v
			return nil
		}},
	{"CONCORD_NVRTC_LIBRARY", "", "path of NVRTC, the compiler for NVIDIA devices, instead of the usual names",
		func(c *driver.Config, v string) error {
			c.NVRTCLibrary = v
			return nil
		}},
	{"CONCORD_HIP_LIBRARY", "", "path of AMD's libamdhip64, with hipRTC inside or beside it, instead of the usual names",
		func(c *driver.Config, v string) error {
			c.HIPLibrary = v
			return nil
		}},
	{"CONCORD_NVML_LIBRARY", "", "path of NVML, for the telemetry of NVIDIA devices, instead of libnvidia-ml.so.1",
		func(c *driver.Config, v string) error {
			c.NVMLLibrary = v
			return nil
		}},
	{"CONCORD_ROCM_SMI_LIBRARY", "", "path of ROCm SMI, for the telemetry of AMD devices, instead of the usual names",
		func(c *driver.Config, v string) error {
			c.ROCmSMILibrary = v
			return nil
		}},
	{"CONCORD_SIM_DIR", "", "directory of simulated vendor libraries; if set, the build's simulated backends (sim-cuda, " +
		"sim-rocm, sim-metal) are listed; without it they open by name only, from build/sim",
		func(c *driver.Config, v string) error {
			c.SimDir = v
			return nil
		}},
	{"CONCORD_CPU_THREADS", "", "threads of the cpu backend; default GOMAXPROCS",
		func(c *driver.Config, v string) (err error) {
			c.CPUThreads, err = parseInt(v, 1, 4096)
			return err
		}},
	{"CONCORD_CPU_KERNELS", "", "instructions of the cpu backend's own kernels: avx512, avx2, neon or go; default the " +
		"widest that the processor has", func(c *driver.Config, v string) error {
		c.CPUKernels = strings.ToLower(v)
		if known := []string{"avx512", "avx2", "neon", "go"}; !slices.Contains(known, c.CPUKernels) {
			return fmt.Errorf("%q is not one of %v", v, known)
		}
		return nil
	}},
}
