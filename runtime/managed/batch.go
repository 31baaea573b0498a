package managed

// Batches: buffers and other resources that are closed together.

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"

	"github.com/concord-compute/concord/runtime"
)

// Batch collects resources that are to be closed together. It is safe for concurrent use.
type Batch struct {
	device *runtime.Device

	mu     sync.Mutex
	list   []io.Closer
	closed bool
}

// NewBatch returns an empty batch for buffers of the device. The caller closes it.
func NewBatch(d *runtime.Device) *Batch { return &Batch{device: d} }

// Add makes the batch close c: a buffer, a Program, another Batch. On a closed batch it
// returns ErrClosed, and closing c stays with the caller.
func (b *Batch) Add(c io.Closer) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return fmt.Errorf("batch: %w", runtime.ErrClosed)
	}
	b.list = append(b.list, c)
	return nil
}

// Alloc allocates a buffer with Device.Alloc and adds it.
func (b *Batch) Alloc(t runtime.Type, n int) (*runtime.Buffer, error) {
	x, err := b.device.Alloc(t, n)
	return b.keep(x, err)
}

// AddHost adds a new buffer of n elements with a copy of data, whose length must be that of n
// elements (ErrDimension). It waits for the copy, so that every stream may use the buffer at once.
func (b *Batch) AddHost(ctx context.Context, data []byte, n int, t runtime.Type) (*runtime.Buffer, error) {
	if err := checkContext(ctx, "add to batch"); err != nil {
		return nil, err
	}
	if err := b.device.Enter("add to batch"); err != nil {
		return nil, err
	}
	defer b.device.Leave()
	size, err := t.Bytes(n)
	if err == nil && int64(len(data)) != size {
		err = fmt.Errorf("%d bytes for %d elements of %v: %w", len(data), n, t, runtime.ErrDimension)
	}
	if err != nil {
		return nil, opError(b.device, "add to batch", err)
	}
	x, err := b.device.Alloc(t, n)
	if err != nil {
		return nil, err
	}
	own := b.device.Stream()
	if err = own.Write(ctx, x, 0, data); err == nil {
		err = own.Sync(ctx) // Write may have put the data aside
	}
	if err != nil {
		x.Close()
		return nil, err
	}
	return b.keep(x, nil)
}

// keep adds a buffer that was just made.
func (b *Batch) keep(x *runtime.Buffer, err error) (*runtime.Buffer, error) {
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
