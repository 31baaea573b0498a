package managed

// Copies between the two sides of a Buffer, in the order of streams.

import (
	"context"
	"errors"
	"fmt"

	"github.com/concord-compute/concord/runtime"
	"github.com/concord-compute/concord/runtime/driver"
)

// ToDevice copies the host's side to the device's, if it is newer, and waits.
func (m *Buffer) ToDevice(ctx context.Context) error {
	const op = "to device"
	if err := checkContext(ctx, op); err != nil {
		return err
	}
	st, err := m.begin(op)
	if err != nil {
		return err
	}
	s := st.device.Stream()
	err = st.toDevice(ctx, s)
	st.end() // before the wait, so that other calls can use the buffer meanwhile
	if err == nil {
		err = s.Sync(ctx)
	}
	return named(st.device, op, err)
}

// ToHost copies the device's side to the host's, if it is newer, and waits.
func (m *Buffer) ToHost(ctx context.Context) error {
	const op = "to host"
	if err := checkContext(ctx, op); err != nil {
		return err
	}
	if err := m.calm(ctx, op, true); err != nil {
		return err
	}
	st, err := m.begin(op)
	if err != nil {
		return err
	}
	defer st.end()
	return named(st.device, op, st.fetch(ctx))
}

// QueueToDevice queues the copy of the host's side to the device's on a stream, if it is newer. A launch does
// the same; queued ahead of it, the copy runs while the host does something else. A Unified buffer
// is moved to the device if the driver can do that on request.
//
// QueueToDevice returns at once where the host's side is pinned memory, which it is wherever the host
// and the device can both access such memory; otherwise it waits until the host's side may be
// changed.
func (m *Buffer) QueueToDevice(s *runtime.Stream) error {
	return m.between("to device", s, (*sides).toDevice)
}

// QueueToHost queues the copy of the device's side to the host's on a stream, if it is newer. A later Read
// waits for it. It returns at once where QueueToDevice does, and waits otherwise.
func (m *Buffer) QueueToHost(s *runtime.Stream) error {
	return m.between("to host", s, (*sides).toHost)
}

func (m *Buffer) between(op string, s *runtime.Stream,
	work func(*sides, context.Context, *runtime.Stream) error) error {
	ctx := context.Background()
	if err := s.WaitForStream(ctx, s); err != nil { // refuses nil, and a stream that records
		return fmt.Errorf("%s: %w", op, err)
	}
	st, err := m.begin(op)
	if err != nil {
		return err
	}
	defer st.end()
	return named(st.device, op, work(st, ctx, s))
}

var errMapped = fmt.Errorf("buffer is mapped: %w", runtime.ErrInvalidArgument)

// toDevice brings the device's side up to date in a stream.
func (st *sides) toDevice(ctx context.Context, s *runtime.Stream) error {
	return st.update(ctx, s, true)
}

// toHost brings the host's side up to date in a stream.
func (st *sides) toHost(ctx context.Context, s *runtime.Stream) error {
	return st.update(ctx, s, false)
}

func (st *sides) update(ctx context.Context, s *runtime.Stream, up bool) error {
	newer, without, missing, makeSide := deviceDirty, DeviceOnly, driver.ErrNoHostMemory, st.makeHost
	if up {
		newer, without, missing, makeSide = hostDirty, HostOnly, driver.ErrNoDeviceMemory, st.makeDevice
	}
	switch {
	case !s.RunsOn(st.device):
		return st.belongs()
	case st.opt.Location == without:
		return missing
	case st.windows.Load() > 0:
		return errMapped
	case st.opt.Mode == UnifiedMode:
		return st.prefetch(s, !up)
	case st.dirty != newer:
		return nil
	}
	if err := makeSide(); err != nil {
		return err
	}
	if err := st.after(ctx, s, true); err != nil {
		return err
	}
	return st.move(ctx, s, up)
}

// belongs is the error of a stream of another device.
func (st *sides) belongs() error {
	return fmt.Errorf("buffer belongs to %s: %w", st.device, runtime.ErrInvalidArgument)
}

// fetch is toHost, and waits.
func (st *sides) fetch(ctx context.Context) error {
	s := st.changed
	if s == nil {
		s = st.device.Stream()
	}
	err := st.toHost(ctx, s)
	if errors.Is(err, runtime.ErrClosed) { // the stream, by now
		err = st.toHost(ctx, st.device.Stream())
	}
	if err != nil {
		return err
	}
	return st.waitMoved(ctx)
}

// move queues the copy between the two sides, in a stream that waits for other streams' uses.
func (st *sides) move(ctx context.Context, s *runtime.Stream, up bool) error {
	err := st.copy(ctx, s, up)
	if err == nil {
		st.dirty = neither
	}
	if err == nil && up {
		st.changed = s
	}
	return err
}

// copy is move without its note. Where the host's side is plain memory it waits until that memory may be used again.
func (st *sides) copy(ctx context.Context, s *runtime.Stream, up bool) error {
	switch {
	case st.n == 0:
		return nil
	case st.pinned == nil && up:
		return s.Write(ctx, st.dev, 0, st.host)
	case st.pinned == nil:
		return s.Read(ctx, st.dev, 0, st.host)
	}
	dst, src := st.pinned, st.dev
	if up {
		dst, src = src, dst
	}
	if err := s.Copy(dst, src); err != nil {
		return err
	}
	// An earlier copy is done when this one is: the stream has waited for it.
	if err := s.RecordIn(&st.moved); err != nil {
		st.mover = nil
		if done := s.Sync(ctx); done != nil || !errors.Is(err, runtime.ErrOutOfMemory) {
			return err
		}
		return nil
	}
	st.mover, st.movedUp = s, up
	return nil
}

// waitMoved waits until no copy uses the host's side. If the copy failed, its source counts as the
// newer side again.
func (st *sides) waitMoved(ctx context.Context) error {
	if st.mover == nil {
		return nil
	}
	err := st.moved.Wait(ctx)
	if errors.Is(err, runtime.ErrClosed) { // a closed stream has done its work, unless it failed
		err = st.mover.Err()
	}
	if err != nil && ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		return err
	}
	st.mover = nil
	if err != nil && st.dirty == neither {
		st.dirty = deviceDirty
		if st.movedUp {
			st.dirty = hostDirty
		}
	}
	return err
}

// after makes s wait for work of other streams: before it reads the device's side for that of the last
// change, before it writes that side for all uses.
func (st *sides) after(ctx context.Context, s *runtime.Stream, writes bool) error {
	switch {
	case st.dev == nil:
		return nil
	case writes || st.lent:
		return s.WaitFor(ctx, st.dev)
	case st.changed != nil:
		return s.WaitForStream(ctx, st.changed)
	}
	return s.WaitForStream(ctx, s) // refuses a stream that records
}

// prefetch moves unified memory, if the driver can do that on request.
func (st *sides) prefetch(s *runtime.Stream, toHost bool) error {
	if err := s.Prefetch(st.dev, toHost); !errors.Is(err, runtime.ErrUnsupported) {
		return err
	}
	return nil // a hint
}

// DeviceSide returns the device's side as a buffer of package runtime, up to date in the order of a stream, for calls
// that take no Buffer: runs, fills, copies, graphs, other devices. With any access but ForReading the
// device's side counts as newer from then on. After the host's side has been used, call DeviceSide
// again before more work is queued with the result. The caller closes the result.
func (m *Buffer) DeviceSide(s *runtime.Stream, how runtime.Access) (*runtime.Buffer, error) {
	var b *runtime.Buffer
	err := m.between("device side", s, func(st *sides, ctx context.Context, s *runtime.Stream) (err error) {
		b, err = m.deviceSide(ctx, st, s, how)
		return err
	})
	return b, err
}

func (m *Buffer) deviceSide(ctx context.Context, st *sides, s *runtime.Stream,
	how runtime.Access) (*runtime.Buffer, error) {
	if how > runtime.ForOverwriting {
		return nil, fmt.Errorf("%d is no access: %w", how, runtime.ErrInvalidArgument)
	}
	if !s.RunsOn(st.device) {
		return nil, st.belongs()
	}
	if err := st.makeDevice(); err != nil {
		return nil, err
	}
	t := taken{st: st, reads: how != runtime.ForOverwriting || !m.whole(), writes: how != runtime.ForReading}
	if err := t.allowed(); err != nil {
		return nil, err
	}
	if err := st.after(ctx, s, true); err != nil {
		return nil, err
	}
	if t.uploads() {
		if err := st.move(ctx, s, true); err != nil {
			return nil, err
		}
	}
	b, err := st.dev.Slice(m.off, m.n)
	if err != nil {
		return nil, err
	}
	t.launched(s)
	st.lent = st.lent || t.writes
	return b, nil
}

// checkContext refuses a nil context before anything is done.
func checkContext(ctx context.Context, op string) error {
	if ctx == nil {
		return fmt.Errorf("%s: context is nil: %w", op, runtime.ErrInvalidArgument)
	}
	return nil
}
