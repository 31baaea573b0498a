// Package gomlx lets GoMLX compute on every device of Concord. It registers the backend "concord", so that a
// program needs only to import it,
//
//	import _ "github.com/concord-compute/concord/gomlx"
//
// and to choose it, by GOMLX_BACKEND=concord:cpu:0 in the environment or by
// compute.NewWithConfig("concord:cuda:0"). What follows "concord:" is the name of a device, or of several, as [New]
// takes them; "auto" if there is nothing.
//
// # Execution
//
// A computation is recorded as a graph of operations of package tensor. The first execution with inputs of new
// shapes traces the graph, and makes it one compiled function with planned memory and fused kernels. Loops and
// branches divide it into several functions, and the host reads their conditions. Later executions only launch.
//
// Results are in memory of their own. On devices whose memory the host can address, such as the CPU, GoMLX reads and
// writes it directly (shared buffers).
//
// # Several devices
//
// A computation that is assigned to no device runs on the one that its caller names. One for several devices (SPMD)
// runs on all of them at once, and AllReduce exchanges data between them, as collectives of package
// runtime/cluster do: all devices get the same bits, in every run. With automatic sharding each device gathers what
// the others have of the parameters that are divided, computes all, and keeps its part of the results that are
// divided: that is right, but no faster than one device.
//
// # What there is
//
// All of GoMLX's standard operations but those of complex numbers, whose data types, like those of less than 8
// bits, are not supported; an operation that is missing returns compute.ErrNotImplemented. Random bits are
// those of Philox4x32-10, the same on every device.
package gomlx

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"sync"

	"github.com/gomlx/compute"
	"github.com/pkg/errors"

	"github.com/concord-compute/concord/runtime"
	_ "github.com/concord-compute/concord/runtime/all" // every device
	"github.com/concord-compute/concord/runtime/cluster"
)

// Name is the name under which the backend is registered.
const Name = "concord"

func init() {
	compute.Register(Name, func(config string) (compute.Backend, error) { return New(config) })
}

// Backend computes on one device, or on several. It is safe for concurrent use.
type Backend struct {
	devices []*device

	mu       sync.Mutex
	finished bool
	teams    map[string]*team // by the numbers of their devices
}

var _ compute.Backend = (*Backend)(nil)

// New opens devices, named as runtime.Open takes them, with commas between them: "cuda:0,cuda:1". "cuda:*" stands for
// all devices of a backend, and "auto" for the best device; so does an empty name. One device named several times
// counts as several, for tests of distributed computations without as many devices; then there is no other.
func New(devices string) (*Backend, error) {
	ctx, b := context.Background(), &Backend{teams: map[string]*team{}}
	names, err := cluster.Names(ctx, nil, strings.Split(cmp.Or(devices, "auto"), ",")...)
	for i := 0; err == nil && i < len(names); i++ {
		err = b.open(ctx, cmp.Or(names[i], "auto"))
	}
	if err != nil {
		b.Finalize()
		return nil, errors.WithStack(err)
	}
	same := 0 // devices that are the first one
	for i, d := range b.devices {
		if d.dev.Stream().RunsOn(b.devices[0].dev) {
			same++
		}
		if slices.ContainsFunc(b.devices[:i], func(o *device) bool { return d.dev.Stream().RunsOn(o.dev) }) &&
			same != i+1 || same > 1 && same != i+1 {
			err := errors.Wrapf(runtime.ErrInvalidArgument, "%s: all devices are one, or all are different", b)
			b.Finalize()
			return nil, err
		}
	}
	return b, nil
}

// alike reports whether the devices are of one kind, so that they round alike.
func (b *Backend) alike() bool {
	first := b.devices[0].dev.Info()
	return !slices.ContainsFunc(b.devices, func(d *device) bool {
		info := d.dev.Info()
		return info.Backend != first.Backend || info.Name != first.Name || info.DriverVersion != first.DriverVersion
	})
}

// Name returns "concord".
func (b *Backend) Name() string { return Name }

// String returns the name of the backend and of its devices: "concord:cuda:0,cuda:1".
func (b *Backend) String() string {
	var names []string
	for _, d := range b.devices {
		names = append(names, d.dev.String())
	}
	return Name + ":" + strings.Join(names, ",")
}

// Description returns the names of the devices as their vendors give them.
func (b *Backend) Description() string {
	var names []string
	for _, d := range b.devices {
		names = append(names, d.String())
	}
	return "Concord on " + strings.Join(names, ", ")
}

// NumDevices returns the number of devices.
func (b *Backend) NumDevices() int { return len(b.devices) }

// DeviceDescription returns the name of a device, and the vendor's name for it.
func (b *Backend) DeviceDescription(n compute.DeviceNum) string {
	d, err := b.device(n)
	if err != nil {
		return err.Error()
	}
	return d.String()
}

// device returns the device of a number.
func (b *Backend) device(n compute.DeviceNum) (*device, error) {
	if n < 0 || int(n) >= len(b.devices) {
		return nil, errors.Errorf("device %d: the backend %s has %d", n, b, len(b.devices))
	}
	return b.devices[n], nil
}

// Builder returns a builder of a computation.
func (b *Backend) Builder(name string) compute.Builder { return newBuilder(b, name) }

// Finalize closes the devices. Buffers and executables of the backend cannot be used any more.
func (b *Backend) Finalize() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.finished {
		return
	}
	b.finished = true
	// There is nobody to tell of an error here; work that failed has told it before.
	for _, t := range b.teams {
		t.mu.Lock()
		_ = t.close()
		t.mu.Unlock()
	}
	for _, d := range b.devices {
		_ = d.scope.Close()
		_ = d.dev.Close()
	}
}

// IsFinalized reports whether Finalize was called.
func (b *Backend) IsFinalized() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.finished
}

// HasSharedBuffers reports whether the host can address the memory of all devices.
func (b *Backend) HasSharedBuffers() bool {
	return !slices.ContainsFunc(b.devices, func(d *device) bool { return !d.shared })
}
