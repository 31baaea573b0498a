// Package gomlx lets GoMLX compute on every device of Concord. It registers the backend "concord", so that a
// program needs only to import it,
//
//	import _ "github.com/concord-compute/concord/gomlx"
//
// and to choose it, by GOMLX_BACKEND=concord:cpu:0 in the environment or by
// compute.NewWithConfig("concord:cuda:0"). What follows "concord:" is the name of a device as runtime.Open
// takes it, "auto" if there is nothing.
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
// # What there is
//
// All of GoMLX's standard operations but those of complex numbers, whose data types, like those of less than 8
// bits, are not supported; an operation that is missing returns compute.ErrNotImplemented. Random bits are
// those of Philox4x32-10, the same on every device.
package gomlx

import (
	"context"
	"fmt"
	"sync"
	"unsafe"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/pkg/errors"

	"github.com/concord-compute/concord/runtime"
	_ "github.com/concord-compute/concord/runtime/all" // every device
	"github.com/concord-compute/concord/tensor"
)

// Name is the name under which the backend is registered.
const Name = "concord"

func init() {
	compute.Register(Name, func(config string) (compute.Backend, error) { return New(config) })
}

// Backend computes on one device. It is safe for concurrent use.
type Backend struct {
	device *runtime.Device
	scope  *tensor.Scope
	stream *runtime.Stream // on which everything is queued
	shared bool            // the host addresses the device's memory

	mu       sync.Mutex
	finished bool
}

var _ compute.Backend = (*Backend)(nil)

// New opens a device, named as runtime.Open takes it; "auto" if the name is empty.
func New(device string) (*Backend, error) {
	if device == "" {
		device = "auto"
	}
	d, err := runtime.Open(context.Background(), device)
	if err != nil {
		return nil, errors.WithStack(err)
	}
	b := &Backend{device: d, scope: tensor.NewScope(d)}
	if b.stream, err = b.scope.Stream(); err != nil {
		b.Finalize()
		return nil, errors.WithStack(err)
	}
	probe, err := runtime.Alloc[uint8](d, 1)
	if err != nil {
		b.Finalize()
		return nil, errors.WithStack(err)
	}
	_, err = runtime.HostBytes(probe)
	b.shared = err == nil
	if err := probe.Close(); err != nil {
		b.Finalize()
		return nil, errors.WithStack(err)
	}
	return b, nil
}

// Name returns "concord".
func (b *Backend) Name() string { return Name }

// String returns the name of the backend and of the device.
func (b *Backend) String() string { return Name + ":" + b.device.String() }

// Description returns the name of the device as its vendor gives it.
func (b *Backend) Description() string { return "Concord on " + b.DeviceDescription(0) }

// NumDevices returns 1.
func (b *Backend) NumDevices() int { return 1 }

// DeviceDescription returns the name of the device, and the vendor's name for it.
func (b *Backend) DeviceDescription(compute.DeviceNum) string {
	return fmt.Sprintf("%v (%s)", b.device, b.device.Info().Name)
}

// Builder returns a builder of a computation.
func (b *Backend) Builder(name string) compute.Builder { return newBuilder(b, name) }

// Finalize closes the device. Buffers and executables of the backend cannot be used any more.
func (b *Backend) Finalize() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.finished {
		return
	}
	b.finished = true
	// There is nobody to tell of an error here; work that failed has told it before.
	_ = b.scope.Close()
	_ = b.device.Close()
}

// IsFinalized reports whether Finalize was called.
func (b *Backend) IsFinalized() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.finished
}

// HasSharedBuffers reports whether the host can address the device's memory.
func (b *Backend) HasSharedBuffers() bool { return b.shared }

// Buffer is an array on the device.
type Buffer struct {
	backend *Backend
	shape   shapes.Shape
	memory  *runtime.Buffer
	tensor  array // of the memory
	mu      sync.Mutex
	closed  bool
}

var _ compute.Buffer = (*Buffer)(nil)

// newBuffer returns a buffer of memory, which it owns.
func (b *Backend) newBuffer(memory *runtime.Buffer, shape shapes.Shape) *Buffer {
	return &Buffer{backend: b, shape: shape, memory: memory, tensor: tensor.Wrap(b.scope, memory, types[shape.DType],
		shape.Dimensions...)}
}

// alloc returns a buffer with undefined contents, for work on the stream, or, if idle is set, with memory that
// no work uses.
func (b *Backend) alloc(device compute.DeviceNum, shape shapes.Shape, idle bool) (*Buffer, error) {
	if device != 0 {
		return nil, errors.Errorf("device %d: the backend %s has only device 0", device, b)
	}
	t, err := typeOf(shape.DType)
	if err != nil {
		return nil, err
	}
	if shape.IsDynamic() {
		return nil, errors.Errorf("a buffer of the dynamic shape %s", shape)
	}
	if shape.Rank() > tensor.MaxRank {
		return nil, errors.Wrapf(compute.ErrNotImplemented, "shape %s of more than %d dimensions", shape, tensor.MaxRank)
	}
	allocate := b.stream.Alloc
	if idle {
		allocate = b.device.Alloc
	}
	memory, err := allocate(t.Stored(), shape.Size())
	if err != nil {
		return nil, errors.WithStack(err)
	}
	return b.newBuffer(memory, shape), nil
}

// BufferFromFlatData copies data, a slice of the Go type of the shape's data type, to the device.
func (b *Backend) BufferFromFlatData(device compute.DeviceNum, flat any, shape shapes.Shape) (compute.Buffer, error) {
	raw, err := bytesOf(flat, shape)
	if err != nil {
		return nil, err
	}
	buf, err := b.alloc(device, shape, false)
	if err != nil {
		return nil, err
	}
	if len(raw) > 0 {
		if err := b.stream.Write(context.Background(), buf.memory, 0, raw); err != nil {
			buf.memory.Close()
			return nil, errors.WithStack(err)
		}
	}
	return buf, nil
}

// bytesOf returns the memory of a slice, which has the elements of an array of that shape.
func bytesOf(flat any, shape shapes.Shape) ([]byte, error) {
	dtype, n := dtypeAndLen(flat)
	if dtype != shape.DType || n != shape.Size() {
		return nil, errors.Errorf("a %T of %d elements for shape %s", flat, n, shape)
	}
	if n == 0 {
		return nil, nil
	}
	return dtypes.UnsafeByteSliceFromAny(flat), nil
}

// NewSharedBuffer returns a buffer, and its memory as a slice of Go.
func (b *Backend) NewSharedBuffer(device compute.DeviceNum, shape shapes.Shape) (compute.Buffer, any, error) {
	if !b.shared {
		return nil, nil, errors.Wrapf(compute.ErrNotImplemented, "shared buffers of %s", b)
	}
	buf, err := b.alloc(device, shape, true)
	if err != nil {
		return nil, nil, err
	}
	flat, err := buf.slice()
	if err != nil {
		buf.memory.Close()
		return nil, nil, err
	}
	return buf, flat, nil
}

// Backend returns the backend that made the buffer.
func (b *Buffer) Backend() compute.Backend { return b.backend }

// Shape returns the buffer's shape.
func (b *Buffer) Shape() (shapes.Shape, error) { return b.shape, nil }

// DeviceNum returns 0.
func (b *Buffer) DeviceNum() (compute.DeviceNum, error) { return 0, nil }

// Finalize frees the memory, as soon as the work that uses it is done. Finalizing twice does nothing.
func (b *Buffer) Finalize() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return nil
	}
	b.closed = true
	return b.memory.Close()
}

// give marks the buffer as finalized, and leaves its memory to another one.
func (b *Buffer) give() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.closed = true
}

// use returns the tensor of the memory, or an error after Finalize.
func (b *Buffer) use() (array, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return nil, errors.Errorf("the buffer of shape %s was finalized or donated", b.shape)
	}
	return b.tensor, nil
}

// ToFlatData waits for the array and copies its elements to a slice of the Go type of its data type.
func (b *Buffer) ToFlatData(flat any) error {
	raw, err := bytesOf(flat, b.shape)
	if err != nil {
		return err
	}
	if _, err := b.use(); err != nil || len(raw) == 0 {
		return err
	}
	return errors.WithStack(b.backend.stream.Read(context.Background(), b.memory, 0, raw))
}

// Data waits for the array and returns its memory as a slice of Go.
func (b *Buffer) Data() (any, error) {
	if !b.backend.shared {
		return nil, errors.Wrapf(compute.ErrNotImplemented, "shared buffers of %s", b.backend)
	}
	if _, err := b.use(); err != nil {
		return nil, err
	}
	if err := b.backend.stream.Sync(context.Background()); err != nil {
		return nil, errors.WithStack(err)
	}
	return b.slice()
}

// slice returns the memory as a slice of Go.
func (b *Buffer) slice() (any, error) {
	n := b.shape.Size()
	if n == 0 {
		return dtypes.MakeAnySlice(b.shape.DType, 0), nil
	}
	raw, err := runtime.HostBytes(b.memory)
	if err != nil {
		return nil, errors.WithStack(err)
	}
	return dtypes.UnsafeAnySliceFromBytes(unsafe.Pointer(unsafe.SliceData(raw)), b.shape.DType, n), nil
}

// CopyToDevice returns a copy of the buffer on device 0.
func (b *Buffer) CopyToDevice(device compute.DeviceNum) (compute.Buffer, error) {
	if _, err := b.use(); err != nil {
		return nil, err
	}
	to, err := b.backend.alloc(device, b.shape, false)
	if err != nil {
		return nil, err
	}
	if b.shape.Size() > 0 {
		if err := b.backend.stream.Copy(to.memory, b.memory); err != nil {
			to.memory.Close()
			return nil, errors.WithStack(err)
		}
	}
	return to, nil
}
