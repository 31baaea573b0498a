//go:build cgo && rocm && linux

package smi

// The reader: finds the library, and converts its values to the units of package telemetry.

import (
	"context"
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
	n, status := r.lib.count()
	if status != 0 {
		return nil, failure("telemetry", "ROCm SMI cannot count devices", status)
	}
	if n == 0 {
		return nil, failure("telemetry", "ROCm SMI lists no device", 0)
	}
	var list []telemetry.Sample
	for i := range n {
		if err := ctx.Err(); err != nil {
			return list, err
		}
		list = append(list, r.lib.sample(i))
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
		lib, status, text := openLibrary(name)
		switch {
		case lib != nil:
			return lib, nil
		case status != 0: // another version would say the same
			return nil, failure("telemetry", "init of ROCm SMI: no AMD device, or no access to it", status)
		}
		tried = append(tried, text)
	}
	return nil, failure("telemetry: open ROCm SMI", strings.Join(tried, "; "), 0)
}

// sample reads all values of one device.
func (l *library) sample(device int) telemetry.Sample {
	s := telemetry.Sample{Backend: "rocm", Index: device, Time: time.Now()}
	v := l.read(device)
	s.Name = strings.TrimSpace(v.name())
	if id, ok := v.get(unique); ok && id != 0 {
		s.UUID = fmt.Sprintf("GPU-%016x", id)
	}
	if at, ok := v.get(pci); ok {
		s.PCI = fmt.Sprintf("%04x:%02x:%02x.%d", at>>32, at>>8&0xff, at>>3&0x1f, at&7)
	}
	s.Busy, s.MemoryBusy = v.percent(busy), v.percent(memoryBusy)
	s.MemoryUsed, s.MemoryTotal = v.whole(memoryUsed), v.whole(memoryTotal)
	if s.MemoryUsed != nil && s.MemoryTotal != nil && *s.MemoryUsed <= *s.MemoryTotal {
		s.MemoryFree = new(*s.MemoryTotal - *s.MemoryUsed)
	}
	if t, ok := v.get(temperature); ok {
		s.Temperature = new(float64(int64(t)) / 1e3)
	}
	s.Power, s.PowerLimit = v.in(1e6, power), v.in(1e6, powerLimit)
	s.Clock, s.MaxClock = v.in(1e6, clock), v.in(1e6, maxClock)
	s.MemoryClock, s.MaxMemoryClock = v.in(1e6, memoryClock), v.in(1e6, maxMemoryClock)
	if speed, most := v.in(1, fan), v.in(1, fanMax); speed != nil && most != nil && *speed <= *most && *most > 0 {
		s.Fan = new(*speed / *most * 100)
	}
	if blocks, ok := v.get(ecc); ok {
		s.ECC = new(blocks != 0)
	}
	s.ECCCorrected, s.ECCUncorrected = v.whole(eccCorrected), v.whole(eccUncorrected)
	s.Throttle = v.reasons()
	if list, status := l.processes(device); status == 0 {
		s.Processes = []telemetry.Process{}
		for _, p := range list {
			q := telemetry.Process{PID: p.pid, Name: telemetry.ProcessName(p.pid)}
			if p.known && p.memory <= math.MaxInt64 {
				q.MemoryUsed = new(int64(p.memory))
			}
			s.Processes = append(s.Processes, q)
		}
	}
	return s
}

// in returns a value of the library divided by unit, or nil if it is unknown.
func (v *values) in(unit float64, what int) *float64 {
	n, ok := v.get(what)
	if !ok || n > math.MaxInt64 { // all bits set also means unknown
		return nil
	}
	return new(float64(n) / unit)
}

func (v *values) percent(what int) *float64 {
	n := v.in(1, what)
	if n == nil || *n > 100 {
		return nil
	}
	return n
}

func (v *values) whole(what int) *int64 {
	n, ok := v.get(what)
	if !ok || n > math.MaxInt64 {
		return nil
	}
	return new(int64(n))
}

// reasons returns the reasons for throttling; nil means unknown.
func (v *values) reasons() []string {
	if mask, ok := v.get(throttle); ok {
		return words(mask)
	}
	mask, ok := v.get(throttleAny)
	switch {
	case !ok:
		return nil
	case mask == 0:
		return []string{}
	}
	return []string{"throttled"} // the reason is only in bits that differ from model to model
}
