//go:build cgo && opencl && (linux || darwin)

package opencl

// Platforms, and the properties of a device as OpenCL reports them.

import (
	"encoding/hex"
	"fmt"
	"math"
	"slices"
	"strings"
	"unsafe"

	"github.com/go-gl/cl/v1.2/cl"

	"github.com/concord-compute/concord/runtime/driver"
	"github.com/concord-compute/concord/source"
)

// Queries for which the binding has no constant.
const (
	deviceUUID   cl.DeviceInfo = 0x106A // cl_khr_device_uuid
	nvMajor      cl.DeviceInfo = 0x4000 // cl_nv_device_attribute_query
	nvMinor      cl.DeviceInfo = 0x4001
	nvWarp       cl.DeviceInfo = 0x4003
	amdBoard     cl.DeviceInfo = 0x4038 // cl_amd_device_attribute_query
	amdFree      cl.DeviceInfo = 0x4039
	amdWavefront cl.DeviceInfo = 0x4043
	amdChannels  cl.DeviceInfo = 0x4044
)

type platform struct {
	id            cl.PlatformID
	name, version string
	devices       []cl.DeviceId
	reason        string // why devices is empty
}

// listPlatforms lists the loader's platforms with their devices. A platform without devices is
// normal: a driver whose hardware is missing.
func listPlatforms() ([]platform, error) {
	var n uint32
	code := cl.GetPlatformIDs(0, nil, &n)
	if code == codeNoPlatform || code == cl.SUCCESS && n == 0 {
		return nil, nil
	}
	if code != cl.SUCCESS {
		return nil, fmt.Errorf("clGetPlatformIDs: %s (code %d)", codeName(code), code)
	}
	ids := make([]cl.PlatformID, n)
	if code = cl.GetPlatformIDs(n, &ids[0], &n); code != cl.SUCCESS {
		return nil, fmt.Errorf("clGetPlatformIDs: %s (code %d)", codeName(code), code)
	}
	list := make([]platform, 0, n)
	for _, id := range ids[:n] {
		list = append(list, listDevices(id))
	}
	return list, nil
}

func listDevices(id cl.PlatformID) platform {
	p := platform{id: id, name: platformText(id, cl.PLATFORM_NAME), version: platformText(id, cl.PLATFORM_VERSION)}
	var n uint32
	code := cl.GetDeviceIDs(id, cl.DEVICE_TYPE_ALL, 0, nil, &n)
	if code == cl.SUCCESS && n > 0 {
		p.devices = make([]cl.DeviceId, n)
		code = cl.GetDeviceIDs(id, cl.DEVICE_TYPE_ALL, n, &p.devices[0], &n)
		p.devices = p.devices[:n]
	}
	if code != cl.SUCCESS {
		p.devices = nil
		p.reason = fmt.Sprintf("no device: %s (code %d)", codeName(code), code)
	} else if len(p.devices) == 0 {
		p.reason = "no device"
	}
	return p
}

func platformText(id cl.PlatformID, what cl.PlatformInfo) string {
	return text(cl.GetPlatformInfo, id, what)
}

func deviceText(id cl.DeviceId, what cl.DeviceInfo) string { return text(cl.GetDeviceInfo, id, what) }

// text fetches a string of any length from a query of the binding; it is empty if the query fails.
func text[O, Q any](get func(O, Q, uint64, unsafe.Pointer, *uint64) cl.ErrorCode, of O, what Q) string {
	var n uint64
	if get(of, what, 0, nil, &n) != cl.SUCCESS || n == 0 || n > 1<<28 {
		return ""
	}
	buf := make([]byte, n)
	if get(of, what, n, unsafe.Pointer(&buf[0]), &n) != cl.SUCCESS {
		return ""
	}
	s, _, _ := strings.Cut(string(buf), "\x00")
	return strings.TrimSpace(s)
}

// number fetches an integer of 4 or 8 bytes; it is 0 if the query fails.
func number(id cl.DeviceId, what cl.DeviceInfo) uint64 {
	var v, n uint64 // a shorter answer fills the low bytes
	if cl.GetDeviceInfo(id, what, 8, unsafe.Pointer(&v), &n) != cl.SUCCESS || n > 8 {
		return 0
	}
	return v
}

func describe(pl platform, id cl.DeviceId, index int) driver.Info {
	ext := strings.Fields(deviceText(id, cl.DEVICE_EXTENSIONS))
	has := func(extension string) bool { return slices.Contains(ext, extension) }
	info := driver.Info{
		ID: fmt.Sprintf("%s:%d", name, index), Backend: name, NativeIndex: index,
		Name: deviceText(id, cl.DEVICE_NAME), Vendor: deviceText(id, cl.DEVICE_VENDOR),
		DriverVersion: deviceText(id, cl.DRIVER_VERSION),

		TotalMemory:   int64(number(id, cl.DEVICE_GLOBAL_MEM_SIZE)),
		MaxAllocation: int64(number(id, cl.DEVICE_MAX_MEM_ALLOC_SIZE)),
		BaseAlign:     max(int64(number(id, cl.DEVICE_MEM_BASE_ADDR_ALIGN)/8), 1), // the answer is in bits

		ComputeUnits:  int(number(id, cl.DEVICE_MAX_COMPUTE_UNITS)),
		ClockMHz:      int(number(id, cl.DEVICE_MAX_CLOCK_FREQUENCY)),
		MaxGroupSize:  int(number(id, cl.DEVICE_MAX_WORK_GROUP_SIZE)),
		LocalMemory:   int64(number(id, cl.DEVICE_LOCAL_MEM_SIZE)),
		MemoryCache:   int64(number(id, cl.DEVICE_GLOBAL_MEM_CACHE_SIZE)),
		CacheLine:     int(number(id, cl.DEVICE_GLOBAL_MEM_CACHELINE_SIZE)),
		UnifiedMemory: number(id, cl.DEVICE_HOST_UNIFIED_MEMORY) != 0,
		Features: source.Features{
			FP64:        has("cl_khr_fp64") || number(id, cl.DEVICE_DOUBLE_FP_CONFIG) != 0,
			FP16:        has("cl_khr_fp16"),
			Int64Atomic: has("cl_khr_int64_base_atomics") && has("cl_khr_int64_extended_atomics"),
		},
	}
	info.Kind = kindOf(number(id, cl.DEVICE_TYPE), info.UnifiedMemory)
	var sizes [8]uint64
	if cl.GetDeviceInfo(id, cl.DEVICE_MAX_WORK_ITEM_SIZES, 64, unsafe.Pointer(&sizes), nil) == cl.SUCCESS {
		info.MaxGroupSizes = [3]int{int(sizes[0]), int(sizes[1]), int(sizes[2])}
	}
	if has("cl_khr_device_uuid") {
		var uuid [16]byte
		if cl.GetDeviceInfo(id, deviceUUID, 16, unsafe.Pointer(&uuid), nil) == cl.SUCCESS {
			info.UUID = hex.EncodeToString(uuid[:])
		}
	}
	if has("cl_nv_device_attribute_query") {
		info.ComputeMajor, info.ComputeMinor = int(number(id, nvMajor)), int(number(id, nvMinor))
		info.Arch = fmt.Sprintf("sm_%d%d", info.ComputeMajor, info.ComputeMinor)
		info.SubgroupSize = int(number(id, nvWarp))
	}
	if has("cl_amd_device_attribute_query") {
		info.Arch = info.Name // "gfx90a:sramecc+:xnack-"
		if board := deviceText(id, amdBoard); board != "" {
			info.Name = board
		}
		info.SubgroupSize = int(number(id, amdWavefront))
		info.MemoryChannels = int(number(id, amdChannels))
	}
	if number(id, cl.DEVICE_ADDRESS_BITS) == 32 {
		info.MaxItems = math.MaxUint32 // its size_t has 32 bits
	}
	quirks(pl, &info)
	info.SupportsFP16 = info.Features.FP16
	info.FreeMemory, info.FreeMemoryKnown = freeMemory(id, has("cl_amd_device_attribute_query"))
	return info
}

// Platforms that need special care.
const (
	pocl     = "Portable Computing Language"
	rusticl  = "rusticl"
	oclgrind = "Oclgrind"
)

// quirks corrects values that drivers are known to report wrongly.
func quirks(pl platform, info *driver.Info) {
	if pl.name == oclgrind {
		info.Features.FP16 = false // it reports half and crashes in kernels that use it
		info.Simulated = true
	}
	switch pl.name {
	case pocl: // 3.1 has 32 bits for the groups in all: 2^32 end the process, a few more are all that run
		info.MaxGroupCount = math.MaxInt32
	case rusticl: // Mesa 22 ends the process for more items; for 2^32 groups llvmpipe runs none
		info.MaxGroupCount, info.MaxItems = math.MaxInt32, math.MaxUint32
	}
	for _, soft := range []string{"llvmpipe", "softpipe", "swrast"} {
		if strings.Contains(info.Name, soft) {
			info.Kind = driver.CPU // Mesa's renderers run on the CPU, whatever type they report
		}
	}
}

// kindOf turns a device's type bits into a kind. A simulator may have several bits set: a device
// with the CPU bit is not a GPU.
func kindOf(bits uint64, unified bool) driver.Kind {
	switch {
	case bits&uint64(cl.DEVICE_TYPE_CPU) != 0:
		return driver.CPU
	case bits&uint64(cl.DEVICE_TYPE_GPU) != 0 && unified:
		return driver.Integrated
	case bits&uint64(cl.DEVICE_TYPE_GPU) != 0:
		return driver.Discrete
	}
	return driver.Accelerator
}

// freeMemory queries AMD's extension; OpenCL has no query for free memory.
func freeMemory(id cl.DeviceId, amd bool) (bytes int64, known bool) {
	if !amd {
		return 0, false
	}
	var kib [2]uint64
	if cl.GetDeviceInfo(id, amdFree, 16, unsafe.Pointer(&kib), nil) != cl.SUCCESS {
		return 0, false
	}
	return int64(kib[0]) << 10, true
}
