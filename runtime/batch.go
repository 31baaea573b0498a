package runtime

// Batches: buffers and other resources that are closed together.

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
)

// Batch collects resources that are to be closed together. It is safe for concurrent use.
type Batch struct {
	device *Device

	mu     sync.Mutex
	list   []io.Closer
	closed bool
}

// NewBatch returns an empty batch for buffers of the device. The caller closes it.
func (d *Device) NewBatch() *Batch { return &Batch{device: d} }

// Add makes the batch close c: a Buffer, a Managed, a Program, another Batch. On a closed batch it
// returns ErrClosed, and closing c stays with the caller.
func (b *Batch) Add(c io.Closer) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return fmt.Errorf("batch: %w", ErrClosed)
	}
	b.list = append(b.list, c)
	return nil
}

// Alloc allocates a buffer with Device.Alloc and adds it.
func (b *Batch) Alloc(t Type, n int) (*Buffer, error) {
	x, err := b.device.Alloc(t, n)
	return b.keep(x, err)
}

// AddHost adds a new buffer of n elements with a copy of data, whose length must be that of n
// elements (ErrDimension). It waits for the copy, so that every stream may use the buffer at once.
func (b *Batch) AddHost(ctx context.Context, data []byte, n int, t Type) (*Buffer, error) {
	if err := checkContext(ctx, "add to batch"); err != nil {
		return nil, err
	}
	const op = "add to batch"
	c, err := b.device.get(op)
	if err != nil {
		return nil, err
	}
	size, err := sizeOf(t, n)
	if err == nil && int64(len(data)) != size {
		err = fmt.Errorf("%d bytes for %d elements of %v: %w", len(data), n, t, ErrDimension)
	}
	if err != nil {
		return nil, c.error(op, err)
	}
	x, err := b.device.Alloc(t, n)
	if err != nil {
		return nil, err
	}
	if err = c.streams.own.Write(ctx, x, 0, data); err == nil {
		err = c.streams.own.Sync(ctx) // Write may have put the data aside
	}
	if err != nil {
		x.Close()
		return nil, err
	}
	return b.keep(x, nil)
}

// keep adds a buffer that was just made.
func (b *Batch) keep(x *Buffer, err error) (*Buffer, error) {
	if err != nil {
		return nil, err
	}
	if err := b.Add(x); err != nil {
		x.Close()
		return nil, err
	}
	return x, nil
}

// Len returns the number of resources in the batch.
func (b *Batch) Len() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.list)
}

// Close closes everything, the last one first. It goes on after an error and returns
// all of them. Closing twice does nothing.
func (b *Batch) Close() error {
	b.mu.Lock()
	list := b.list
	b.list, b.closed = nil, true
	b.mu.Unlock()
	var errs []error
	for _, c := range slices.Backward(list) {
		errs = append(errs, c.Close())
	}
	return errors.Join(errs...)
}
