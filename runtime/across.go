package runtime

// Copies from one device to another, of the same backend or not.

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/concord-compute/concord/runtime/driver"
)

// acrossChunk is the size of the pieces of a copy through the host. While one is written the next one
// is read.
const acrossChunk = 4 << 20

// CopyAcross copies the whole of src to the beginning of dst, which may be on
// another device, of another backend, or in another session, and waits for it. It
// comes after all work queued so far that uses either buffer, on any stream. The
// element types must agree.
//
// It is Stream.CopyFrom on the own stream of dst's device, and Sync. When ctx is done first, its error
// is returned and dst may hold part of the data. Both buffers may be closed meanwhile.
func CopyAcross(ctx context.Context, dst, src *Buffer) error {
	if dst.none() || src.none() {
		return fmt.Errorf("copy across: buffer is nil: %w", ErrInvalidArgument)
	}
	s := dst.a.core.streams.own
	if err := s.CopyFrom(ctx, dst, src, nil); err != nil {
		return err
	}
	return s.Sync(ctx)
}

// CopyFrom queues a copy of the whole of src to the beginning of dst, a buffer of this stream's device. src may be
// on another device, of another backend, or in another session. The element types must agree.
//
// The copy comes after the work queued so far on this stream, and after the event: a point of any stream of
// src's device behind the work that produces the contents of src. With a nil event it comes after all
// work queued so far that uses either buffer, on any stream. It does not wait for other work of these streams.
// The memory of both buffers is kept until the copy is done; nothing may write to src before, on its device either.
//
// On one device CopyFrom returns at once. Between two devices the host waits for the event. Where the receiving driver
// cannot copy from the other device, the host also reads the data. Then it queues the rest and returns, unless the
// receiving driver has no memory from which it copies on its own (Pinned). When ctx is done first, its error is
// returned and dst may hold part of the data.
func (s *Stream) CopyFrom(ctx context.Context, dst, src *Buffer, after *Event) error {
	const op = "copy across"
	if err := s.ready(ctx, op); err != nil {
		return err
	}
	if dst.none() || src.none() {
		return fmt.Errorf("%s: buffer is nil: %w", op, ErrInvalidArgument)
	}
	to, from := s.core, src.a.core
	if dst.a.core != to {
		return to.error(op, fmt.Errorf("buffer belongs to %s: %w", dst.a.core.info.ID, ErrInvalidArgument))
	}
	if err := checkCopy(dst, src); err != nil {
		return to.error(op, err)
	}
	dst, err := dst.view(dst.typ, part(dst.mem, 0, src.mem.Size), src.n) // kept for the call
	if err != nil {
		return err
	}
	defer dst.Close()
	if src, err = src.view(src.typ, src.mem, src.n); err != nil {
		return err
	}
	defer src.Close()
	for _, c := range []*core{from, to} { // so that neither is closed in the middle
		if !c.enter() {
			return c.closedError(op)
		}
		defer c.leave()
	}
	if err := s.waitBefore(ctx, op, dst, src, after); err != nil {
		return err
	}
	if to == from || src.n == 0 {
		return s.queue(op, func() error {
			if err := s.holdToWrite(dst); err != nil || src.n == 0 {
				return err
			}
			if err := s.hold(src); err != nil {
				return err
			}
			return s.copyMemory(dst.mem, src.mem)
		})
	}
	if peers, ok := to.drv.(driver.PeerCopier); ok {
		if can, _ := peers.CanCopyFrom(from.drv); can {
			if err := s.copyFromPeer(peers, dst, src); !errors.Is(err, ErrUnsupported) {
				return err
			}
		}
	}
	return s.copyThroughHost(ctx, dst, src)
}

// waitBefore makes the stream wait for what a copy comes after; the host waits for other devices.
func (s *Stream) waitBefore(ctx context.Context, op string, dst, src *Buffer, after *Event) error {
	if after != nil {
		_, c, err := after.get(op)
		switch {
		case err != nil:
			return err
		case c != src.a.core:
			return s.core.error(op, fmt.Errorf("event of %s: %w", c.info.ID, ErrInvalidArgument))
		case c == s.core:
			return s.Wait(after)
		}
		return after.Wait(ctx)
	}
	return s.behind(ctx, op, append(src.a.busyBeside(s), dst.a.busyBeside(s)...))
}

// WaitFor makes later work of this stream wait for all work with a buffer of its device that is queued on other
// streams: a Write, or a launch that stores results in it. It waits itself only where a driver cannot make one stream
// wait for another, and returns the error of a stream that failed and has such work.
func (s *Stream) WaitFor(ctx context.Context, b *Buffer) error {
	const op = "wait for a buffer"
	if err := s.ready(ctx, op); err != nil {
		return err
	}
	if b.none() {
		return fmt.Errorf("%s: buffer is nil: %w", op, ErrInvalidArgument)
	}
	if b.a.core != s.core {
		return s.core.error(op, fmt.Errorf("buffer belongs to %s: %w", b.a.core.info.ID, ErrInvalidArgument))
	}
	return s.behind(ctx, op, b.a.busyBeside(s))
}

// WaitForStream makes later work of this stream wait for all work queued so far on another stream of the same device.
// It queues nothing if that is done, or is this stream. It waits itself only where the driver cannot make one
// stream wait for another, and returns the error of the other stream if it failed.
func (s *Stream) WaitForStream(ctx context.Context, other *Stream) error {
	const op = "wait for a stream"
	if err := s.ready(ctx, op); err != nil {
		return err
	}
	switch {
	case other.none():
		return fmt.Errorf("%s: stream is nil: %w", op, ErrInvalidArgument)
	case other.core != s.core:
		return s.core.error(op, fmt.Errorf("stream of %s: %w", other.core.info.ID, ErrInvalidArgument))
	case other == s || !other.busy():
		return nil
	}
	return s.behind(ctx, op, []*Stream{other})
}

// behind makes the stream wait for the work queued so far on others; the host waits for other devices.
func (s *Stream) behind(ctx context.Context, op string, others []*Stream) error {
	uses, err := s.usesOf(ctx, others)
	if err != nil || len(uses) == 0 {
		return err
	}
	defer closeEvents(uses)
	return s.queue(op, func() error { return s.waitFor(uses) })
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

// usesOf returns the work queued so far on other streams, for the stream to wait for; the caller closes the
// events. Work without an event that the stream can wait for is waited for here.
func (s *Stream) usesOf(ctx context.Context, others []*Stream) ([]usage, error) {
	var uses []usage
	for _, other := range others {
		u, busy := other.lastUse()
		if !busy {
			continue
		}
		if u.event != nil && other.core == s.core {
			uses = append(uses, u)
			continue
		}
		err := errors.ErrUnsupported
		if u.event != nil {
			err = u.event.Wait(ctx)
			closeEvents([]usage{u})
		}
		if err != nil && ctx.Err() == nil {
			err = other.passed(ctx)
		}
		if err != nil {
			closeEvents(uses)
			return nil, err
		}
	}
	return uses, nil
}

// idle waits until all work queued so far that uses the memory is done.
func (a *allocation) idle(ctx context.Context) error {
	for _, s := range a.users() {
		if err := s.passed(ctx); err != nil {
			return err
		}
	}
	return nil
}

// leaveOthers waits until other devices' work with the memory is done.
func (a *allocation) leaveOthers() {
	for _, s := range a.users() {
		if s.core != a.core {
			_ = s.passed(context.Background()) // its error belongs to the stream, which reports it
		}
	}
}

// busyBeside returns the streams besides s whose work may use the memory.
func (a *allocation) busyBeside(s *Stream) (list []*Stream) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, u := range a.used {
		// Other devices only read the memory, and one that is lost is not waited for.
		if u != s && u.busy() && (u.core == a.core || u.core.lost() == nil) {
			list = append(list, u)
		}
	}
	return list
}

func (a *allocation) users() []*Stream {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.used)
}

// copyFromPeer leaves the copy to the receiving device's driver.
func (s *Stream) copyFromPeer(peers driver.PeerCopier, dst, src *Buffer) error {
	return s.queue("copy across", func() error {
		if err := s.holdToWrite(dst); err != nil {
			return err
		}
		if err := src.a.usedBy(s); err != nil { // so that it is freed only after the copy
			return err
		}
		watched := s.begin()
		err := peers.CopyFrom(s.drv, dst.mem, src.a.core.drv, src.mem)
		if watched && !errors.Is(err, ErrUnsupported) {
			s.done(copyEvent(src.a.core.info.ID, "device", src.mem.Size), err)
		}
		return err
	})
}

// copyThroughHost reads pieces of src, on a stream that nothing else waits for, and queues copies of them to dst.
func (s *Stream) copyThroughHost(ctx context.Context, dst, src *Buffer) error {
	from, err := src.a.core.streams.reading()
	if err != nil {
		return err
	}
	seen, visible := src.hostBytes()
	for off := int64(0); off < src.mem.Size; off += acrossChunk {
		n := min(acrossChunk, src.mem.Size-off)
		at, data, err := s.core.memory.onTheWay(n)
		if err != nil {
			return err
		}
		if !visible {
			err = from.Read(ctx, src, off, data)
		} else if err = ctx.Err(); err == nil {
			copy(data, seen[off:])
		}
		if err == nil {
			err = s.queue("copy across", func() error {
				if err := s.holdToWrite(dst); err != nil {
					return err
				}
				if at == nil {
					return s.upload(ctx, part(dst.mem, off, n), data)
				}
				if err := s.holdMemory(at); err != nil {
					return err
				}
				return s.copyMemory(part(dst.mem, off, n), at.mem)
			})
		}
		if at != nil {
			at.unref() // the pool reuses it after the copy
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// onTheWay returns n bytes for a piece of a copy: pinned memory, from which a stream copies without a wait of
// the host, or else the host's.
func (m *memory) onTheWay(n int64) (*allocation, []byte, error) {
	if _, sees := m.core.drv.(driver.HostVisible); !sees {
		return nil, make([]byte, n), nil
	}
	a, err := m.alloc(n, driver.Pinned, nil)
	if err != nil {
		if scarce(err) {
			return nil, make([]byte, n), nil
		}
		return nil, nil, err
	}
	data, ok := m.core.hostBytes(a.mem)
	if !ok {
		a.unref()
		return nil, make([]byte, n), nil
	}
	return a, data, nil
}

// reading returns a stream of the device for copies to other devices.
func (set *streams) reading() (*Stream, error) {
	set.making.Lock()
	defer set.making.Unlock()
	if s := set.reader; s != nil {
		if s.failed() == nil {
			return s, nil
		}
		_ = s.close() // the copy that failed has returned its error
	}
	s, err := set.new(driver.Normal)
	set.reader = s
	return s, err
}
