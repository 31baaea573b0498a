//go:build cgo && opencl && (linux || darwin)

package opencl

// A device: its context, and the state that all its streams share.

import (
	"fmt"
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/go-gl/cl/v1.2/cl"

	"github.com/concord-compute/concord/runtime/driver"
)

type device struct {
	info     driver.Info
	platform platform
	id       cl.DeviceId
	context  cl.Context
	amd      bool
	cause    atomic.Pointer[error] // why the context is gone
	closed   atomic.Bool

	mu     sync.RWMutex // guards memory; held for reading while a launch uses sub-buffers
	memory map[uint64]*allocation

	utility     sync.Mutex // guards the queue for the device's own small commands
	queue       cl.CommandQueue
	clockKnown  bool
	hostStamped bool // events carry the host's time, because the driver's times are useless
}

var (
	_ driver.Device        = (*device)(nil)
	_ driver.Compiler      = (*device)(nil)
	_ driver.NativeHandles = (*device)(nil)
)

// openDevice makes a device with a new context, or with a context of the program, whose reference
// it takes over.
func openDevice(pl platform, id cl.DeviceId, context cl.Context, index int) (*device, error) {
	d := &device{info: describe(pl, id, index), platform: pl, id: id, context: context, memory: map[uint64]*allocation{}}
	d.amd = d.info.FreeMemoryKnown
	var major, minor int
	version := deviceText(id, cl.DEVICE_VERSION)
	if _, err := fmt.Sscanf(version, "OpenCL %d.%d", &major, &minor); err != nil || major*10+minor < 12 {
		return nil, d.errorf("open", driver.ErrUnsupported, "device offers %q, needed is OpenCL 1.2", version)
	}
	if context == nil {
		properties := [3]uintptr{uintptr(cl.CONTEXT_PLATFORM), uintptr(unsafe.Pointer(pl.id)), 0}
		var code cl.ErrorCode
		d.context = cl.CreateContext((*cl.ContextProperties)(unsafe.Pointer(&properties)), 1, &id, nil, nil, &code)
		if code != cl.SUCCESS {
			return nil, opError(d.info.ID, "open", code, driver.ErrNoDevice)
		}
	}
	return d, nil
}

func (d *device) Info() driver.Info {
	info := d.info
	if d.amd {
		info.FreeMemory, info.FreeMemoryKnown = freeMemory(d.id, true)
	}
	return info
}

// lost returns why the context is gone, or nil.
func (d *device) lost() error {
	if err := d.cause.Load(); err != nil {
		return *err
	}
	return nil
}

// lose marks the context as gone: every later call fails with the same cause.
func (d *device) lose(cause error) {
	err := fmt.Errorf("%w: %w", driver.ErrDeviceLost, cause)
	d.cause.CompareAndSwap(nil, &err)
}

// open reports whether the device can be used.
func (d *device) open(op string) error {
	if d.closed.Load() {
		return d.errorf(op, driver.ErrClosed, "device")
	}
	return d.lost()
}

// own calls f with the device's queue for its own commands, which is made at the first use.
func (d *device) own(op string, f func(q cl.CommandQueue) error) error {
	d.utility.Lock()
	defer d.utility.Unlock()
	if err := d.open(op); err != nil {
		return err
	}
	if d.queue == nil {
		var code cl.ErrorCode
		q := cl.CreateCommandQueue(d.context, d.id, cl.QUEUE_PROFILING_ENABLE, &code)
		if code != cl.SUCCESS {
			return opError(d.info.ID, op, code, driver.ErrOutOfMemory)
		}
		d.queue = q
	}
	return f(d.queue)
}

// stamp is what is known of a marker in a queue without other work.
type stamp struct {
	times         [4]uint64    // the device's, as clEvent.times returns them
	code          cl.ErrorCode // of reading these
	before, after int64        // the host's, around queueing it
}

// stamp queues a marker to the device's own queue, which the caller has, and waits for it.
func (d *device) stamp(op string, own cl.CommandQueue) (s stamp, err error) {
	cl.RetainCommandQueue(own)
	q, ok := newQueue(own)
	if !ok {
		return s, opError(d.info.ID, op, codeHostMemory, nil)
	}
	defer q.free()
	s.before = driver.Now()
	e, code := q.mark()
	s.after = driver.Now()
	if code != cl.SUCCESS {
		return s, opError(d.info.ID, op, code, driver.ErrUnsupported)
	}
	defer e.release()
	if code = e.wait(); code != cl.SUCCESS {
		return s, opError(d.info.ID, op, code, driver.ErrUnsupported)
	}
	s.times, s.code = e.times()
	return s, nil
}

// noTimes reports whether the driver's device times are useless. rusticl of Mesa 22 returns 0, 1,
// 2, 3 for every event.
func (d *device) noTimes() (useless bool, err error) {
	const op = "record"
	err = d.own(op, func(q cl.CommandQueue) error {
		if !d.clockKnown {
			s, err := d.stamp(op, q)
			if err != nil {
				return err
			}
			d.clockKnown, d.hostStamped = true, s.code != cl.SUCCESS || s.times[3] <= 3
		}
		useless = d.hostStamped
		return nil
	})
	return useless, err
}

func (d *device) Close() error {
	if d.closed.Swap(true) {
		return nil
	}
	d.utility.Lock()
	if d.queue != nil {
		cl.ReleaseCommandQueue(d.queue)
		d.queue = nil
	}
	d.utility.Unlock()
	d.mu.Lock()
	for handle, a := range d.memory { // package runtime has freed all memory; other callers may not have
		a.release()
		delete(d.memory, handle)
	}
	d.mu.Unlock()
	return d.failed("close", cl.ReleaseContext(d.context), nil)
}
