package runtime

// The host's side of a Managed: Read, Write, Map.

import (
	"context"
	"fmt"
	"unsafe"
)

// write copies data to the beginning of the host's side, which is the newer one from then on.
func (m *Managed) write(ctx context.Context, t Type, data []byte) error {
	const op = "write"
	return m.onHost(ctx, op, t, data, ForOverwriting, func(st *sides) {
		copy(st.host[m.off:], data)
		st.hostChanged()
	})
}

// read copies the beginning of the host's side to data, after fetching newer contents from the
// device.
func (m *Managed) read(ctx context.Context, t Type, data []byte) error {
	const op = "read"
	return m.onHost(ctx, op, t, data, ForReading, func(st *sides) { copy(data, st.host[m.off:]) })
}

func (m *Managed) onHost(ctx context.Context, op string, t Type, data []byte, how Access, work func(st *sides)) error {
	if err := m.calm(ctx, op, false); err != nil {
		return err
	}
	st, err := m.begin(op)
	if err != nil {
		return err
	}
	defer st.end()
	c, n := st.core, int64(len(data))
	switch {
	case t != m.typ:
		err = fmt.Errorf("buffer holds %v, not %v: %w", m.typ, t, ErrInvalidArgument)
	case n > m.Bytes():
		err = fmt.Errorf("%d bytes of %d: %w", n, m.Bytes(), ErrBufferOverflow)
	case st.opt.Location == DeviceOnly:
		err = ErrNoHostMemory
	case n > 0:
		err = st.access(ctx, how, m.whole() && n == st.size)
	}
	if err != nil {
		return c.named(op, err)
	}
	if n > 0 {
		work(st)
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
// between its sides are ErrInvalidArgument; Read and Write are not. One Managed can be mapped once
// at a time.
//
// The slice is the memory itself, as with Host: do not use it after Unmap.
func Map[T Element](ctx context.Context, m *Managed, how Access) ([]T, error) {
	if err := checkContext(ctx, "map"); err != nil {
		return nil, err
	}
	const op = "map"
	if m.none() {
		return nil, fmt.Errorf("%s: buffer is nil: %w", op, ErrInvalidArgument)
	}
	view, err := m.open(ctx, TypeOf[T](), how)
	if err != nil {
		return nil, m.handle.st.core.named(op, err)
	}
	return unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(view))), m.n), nil
}

func (m *Managed) open(ctx context.Context, t Type, how Access) ([]byte, error) {
	if err := m.calm(ctx, "map", false); err != nil {
		return nil, err
	}
	st, err := m.begin("map")
	if err != nil {
		return nil, err
	}
	defer st.end()
	switch {
	case t != m.typ:
		return nil, fmt.Errorf("buffer holds %v, not %v: %w", m.typ, t, ErrInvalidArgument)
	case how > ForOverwriting:
		return nil, fmt.Errorf("%d is no access: %w", how, ErrInvalidArgument)
	case m.handle.window.Load():
		return nil, fmt.Errorf("buffer is mapped: %w", ErrInvalidArgument)
	case st.opt.Location == DeviceOnly:
		return nil, ErrNoHostMemory
	}
	if err := st.access(ctx, how, m.whole()); err != nil {
		return nil, err
	}
	if how != ForReading {
		st.hostChanged()
	}
	st.windows.Add(1)
	m.handle.window.Store(true)
	if m.closed.Load() { // closed meanwhile: no other call would end the window
		m.handle.shut()
		return nil, st.core.closedError("map")
	}
	return st.host[m.off : m.off+m.Bytes()], nil
}

// Unmap ends Map. On a Managed that is not mapped it is ErrInvalidArgument.
func (m *Managed) Unmap() error {
	const op = "unmap"
	switch {
	case m.none():
		return fmt.Errorf("%s: buffer is nil: %w", op, ErrInvalidArgument)
	case m.closed.Load():
		return m.handle.st.core.closedError(op)
	case !m.handle.shut():
		return m.handle.st.core.error(op, fmt.Errorf("buffer is not mapped: %w", ErrInvalidArgument))
	}
	return nil
}
