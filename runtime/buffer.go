package runtime

// Buffers: typed memory of a device, and views of parts of it.

import (
	"context"
	"fmt"
	goruntime "runtime"
	"sync/atomic"
	"unsafe"

	"github.com/concord-compute/concord/runtime/driver"
)

// Buffer is memory of one device holding elements of one type. A Buffer is either
// an allocation or a view of part of one; views keep the memory alive. It is safe
// for concurrent use; the program orders kernels that change its contents.
type Buffer struct {
	a       *allocation
	typ     Type
	mem     driver.Memory
	n       int
	closed  atomic.Bool
	cleanup goruntime.Cleanup
	block   *Buffer // of Window: it holds and frees the memory; else nil
}

// Element is the set of Go types that buffers hold.
type Element interface {
	float32 | float64 | Float16 | BFloat16 | int8 | int16 | int32 | int64 | uint8 | uint16 | uint32 | uint64
}

// TypeOf returns the element type of a Go type. That of bool is one of tensors alone: no buffer holds it.
func TypeOf[T Element | bool]() Type {
	var zero T
	if t, _ := elementOf(zero); t != driver.NoType {
		return t
	}
	return driver.Bool
}

// Alloc returns a buffer of n elements of type T, contents undefined.
func Alloc[T Element](d *Device, n int) (*Buffer, error) { return d.Alloc(TypeOf[T](), n) }

// Upload returns a new buffer with a copy of data. It
// waits for the copy, on the device's own stream, so that every stream may use the
// buffer at once.
func Upload[T Element](ctx context.Context, d *Device, data []T) (*Buffer, error) {
	if err := checkContext(ctx, "upload"); err != nil {
		return nil, err
	}
	b, err := Alloc[T](d, len(data))
	if err != nil {
		return nil, err
	}
	err = Write(ctx, b, data)
	if err == nil {
		err = b.device().streams.own.Sync(ctx) // Write may have put the data aside
	}
	if err != nil {
		b.Close()
		return nil, err
	}
	return b, nil
}

// Write copies data to the beginning of a buffer, on the device's own stream, and waits until data may be changed.
// It does not wait for work of other streams that uses the buffer: sync those, or order them by [Stream.WaitFor] of
// the device's stream, before.
func Write[T Element](ctx context.Context, to *Buffer, data []T) error {
	if err := checkContext(ctx, "write"); err != nil {
		return err
	}
	if err := sameType[T](to, "write"); err != nil {
		return err
	}
	return to.device().streams.own.Write(ctx, to, 0, bytesOf(data))
}

// Read copies the beginning of a buffer to data, after the work queued so far that uses it, on any stream. Where such
// work failed, Read returns no error for it, since later work may have stored all anew. What the failed work was to
// store is undefined, and Sync or Err of its stream has the error. [Stream.WaitFor] returns it. [Stream.Read] waits
// for one stream alone.
func Read[T Element](ctx context.Context, from *Buffer, data []T) error {
	if err := checkContext(ctx, "read"); err != nil {
		return err
	}
	if err := sameType[T](from, "read"); err != nil {
		return err
	}
	own := from.device().streams.own
	for _, s := range from.a.busyBeside(own) {
		_ = s.passed(ctx) // its error belongs to the stream, which reports it
	}
	return own.Read(ctx, from, 0, bytesOf(data))
}

// sameType checks the element type.
func sameType[T Element](b *Buffer, op string) error {
	if b.none() {
		return fmt.Errorf("%s: buffer is nil: %w", op, ErrInvalidArgument)
	}
	if t := TypeOf[T](); t != b.typ {
		return b.a.core.error(op, fmt.Errorf("buffer holds %v, not %v: %w", b.typ, t, ErrInvalidArgument))
	}
	return nil
}

// bytesOf returns the memory of a slice of numbers.
func bytesOf[T Element](s []T) []byte {
	if len(s) == 0 {
		return nil
	}
	return unsafe.Slice((*byte)(unsafe.Pointer(&s[0])), len(s)*int(unsafe.Sizeof(s[0])))
}

// Alloc returns a buffer of n elements, contents undefined. With n 0 every call takes it like any other.
func (d *Device) Alloc(t Type, n int) (*Buffer, error) { return d.AllocKind(OnDevice, t, n) }

// newBuffer makes a handle that owns one ref of a.
func newBuffer(a *allocation, t Type, mem driver.Memory, n int) *Buffer {
	b := &Buffer{a: a, typ: t, mem: mem, n: n}
	b.cleanup = goruntime.AddCleanup(b, noteForgotten, a)
	return b
}

// noteForgotten runs on the collector's thread for a buffer that was never closed: it only
// enqueues.
func noteForgotten(a *allocation) {
	m := &a.core.memory
	m.mu.Lock()
	m.forgotten = append(m.forgotten, a)
	m.mu.Unlock()
}

// Slice returns a view of n elements, which may be 0, from element off on. It shares the memory and keeps it alive.
// The caller closes it separately.
func (b *Buffer) Slice(off, n int) (*Buffer, error) {
	if b.none() {
		return nil, fmt.Errorf("slice: buffer is nil: %w", ErrInvalidArgument)
	}
	c := b.a.core
	if off < 0 || n < 0 || off > b.n || n > b.n-off {
		return nil, c.error("slice", fmt.Errorf("elements %d to %d of %d: %w", off, off+n, b.n, ErrBufferOverflow))
	}
	mem := b.mem
	mem.Offset += int64(off) * int64(b.typ.Size())
	mem.Size = int64(n) * int64(b.typ.Size())
	return b.view(b.typ, mem, n)
}

// As returns a view of the same bytes as elements of another type. The size must
// be a multiple of the new element, and the start must be aligned to it.
func (b *Buffer) As(t Type) (*Buffer, error) {
	if b.none() {
		return nil, fmt.Errorf("as: buffer is nil: %w", ErrInvalidArgument)
	}
	size, err := t.Bytes(1)
	if err == nil && (b.mem.Size%size != 0 || b.mem.Offset%size != 0) {
		err = fmt.Errorf("%d bytes at offset %d are not whole elements of %v: %w", b.mem.Size, b.mem.Offset, t,
			ErrInvalidArgument)
	}
	if err != nil {
		return nil, b.a.core.error("as", err)
	}
	return b.view(t, b.mem, int(b.mem.Size/size))
}

func (b *Buffer) view(t Type, mem driver.Memory, n int) (*Buffer, error) {
	if b.isClosed() || b.a.core.isAbandoned() || !b.a.ref() {
		return nil, b.a.core.closedError("slice")
	}
	return newBuffer(b.a, t, mem, n), nil
}

// Window makes into a view of n elements of type t, from byte off of b on. It is for allocators that cut many buffers
// from one: it allocates nothing, and into need not be closed. The view lives as long as b, whatever uses it: Close of
// it only ends its own use, and once b is closed it answers ErrClosed. off is a multiple of the element's size. into
// is a zero Buffer that nothing uses yet.
func (b *Buffer) Window(into *Buffer, t Type, off int64, n int) error {
	const op = "window"
	if b.none() || into == nil || into.a != nil {
		return fmt.Errorf("%s: there is no buffer, or no new one: %w", op, ErrInvalidArgument)
	}
	size, err := t.Bytes(n)
	if err == nil {
		err = checkRange(b, off, size)
	}
	if err == nil && (b.mem.Offset+off)%int64(t.Size()) != 0 {
		err = fmt.Errorf("byte %d begins no element of %v: %w", off, t, ErrInvalidArgument)
	}
	if err != nil {
		return b.a.core.error(op, err)
	}
	if b.isClosed() || b.a.core.isClosed() {
		return b.a.core.closedError(op)
	}
	into.a, into.typ, into.mem, into.n, into.block = b.a, t, part(b.mem, off, size), n, b
	return nil
}

// Sync waits until all work queued so far that uses the buffer's memory is done, on any stream, and returns the
// error of such a stream that failed.
func (b *Buffer) Sync(ctx context.Context) error {
	if err := checkContext(ctx, "sync"); err != nil {
		return err
	}
	if b.none() {
		return fmt.Errorf("sync: buffer is nil: %w", ErrInvalidArgument)
	}
	return b.a.idle(ctx)
}

// InUse reports whether something keeps the buffer's memory: the buffer itself, a view, a graph or a call under
// way. After Close it tells what is left. Queued work does not count.
func (b *Buffer) InUse() bool { return !b.none() && b.a.refs.Load() > 0 && !b.a.dead.Load() }

// isClosed reports whether the buffer was closed, or is a window of one that was.
func (b *Buffer) isClosed() bool { return b.closed.Load() || b.block != nil && b.block.isClosed() }

// none reports whether the Buffer is nil or its zero value.
func (b *Buffer) none() bool { return b == nil || b.a == nil }

// Len returns the number of elements.
func (b *Buffer) Len() int { return b.n }

// Type returns the element type.
func (b *Buffer) Type() Type { return b.typ }

// Bytes returns the size in bytes.
func (b *Buffer) Bytes() int64 { return b.mem.Size }

// Memory returns the buffer's memory as the backend knows it. It is valid until Close.
func (b *Buffer) Memory() driver.Memory { return b.mem }

// LiesOn reports whether the buffer is open and its memory is the device's, whichever Device of it made the buffer.
func (b *Buffer) LiesOn(d *Device) bool { return !b.none() && !b.isClosed() && b.a.core == d.core }

// SetTag names the purpose of the buffer's memory in lists of holders: out-of-memory errors,
// Holders of Device.Memory, and the list that is logged at Close.
func (b *Buffer) SetTag(tag string) {
	if !b.none() && !b.isClosed() {
		b.a.core.memory.pool.SetTag(b.a.id, tag)
	}
}

// BelongsTo says that b is a part of the same object as another buffer, for packages whose objects have several:
// if it is forgotten, Stats.Forgotten counts the other one alone. It does nothing if other is nil.
func (b *Buffer) BelongsTo(other *Buffer) {
	if !b.none() && !other.none() {
		b.a.belongs.Store(true)
	}
}

// String returns type, length and device: "f32[1000] on cuda:0".
func (b *Buffer) String() string {
	if b.none() {
		return "nil buffer"
	}
	return fmt.Sprintf("%v[%d] on %s", b.typ, b.n, b.a.core.info.ID)
}

func (b *Buffer) device() *core { return b.a.core }

// Close gives the memory back, as soon as the work that uses it is done; it does
// not wait. Closing twice, or after the device, does nothing.
func (b *Buffer) Close() error {
	if b.none() || b.closed.Swap(true) || b.block != nil {
		return nil
	}
	b.cleanup.Stop()
	b.a.unref()
	return nil
}
