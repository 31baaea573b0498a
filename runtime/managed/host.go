package managed

// The host's side of a Buffer: Read, Write, Map.

import (
	"context"
	"fmt"
	"unsafe"

	"github.com/concord-compute/concord/runtime"
	"github.com/concord-compute/concord/runtime/driver"
)

// Write copies data to the beginning of the host's side, which is the newer one from then on.
func Write[T runtime.Element](ctx context.Context, m *Buffer, data []T) error {
	n := int64(len(data)) * int64(unsafe.Sizeof(*new(T)))
	return m.onHost(ctx, "write", runtime.TypeOf[T](), n, runtime.ForOverwriting, func(st *sides, at int64) {
		copy(unsafe.Slice((*T)(unsafe.Pointer(&st.host[at])), len(data)), data)
		st.hostChanged()
	})
}

// Read copies the beginning of the host's side to data, after fetching newer contents from the
// device.
func Read[T runtime.Element](ctx context.Context, m *Buffer, data []T) error {
	n := int64(len(data)) * int64(unsafe.Sizeof(*new(T)))
	return m.onHost(ctx, "read", runtime.TypeOf[T](), n, runtime.ForReading, func(st *sides, at int64) {
		copy(data, unsafe.Slice((*T)(unsafe.Pointer(&st.host[at])), len(data)))
	})
}

// onHost calls work with the host's side ready for an access to the first n bytes of m, which begin at byte at.
// With no bytes it only checks.
func (m *Buffer) onHost(ctx context.Context, op string, t runtime.Type, n int64, how runtime.Access,
	work func(st *sides, at int64)) error {
	if err := checkContext(ctx, op); err != nil {
		return err
	}
	if err := m.calm(ctx, op, false); err != nil {
		return err
	}
	st, err := m.begin(op)
	if err != nil {
		return err
	}
	defer st.end()
	switch {
	case t != st.typ:
		err = fmt.Errorf("buffer holds %v, not %v: %w", st.typ, t, runtime.ErrInvalidArgument)
	case n > m.Bytes():
		err = fmt.Errorf("%d bytes of %d: %w", n, m.Bytes(), runtime.ErrBufferOverflow)
	case st.opt.Location == DeviceOnly:
		err = driver.ErrNoHostMemory
	case n > 0:
		err = st.access(ctx, how, n == st.size())
	}
	if err != nil {
		return named(st.device, op, err)
	}
	if n > 0 {
		work(st, int64(m.off)*int64(t.Size()))
	}
	return nil
}

// hostChanged notes that the host's side is newer.
func (st *sides) hostChanged() {
	if st.opt.Mode != UnifiedMode {
		st.dirty = hostDirty
	}
}

// Map returns the contents of the host's side as a slice, which may be used until Unmap or Close.
// It waits for the work that produces them. Mapped ForWriting or ForOverwriting, the host's side is
// newer from then on. While a buffer or any of its views is mapped, launches with it and copies
// between its sides are ErrInvalidArgument; Read and Write are not. One Buffer can be mapped once
// at a time.
//
// The slice is the memory itself, as with [runtime.Host]: do not use it after Unmap.
func Map[T runtime.Element](ctx context.Context, m *Buffer, how runtime.Access) ([]T, error) {
	const op = "map"
	if err := checkContext(ctx, op); err != nil {
		return nil, err
	}
	if m.none() {
		return nil, fmt.Errorf("%s: buffer is nil: %w", op, runtime.ErrInvalidArgument)
	}
	view, err := m.open(ctx, runtime.TypeOf[T](), how)
	if err != nil {
		return nil, named(m.handle.st.device, op, err)
	}
	return unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(view))), m.n), nil
}

func (m *Buffer) open(ctx context.Context, t runtime.Type, how runtime.Access) ([]byte, error) {
	if err := m.calm(ctx, "map", false); err != nil {
		return nil, err
	}
	st, err := m.begin("map")
	if err != nil {
		return nil, err
	}
	defer st.end()
	switch {
	case t != st.typ:
		return nil, fmt.Errorf("buffer holds %v, not %v: %w", st.typ, t, runtime.ErrInvalidArgument)
	case how > runtime.ForOverwriting:
		return nil, fmt.Errorf("%d is no access: %w", how, runtime.ErrInvalidArgument)
	case m.handle.window.Load():
		return nil, fmt.Errorf("buffer is mapped: %w", runtime.ErrInvalidArgument)
	case st.opt.Location == DeviceOnly:
		return nil, driver.ErrNoHostMemory
	}
	if err := st.access(ctx, how, m.whole()); err != nil {
		return nil, err
	}
	if how != runtime.ForReading {
		st.hostChanged()
	}
	st.windows.Add(1)
	m.handle.window.Store(true)
	if m.closed.Load() { // closed meanwhile: no other call would end the window
		m.handle.shut()
		return nil, opError(st.device, "map", runtime.ErrClosed)
	}
	at := int64(m.off) * int64(t.Size())
	return st.host[at : at+m.Bytes()], nil
}

// Unmap ends Map. On a Buffer that is not mapped it is ErrInvalidArgument.
func (m *Buffer) Unmap() error {
	const op = "unmap"
	switch {
	case m.none():
		return fmt.Errorf("%s: buffer is nil: %w", op, runtime.ErrInvalidArgument)
	case m.closed.Load():
		return opError(m.handle.st.device, op, runtime.ErrClosed)
	case !m.handle.shut():
		return opError(m.handle.st.device, op, fmt.Errorf("buffer is not mapped: %w", runtime.ErrInvalidArgument))
	}
	return nil
}
