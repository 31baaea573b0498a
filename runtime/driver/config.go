package driver

// The configuration of a program, and the one place where environment variables
// are read.

import (
	"fmt"
	"io/fs"
	"math"
	"slices"
	"strconv"
	"strings"
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

// variable is one row of the table of environment variables.
type variable struct {
	Name    string
	Default string
	Doc     string
	set     func(c *Config, value string) error
}

// Variables is the table of every environment variable that Concord reads.
var Variables = []variable{
	{"CONCORD_DEBUG", "0", "1: log discovery, compiles, fallbacks; 2: also launches and allocations", func(c *Config, v string) (err error) {
		c.Debug, err = parseInt(v, 0, 2)
		return err
	}},
	{"CONCORD_DEVICE", "auto", "the device that auto opens: auto, cpu, a backend, backend:index or a merged index", func(c *Config, v string) error {
		c.Device = v
		return nil
	}},
	{"CONCORD_MEMORY_POOL", "1", "0: every allocation goes to the driver", func(c *Config, v string) error {
		on, err := parseBool(v)
		c.NoMemoryPool = !on
		return err
	}},
	{"CONCORD_MEMORY_LIMIT", "", "hard limit per device in bytes, suffix K, M or G", func(c *Config, v string) (err error) {
		c.MemoryLimit, err = ParseSize(v)
		return err
	}},
	{"CONCORD_MEMORY_IDLE", "30s", "after how long memory that is kept for reuse and not used goes back to the driver; off keeps it", func(c *Config, v string) (err error) {
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
	{"CONCORD_MEMORY_FILL", "", "zero: new buffers hold zeros; pattern: NaN, and closed ones are overwritten, to find who reads them", func(c *Config, v string) error {
		c.MemoryFill = Filling(v)
		return checkFilling(c.MemoryFill)
	}},
	{"CONCORD_MEMORY_TRACE", "", "file for what devices do with memory, for concord trace memory; written when a device is closed", func(c *Config, v string) error {
		c.MemoryTrace = v
		return nil
	}},
	{"CONCORD_CACHE_DIR", "", "directory of the kernel cache; off keeps it in memory", func(c *Config, v string) error {
		c.CacheDir = v
		return nil
	}},
	{"CONCORD_CACHE_SIZE", "256M", "disk limit of the kernel cache, suffix K, M or G; the least recently used kernels go first", func(c *Config, v string) (err error) {
		c.CacheSize, err = ParseSize(v)
		return err
	}},
	{"CONCORD_FAKE_DEVICES", "", "backends to pretend, for tests: cuda,rocm:2; empty but set: no GPU at all", func(c *Config, v string) error {
		c.FakeDevices = &v
		return nil
	}},
	{"CONCORD_STRICT", "0", "1: fakes refused, fallback require, unknown CONCORD_ names refused", func(c *Config, v string) (err error) {
		c.Strict, err = parseBool(v)
		return err
	}},
	{"CONCORD_FALLBACK", "prefer", "when a device that is there fails to open: require returns the error, prefer takes the next best down to the CPU", func(c *Config, v string) error {
		c.Fallback = Fallback(strings.ToLower(v))
		return checkFallback(c.Fallback)
	}},
	{"CONCORD_REQUIRE", "", "backends whose absence must fail tests instead of skipping them", func(c *Config, v string) error {
		c.Required = strings.FieldsFunc(strings.ToLower(v), func(r rune) bool { return r == ',' || r == ' ' })
		for _, name := range c.Required { // a backend of another module may not be registered yet: see Requires
			if !wellFormed(name) {
				return fmt.Errorf("%q is not the name of a backend, such as opencl or sim-cuda", name)
			}
		}
		return nil
	}},
	{"CONCORD_PROBE_CACHE", "1", "0: look for devices at every call", func(c *Config, v string) error {
		on, err := parseBool(v)
		c.NoProbeCache = !on
		return err
	}},
	{"CONCORD_PROBE_TIMEOUT", "5s", "time that looking for the devices of one backend may take", func(c *Config, v string) (err error) {
		c.ProbeTimeout, err = time.ParseDuration(v)
		if err == nil && c.ProbeTimeout <= 0 {
			err = fmt.Errorf("%q is not positive", v)
		}
		return err
	}},
	{"CONCORD_OPENCL_LIBRARY", "", "path of the OpenCL loader, instead of the usual names", func(c *Config, v string) error {
		c.OpenCLLibrary = v
		return nil
	}},
	{"CONCORD_CUDA_LIBRARY", "", "path of the CUDA driver's library, instead of libcuda.so.1", func(c *Config, v string) error {
		c.CUDALibrary = v
		return nil
	}},
	{"CONCORD_NVRTC_LIBRARY", "", "path of NVRTC, the compiler for NVIDIA devices, instead of the usual names", func(c *Config, v string) error {
		c.NVRTCLibrary = v
		return nil
	}},
	{"CONCORD_HIP_LIBRARY", "", "path of AMD's libamdhip64, with hipRTC inside or beside it, instead of the usual names", func(c *Config, v string) error {
		c.HIPLibrary = v
		return nil
	}},
	{"CONCORD_NVML_LIBRARY", "", "path of NVML, for the telemetry of NVIDIA devices, instead of libnvidia-ml.so.1", func(c *Config, v string) error {
		c.NVMLLibrary = v
		return nil
	}},
	{"CONCORD_ROCM_SMI_LIBRARY", "", "path of ROCm SMI, for the telemetry of AMD devices, instead of the usual names", func(c *Config, v string) error {
		c.ROCmSMILibrary = v
		return nil
	}},
	{"CONCORD_SIM_DIR", "", "directory of simulated vendor libraries; set, sim-cuda, sim-rocm and sim-metal (those of the build) are listed too; by name they open without it, from build/sim", func(c *Config, v string) error {
		c.SimDir = v
		return nil
	}},
	{"CONCORD_CPU_THREADS", "", "threads of the cpu backend; default GOMAXPROCS", func(c *Config, v string) (err error) {
		c.CPUThreads, err = parseInt(v, 1, 4096)
		return err
	}},
	{"CONCORD_CPU_KERNELS", "", "instructions of the cpu backend's own kernels: avx512, avx2, neon or go; default the widest that the processor has", func(c *Config, v string) error {
		c.CPUKernels = strings.ToLower(v)
		if known := []string{"avx512", "avx2", "neon", "go"}; !slices.Contains(known, c.CPUKernels) {
			return fmt.Errorf("%q is not one of %v", v, known)
		}
		return nil
	}},
}

// ParseEnv reads a configuration from an environment in the form of os.Environ.
// A malformed value is an error that names the variable.
func ParseEnv(environ []string) (Config, error) {
	var c Config
	var unknown []string
	for _, entry := range environ {
		name, value, _ := strings.Cut(entry, "=")
		if !strings.HasPrefix(name, "CONCORD_") {
			continue
		}
		i := slices.IndexFunc(Variables, func(v variable) bool { return v.Name == name })
		if i < 0 {
			unknown = append(unknown, name)
			continue
		}
		if value == "" && name != "CONCORD_FAKE_DEVICES" {
			continue // empty is unset, as in most programs; an empty list of fakes means "no GPU"
		}
		if err := Variables[i].set(&c, value); err != nil {
			return Config{}, fmt.Errorf("%s=%s: %w: %w", name, value, err, ErrInvalidArgument)
		}
	}
	if c.Strict && len(unknown) > 0 {
		return Config{}, fmt.Errorf("%s: not a variable that Concord knows, refused by CONCORD_STRICT=1: %w",
			strings.Join(unknown, ", "), ErrInvalidArgument)
	}
	if c.Strict {
		c.Fallback = Require
	}
	return c, nil
}

// Merge returns c with every field that is unset taken from env. A strict
// environment cannot be loosened.
func (c Config) Merge(env Config) Config {
	pick(&c.Device, env.Device)
	pick(&c.Fallback, env.Fallback)
	pick(&c.Debug, env.Debug)
	pick(&c.MemoryLimit, env.MemoryLimit)
	pick(&c.NoMemoryPool, env.NoMemoryPool)
	pick(&c.MemoryTrace, env.MemoryTrace)
	pick(&c.MemoryMode, env.MemoryMode)
	pick(&c.MemorySoftCount, env.MemorySoftCount)
	pick(&c.MemoryHardCount, env.MemoryHardCount)
	pick(&c.MemoryFill, env.MemoryFill)
	pick(&c.MemoryIdle, env.MemoryIdle)
	pick(&c.MemoryEmergency, env.MemoryEmergency)
	pick(&c.CacheDir, env.CacheDir)
	pick(&c.CacheSize, env.CacheSize)
	pick(&c.FakeDevices, env.FakeDevices)
	pick(&c.NoProbeCache, env.NoProbeCache)
	pick(&c.ProbeTimeout, env.ProbeTimeout)
	pick(&c.OpenCLLibrary, env.OpenCLLibrary)
	pick(&c.CUDALibrary, env.CUDALibrary)
	pick(&c.NVRTCLibrary, env.NVRTCLibrary)
	pick(&c.HIPLibrary, env.HIPLibrary)
	pick(&c.NVMLLibrary, env.NVMLLibrary)
	pick(&c.ROCmSMILibrary, env.ROCmSMILibrary)
	pick(&c.SimDir, env.SimDir)
	pick(&c.CPUThreads, env.CPUThreads)
	pick(&c.CPUKernels, env.CPUKernels)
	if c.Required == nil {
		c.Required = env.Required
	}
	if c.Bundles == nil {
		c.Bundles = env.Bundles
	}
	if c.Backends == nil {
		c.Backends = env.Backends
	}
	c.Strict = c.Strict || env.Strict
	if c.Strict {
		c.Fallback = Require
	}
	return c
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

// Check reports a value that can never be right.
func (c *Config) Check() error {
	if err := checkFallback(c.Fallback); err != nil {
		return fmt.Errorf("fallback policy: %w: %w", err, ErrInvalidArgument)
	}
	if err := checkFilling(c.MemoryFill); err != nil {
		return fmt.Errorf("Config.MemoryFill: %w: %w", err, ErrInvalidArgument)
	}
	switch c.MemoryMode {
	case PoolByDevice, PoolSplit, PoolWhole, PoolExact:
	default:
		return fmt.Errorf("Config.MemoryMode: %q is not split, whole or exact: %w", string(c.MemoryMode), ErrInvalidArgument)
	}
	for name, n := range map[string]int64{"MemoryLimit": c.MemoryLimit,
		"MemorySoftCount": int64(c.MemorySoftCount), "MemoryHardCount": int64(c.MemoryHardCount), "CacheSize": c.CacheSize,
		"ProbeTimeout": int64(c.ProbeTimeout), "CPUThreads": int64(c.CPUThreads)} {
		if n < 0 {
			return fmt.Errorf("negative Config.%s: %w", name, ErrInvalidArgument)
		}
	}
	return nil
}

// Requires reports whether tests have to fail where a backend is absent. It is an error that
// matches ErrUnknownBackend if Required has a name that is neither Concord's nor that of a backend
// of this program, since that name may be misspelt.
func (c Config) Requires(backend string) (bool, error) {
	backends := c.Backends
	if backends == nil {
		backends = Backends()
	}
	known := slices.Concat(BackendNames, SimulatedNames)
	for _, b := range backends {
		if !slices.Contains(known, b.Name()) {
			known = append(known, b.Name())
		}
	}
	for _, name := range c.Required {
		if !slices.Contains(known, name) {
			return false, fmt.Errorf("CONCORD_REQUIRE=%s: %w; there are %s", name, ErrUnknownBackend, strings.Join(known, ", "))
		}
	}
	return slices.Contains(c.Required, backend), nil
}

// wellFormed reports whether name can be that of a backend.
func wellFormed(name string) bool {
	const letters = "abcdefghijklmnopqrstuvwxyz"
	return strings.Trim(name, letters+"0123456789-_") == "" && strings.IndexAny(name, letters) == 0
}

func pick[T comparable](field *T, from T) {
	var zero T
	if *field == zero {
		*field = from
	}
}

func checkFallback(f Fallback) error {
	switch f {
	case "", Prefer, Require:
		return nil
	}
	return fmt.Errorf("%q is not require or prefer", string(f))
}

func checkFilling(f Filling) error {
	switch f {
	case FillNothing, FillZero, FillPattern:
		return nil
	}
	return fmt.Errorf("%q is not zero or pattern", string(f))
}

// ParseSize reads a number of bytes with an optional suffix K, M or G (powers of
// 1024).
func ParseSize(s string) (int64, error) {
	digits, scale := s, int64(1)
	if s != "" {
		switch s[len(s)-1] {
		case 'k', 'K':
			scale = 1 << 10
		case 'm', 'M':
			scale = 1 << 20
		case 'g', 'G':
			scale = 1 << 30
		}
		if scale > 1 {
			digits = s[:len(s)-1]
		}
	}
	n, err := strconv.ParseInt(digits, 10, 64)
	if err != nil || n <= 0 || n > math.MaxInt64/scale {
		return 0, fmt.Errorf("%q is not a positive size such as 4096, 512M or 2G", s)
	}
	return n * scale, nil
}

func parseBool(s string) (bool, error) {
	switch s {
	case "0":
		return false, nil
	case "1":
		return true, nil
	}
	return false, fmt.Errorf("%q is not 0 or 1", s)
}

func parseInt(s string, low, high int) (int, error) {
	n, err := strconv.Atoi(s)
	if err != nil || n < low || n > high {
		return 0, fmt.Errorf("%q is not a number from %d to %d", s, low, high)
	}
	return n, nil
}
