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
	{"nvmlDeviceGetUUID", func(d nvml.Device, s *telemetry.Sample) (ret nvml.Return) {
		s.UUID, ret = text(d.GetUUID())
		return ret
	}},
	{"nvmlDeviceGetPciInfo", func(d nvml.Device, s *telemetry.Sample) nvml.Return {
		p, ret := d.GetPciInfo()
		if ret == nvml.SUCCESS && p.BusId[0] != 0 {
			s.PCI = fmt.Sprintf("%04x:%02x:%02x.0", p.Domain, p.Bus, p.Device)
		}
		return ret
	}},
	{"nvmlDeviceGetName", func(d nvml.Device, s *telemetry.Sample) (ret nvml.Return) {
		s.Name, ret = text(d.GetName())
		return ret
	}},

	{"nvmlDeviceGetUtilizationRates", func(d nvml.Device, s *telemetry.Sample) nvml.Return {
		u, ret := d.GetUtilizationRates()
		if ret == nvml.SUCCESS {
			s.Busy, s.MemoryBusy = new(float64(u.Gpu)), new(float64(u.Memory))
		}
		return ret
	}},
	{"nvmlDeviceGetMemoryInfo", func(d nvml.Device, s *telemetry.Sample) nvml.Return {
		m, ret := d.GetMemoryInfo()
		if ret == nvml.SUCCESS {
			s.MemoryUsed, s.MemoryFree, s.MemoryTotal = bytes(m.Used), bytes(m.Free), bytes(m.Total)
		}
		return ret
	}},
	{"nvmlDeviceGetTemperature", func(d nvml.Device, s *telemetry.Sample) (ret nvml.Return) {
		s.Temperature, ret = in(1)(d.GetTemperature(nvml.TEMPERATURE_GPU))
		return ret
	}},
	{"nvmlDeviceGetPowerUsage", func(d nvml.Device, s *telemetry.Sample) (ret nvml.Return) {
		s.Power, ret = in(1000)(d.GetPowerUsage())
		return ret
	}},
	{"nvmlDeviceGetEnforcedPowerLimit", func(d nvml.Device, s *telemetry.Sample) (ret nvml.Return) {
		s.PowerLimit, ret = in(1000)(d.GetEnforcedPowerLimit())
		return ret
	}},
	{"nvmlDeviceGetFanSpeed", func(d nvml.Device, s *telemetry.Sample) (ret nvml.Return) {
		s.Fan, ret = in(1)(d.GetFanSpeed())
		return ret
	}},
	{"nvmlDeviceGetClockInfo", func(d nvml.Device, s *telemetry.Sample) (ret nvml.Return) {
		s.Clock, ret = in(1)(d.GetClockInfo(nvml.CLOCK_SM))
		return ret
	}},
	{"nvmlDeviceGetClockInfo", func(d nvml.Device, s *telemetry.Sample) (ret nvml.Return) {
		s.MemoryClock, ret = in(1)(d.GetClockInfo(nvml.CLOCK_MEM))
		return ret
	}},
	{"nvmlDeviceGetMaxClockInfo", func(d nvml.Device, s *telemetry.Sample) (ret nvml.Return) {
		s.MaxClock, ret = in(1)(d.GetMaxClockInfo(nvml.CLOCK_SM))
		return ret
	}},
	{"nvmlDeviceGetMaxClockInfo", func(d nvml.Device, s *telemetry.Sample) (ret nvml.Return) {
		s.MaxMemoryClock, ret = in(1)(d.GetMaxClockInfo(nvml.CLOCK_MEM))
		return ret
	}},
	{"nvmlDeviceGetEccMode", func(d nvml.Device, s *telemetry.Sample) nvml.Return {
		now, _, ret := d.GetEccMode()
		if ret == nvml.SUCCESS {
			s.ECC = new(now == nvml.FEATURE_ENABLED)
		}
		return ret
	}},
	{"nvmlDeviceGetTotalEccErrors", func(d nvml.Device, s *telemetry.Sample) nvml.Return {
		n, ret := d.GetTotalEccErrors(nvml.MEMORY_ERROR_TYPE_CORRECTED, nvml.VOLATILE_ECC)
		if ret == nvml.SUCCESS {
			s.ECCCorrected = bytes(n)
		}
		return ret
	}},
	{"nvmlDeviceGetTotalEccErrors", func(d nvml.Device, s *telemetry.Sample) nvml.Return {
		n, ret := d.GetTotalEccErrors(nvml.MEMORY_ERROR_TYPE_UNCORRECTED, nvml.VOLATILE_ECC)
		if ret == nvml.SUCCESS {
			s.ECCUncorrected = bytes(n)
		}
		return ret
	}},
	{"nvmlDeviceGetCurrentClocksThrottleReasons", func(d nvml.Device, s *telemetry.Sample) nvml.Return {
		mask, ret := d.GetCurrentClocksThrottleReasons()
		if ret == nvml.SUCCESS {
			s.Throttle = throttle(mask)
		}
		return ret
	}},
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
	{"nvmlDeviceGetComputeRunningProcesses", func(d nvml.Device, s *telemetry.Sample) nvml.Return {
		list, ret := d.GetComputeRunningProcesses()
		if ret == nvml.SUCCESS {
			s.Processes = processes(list)
		}
		return ret
	}},
}

// identity is the number of rows that identify the device.
const identity = 3

// text returns the string that was read, or "" if the call failed.
func text(s string, ret nvml.Return) (string, nvml.Return) {
	if ret != nvml.SUCCESS {
		return "", ret
	}
	return strings.TrimSpace(s), ret
}

// in returns a function that converts a value of NVML by dividing it by unit. If the call failed,
// the result is nil.
func in(unit float64) func(n uint32, ret nvml.Return) (*float64, nvml.Return) {
	return func(n uint32, ret nvml.Return) (*float64, nvml.Return) {
		if ret != nvml.SUCCESS {
			return nil, ret
		}
		return new(float64(n) / unit), ret
	}
}

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
