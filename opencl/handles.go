//go:build cgo && opencl && (linux || darwin)

package opencl

// Sharing objects with programs that already use OpenCL.

import (
	"context"
	"fmt"
	"unsafe"

	"github.com/go-gl/cl/v1.2/cl"

	"github.com/concord-compute/concord/runtime/driver"
)

// contextHandle returns the cl_context of the binding's context, which is a pointer to a Go struct
// whose first field it is.
func contextHandle(c cl.Context) uintptr { return *(*uintptr)(unsafe.Pointer(c)) }

// Handles returns the cl_context, cl_device_id and cl_platform_id.
func (d *device) Handles() map[string]uintptr {
	return map[string]uintptr{
		"context":  contextHandle(d.context),
		"device":   uintptr(unsafe.Pointer(d.id)),
		"platform": uintptr(unsafe.Pointer(d.platform.id)),
	}
}

// StreamHandle returns the cl_command_queue of a stream, or 0.
func (d *device) StreamHandle(s driver.Stream) uintptr {
	own, ok := s.(*stream)
	if !ok {
		return 0
	}
	own.mu.Lock()
	defer own.mu.Unlock()
	if own.closed {
		return 0
	}
	return uintptr(own.q.handle())
}

// WrapMemory takes a reference to a cl_mem of this context. Free drops it.
func (d *device) WrapMemory(handle uintptr, size int64) (driver.Memory, error) {
	const op = "wrap memory"
	if err := d.open(op); err != nil {
		return driver.Memory{}, err
	}
	if handle == 0 || size <= 0 {
		return driver.Memory{}, d.errorf(op, driver.ErrInvalidArgument, "handle %#x of %d bytes", handle, size)
	}
	mem := memOf(uint64(handle))
	ask := func(what cl.MemInfo) (v uint64, err error) {
		code := cl.GetMemObjectInfo(mem, what, 8, unsafe.Pointer(&v), nil)
		return v, d.failed(op, code, driver.ErrInvalidArgument)
	}
	owner, err := ask(cl.MEM_CONTEXT)
	if err != nil {
		return driver.Memory{}, err
	}
	if uintptr(owner) != contextHandle(d.context) {
		return driver.Memory{}, d.errorf(op, driver.ErrInvalidArgument, "the cl_mem belongs to another cl_context")
	}
	have, err := ask(cl.MEM_SIZE)
	if err != nil {
		return driver.Memory{}, err
	}
	if int64(have) < size {
		return driver.Memory{}, d.errorf(op, driver.ErrBufferOverflow, "the cl_mem has %d bytes, not %d", have, size)
	}
	a := &allocation{mem: mem, parent: mem, size: int64(have)}
	if parent, err := ask(cl.MEM_ASSOCIATED_MEMOBJECT); err == nil && parent != 0 {
		if base, err := ask(cl.MEM_OFFSET); err == nil { // OpenCL cannot make a sub-buffer of a sub-buffer
			a.parent, a.base = memOf(parent), int64(base)
		}
	}
	if code := cl.RetainMemObject(mem); code != cl.SUCCESS {
		return driver.Memory{}, d.failed(op, code, driver.ErrInvalidArgument)
	}
	d.mu.Lock()
	if known := d.memory[uint64(handle)]; known != nil {
		a = known
	} else {
		d.memory[uint64(handle)] = a
	}
	a.refs++
	d.mu.Unlock()
	return driver.Memory{Handle: uint64(handle), Size: size}, nil
}

// WrapStream takes a reference to an in-order cl_command_queue of this device and context. Close
// waits for the queue and drops the reference. Timed events of a queue without
// CL_QUEUE_PROFILING_ENABLE have the host's time.
func (d *device) WrapStream(handle uintptr) (driver.Stream, error) {
	const op = "wrap stream"
	if err := d.open(op); err != nil {
		return nil, err
	}
	if handle == 0 {
		return nil, d.errorf(op, driver.ErrInvalidArgument, "the handle is 0")
	}
	q := *(*cl.CommandQueue)(unsafe.Pointer(&handle))
	var got [3]uint64
	for i, what := range []cl.CommandQueueInfo{cl.QUEUE_CONTEXT, cl.QUEUE_DEVICE, cl.QUEUE_PROPERTIES} {
		if code := cl.GetCommandQueueInfo(q, what, 8, unsafe.Pointer(&got[i]), nil); code != cl.SUCCESS {
			return nil, d.failed(op, code, driver.ErrInvalidArgument)
		}
	}
	owner, dev, properties := got[0], got[1], got[2]
	switch {
	case uintptr(owner) != contextHandle(d.context) || uintptr(dev) != uintptr(unsafe.Pointer(d.id)):
		return nil, d.errorf(op, driver.ErrInvalidArgument, "the cl_command_queue belongs to another cl_context or device")
	case properties&uint64(cl.QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE) != 0:
		return nil, d.errorf(op, driver.ErrInvalidArgument, "a stream is in order, the cl_command_queue is not")
	}
	cl.RetainCommandQueue(q)
	return d.streamOf(q, &stream{d: d, timed: properties&uint64(cl.QUEUE_PROFILING_ENABLE) != 0, wrapped: true})
}

// Adopt returns a backend with one device: a cl_device_id in a cl_context that
// the program owns. Add it to runtime's Config.Backends to wrap buffers and queues of the program.
// The device retains the context while it is open.
func Adopt(context, device uintptr) driver.Backend { return adopted{context: context, device: device} }

type adopted struct {
	backend
	context, device uintptr
}

// find returns the device of the handles, after checking that it belongs to the context.
func (a adopted) find() (platform, cl.DeviceId, error) {
	if a.context == 0 || a.device == 0 {
		return platform{}, nil, fmt.Errorf("context %#x, device %#x: %w", a.context, a.device, driver.ErrInvalidArgument)
	}
	id := *(*cl.DeviceId)(unsafe.Pointer(&a.device))
	var of cl.PlatformID
	if code := cl.GetDeviceInfo(id, cl.DEVICE_PLATFORM, 8, unsafe.Pointer(&of), nil); code != cl.SUCCESS {
		return platform{}, nil, opError("", "adopt", code, driver.ErrInvalidArgument)
	}
	return platform{id: of, name: platformText(of, cl.PLATFORM_NAME), version: platformText(of, cl.PLATFORM_VERSION)}, id,
		nil
}

func (a adopted) Probe(ctx context.Context, cfg *driver.Config) (p driver.Probe) {
	leave, err := drivers.Enter(ctx, firstOf("adopt", nil), cfg.ProbeLimit())
	if err != nil {
		return driver.Probe{Backend: name, State: driver.Unavailable, Reason: err.Error()}
	}
	defer func() { leave(p.State == driver.Available) }()
	pl, id, err := a.find()
	if err != nil {
		return driver.Probe{Backend: name, State: driver.Unavailable, Reason: err.Error()}
	}
	info := describe(pl, id, 0)
	return driver.Probe{Backend: name, State: driver.Available, DriverVersion: info.DriverVersion,
		RuntimeVersion: pl.version, CompilerVersion: deviceText(id, cl.DEVICE_OPENCL_C_VERSION), Devices: []driver.Info{info}}
}

func (a adopted) Open(ctx context.Context, nativeIndex int, cfg *driver.Config) (driver.Device, error) {
	if nativeIndex != 0 {
		return nil, &driver.OpError{Backend: name, Op: "open", Detail: "an adopted context has one device",
			Err: driver.ErrDeviceIndex}
	}
	pl, id, err := a.find()
	if err != nil {
		return nil, err
	}
	// The binding cannot make its Context from a handle. Its struct has one more word than this
	// one, for fields that only callbacks use.
	c := new(struct {
		handle      uintptr
		errCallback func(string, unsafe.Pointer, uint64, any)
		userdata    any
	})
	c.handle = a.context
	held := cl.Context(unsafe.Pointer(c))
	if code := cl.RetainContext(held); code != cl.SUCCESS {
		return nil, opError("", "adopt", code, driver.ErrInvalidArgument)
	}
	d, err := openFirst(ctx, cfg, pl, id, held, 0)
	if err != nil {
		cl.ReleaseContext(held)
		return nil, err
	}
	return d, nil
}
