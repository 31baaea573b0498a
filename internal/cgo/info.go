//go:build cgo && unix

package cgo

// Info: the properties of a device as the driver reports them, in the terms of runtime/driver.

import (
	"cmp"
	"fmt"

	"github.com/concord-compute/concord/runtime/driver"
)

// baseAlign is the alignment of allocations in bytes, the same for every vendor of the table.
const baseAlign = 256

// describe makes the Info of a device. drv is the driver's version in its usual form.
func (v *Vendor) describe(c *cInfo, ordinal int, drv string) driver.Info {
	info := driver.Info{
		ID: fmt.Sprintf("%s:%d", v.Name, ordinal), Backend: v.Name, NativeIndex: ordinal,
		Name: cText(c.name[:]), Vendor: cmp.Or(cText(c.maker[:]), v.Maker),
		DriverVersion: cmp.Or(cText(c.driver[:]), drv), UUID: cText(c.uuid[:]), PCI: cText(c.pci[:]),
		Kind: kindOf(int(c.kind)), Simulated: v.Simulated || c.simulated != 0, ByName: c.by_name != 0,

		Arch: cText(c.arch[:]), ComputeMajor: int(c.major), ComputeMinor: int(c.minor),

		TotalMemory: int64(c.total_memory), MaxAllocation: int64(c.max_allocation), BaseAlign: baseAlign,

		ComputeUnits: int(c.multiprocessors), SubgroupSize: int(c.warp), ClockMHz: int(c.clock_khz) / 1000,
		// Memory transfers data on both edges of the clock, hence the factor 2.
		MemoryBandwidthGBs: 2 * float64(c.memory_clock_khz) * float64(c.memory_bus_bits) / 8 / 1e6,

		MemoryClockMHz: int(c.memory_clock_khz) / 1000, MemoryBusBits: int(c.memory_bus_bits), L2Cache: int64(c.l2_cache),

		MaxGroupSize:              int(c.max_threads),
		ItemsPerComputeUnit:       int(c.max_threads_multiprocessor),
		GroupsPerComputeUnit:      int(c.max_blocks_multiprocessor),
		LocalMemory:               int64(c.shared_block),
		LocalMemoryOptIn:          int64(c.shared_block_optin),
		LocalMemoryPerComputeUnit: int64(c.shared_multiprocessor),
		RegistersPerComputeUnit:   int(c.registers_multiprocessor),

		UnifiedMemory: c.unified != 0,
		Suballocation: true, // the table names memory by addresses
	}
	for i := range 3 {
		info.MaxGroupSizes[i] = int(c.max_group[i])
		info.MaxGroups[i] = int(c.max_groups[i])
	}
	info.Features = v.Features(info.Arch)
	if v.Describe != nil {
		v.Describe(&info)
	}
	return info
}

func kindOf(c int) driver.Kind {
	switch c {
	case 1:
		return driver.Discrete
	case 2:
		return driver.Integrated
	case 3:
		return driver.Virtual
	case 4:
		return driver.CPU
	}
	return driver.Accelerator
}
