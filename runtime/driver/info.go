package driver

// Descriptions of backends and devices.

import (
	"time"

	"github.com/concord-compute/concord/source"
)

// State says whether a backend can be used.
type State string

// The states of a backend.
const (
	Available   State = "available"
	Unavailable State = "unavailable" // Reason says what is missing
	Disabled    State = "disabled"    // by build tag or environment
	Fake        State = "fake"        // CONCORD_FAKE_DEVICES
)

// Description holds the properties of a backend that are the same on every machine. The zero value
// describes a backend of which only the name is known.
type Description struct {
	Title string // the API's usual spelling: "CUDA"; "" means Backend.Name
	// other lower-case names that mean the backend in Open and CONCORD_FAKE_DEVICES, such as "hip" for rocm
	Aliases []string

	// Preference is the rank among backends: higher ones come first in lists of devices,
	// and "auto" opens the first real GPU. Backends of the same rank are ordered by name.
	// Concord's own have 4 (cuda), 3 (rocm), 2 (metal), 1 (opencl), 0 (vulkan) and -1 (cpu), so that
	// the zero value stands between opencl and cpu.
	Preference int

	// Portable says that the API serves the devices of several vendors. A vendor's own API may list
	// the same devices.
	Portable bool

	// Host says that the devices are the processor that the program runs on and need no driver.
	// "auto" opens the first device of the first such backend if there is no GPU, it stands in for
	// devices that fail to open, and fakes do not replace it. A device of Kind CPU is something
	// else: a driver may offer one, too.
	Host bool
}

// Probe is the result of discovery for one backend.
type Probe struct {
	Backend string `json:"backend"`
	State   State  `json:"state"`
	Reason  string `json:"reason,omitempty"` // one sentence; empty only if the backend is available
	// an instruction that would make devices available; "" if none is known
	Remedy          string        `json:"remedy,omitempty"`
	Tried           []string      `json:"tried,omitempty"` // libraries and tools that were tried, with the outcome
	DriverVersion   string        `json:"driver_version,omitempty"`
	RuntimeVersion  string        `json:"runtime_version,omitempty"`
	CompilerVersion string        `json:"compiler_version,omitempty"`
	Libraries       []Library     `json:"libraries,omitempty"` // the vendor's libraries that are open
	Devices         []Info        `json:"devices"`
	Elapsed         time.Duration `json:"elapsed_ns"`
}

// Library is a vendor's library that is open in this process.
type Library struct {
	Name      string `json:"name"`              // "cuda", "nvrtc", "nvrtc-builtins", "cublas"
	Version   string `json:"version,omitempty"` // as the library reports it; "" if it does not
	Path      string `json:"path,omitempty"`    // the file, symbolic links resolved
	Simulated bool   `json:"simulated,omitempty"`
}

// Kind is the kind of a device.
type Kind string

// The kinds of devices.
const (
	Discrete    Kind = "discrete"
	Integrated  Kind = "integrated"
	Virtual     Kind = "virtual"
	CPU         Kind = "cpu"
	Accelerator Kind = "accelerator"
)

// Info describes one device. A number that is zero is unknown; numbers are never guesses. A flag is
// true only if the feature is known to be there.
//
// The fields ID, Backend, NativeIndex, Name, Kind and BaseAlign are mandatory, and for a device
// that is a Compiler also MaxGroupSize and LocalMemory, against which launches are checked.
// Everything else may be unknown.
type Info struct {
	ID string `json:"id"` // how Open names it: "cuda:0", "cpu:reference"
	// position in the merged list of all backends; -1 while other backends have not been probed
	Index         int    `json:"index"`
	Backend       string `json:"backend"`
	NativeIndex   int    `json:"native_index"`
	Name          string `json:"name"`
	Vendor        string `json:"vendor,omitempty"`
	DriverVersion string `json:"driver_version,omitempty"`
	UUID          string `json:"uuid,omitempty"`
	PCI           string `json:"pci,omitempty"` // "0000:3b:00.0"
	Kind          Kind   `json:"kind"`
	Fake          bool   `json:"fake,omitempty"`
	Simulated     bool   `json:"simulated,omitempty"`
	// the device is listed and opened only if it, or in CONCORD_REQUIRE its backend, is named, as a processor that a
	// driver offers beside GPUs
	ByName bool `json:"by_name,omitempty"`

	Arch         string `json:"arch,omitempty"` // "sm_90", "gfx90a", a CPU's instruction sets
	ComputeMajor int    `json:"compute_major,omitempty"`
	ComputeMinor int    `json:"compute_minor,omitempty"`

	TotalMemory     int64 `json:"total_memory,omitempty"`
	FreeMemory      int64 `json:"free_memory,omitempty"` // read at call time; only with FreeMemoryKnown
	FreeMemoryKnown bool  `json:"free_memory_known"`
	MaxAllocation   int64 `json:"max_allocation,omitempty"`
	BaseAlign       int64 `json:"base_align,omitempty"` // bytes; every allocation and aligned view starts at a multiple

	// CUDA's multiprocessors, HIP's compute units, cores of a CPU
	ComputeUnits       int     `json:"compute_units,omitempty"`
	SubgroupSize       int     `json:"subgroup_size,omitempty"` // items that run in lockstep: CUDA's warp, HIP's wavefront
	ClockMHz           int     `json:"clock_mhz,omitempty"`
	MemoryBandwidthGBs float64 `json:"memory_bandwidth_gbs,omitempty"`
	PeakGFLOPS         float64 `json:"peak_gflops,omitempty"`

	MemoryClockMHz int `json:"memory_clock_mhz,omitempty"`
	MemoryBusBits  int `json:"memory_bus_bits,omitempty"`
	MemoryChannels int `json:"memory_channels,omitempty"` // between the processor and its memory

	// Bytes of one cache of each level, of the first of them for data alone. Compute units may share one, and a device
	// may have several. With CachesKnown a level of 0 bytes is not there; without it, it is unknown.
	L1Cache     int64 `json:"l1_cache,omitempty"`
	L2Cache     int64 `json:"l2_cache,omitempty"`
	L3Cache     int64 `json:"l3_cache,omitempty"`
	CachesKnown bool  `json:"caches_known"`
	// bytes of the cache of the device's memory where the driver does not say of which level it is, as OpenCL's do not
	MemoryCache int64 `json:"memory_cache,omitempty"`
	CacheLine   int   `json:"cache_line,omitempty"` // bytes

	// Limits of a launch. A group is CUDA's and HIP's block, local memory their shared memory.
	MaxGroupSize  int    `json:"max_group_size,omitempty"`  // items of a group
	MaxGroupSizes [3]int `json:"max_group_sizes"`           // items of a group along each dimension
	MaxGroups     [3]int `json:"max_groups,omitzero"`       // groups along each dimension; 0 = no limit
	MaxGroupCount int    `json:"max_group_count,omitempty"` // groups of a launch in all; 0 = no limit
	MaxItems      int    `json:"max_items,omitempty"`       // items along a dimension; 0 = no limit
	LocalMemory   int64  `json:"local_memory,omitempty"`    // bytes of a group
	// bytes of a group, for kernels whose driver opts in to more
	LocalMemoryOptIn          int64 `json:"local_memory_opt_in,omitempty"`
	ItemsPerComputeUnit       int   `json:"items_per_compute_unit,omitempty"`
	GroupsPerComputeUnit      int   `json:"groups_per_compute_unit,omitempty"`
	LocalMemoryPerComputeUnit int64 `json:"local_memory_per_compute_unit,omitempty"` // bytes
	RegistersPerComputeUnit   int   `json:"registers_per_compute_unit,omitempty"`

	UnifiedMemory bool   `json:"unified_memory"`
	PeerAccess    []bool `json:"peer_access,omitempty"`

	// Suballocation says that any range of an allocation whose offset is a multiple of BaseAlign
	// serves as well as an allocation of its own, as on devices with plain addresses. The pool then
	// cuts buffers from large allocations. False is always correct: the pool then reuses each
	// allocation as a whole.
	Suballocation bool `json:"suballocation"`

	// VectorLoops says that the device has vector loops of its own for kernels of the catalog and for
	// expressions, which read rows that stay in a cache. Others compute them in groups of items.
	VectorLoops bool `json:"vector_loops"`

	// Features are the values of the extension macros in portable programs.
	Features source.Features `json:"features"`

	SupportsFP16            bool `json:"supports_fp16"`
	FastFP16                bool `json:"fast_fp16"`
	SupportsDP4A            bool `json:"supports_dp4a"`
	HasTensorCores          bool `json:"has_tensor_cores"`
	SupportsInt8TensorCores bool `json:"supports_int8_tensor_cores"`
	SupportsBF16            bool `json:"supports_bf16"`
	SupportsTF32            bool `json:"supports_tf32"`
	SupportsFP8             bool `json:"supports_fp8"`
	SupportsClusters        bool `json:"supports_clusters"`
}

// IsGPU reports whether the device is a real graphics processor: neither a CPU that OpenCL exposes,
// nor fake, nor simulated.
func (i *Info) IsGPU() bool {
	real := !i.Fake && !i.Simulated
	return real && (i.Kind == Discrete || i.Kind == Integrated || i.Kind == Virtual)
}
