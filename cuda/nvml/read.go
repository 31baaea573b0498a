//go:build cgo && cuda && linux

package nvml

// The reader: opens NVML, asks each device for each value.

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"github.com/concord-compute/concord/internal/cgo"
	"github.com/concord-compute/concord/runtime/driver"
	"github.com/concord-compute/concord/runtime/telemetry"
)

func newReader() telemetry.Reader { return &reader{open: open} }

// reader implements telemetry.Reader.
type reader struct {
	open func(cfg *driver.Config) (nvml.Interface, error)

	mu  sync.Mutex
	lib nvml.Interface // nil until Init has succeeded: nothing may be called before
}

// Name implements telemetry.Reader.
func (r *reader) Name() string { return "cuda" }

// Sample implements telemetry.Reader.
func (r *reader) Sample(ctx context.Context, cfg *driver.Config) ([]telemetry.Sample, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.begin(cfg); err != nil {
		return nil, err
	}
	n, ret := r.lib.DeviceGetCount()
	if ret == nvml.ERROR_UNINITIALIZED { // another part of the program called Shutdown, which affects the whole process
		r.lib = nil
	}
	if ret != nvml.SUCCESS {
		return nil, failure("telemetry", ret)
	}
	if n == 0 {
		return nil, &driver.OpError{Backend: "cuda", Op: "telemetry", Detail: "NVML lists no device", Err: driver.ErrNoDevice}
	}
	var list []telemetry.Sample
	var errs []error
	for i := range n {
		if err := ctx.Err(); err != nil {
			return list, errors.Join(append(errs, err)...)
		}
		s, err := r.device(i)
		list = append(list, s)
		if err != nil {
			errs = append(errs, err)
		}
	}
	return list, errors.Join(errs...)
}

// begin opens and initializes the library and sets r.lib, or returns an error.
func (r *reader) begin(cfg *driver.Config) error {
	if r.lib != nil {
		return nil
	}
	lib, err := r.open(cfg)
	if err != nil {
		return err
	}
	if ret := lib.Init(); ret != nvml.SUCCESS {
		return failure("telemetry: init of NVML", ret)
	}
	r.lib = lib
	return nil
}

// names are the names under which drivers install the library; the second one is WSL's.
var names = []string{"libnvidia-ml.so.1", "/usr/lib/wsl/lib/libnvidia-ml.so.1"}

// needed are the functions that are called before any device is queried.
var needed = []string{"nvmlInit_v2", "nvmlDeviceGetCount_v2", "nvmlDeviceGetHandleByIndex_v2"}

// open finds the library and checks that it is NVML: with another library go-nvml's Init would end
// the process.
func open(cfg *driver.Config) (nvml.Interface, error) {
	candidates := names
	if cfg.NVMLLibrary != "" {
		candidates = []string{cfg.NVMLLibrary}
	}
	var tried []string
	for _, name := range candidates {
		lib, err := cgo.Open(name)
		for _, symbol := range needed {
			if err == nil {
				_, err = lib.Lookup(symbol)
			}
		}
		if err == nil {
			return nvml.New(nvml.WithLibraryPath(name)), nil
		}
		tried = append(tried, err.Error())
	}
	return nil, &driver.OpError{Backend: "cuda", Op: "telemetry: open NVML", Detail: strings.Join(tried, "; "),
		Err: driver.ErrNoDevice}
}

// device reads all values of one device. If it returns an error, the sample still identifies the
// device as far as possible.
func (r *reader) device(index int) (telemetry.Sample, error) {
	s := telemetry.Sample{Backend: "cuda", Index: index, Time: time.Now()}
	dev, ret := r.lib.DeviceGetHandleByIndex(index)
	if ret != nvml.SUCCESS {
		return s, failure(fmt.Sprintf("telemetry of NVML's device %d", index), ret)
	}
	known := r.lib.Extensions()
	for i, row := range readings {
		if known.LookupSymbol(row.symbol) != nil {
			continue // an older driver
		}
		ret := row.read(dev, &s)
		if ret == nvml.ERROR_GPU_IS_LOST || ret == nvml.ERROR_RESET_REQUIRED {
			if i >= identity {
				s = telemetry.Sample{Backend: s.Backend, Index: s.Index, Name: s.Name, UUID: s.UUID, PCI: s.PCI, Time: s.Time}
			}
			return s, failure(fmt.Sprintf("telemetry of NVML's device %d", index), ret)
		}
	}
	return s, nil
}

// failure returns the error for a call that did not succeed. The texts are our own, because getting
// NVML's would need another call into it.
func failure(op string, ret nvml.Return) error {
	e := &driver.OpError{Backend: "cuda", Op: op, Code: int(ret), Err: driver.ErrUnsupported}
	switch ret {
	case nvml.ERROR_LIBRARY_NOT_FOUND:
		e.Detail, e.Err = "NVML could not be loaded", driver.ErrNoDevice
	case nvml.ERROR_DRIVER_NOT_LOADED:
		e.Detail, e.Err = "the NVIDIA driver is not loaded", driver.ErrNoDevice
	case nvml.ERROR_LIB_RM_VERSION_MISMATCH:
		e.Detail, e.Err = "NVML and the loaded driver are of different versions (a restart helps after an update)",
			driver.ErrNoDevice
	case nvml.ERROR_UNINITIALIZED:
		e.Detail, e.Err = "NVML was shut down by another part of the program", driver.ErrNoDevice
	case nvml.ERROR_NO_PERMISSION:
		e.Detail = "no permission"
	case nvml.ERROR_GPU_IS_LOST:
		e.Detail, e.Err = "the GPU has fallen off the bus", driver.ErrDeviceLost
	case nvml.ERROR_RESET_REQUIRED:
		e.Detail, e.Err = "the GPU needs a reset", driver.ErrDeviceLost
	case nvml.ERROR_TIMEOUT:
		e.Detail, e.Err = "the driver did not respond", driver.ErrTimeout
	default:
		e.Detail = "NVML refused"
	}
	return e
}
