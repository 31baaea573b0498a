//go:build cgo && opencl && (linux || darwin)

package opencl

// The backend: finding the devices of the machine and opening one of them.

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
	"unsafe"

	"github.com/go-gl/cl/v1.2/cl"

	"github.com/concord-compute/concord/internal/blocking"
	"github.com/concord-compute/concord/internal/cgo"
	"github.com/concord-compute/concord/runtime/driver"
)

func init() { driver.Register(backend{}) }

type backend struct{}

var (
	_ driver.Backend   = backend{}
	_ driver.Describer = backend{}
)

// drivers lets the first calls into OpenCL through one at a time, because two at once end the
// process (PoCL 3.1). It is a variable of the package, since all sessions share the loader and the
// drivers.
var drivers blocking.Gate

// builds does the same for the first build of each device. It is a separate gate, since a build may
// take minutes, in which other devices can be opened.
var builds blocking.Gate

// first identifies a kind of first call for the gates, and the object that it is made on.
type first struct {
	kind string
	id   uintptr
}

// firstOf names a call for a device.
func firstOf(kind string, id cl.DeviceId) first { return first{kind, uintptr(unsafe.Pointer(id))} }

// listing is the first call of all: listing platforms.
var listing = first{kind: "list"}

func (backend) Name() string { return name }

// Describe implements driver.Describer.
func (backend) Describe() driver.Description { return description }

// advice is the remedy for a machine on which no device is found.
const advice = "install an OpenCL loader and a driver (Debian: ocl-icd-libopencl1 with the vendor's ICD; " +
	"pocl-opencl-icd runs on any CPU)"

// install is the remedy for a machine without OpenCL.
const install = "install a loader (Debian: ocl-icd-libopencl1) and a driver " +
	"(the GPU vendor's, mesa-opencl-icd, intel-opencl-icd, or pocl-opencl-icd for the CPU)"

// Probe lists platforms and devices. Drivers can take long to start: when ctx is done Probe
// returns, the work goes on in its goroutine, and its result is dropped.
func (backend) Probe(ctx context.Context, cfg *driver.Config) driver.Probe {
	start := time.Now()
	p, err := blocking.Call(ctx, func() (p driver.Probe, err error) {
		leave, err := drivers.Enter(ctx, listing, cfg.ProbeLimit())
		if err != nil {
			return p, err
		}
		defer func() { leave(p.State == driver.Available) }()
		return probe(cfg), nil
	}, func(driver.Probe) {})
	if err != nil {
		p = driver.Probe{Backend: name, State: driver.Unavailable, Reason: "asking the OpenCL drivers for their devices: " +
			err.Error()}
	}
	if p.State != driver.Available {
		p.Remedy = cgo.Advice(p.Reason, advice)
	}
	p.Elapsed = time.Since(start)
	return p
}

func probe(cfg *driver.Config) driver.Probe {
	p := driver.Probe{Backend: name, State: driver.Unavailable}
	tried, there := library(cfg)
	p.Tried = tried
	if !there {
		p.Reason = "no OpenCL loader (" + strings.Join(tried, "; ") + "); " + install
		return p
	}
	platforms, err := listPlatforms()
	if err != nil {
		p.Reason = err.Error()
		return p
	}
	for _, pl := range platforms {
		if pl.reason != "" {
			p.Tried = append(p.Tried, "platform "+pl.name+": "+pl.reason)
			continue
		}
		p.Tried = append(p.Tried, fmt.Sprintf("platform %s: %d device(s)", pl.name, len(pl.devices)))
		for _, id := range pl.devices {
			info := describe(pl, id, len(p.Devices))
			if len(p.Devices) == 0 {
				p.DriverVersion = info.DriverVersion
				p.RuntimeVersion = pl.version
				p.CompilerVersion = deviceText(id, cl.DEVICE_OPENCL_C_VERSION)
			}
			p.Devices = append(p.Devices, info)
		}
	}
	if len(p.Devices) == 0 {
		p.Reason = noDevices(platforms)
		return p
	}
	p.State = driver.Available
	return p
}

// noDevices returns the reason why the existing platforms have no devices.
func noDevices(platforms []platform) string {
	if len(platforms) == 0 {
		return "the OpenCL loader lists no platform; " + install
	}
	var why []string
	for _, pl := range platforms {
		why = append(why, pl.name+": "+pl.reason)
	}
	return "no platform has a device (" + strings.Join(why, "; ") + ")"
}

// Open opens the device with that index in Probe's list.
func (backend) Open(ctx context.Context, nativeIndex int, cfg *driver.Config) (driver.Device, error) {
	d, err := blocking.Call(ctx, func() (*device, error) { return openIndex(ctx, nativeIndex, cfg) }, func(d *device) {
		_ = d.Close()
	})
	if err != nil {
		return nil, err
	}
	return d, nil
}

func openIndex(ctx context.Context, nativeIndex int, cfg *driver.Config) (*device, error) {
	refuse := func(is error, detail string) error {
		return &driver.OpError{Backend: name, Device: fmt.Sprintf("%s:%d", name, nativeIndex), Op: "open", Detail: detail,
			Err: is}
	}
	if tried, there := library(cfg); !there {
		return nil, refuse(driver.ErrNoDevice, strings.Join(tried, "; ")+"; "+install)
	}
	leave, err := enter(ctx, listing, cfg)
	if err != nil {
		return nil, err
	}
	platforms, err := listPlatforms()
	leave(err == nil && len(platforms) > 0)
	if err != nil {
		return nil, refuse(driver.ErrNoDevice, err.Error())
	}
	n := 0
	for _, pl := range platforms {
		for _, dev := range pl.devices {
			if n == nativeIndex {
				return openFirst(ctx, cfg, pl, dev, nil, n)
			}
			n++
		}
	}
	return nil, refuse(driver.ErrDeviceIndex, fmt.Sprintf("there are %d OpenCL devices", n))
}

// openFirst is openDevice. The first call for a device runs alone.
func openFirst(ctx context.Context, cfg *driver.Config, pl platform, dev cl.DeviceId, context cl.Context,
	index int) (*device, error) {
	leave, err := enter(ctx, firstOf("open", dev), cfg)
	if err != nil {
		return nil, err
	}
	d, err := openDevice(pl, dev, context, index)
	leave(err == nil)
	return d, err
}

// enter waits for the gate before a device is opened.
func enter(ctx context.Context, key first, cfg *driver.Config) (leave func(bool), err error) {
	leave, err = drivers.Enter(ctx, key, cfg.OpenLimit())
	if errors.Is(err, blocking.ErrHeld) {
		err = &driver.OpError{Backend: name, Op: "open", Detail: err.Error(), Err: driver.ErrTimeout}
	}
	return leave, err
}
