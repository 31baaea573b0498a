package gomlx

// Arrays on a device.

import (
	"context"
	"sync"
	"unsafe"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/pkg/errors"

	"github.com/concord-compute/concord/runtime"
)

// Buffer is an array on a device.
type Buffer struct {
	device *device
	shape  shapes.Shape
	memory *runtime.Buffer
	tensor array // of the memory
	mu     sync.Mutex
	closed bool
}

var _ compute.Buffer = (*Buffer)(nil)

// BufferFromFlatData copies data, a slice of the Go type of the shape's data type, to the device.
func (b *Backend) BufferFromFlatData(device compute.DeviceNum, flat any, shape shapes.Shape) (compute.Buffer, error) {
	raw, err := bytesOf(flat, shape)
	if err != nil {
		return nil, err
	}
	d, err := b.device(device)
	if err != nil {
		return nil, err
	}
	buf, err := d.alloc(shape, false)
	if err != nil {
		return nil, err
	}
	if len(raw) > 0 {
		if err := d.stream.Write(context.Background(), buf.memory, 0, raw); err != nil {
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
	d, err := b.device(device)
	if err != nil {
		return nil, nil, err
	}
	if !d.shared {
		return nil, nil, errors.Wrapf(compute.ErrNotImplemented, "shared buffers of %s", d)
	}
	buf, err := d.alloc(shape, true)
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
func (b *Buffer) Backend() compute.Backend { return b.device.backend }

// Shape returns the buffer's shape.
func (b *Buffer) Shape() (shapes.Shape, error) { return b.shape, nil }

// DeviceNum returns the number of the device.
func (b *Buffer) DeviceNum() (compute.DeviceNum, error) { return b.device.number, nil }

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
	return errors.WithStack(b.device.stream.Read(context.Background(), b.memory, 0, raw))
}

// Data waits for the array and returns its memory as a slice of Go.
func (b *Buffer) Data() (any, error) {
	if !b.device.shared {
		return nil, errors.Wrapf(compute.ErrNotImplemented, "shared buffers of %s", b.device)
	}
	if _, err := b.use(); err != nil {
		return nil, err
	}
	if err := b.device.stream.Sync(context.Background()); err != nil {
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

// CopyToDevice returns a copy of the buffer on a device.
func (b *Buffer) CopyToDevice(device compute.DeviceNum) (compute.Buffer, error) {
	if _, err := b.use(); err != nil {
		return nil, err
	}
	d, err := b.device.backend.device(device)
	if err != nil {
		return nil, err
	}
	to, err := d.alloc(b.shape, false)
	if err != nil {
		return nil, err
	}
	if b.shape.Size() > 0 {
		if err := d.stream.CopyFrom(context.Background(), to.memory, b.memory, nil); err != nil {
			to.memory.Close()
			return nil, errors.WithStack(err)
		}
		// A donation may overwrite the buffer next.
		if err := b.device.stream.WaitFor(context.Background(), b.memory); err != nil {
			to.memory.Close()
			return nil, errors.WithStack(err)
		}
	}
	return to, nil
}
