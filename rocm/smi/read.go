//go:build cgo && rocm && linux

package smi

// The reader: finds the library, and converts its values to the units of package telemetry.

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/concord-compute/concord/runtime/driver"
	"github.com/concord-compute/concord/runtime/telemetry"
)

func newReader() telemetry.Reader { return &reader{} }

// reader implements telemetry.Reader. The library is used by one call at a time.
type reader struct {
	mu  sync.Mutex
	lib *library
}

// Name implements telemetry.Reader.
func (r *reader) Name() string { return "rocm" }

// Sample implements telemetry.Reader.
func (r *reader) Sample(ctx context.Context, cfg *driver.Config) ([]telemetry.Sample, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.lib == nil {
		lib, err := open(cfg)
		if err != nil {
			return nil, err
		}
		r.lib = lib
	}
	clear(r.lib.out[:8])
	if status := r.lib.call("num_monitor_devices", r.lib.at(0)); status != done {
		return nil, failure("telemetry", "ROCm SMI cannot count devices", status)
	}
	n := binary.LittleEndian.Uint32(r.lib.out)
	if n == 0 {
		return nil, failure("telemetry", "ROCm SMI lists no device", 0)
	}
	var list []telemetry.Sample
	for i := range n {
		if err := ctx.Err(); err != nil {
			return list, err
		}
		list = append(list, r.lib.sample(int(i)))
	}
	return list, nil
}

func failure(op, detail string, code int) error {
	return &driver.OpError{Backend: "rocm", Op: op, Detail: detail, Code: code, Err: driver.ErrNoDevice}
}

// names are the file names of the library: those of ROCm 7, 6 and 5, and Debian's.
var names = []string{"librocm_smi64.so.7", "librocm_smi64.so.6", "librocm_smi64.so.5", "librocm_smi64.so.1",
	"librocm_smi64.so", "/opt/rocm/lib/librocm_smi64.so"}

// kernelDriver is a directory that exists while the kernel's driver is loaded.
const kernelDriver = "/sys/module/amdgpu"

// open opens and starts the library.
func open(cfg *driver.Config) (*library, error) {
	candidates := names
	if cfg.ROCmSMILibrary != "" {
		candidates = []string{cfg.ROCmSMILibrary}
	} else if _, err := os.Stat(kernelDriver); err != nil {
		return nil, failure("telemetry", "the amdgpu driver is not loaded", 0)
	}
	var tried []string
	for _, name := range candidates {
		lib, status, err := openLibrary(name)
		switch {
		case lib != nil:
			return lib, nil
		case status != 0: // another version would say the same
			return nil, failure("telemetry", "init of ROCm SMI: no AMD device, or no access to it", status)
		}
		tried = append(tried, err.Error())
	}
	return nil, failure("telemetry: open ROCm SMI", strings.Join(tried, "; "), 0)
}

// The library's numbers of clocks, and of sensors of temperature: newer devices lack the first.
const (
	clockSystem = 0
	clockMemory = 4
	edge        = 0
	junction    = 1
)

// sample reads all values of one device.
func (l *library) sample(device int) telemetry.Sample {
	s := telemetry.Sample{Backend: "rocm", Index: device, Time: time.Now()}
	d := uint64(device)
	if name := l.out[:128]; l.call("dev_name_get", d, l.at(0), uint64(len(name))) == done {
		text, _, _ := bytes.Cut(name, []byte{0})
		s.Name = strings.TrimSpace(string(text))
	}
	if id, ok := l.number("dev_unique_id_get", d); ok && id != 0 {
		s.UUID = fmt.Sprintf("GPU-%016x", id)
	}
	if at, ok := l.number("dev_pci_id_get", d); ok {
		s.PCI = fmt.Sprintf("%04x:%02x:%02x.%d", at>>32, at>>8&0xff, at>>3&0x1f, at&7)
	}
	s.Busy = percent(l.number("dev_busy_percent_get", d))
	s.MemoryBusy = percent(l.number("dev_memory_busy_percent_get", d))
	s.MemoryUsed = whole(l.number("dev_memory_usage_get", d, 0))
	s.MemoryTotal = whole(l.number("dev_memory_total_get", d, 0))
	if s.MemoryUsed != nil && s.MemoryTotal != nil && *s.MemoryUsed <= *s.MemoryTotal {
		s.MemoryFree = new(*s.MemoryTotal - *s.MemoryUsed)
	}
	t, ok := l.number("dev_temp_metric_get", d, edge, 0)
	if !ok {
		t, ok = l.number("dev_temp_metric_get", d, junction, 0)
	}
	if ok {
		s.Temperature = new(float64(int64(t)) / 1e3)
	}
	if s.Power = in(1e6)(l.number("dev_power_ave_get", d, 0)); s.Power == nil {
		s.Power = in(1e6)(l.number("dev_current_socket_power_get", d))
	}
	s.PowerLimit = in(1e6)(l.number("dev_power_cap_get", d, 0))
	s.Clock, s.MaxClock = rates(l.clocks(d, clockSystem))
	s.MemoryClock, s.MaxMemoryClock = rates(l.clocks(d, clockMemory))
	speed, most := in(1)(l.number("dev_fan_speed_get", d, 0)), in(1)(l.number("dev_fan_speed_max_get", d, 0))
	if speed != nil && most != nil && *speed <= *most && *most > 0 {
		s.Fan = new(*speed / *most * 100)
	}
	if parts, ok := l.number("dev_ecc_enabled_get", d); ok {
		s.ECC = new(parts != 0)
		corrected, uncorrected, ok := l.errors(d, parts)
		s.ECCCorrected, s.ECCUncorrected = whole(corrected, ok), whole(uncorrected, ok)
	}
	s.Throttle = l.throttling(d)
	if list, status := l.processes(device); status == done {
		s.Processes = []telemetry.Process{}
		for _, p := range list {
			s.Processes = append(s.Processes, telemetry.Process{PID: int(p.pid), Name: telemetry.ProcessName(int(p.pid)),
				MemoryUsed: whole(p.memory, p.known)})
		}
	}
	return s
}

// in returns a function that converts a value of the library by dividing it by unit. The result is nil if the value is
// not known, which all bits set mean as well.
func in(unit float64) func(n uint64, ok bool) *float64 {
	return func(n uint64, ok bool) *float64 {
		if !ok || n > math.MaxInt64 {
			return nil
		}
		return new(float64(n) / unit)
	}
}

func percent(n uint64, ok bool) *float64 { return in(1)(n, ok && n <= 100) }

// rates converts rates of clocks from Hz, of which 0 is unknown.
func rates(now, highest uint64) (*float64, *float64) {
	return in(1e6)(now, now > 0), in(1e6)(highest, highest > 0)
}

func whole(n uint64, ok bool) *int64 {
	if !ok || n > math.MaxInt64 {
		return nil
	}
	return new(int64(n))
}
