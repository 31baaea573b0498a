package driver

// The configuration of a program, as backends read it. Package config fills it from the
// environment and checks it.

import (
	"io/fs"
	"time"
)

// Fallback is the policy for when the device that was asked for fails to open.
type Fallback string

// The policies. None of them is silent: what happened is logged, counted and in
// the record.
const (
	Prefer  Fallback = "prefer"  // the named device, then the next ones down to the CPU
	Require Fallback = "require" // the named device or an error
)

// Filling says what new buffers hold.
type Filling string

// The fillings. With a pattern, buffers are also overwritten when they are closed.
const (
	FillNothing Filling = ""        // what was there before
	FillZero    Filling = "zero"    // zeros
	FillPattern Filling = "pattern" // every bit set: NaN in every format of floats
)

// Pooling says how memory that is kept serves requests.
type Pooling string

// The ways. See package mempool for when which is right.
const (
	PoolByDevice Pooling = ""      // as suits the device
	PoolSplit    Pooling = "split" // any free part of an allocation serves
	PoolWhole    Pooling = "whole" // an allocation serves requests of about its size
	PoolExact    Pooling = "exact" // an allocation serves requests of its size alone
)

// Config is the whole configuration. The zero value is the default. What is set
// here overrides the environment, except that CONCORD_STRICT=1 stays in force.
type Config struct {
	Device   string   // CONCORD_DEVICE: what Open("auto") opens; "" means auto
	Fallback Fallback // CONCORD_FALLBACK; "" means Prefer
	Strict   bool     // CONCORD_STRICT: fakes refused, Require, unknown variables refused
	Debug    int      // CONCORD_DEBUG: 1 logs discovery, compiles, fallbacks; 2 also launches and allocations

	MemoryLimit  int64  // CONCORD_MEMORY_LIMIT: hard limit per device in bytes; 0 means none
	NoMemoryPool bool   // CONCORD_MEMORY_POOL=0: every allocation goes to the driver
	MemoryTrace  string // CONCORD_MEMORY_TRACE: file for what devices do with memory, written when one is closed; "" means none
	// MemoryMode is how memory that is kept serves requests. What it says holds for every
	// device; "" is best unless a trace tells otherwise. NoMemoryPool comes first.
	MemoryMode Pooling
	// Above MemorySoftCount allocations of the driver a device keeps nothing for reuse, and
	// it never has more than MemoryHardCount (ErrBudget). 0 means no limit.
	MemorySoftCount, MemoryHardCount int
	// MemoryFill is CONCORD_MEMORY_FILL: what new buffers hold. Writing it costs a wait.
	MemoryFill Filling
	// MemoryIdle is CONCORD_MEMORY_IDLE: memory that is kept for reuse and was not used for
	// that long, at the next look, goes back to the driver. 0 means 30 s, less never.
	MemoryIdle      time.Duration
	MemoryEmergency bool   // all memory that is kept is freed whenever live memory passes 0.9 of the soft limit
	CacheDir        string // CONCORD_CACHE_DIR: "" means concord in the user's cache directory, "off" no disk
	CacheSize       int64  // CONCORD_CACHE_SIZE: disk limit of the kernel cache in bytes; 0 means 256 MiB

	FakeDevices  *string       // CONCORD_FAKE_DEVICES: replaces discovery when not nil
	NoProbeCache bool          // CONCORD_PROBE_CACHE=0: probe at every call
	ProbeTimeout time.Duration // CONCORD_PROBE_TIMEOUT: per backend; 0 means 5 s
	Required     []string      // CONCORD_REQUIRE: backends whose absence fails tests

	OpenCLLibrary string // CONCORD_OPENCL_LIBRARY: the OpenCL loader; "" means the usual names. The first one opened stays
	CUDALibrary   string // CONCORD_CUDA_LIBRARY: the CUDA driver; "" means the usual names
	NVRTCLibrary  string // CONCORD_NVRTC_LIBRARY: NVRTC; "" means the usual names
	HIPLibrary    string // CONCORD_HIP_LIBRARY: libamdhip64, with hipRTC inside or beside it; "" means the usual names
	// Libraries that telemetry reads; "" means the usual names. The first one opened stays.
	NVMLLibrary    string // CONCORD_NVML_LIBRARY
	ROCmSMILibrary string // CONCORD_ROCM_SMI_LIBRARY

	// SimDir is CONCORD_SIM_DIR, where the simulated vendor libraries are. When it is
	// set, the simulated backends of the build (SimulatedNames) are listed; by name they
	// can be opened without, from build/sim in the working directory.
	SimDir string

	CPUThreads int    // CONCORD_CPU_THREADS: 0 means GOMAXPROCS
	CPUKernels string // CONCORD_CPU_KERNELS: avx512, avx2, neon or go; "" means the widest that the processor has

	// Bundles holds compiled kernels that come with the program, such as an embed.FS
	// of files that "concord cache export" wrote: see kernelcache.Options.Bundles.
	Bundles fs.FS

	// Backends replaces the registered ones, for tests and programs that bring
	// their own. Nil means driver.Backends().
	Backends []Backend
}

// ProbeLimit is ProbeTimeout, or its default. c may be nil.
func (c *Config) ProbeLimit() time.Duration {
	if c == nil || c.ProbeTimeout <= 0 {
		return 5 * time.Second
	}
	return c.ProbeTimeout
}

// OpenLimit is for how long one call may open a device while others wait for it. They
// fail with ErrTimeout then, as they would hang like that call. c may be nil.
func (c *Config) OpenLimit() time.Duration { return 12 * c.ProbeLimit() }
