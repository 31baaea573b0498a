package runtime

// Copies between the two sides of a Managed, in the order of streams.

import (
	"context"
	"errors"
	"fmt"

	"github.com/concord-compute/concord/runtime/driver"
)

// ToDevice copies the host's side to the device's, if it is newer, and waits.
func (m *Managed) ToDevice(ctx context.Context) error {
	if err := checkContext(ctx, "to device"); err != nil {
		return err
	}
	const op = "to device"
	st, err := m.begin(op)
	if err != nil {
		return err
	}
	s := st.core.streams.own
	err = st.toDevice(ctx, s)
	st.end() // before the wait, so that other calls can use the buffer meanwhile
	if err == nil {
		err = s.sync(ctx)
	}
	return s.core.named(op, err)
}

// ToHost copies the device's side to the host's, if it is newer, and waits.
func (m *Managed) ToHost(ctx context.Context) error {
	if err := checkContext(ctx, "to host"); err != nil {
		return err
	}
	const op = "to host"
	if err := m.calm(ctx, op, true); err != nil {
		return err
	}
	st, err := m.begin(op)
	if err != nil {
		return err
	}
	defer st.end()
	return st.core.named(op, st.fetch(ctx))
}

// ToDevice queues the copy of a Managed's host side to the device's, if it is newer. A launch does
// the same; queued ahead of it, the copy runs while the host does something else. A Unified buffer
// is moved to the device if the driver can do that on request.
//
// ToDevice returns at once where the host's side is pinned memory, which it is wherever the host
// and the device can both access such memory; otherwise it waits until the host's side may be
// changed.
func (s *Stream) ToDevice(m *Managed) error {
	return s.between("to device", m, (*sides).toDevice)
}

// ToHost queues the copy of a Managed's device side to the host's, if it is newer. A later Read
// waits for it. It returns at once where ToDevice does, and waits otherwise.
func (s *Stream) ToHost(m *Managed) error { return s.between("to host", m, (*sides).toHost) }

func (s *Stream) between(op string, m *Managed, work func(*sides, context.Context, *Stream) error) error {
	if s.none() {
		return fmt.Errorf("%s: stream is nil: %w", op, ErrInvalidArgument)
	}
	if err := s.live(op); err != nil {
		return err
	}
	st, err := m.begin(op)
	if err != nil {
		return err
	}
	defer st.end()
	if st.core != s.core {
		return s.core.error(op, fmt.Errorf("buffer belongs to %s: %w", st.core.info.ID, ErrInvalidArgument))
	}
	return s.core.named(op, work(st, context.Background(), s))
}

var errMapped = fmt.Errorf("buffer is mapped: %w", ErrInvalidArgument)

// toDevice brings the device's side up to date in a stream.
func (st *sides) toDevice(ctx context.Context, s *Stream) error {
	switch {
	case st.opt.Location == HostOnly:
		return ErrNoDeviceMemory
	case st.windows.Load() > 0:
		return errMapped
	case st.opt.Mode == UnifiedMode:
		return st.prefetch(s, false)
	case st.dirty != hostDirty:
		return nil
	}
	if err := st.makeDevice(); err != nil {
		return err
	}
	uses, err := st.after(ctx, s, true)
	if err != nil {
		return err
	}
	defer closeEvents(uses)
	return s.queue("to device", func() error {
		if err := s.waitFor(uses); err != nil {
			return err
		}
		return st.upload(ctx, s)
	})
}

// upload queues the copy to the device. The caller holds the stream, and has made it wait for other
// streams' uses.
func (st *sides) upload(ctx context.Context, s *Stream) error {
	if err := s.holdMemory(st.dev); err != nil {
		return err
	}
	var err error
	if st.size == 0 {
		st.dirty = neither
		return nil
	}
	if st.pinned == nil {
		err = s.upload(ctx, st.dev.mem, st.host)
	} else {
		err = st.move(s, st.dev, st.pinned, true)
	}
	if err == nil {
		st.changedBy(s)
		st.dirty = neither
	}
	return err
}

// toHost brings the host's side up to date in a stream.
func (st *sides) toHost(ctx context.Context, s *Stream) error {
	switch {
	case st.opt.Location == DeviceOnly:
		return ErrNoHostMemory
	case st.windows.Load() > 0:
		return errMapped
	case st.opt.Mode == UnifiedMode:
		return st.prefetch(s, true)
	case st.dirty != deviceDirty:
		return nil
	}
	return st.download(ctx, s)
}

// fetch is toHost, and waits.
func (st *sides) fetch(ctx context.Context) error {
	s := st.writer()
	err := st.toHost(ctx, s)
	if err != nil && s.gone.Load() { // it was closed just now
		err = st.toHost(ctx, st.core.streams.own)
	}
	if err != nil {
		return err
	}
	return st.waitMoved(ctx)
}

// download queues the copy to the host.
func (st *sides) download(ctx context.Context, s *Stream) error {
	if err := st.makeHost(); err != nil {
		return err
	}
	if st.size == 0 {
		st.dirty = neither
		return nil
	}
	uses, err := st.after(ctx, s, true)
	if err != nil {
		return err
	}
	defer closeEvents(uses)
	err = s.queue("to host", func() error {
		if err := s.waitFor(uses); err != nil {
			return err
		}
		if err := s.holdMemory(st.dev); err != nil {
			return err
		}
		if st.pinned == nil {
			return s.download(ctx, st.host, st.dev.mem)
		}
		return st.move(s, st.pinned, st.dev, false)
	})
	if err == nil {
		st.dirty = neither
	}
	return err
}

// move queues the copy between the device's side and pinned memory.
func (st *sides) move(s *Stream, dst, src *allocation, up bool) error {
	if err := s.holdMemory(st.pinned); err != nil {
		return err
	}
	if err := s.copyMemory(dst.mem, src.mem); err != nil {
		return err
	}
	u, err := s.noteUse()
	if err != nil {
		return err
	}
	st.forgetCopy() // an earlier copy is done when this one is: the stream has waited for it
	st.moved, st.movedUp = u, up
	return nil
}

// noteUse returns a usage that covers the work queued so far. The caller holds the stream. If
// no event can be recorded it waits for that work; if that fails as well, the use lasts until
// the stream is closed.
func (s *Stream) noteUse() (usage, error) {
	e, err := s.drv.Record(false)
	if err == nil {
		return usage{s, s.queued.Load() + 1, e}, nil
	}
	if s.drv.Sync(context.Background()) != nil {
		return usage{s, s.queued.Load() + 1, nil}, err
	}
	if errors.Is(err, ErrOutOfMemory) {
		err = nil
	}
	return usage{}, err
}

// waitMoved waits until no copy uses the host's side. If the copy failed, its source counts as the
// newer side again.
func (st *sides) waitMoved(ctx context.Context) error {
	s := st.moved.stream
	if s == nil {
		return nil
	}
	failed := s.failed() != nil || st.moved.seq <= s.undone.Load()
	if !failed && st.moved.done() {
		st.forgetCopy()
		return nil
	}
	err := st.moved.event.Wait(ctx)
	if err != nil && s.gone.Load() { // a closed stream has done its work, unless it failed
		if err = s.passed(ctx); err == nil {
			err = s.failed()
		}
	}
	if err != nil && ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		return err
	}
	if err != nil {
		st.undone()
	}
	st.forgetCopy()
	return st.core.noticed(err)
}

// undone takes back the note of a copy that failed.
func (st *sides) undone() {
	if st.dirty != neither {
		return
	}
	st.dirty = deviceDirty
	if st.movedUp {
		st.dirty = hostDirty
	}
}

// forgetCopy drops the note of a copy and closes its event.
func (st *sides) forgetCopy() {
	closeEvents([]usage{st.moved})
	st.moved = usage{}
}

// changedBy notes that the work which the caller is queueing changes the device's
// side.
func (st *sides) changedBy(s *Stream) { st.changed = usage{stream: s, seq: s.queued.Load() + 1} }

// writer returns the stream that changed the device's side last, or else the device's own.
func (st *sides) writer() *Stream {
	if s := st.changed.stream; s != nil && !s.gone.Load() {
		return s
	}
	return st.core.streams.own
}

// after returns the work of other streams that s has to wait for: before it reads the device's side
// the last change, before it writes that side all uses. The caller closes the events. Work without
// an event that s can wait for is waited for here.
func (st *sides) after(ctx context.Context, s *Stream, writes bool) ([]usage, error) {
	var streams []*Stream
	switch last := st.changed.stream; {
	case st.dev == nil:
	case writes || st.lent:
		streams = st.dev.busyBeside(s)
	case last != nil && last != s && last.finished.Load() < st.changed.seq:
		streams = []*Stream{last}
	}
	return s.usesOf(ctx, streams)
}

// waitFor makes the stream, which the caller holds, wait for other streams' work.
func (s *Stream) waitFor(uses []usage) error {
	for _, u := range uses {
		if err := s.drv.Wait(u.event); err != nil {
			return err
		}
	}
	return nil
}

// prefetch moves unified memory, if the driver can do that on request.
func (st *sides) prefetch(s *Stream, toHost bool) error {
	p, ok := s.drv.(driver.Prefetcher)
	if !ok {
		return nil
	}
	err := s.queue("prefetch", func() error {
		if err := s.holdMemory(st.dev); err != nil {
			return err
		}
		return p.Prefetch(st.dev.mem, toHost)
	})
	if errors.Is(err, ErrUnsupported) {
		return nil // a hint
	}
	return err
}

// DeviceSide returns the device's side as a Buffer, up to date in the order of a stream, for calls
// that take no Managed: fills, copies, graphs, other devices. With any access but ForReading the
// device's side counts as newer from then on. After the host's side has been used, call DeviceSide
// again before more work is queued with the Buffer. The caller closes the Buffer.
func (m *Managed) DeviceSide(s *Stream, how Access) (*Buffer, error) {
	const op = "device side"
	var b *Buffer
	err := s.between(op, m, func(st *sides, ctx context.Context, s *Stream) (err error) {
		b, err = m.deviceSide(ctx, st, s, how)
		return err
	})
	return b, err
}

func (m *Managed) deviceSide(ctx context.Context, st *sides, s *Stream, how Access) (*Buffer, error) {
	if how > ForOverwriting {
		return nil, fmt.Errorf("%d is no access: %w", how, ErrInvalidArgument)
	}
	if err := st.makeDevice(); err != nil {
		return nil, err
	}
	t := taken{st: st, reads: how != ForOverwriting || !m.whole(), writes: how != ForReading}
	if err := t.allowed(); err != nil {
		return nil, err
	}
	uses, err := st.after(ctx, s, true)
	if err != nil {
		return nil, err
	}
	defer closeEvents(uses)
	err = s.queue("device side", func() error {
		if err := s.waitFor(uses); err != nil {
			return err
		}
		if err := t.refresh(ctx, s); err != nil {
			return err
		}
		t.launched(s)
		return nil
	})
	if err != nil {
		return nil, err
	}
	if !st.dev.ref() {
		return nil, st.core.closedError("device side")
	}
	st.lent = st.lent || t.writes
	return newBuffer(st.dev, m.typ, part(st.dev.mem, m.off, m.Bytes()), m.n), nil
}
