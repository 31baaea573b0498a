//go:build cgo && cuda && linux

package nvml

// The values that are read, each with the function of NVML that returns it.

import (
	"fmt"
	"math"
	"strings"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"github.com/concord-compute/concord/runtime/telemetry"
)

// readings are the calls for one device, in their order. A row is skipped if the library does not
// have its symbol. Some functions have several symbols with a version in the name; the table has
// the oldest, and go-nvml calls the newest. The values of a row that fails stay unknown.
var readings = []struct {
	symbol string
	read   func(d nvml.Device, s *telemetry.Sample) nvml.Return
}{
	// The first rows identify the device.
	{"nvmlDeviceGetUUID", value(nvml.Device.GetUUID, func(s *telemetry.Sample, v string) {
		s.UUID = strings.TrimSpace(v)
	})},
	{"nvmlDeviceGetPciInfo", value(nvml.Device.GetPciInfo, func(s *telemetry.Sample, p nvml.PciInfo) {
		if p.BusId[0] != 0 {
			s.PCI = fmt.Sprintf("%04x:%02x:%02x.0", p.Domain, p.Bus, p.Device)
		}
	})},
	{"nvmlDeviceGetName", value(nvml.Device.GetName, func(s *telemetry.Sample, v string) {
		s.Name = strings.TrimSpace(v)
	})},

	{"nvmlDeviceGetUtilizationRates", value(nvml.Device.GetUtilizationRates,
		func(s *telemetry.Sample, u nvml.Utilization) {
			s.Busy, s.MemoryBusy = new(float64(u.Gpu)), new(float64(u.Memory))
		})},
	{"nvmlDeviceGetMemoryInfo", value(nvml.Device.GetMemoryInfo, func(s *telemetry.Sample, m nvml.Memory) {
		s.MemoryUsed, s.MemoryFree, s.MemoryTotal = bytes(m.Used), bytes(m.Free), bytes(m.Total)
	})},
	{"nvmlDeviceGetTemperature", value(with(nvml.Device.GetTemperature, nvml.TEMPERATURE_GPU),
		func(s *telemetry.Sample, n uint32) { s.Temperature = in(1, n) })},
	{"nvmlDeviceGetPowerUsage", value(nvml.Device.GetPowerUsage,
		func(s *telemetry.Sample, n uint32) { s.Power = in(1000, n) })},
	{"nvmlDeviceGetEnforcedPowerLimit", value(nvml.Device.GetEnforcedPowerLimit,
		func(s *telemetry.Sample, n uint32) { s.PowerLimit = in(1000, n) })},
	{"nvmlDeviceGetFanSpeed", value(nvml.Device.GetFanSpeed,
		func(s *telemetry.Sample, n uint32) { s.Fan = in(1, n) })},
	{"nvmlDeviceGetClockInfo", value(with(nvml.Device.GetClockInfo, nvml.CLOCK_SM),
		func(s *telemetry.Sample, n uint32) { s.Clock = in(1, n) })},
	{"nvmlDeviceGetClockInfo", value(with(nvml.Device.GetClockInfo, nvml.CLOCK_MEM),
		func(s *telemetry.Sample, n uint32) { s.MemoryClock = in(1, n) })},
	{"nvmlDeviceGetMaxClockInfo", value(with(nvml.Device.GetMaxClockInfo, nvml.CLOCK_SM),
		func(s *telemetry.Sample, n uint32) { s.MaxClock = in(1, n) })},
	{"nvmlDeviceGetMaxClockInfo", value(with(nvml.Device.GetMaxClockInfo, nvml.CLOCK_MEM),
		func(s *telemetry.Sample, n uint32) { s.MaxMemoryClock = in(1, n) })},
	{"nvmlDeviceGetEccMode", value(eccMode,
		func(s *telemetry.Sample, mode nvml.EnableState) { s.ECC = new(mode == nvml.FEATURE_ENABLED) })},
	{"nvmlDeviceGetTotalEccErrors", value(eccErrors(nvml.MEMORY_ERROR_TYPE_CORRECTED),
		func(s *telemetry.Sample, n uint64) { s.ECCCorrected = bytes(n) })},
	{"nvmlDeviceGetTotalEccErrors", value(eccErrors(nvml.MEMORY_ERROR_TYPE_UNCORRECTED),
		func(s *telemetry.Sample, n uint64) { s.ECCUncorrected = bytes(n) })},
	{"nvmlDeviceGetCurrentClocksThrottleReasons", value(nvml.Device.GetCurrentClocksThrottleReasons,
		func(s *telemetry.Sample, mask uint64) { s.Throttle = throttle(mask) })},
	{"nvmlDeviceGetCurrentClocksEventReasons", func(d nvml.Device, s *telemetry.Sample) nvml.Return {
		if s.Throttle != nil {
			return nvml.SUCCESS // the older name of the function has returned it
		}
		mask, ret := d.GetCurrentClocksEventReasons()
		if ret == nvml.SUCCESS {
			s.Throttle = throttle(mask)
		}
		return ret
	}},
	{"nvmlDeviceGetComputeRunningProcesses", value(nvml.Device.GetComputeRunningProcesses,
		func(s *telemetry.Sample, list []nvml.ProcessInfo) { s.Processes = processes(list) })},
}

// identity is the number of rows that identify the device.
const identity = 3

// value returns the function of a row: if get succeeds, set stores what it returned.
func value[T any](get func(nvml.Device) (T, nvml.Return),
	set func(*telemetry.Sample, T)) func(nvml.Device, *telemetry.Sample) nvml.Return {
	return func(d nvml.Device, s *telemetry.Sample) nvml.Return {
		v, ret := get(d)
		if ret == nvml.SUCCESS {
			set(s, v)
		}
		return ret
	}
}

// with binds the argument of a function of NVML.
func with[A, T any](get func(nvml.Device, A) (T, nvml.Return), a A) func(nvml.Device) (T, nvml.Return) {
	return func(d nvml.Device) (T, nvml.Return) { return get(d, a) }
}

func eccMode(d nvml.Device) (nvml.EnableState, nvml.Return) {
	now, _, ret := d.GetEccMode()
	return now, ret
}

func eccErrors(kind nvml.MemoryErrorType) func(nvml.Device) (uint64, nvml.Return) {
	return func(d nvml.Device) (uint64, nvml.Return) { return d.GetTotalEccErrors(kind, nvml.VOLATILE_ECC) }
}

// in converts a value of NVML by dividing it by unit.
func in(unit float64, n uint32) *float64 { return new(float64(n) / unit) }

// bytes returns a number, or nil if NVML does not know it, for which it returns all bits set.
func bytes(n uint64) *int64 {
	if n > math.MaxInt64 {
		return nil
	}
	return new(int64(n))
}

func processes(list []nvml.ProcessInfo) []telemetry.Process {
	out := make([]telemetry.Process, len(list))
	for i, p := range list {
		out[i] = telemetry.Process{PID: int(p.Pid), Name: telemetry.ProcessName(int(p.Pid)),
			MemoryUsed: bytes(p.UsedGpuMemory)}
	}
	return out
}

// reasons are the bits for the reasons why the clock is below its maximum.
var reasons = []struct {
	bit  uint64
	word string
}{
	{nvml.ClocksThrottleReasonGpuIdle, "idle"},
	{nvml.ClocksThrottleReasonApplicationsClocksSetting, "clocks set by the user"},
	{nvml.ClocksThrottleReasonSwPowerCap, "power cap"},
	{nvml.ClocksThrottleReasonHwSlowdown, "hardware slowdown"},
	{nvml.ClocksThrottleReasonSyncBoost, "sync boost"},
	{nvml.ClocksThrottleReasonSwThermalSlowdown, "temperature (driver)"},
	{nvml.ClocksThrottleReasonHwThermalSlowdown, "temperature (hardware)"},
	{nvml.ClocksThrottleReasonHwPowerBrakeSlowdown, "external power brake"},
	{nvml.ClocksThrottleReasonDisplayClockSetting, "display clocks"},
}

// throttle returns the names of the reasons that are set. It never returns nil.
func throttle(mask uint64) []string {
	words := []string{}
	for _, r := range reasons {
		if mask&r.bit != 0 {
			words = append(words, r.word)
			mask &^= r.bit
		}
	}
	if mask != 0 {
		words = append(words, fmt.Sprintf("unknown reason %#x", mask))
	}
	return words
}
