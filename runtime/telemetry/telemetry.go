// Package telemetry has samples of devices' sensors, and the registry of readers of
// sensors. Readers are in packages of their own ([github.com/concord-compute/concord/cuda/nvml],
// [github.com/concord-compute/concord/rocm/smi]), which register themselves when they are imported;
// no backend imports them, as they may change how a whole program is linked.
//
// All functions may be called from any goroutine.
package telemetry

import (
	"cmp"
	"context"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/concord-compute/concord/runtime/driver"
)

// Reader reads the sensors of one vendor's devices, through a library other than the compute API:
// NVML, ROCm SMI.
type Reader interface {
	// Name is the name of the devices' backend: "cuda", "rocm".
	Name() string
	// Sample reads every device once. It opens the vendor's library at the first call. Without
	// library, driver or device the error matches driver.ErrNoDevice and says what is missing; the
	// next call tries again.
	//
	// An error does not invalidate the samples returned with it: it names further devices that
	// could not be read (driver.ErrDeviceLost). A value that a device does not report is unknown,
	// which is no error.
	//
	// It may be called from any goroutine. It blocks while the driver answers, which ctx cannot
	// interrupt: ctx is checked between devices.
	Sample(ctx context.Context, cfg *driver.Config) ([]Sample, error)
}

// Sample is one device at one moment. A nil number, a nil list and an empty string are unknown;
// numbers are never invented. JSON omits unknown values.
type Sample struct {
	Backend string    `json:"backend"`
	Index   int       `json:"index"` // in the vendor's order, which need not be that of NativeIndex
	Name    string    `json:"name,omitempty"`
	UUID    string    `json:"uuid,omitempty"` // as the vendor writes it; see Sample.Of
	PCI     string    `json:"pci,omitempty"`  // "0000:3b:00.0", lower case
	Time    time.Time `json:"time"`

	// Percent of the time, 0 to 100, over a window that the vendor chooses.
	Busy       *float64 `json:"busy_percent,omitempty"`        // some kernel was running
	MemoryBusy *float64 `json:"memory_busy_percent,omitempty"` // the memory controller was at work

	// Bytes of the device's memory. With most vendors Used includes the driver's own memory.
	MemoryUsed  *int64 `json:"memory_used,omitempty"`
	MemoryFree  *int64 `json:"memory_free,omitempty"`
	MemoryTotal *int64 `json:"memory_total,omitempty"`

	Temperature *float64 `json:"temperature_celsius,omitempty"`
	Power       *float64 `json:"power_watts,omitempty"`
	PowerLimit  *float64 `json:"power_limit_watts,omitempty"`
	Fan         *float64 `json:"fan_percent,omitempty"` // of the fan's own maximum

	// Clocks in MHz: the present ones and their maxima.
	Clock          *float64 `json:"clock_mhz,omitempty"` // of the compute units
	MaxClock       *float64 `json:"max_clock_mhz,omitempty"`
	MemoryClock    *float64 `json:"memory_clock_mhz,omitempty"`
	MaxMemoryClock *float64 `json:"max_memory_clock_mhz,omitempty"`

	// Memory errors since the driver was loaded.
	ECC            *bool  `json:"ecc,omitempty"` // errors are detected
	ECCCorrected   *int64 `json:"ecc_corrected,omitempty"`
	ECCUncorrected *int64 `json:"ecc_uncorrected,omitempty"`

	// Throttle lists the reasons why the clock is below its maximum; empty and not nil means that
	// there is none.
	Throttle []string `json:"throttle,omitzero"`
	// Processes are the processes that compute on the device; empty and not nil means none.
	Processes []Process `json:"processes,omitzero"`
}

// Process is one process on a device.
type Process struct {
	PID        int    `json:"pid"`
	Name       string `json:"name,omitempty"`        // "" if it may not be read
	MemoryUsed *int64 `json:"memory_used,omitempty"` // bytes of the device's memory
}

// Of reports whether the sample is of that device: the backend is the same, and the UUID or the PCI
// address. Indices prove nothing: vendors number devices in more than one order.
func (s *Sample) Of(i *driver.Info) bool {
	if s.Backend != i.Backend || i.Fake || i.Simulated {
		return false
	}
	if a, b := plainUUID(s.UUID), plainUUID(i.UUID); a != "" && a == b {
		return true
	}
	return s.PCI != "" && strings.EqualFold(s.PCI, i.PCI)
}

// plainUUID returns the digits of a UUID: "GPU-9A...-..." and "9a..." are the same.
func plainUUID(s string) string {
	s = strings.TrimPrefix(strings.ToLower(s), "gpu-")
	s = strings.ReplaceAll(s, "-", "")
	if strings.Trim(s, "0") == "" {
		return "" // drivers without UUIDs return all zeros
	}
	return s
}

var (
	registryMu sync.RWMutex
	registry   []Reader
)

// Register adds a reader of sensors. It is called from init functions and touches no library. It
// panics when r is nil or its name is taken.
func Register(r Reader) {
	if r == nil {
		panic("concord: telemetry.Register of nil")
	}
	registryMu.Lock()
	defer registryMu.Unlock()
	if slices.ContainsFunc(registry, func(o Reader) bool { return o.Name() == r.Name() }) {
		panic("concord: telemetry.Register called twice for " + r.Name())
	}
	registry = append(registry, r)
}

// Readers returns the registered readers: in the order of driver.Backends, then those whose
// backend is not registered, by name.
func Readers() []Reader {
	registryMu.RLock()
	list := slices.Clone(registry)
	registryMu.RUnlock()
	backends := driver.Backends()
	rank := func(r Reader) int {
		if i := slices.IndexFunc(backends, func(b driver.Backend) bool { return b.Name() == r.Name() }); i >= 0 {
			return i
		}
		return len(backends)
	}
	slices.SortFunc(list, func(a, b Reader) int { return cmp.Or(rank(a)-rank(b), strings.Compare(a.Name(), b.Name())) })
	return list
}

// Missing returns a Reader that is listed but cannot read, for builds without it: Sample returns
// the reason (driver.ErrNoDevice).
func Missing(name, reason string) Reader { return missing{name, reason} }

type missing struct{ name, reason string }

// Name implements Reader.
func (n missing) Name() string { return n.name }

// Sample implements Reader.
func (n missing) Sample(context.Context, *driver.Config) ([]Sample, error) {
	return nil, &driver.OpError{Backend: n.name, Op: "telemetry", Detail: n.reason, Err: driver.ErrNoDevice}
}

// ProcessName returns the name of a process as the operating system reports it, or "" if it does
// not. Drivers use the process numbers of the whole machine; in a container the same number may be
// another process, so no name is returned there.
func ProcessName(pid int) string {
	if space, err := os.Readlink("/proc/self/ns/pid"); err != nil || space != machineSpace {
		return ""
	}
	name, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/comm")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(name))
}

// machineSpace is the name that Linux has fixed for the first namespace of process numbers.
const machineSpace = "pid:[4026531836]"
