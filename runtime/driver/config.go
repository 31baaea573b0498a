package driver

// The configuration of a program, as backends read it. Package config fills it from the
// environment and checks it.

import (
	"io/fs"
	"time"
)

// Fallback is the policy for a requested device that fails to open.
type Fallback string

// The policies. No fallback is silent: it is logged, counted and noted with what ran there.
const (
	Prefer  Fallback = "prefer"  // the named device, then the next ones down to the CPU
	Require Fallback = "require" // the named device or an error
)

// Filling is the initial contents of new buffers.
type Filling string

// The fillings. With a pattern, buffers are also overwritten when they are closed.
const (
	FillNothing Filling = ""        // undefined contents
	FillZero    Filling = "zero"    // zeros
	FillPattern Filling = "pattern" // every bit set: NaN in every format of floats
)

// Pooling is the way in which a memory pool serves requests from memory that it keeps.
type Pooling string

// The ways. Package mempool says which one suits which device.
const (
	PoolByDevice Pooling = ""      // the way that suits the device
	PoolSplit    Pooling = "split" // any free part of an allocation serves
	PoolWhole    Pooling = "whole" // an allocation serves requests of about its size
	PoolExact    Pooling = "exact" // an allocation serves requests of exactly its size
)

// Config is the whole configuration. The zero value is the default. A field that is set overrides
// the environment, except that CONCORD_STRICT=1 stays in force.
type Config struct {
	Device   string   // CONCORD_DEVICE: the device that Open("auto") opens; "" means auto
	Fallback Fallback // CONCORD_FALLBACK; "" means Prefer
	// CONCORD_STRICT: refuses fakes, unknown variables, files of traces that cannot be written and devices for which the
	// table of Tune is not, and implies Require
	Strict bool
	Debug  int // CONCORD_DEBUG: 0 is silent, 1 logs discovery, compiles, fallbacks; 2 also launches and allocations

	// Trace is CONCORD_TRACE: the file for a trace of what the program's sessions do, for ui.perfetto.dev and concord
	// trace show. It is written again and again while they work, and when a session is closed; "" means none.
	Trace string

	// Validate is CONCORD_VALIDATE: one in so many launches of each kernel is repeated on the float64 reference or on
	// another device, and differences are logged, in a program that imports package runtime/validate, which has more
	// options. 0 means none, and so does a negative number, whatever the environment says. ValidateDir is where files
	// go from which concord run --repeat repeats such launches; "" means no files.
	Validate    int
	ValidateDir string

	MemoryLimit  int64 // CONCORD_MEMORY_LIMIT: hard limit per device in bytes; 0 means none
	NoMemoryPool bool  // CONCORD_MEMORY_POOL=0: every allocation goes to the driver
	// CONCORD_MEMORY_TRACE: file for the memory operations of devices, written when one is closed; "" means none
	MemoryTrace string
	// MemoryMode is the way in which the memory pools of all devices serve requests. "" lets each
	// device choose, which is best unless a trace shows otherwise. NoMemoryPool has priority.
	MemoryMode Pooling
	// A device with more than MemorySoftCount driver allocations keeps nothing for reuse, and
	// it never has more than MemoryHardCount (ErrBudget). 0 means no limit.
	MemorySoftCount, MemoryHardCount int
	// MemoryFill is CONCORD_MEMORY_FILL: the initial contents of new buffers. Allocation waits for
	// the fill. "" means none.
	MemoryFill Filling
	// MemoryIdle is CONCORD_MEMORY_IDLE: memory that a pool kept unused for that long goes back to
	// the driver when the pool next checks for it. 0 means 30 s; a negative value means never.
	MemoryIdle      time.Duration
	MemoryEmergency bool   // frees all kept memory whenever live memory passes 0.9 of the soft limit
	CacheDir        string // CONCORD_CACHE_DIR: "" means concord in the user's cache directory, "off" no disk
	CacheSize       int64  // CONCORD_CACHE_SIZE: disk limit of the kernel cache in bytes; 0 means 256 MiB

	// Tune is CONCORD_TUNE: the file of a table of choices (package choice) that devices use if it is for them, or off
	// for the defaults. "" means what was measured on this machine before or, without that, comes with the module.
	// TuneFirst is the same, and what was not measured is, in the background, when it is first used: see FirstUse of
	// package runtime/tune, which the program has to call.
	Tune string

	FakeDevices  *string       // CONCORD_FAKE_DEVICES: replaces discovery; nil means that devices are discovered
	NoProbeCache bool          // CONCORD_PROBE_CACHE=0: probe at every call
	ProbeTimeout time.Duration // CONCORD_PROBE_TIMEOUT: per backend; 0 means 5 s
	// CONCORD_REQUIRE: backends whose absence fails tests, and whose devices with Info.ByName are listed; nil means none
	Required []string

	NoFusion bool // CONCORD_FUSION=0: package tensor computes operation by operation

	// CONCORD_OPENCL_LIBRARY: the OpenCL loader; "" means the usual names. The first one opened stays in use
	OpenCLLibrary string
	VulkanLibrary string // CONCORD_VULKAN_LIBRARY: the Vulkan loader; "" means the usual names
	CUDALibrary   string // CONCORD_CUDA_LIBRARY: the CUDA driver; "" means the usual names
	NVRTCLibrary  string // CONCORD_NVRTC_LIBRARY: NVRTC; "" means the usual names
	HIPLibrary    string // CONCORD_HIP_LIBRARY: libamdhip64, with hipRTC inside or beside it; "" means the usual names
	// Libraries that telemetry reads. The first one opened stays in use.
	NVMLLibrary    string // CONCORD_NVML_LIBRARY; "" means the usual names
	ROCmSMILibrary string // CONCORD_ROCM_SMI_LIBRARY; "" means the usual names
	MPILibrary     string // CONCORD_MPI_LIBRARY: for package runtime/cluster/mpi; "" means the launcher's

	// SimDir is CONCORD_SIM_DIR, the directory of the simulated vendor libraries. If it is set, the
	// simulated backends of the build (SimulatedNames) are listed. Without it they can be opened by
	// name only, from build/sim in the working directory. "" means none.
	SimDir string

	CPUThreads int    // CONCORD_CPU_THREADS: 0 means GOMAXPROCS
	CPUKernels string // CONCORD_CPU_KERNELS: avx512, avx2, neon or go; "" means the widest that the processor has

	// Bundles holds compiled kernels that are shipped with the program, such as an embed.FS of files that "concord
	// cache export" wrote: see kernelcache.Options.Bundles. Files that end in .json are tables that "concord tune
	// export" wrote: devices that they are for use them unless one was kept on the machine. Nil means none.
	Bundles fs.FS

	// Backends replaces the registered ones, for tests and programs with backends of their own. Nil
	// means driver.Backends().
	Backends []Backend
}

// ProbeLimit returns ProbeTimeout, or its default. c may be nil.
func (c *Config) ProbeLimit() time.Duration {
	if c == nil || c.ProbeTimeout <= 0 {
		return 5 * time.Second
	}
	return c.ProbeTimeout
}

// OpenLimit returns how long calls wait for another call that opens the same device. After that
// they fail with ErrTimeout, since they would hang like that call. c may be nil.
func (c *Config) OpenLimit() time.Duration { return 12 * c.ProbeLimit() }
