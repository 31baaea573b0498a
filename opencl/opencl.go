//go:build cgo && opencl && (linux || darwin)

package opencl

// The backend: what is on the machine, and opening one device of it.

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/go-gl/cl/v1.2/cl"

	"github.com/concord-compute/concord/runtime/driver"
)

const name = "opencl"

func init() { driver.Register(backend{}) }

type backend struct{}

var _ driver.Backend = backend{}

func (backend) Name() string { return name }

// install is what to do about a machine without OpenCL.
const install = "install a loader (Debian: ocl-icd-libopencl1) and a driver " +
	"(the GPU vendor's, mesa-opencl-icd, intel-opencl-icd, or pocl-opencl-icd for the CPU)"

// Probe lists platforms and devices. Drivers can take long to wake up: the work
// goes on in its goroutine when ctx is done, and its result is dropped.
func (backend) Probe(ctx context.Context, cfg *driver.Config) driver.Probe {
	start := time.Now()
	result := make(chan driver.Probe, 1)
	go func() { result <- probe(cfg) }()
	select {
	case p := <-result:
		p.Elapsed = time.Since(start)
		return p
	case <-ctx.Done():
		return driver.Probe{Backend: name, State: driver.Unavailable, Elapsed: time.Since(start),
			Reason: "asking the OpenCL drivers for their devices: " + ctx.Err().Error()}
	}
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

// noDevices says why platforms that are there offer nothing.
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
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	id := fmt.Sprintf("%s:%d", name, nativeIndex)
	if tried, there := library(cfg); !there {
		return nil, &driver.OpError{Backend: name, Device: id, Op: "open", Detail: strings.Join(tried, "; ") + "; " + install, Err: driver.ErrNoDevice}
	}
	platforms, err := listPlatforms()
	if err != nil {
		return nil, &driver.OpError{Backend: name, Device: id, Op: "open", Detail: err.Error(), Err: driver.ErrNoDevice}
	}
	n := 0
	for _, pl := range platforms {
		for _, dev := range pl.devices {
			if n == nativeIndex {
				return openDevice(pl, dev, nil, n)
			}
			n++
		}
	}
	return nil, &driver.OpError{Backend: name, Device: id, Op: "open", Detail: fmt.Sprintf("there are %d OpenCL devices", n), Err: driver.ErrDeviceIndex}
}
