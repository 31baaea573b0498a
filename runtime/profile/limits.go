package profile

// What a compute unit offers the groups that run on it.

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"

	"github.com/concord-compute/concord/runtime/driver"
)

// Limits are what one compute unit offers the groups that run on it at a time. A zero field is no limit. Registers are
// counted per item: a subgroup of n items that each need r registers takes n·r of the compute unit's. There is room
// for Registers of each of the n items in each partition.
type Limits struct {
	Target   string // the architecture or the device, for messages
	Unit     string // the vendor's word for a compute unit
	Subgroup string // the vendor's word for a subgroup

	Units        int // compute units of the device; 0: unknown
	SubgroupSize int // items that run in lockstep

	MaxGroup   int // items of a group
	Items      int // items at a time
	Subgroups  int // subgroups at a time
	Groups     int // groups at a time
	ManyGroups int // groups of more than one subgroup at a time, on AMD's: those with a barrier of their own

	Partitions      int // parts of a compute unit, each with registers of its own
	Registers       int // registers of a partition for each item of a subgroup
	RegisterGranule int // registers of an item are allocated in multiples of it
	MaxRegisters    int // registers of an item
	GroupRegisters  int // registers of all partitions together that one group may take, each item of a subgroup

	Scalars       int // scalar registers of a partition, AMD's before generation 10
	ScalarGranule int // scalar registers of a subgroup are allocated in multiples of it
	ScalarReserve int // scalar registers that the system takes for each subgroup

	Local        int64 // bytes of local memory
	LocalGroup   int64 // bytes of local memory of one group
	LocalGranule int64 // local memory is allocated in multiples of it
	LocalReserve int64 // bytes of local memory that the system takes for each group
}

// nvidia are the multiprocessors by compute capability, from the table of technical specifications
// in NVIDIA's CUDA C++ Programming Guide. Registers, partitions and granules are those of
// cuda_occupancy.h in its toolkit.
var nvidia = map[int]struct{ threads, groups, local, optIn, reserve, granule int }{
	50:  {2048, 32, 64, 48, 0, 256},
	52:  {2048, 32, 96, 48, 0, 256},
	60:  {2048, 32, 64, 48, 0, 256},
	61:  {2048, 32, 96, 48, 0, 256},
	70:  {2048, 32, 96, 96, 0, 256},
	72:  {2048, 32, 96, 96, 0, 256},
	75:  {1024, 16, 64, 64, 0, 256},
	80:  {2048, 32, 164, 163, 1, 128},
	86:  {1536, 16, 100, 99, 1, 128},
	87:  {1536, 16, 164, 163, 1, 128},
	89:  {1536, 24, 100, 99, 1, 128},
	90:  {2048, 32, 228, 227, 1, 128},
	100: {2048, 32, 228, 227, 1, 128},
	103: {2048, 32, 228, 227, 1, 128},
	120: {1536, 24, 100, 99, 1, 128},
	121: {1536, 24, 100, 99, 1, 128},
}

// warp is the number of items of a subgroup of every NVIDIA device.
const warp = 32

// LimitsOf returns the limits of an architecture, of which no device need be present. It knows NVIDIA's compute
// capabilities "sm_50" to "sm_121" and AMD's "gfx900" to "gfx1201". A name may have features, such as ":xnack-" or an
// "a" behind the number of a capability. subgroup chooses among wavefronts of 32 and 64 items where an architecture
// has both; 0 takes the one that compilers take. The compute units of AMD's generation 10 and later are workgroup
// processors, pairs of what AMD calls compute units, since groups are placed on those unless a compiler is told
// otherwise.
//
// An architecture that is not listed is ErrUnsupported, and not guessed; an impossible subgroup is
// ErrInvalidArgument.
func LimitsOf(target string, subgroup int) (Limits, error) {
	base, _, _ := strings.Cut(target, ":")
	var l Limits
	switch {
	case strings.HasPrefix(base, "sm_"):
		l = capability(base)
	case strings.HasPrefix(base, "gfx"):
		l = generation(base, subgroup)
	}
	if l.SubgroupSize == 0 {
		return Limits{}, fmt.Errorf("the limits of the architecture %q are not known: %w", target, driver.ErrUnsupported)
	}
	if subgroup != 0 && subgroup != l.SubgroupSize {
		return Limits{}, fmt.Errorf("%s has no %ss of %d items: %w", target, l.Subgroup, subgroup, driver.ErrInvalidArgument)
	}
	l.Target = target
	return l, nil
}

// capability returns the limits of a compute capability, or zeros.
func capability(target string) Limits {
	digits := strings.TrimRight(strings.TrimPrefix(target, "sm_"), "af") // sm_90a, sm_100f
	n, _ := strconv.Atoi(digits)
	p, ok := nvidia[n]
	if !ok {
		return Limits{}
	}
	l := multiprocessor()
	l.Items, l.Subgroups, l.Groups = p.threads, p.threads/warp, p.groups
	l.Local, l.LocalGroup = int64(p.local)<<10, int64(p.optIn)<<10
	l.LocalReserve, l.LocalGranule = int64(p.reserve)<<10, int64(p.granule)
	if n == 60 { // two partitions; a group must fit into four of half the size, as on 6.1
		l.Partitions, l.Registers = 2, 1024
	}
	return l
}

// multiprocessor is what all of NVIDIA's have in common: 65,536 registers in four partitions, which
// are allocated to warps in units of 256.
func multiprocessor() Limits {
	return Limits{Unit: "multiprocessor", Subgroup: "warp", SubgroupSize: warp, MaxGroup: 1024,
		Partitions: 4, Registers: 16384 / warp, RegisterGranule: 256 / warp, MaxRegisters: 255, GroupRegisters: 65536 / warp}
}

// generation returns the limits of an AMD architecture, or zeros. The rules are those of LLVM's AMDGPU
// backend, which AMD maintains (AMDGPUBaseInfo.cpp, namespace IsaInfo). Local memory is allocated
// in units of 512 bytes there.
func generation(target string, subgroup int) Limits {
	l := Limits{Unit: "compute unit", Subgroup: "wavefront", SubgroupSize: 64, MaxGroup: 1024, ManyGroups: 16,
		Partitions: 4, Registers: 256, RegisterGranule: 4, MaxRegisters: 256,
		Scalars: 800, ScalarGranule: 16, ScalarReserve: 16,
		Local: 64 << 10, LocalGroup: 64 << 10, LocalGranule: 512}
	waves := 10 // of a partition, a SIMD unit
	half := false
	switch target {
	case "gfx900", "gfx902", "gfx904", "gfx906", "gfx908", "gfx909", "gfx90c":
	case "gfx90a", "gfx940", "gfx941", "gfx942", "gfx950": // vector and accumulation registers in one file
		waves, l.Registers, l.RegisterGranule, l.MaxRegisters = 8, 512, 8, 512
		if target == "gfx950" {
			l.Local, l.LocalGroup, l.LocalGranule = 160<<10, 160<<10, 1280
		}
	case "gfx1010", "gfx1011", "gfx1012", "gfx1013":
		waves, l.Registers, l.RegisterGranule, half = 20, 512, 4, true
	case "gfx1030", "gfx1031", "gfx1032", "gfx1033", "gfx1034", "gfx1035", "gfx1036", "gfx1102", "gfx1103", "gfx1150",
		"gfx1152", "gfx1153":
		waves, l.Registers, l.RegisterGranule, half = 16, 512, 8, true
	case "gfx1100", "gfx1101", "gfx1151", "gfx1200", "gfx1201": // half as many registers again
		waves, l.Registers, l.RegisterGranule, half = 16, 768, 12, true
	default:
		return Limits{}
	}
	if half { // generation 10 and later
		l.Unit, l.Local, l.ManyGroups = "workgroup processor", 128<<10, 32
		l.Scalars, l.ScalarGranule, l.ScalarReserve = 0, 0, 0 // enough for every wavefront
		if subgroup != 64 {
			l.SubgroupSize = 32
			l.Registers, l.RegisterGranule = 2*l.Registers, 2*l.RegisterGranule
		}
	}
	l.Subgroups = waves * l.Partitions
	l.Items = l.Subgroups * l.SubgroupSize
	return l
}

// DeviceLimits returns the limits of a device. What its driver reports goes before the tables of
// LimitsOf, and serves alone for NVIDIA's capabilities that are newer than these. A CPU, of any backend,
// runs one group on a core at a time. A device that is no CPU, whose architecture is unknown and whose
// driver does not say how many items or groups run at a time, is ErrUnsupported, as are most GPUs under
// OpenCL.
func DeviceLimits(info driver.Info) (Limits, error) {
	l, err := LimitsOf(info.Arch, 0)
	if err == nil && info.SubgroupSize != 0 && info.SubgroupSize != l.SubgroupSize {
		l, err = LimitsOf(info.Arch, info.SubgroupSize)
	}
	known := info.ItemsPerComputeUnit > 0 || info.GroupsPerComputeUnit > 0
	switch {
	case info.Kind == driver.CPU:
		l = Limits{Unit: "core", Subgroup: "item", SubgroupSize: 1, Groups: 1}
	case err == nil && l.SubgroupSize == warp && l.GroupRegisters > 0:
		l.report(info)
	case err == nil: // AMD's, whose drivers do not say what they call a compute unit
	case strings.HasPrefix(info.Arch, "sm_") && known:
		l = multiprocessor()
		l.LocalReserve, l.LocalGranule = 1<<10, 128 // since 8.0
		l.report(info)
	case known:
		l = Limits{Unit: "compute unit", Subgroup: "subgroup", SubgroupSize: max(info.SubgroupSize, 1)}
		l.report(info)
	default:
		return Limits{}, fmt.Errorf("%s: the driver does not say how many groups a compute unit runs at a time, and the "+
			"architecture %q is not known: %w",
			info.ID, info.Arch, driver.ErrUnsupported)
	}
	l.Target, l.Units = info.ID, info.ComputeUnits
	l.MaxGroup = cmp.Or(info.MaxGroupSize, l.MaxGroup)
	l.LocalGroup = cmp.Or(max(info.LocalMemory, info.LocalMemoryOptIn), l.LocalGroup)
	return l, nil
}

// report takes what a driver says of a multiprocessor.
func (l *Limits) report(info driver.Info) {
	l.Items = cmp.Or(info.ItemsPerComputeUnit, l.Items)
	l.Subgroups = l.Items / l.SubgroupSize
	l.Groups = cmp.Or(info.GroupsPerComputeUnit, l.Groups)
	l.Local = cmp.Or(info.LocalMemoryPerComputeUnit, l.Local)
	if l.Partitions > 0 && info.RegistersPerComputeUnit > 0 {
		l.Registers = info.RegistersPerComputeUnit / l.Partitions / l.SubgroupSize
	}
}
