package runtime

// Copies from one device to another, of the same backend or not.

import (
	"context"
	"fmt"
	"slices"

	"github.com/concord-compute/concord/runtime/driver"
)

// acrossChunk is the size of the pieces of a copy through the host. Two pieces are under way
// at a time: one is read while the other is written.
const acrossChunk = 4 << 20

// CopyAcross copies the whole of src to the beginning of dst, which may be on
// another device, of another backend, or in another session, and waits for it. It
// comes after all work queued so far that uses either buffer, on any stream. The
// element types must agree.
//
// Devices that can copy from each other do so; else the data passes through the
// host's memory, a piece at a time. When ctx is done first, its error is returned
// and dst may hold part of the data. Both buffers may be closed meanwhile.
func CopyAcross(ctx context.Context, dst, src *Buffer) error {
	if err := checkContext(ctx, "copy across"); err != nil {
		return err
	}
	const op = "copy across"
	if dst.none() || src.none() {
		return fmt.Errorf("%s: buffer is nil: %w", op, ErrInvalidArgument)
	}
	to, from := dst.a.core, src.a.core
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
	for _, b := range []*Buffer{src, dst} {
		if err := b.a.idle(ctx); err != nil {
			return err
		}
	}
	if to == from {
		if err := to.streams.own.Copy(dst, src); err != nil {
			return err
		}
		return to.streams.own.Sync(ctx)
	}
	for _, c := range []*core{from, to} { // so that neither is closed in the middle
		if !c.enter() {
			return c.closedError(op)
		}
		defer c.leave()
	}
	if peers, ok := to.drv.(driver.PeerCopier); ok {
		if can, _ := peers.CanCopyFrom(from.drv); can {
			return copyFromPeer(ctx, peers, dst, src)
		}
	}
	return copyThroughHost(ctx, dst, src)
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
		if u != s && u.busy() {
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
func copyFromPeer(ctx context.Context, peers driver.PeerCopier, dst, src *Buffer) error {
	s := dst.a.core.streams.own
	err := s.queue("copy across", func() error {
		if err := s.hold(dst); err != nil {
			return err
		}
		if err := src.a.usedBy(s); err != nil { // so that it is freed only after the copy, even if the copy is not waited for
			return err
		}
		return peers.CopyFrom(s.drv, dst.mem, src.a.core.drv, src.mem)
	})
	if err != nil {
		return err
	}
	return s.Sync(ctx)
}

// copyThroughHost reads and writes, directly where the host sees one of the sides.
func copyThroughHost(ctx context.Context, dst, src *Buffer) error {
	to, from := dst.a.core.streams.own, src.a.core.streams.own
	if view, ok := dst.hostBytes(); ok {
		return inChunks(view, func(off int64, chunk []byte) error { return from.Read(ctx, src, off, chunk) })
	}
	var err error
	if view, ok := src.hostBytes(); ok {
		err = inChunks(view, func(off int64, chunk []byte) error { return to.Write(ctx, dst, off, chunk) })
	} else {
		err = copyInPieces(ctx, dst, src)
	}
	if err != nil {
		return err
	}
	return to.Sync(ctx) // a write may have put its data aside
}

// piece is a part of a copy on its way through the host.
type piece struct {
	off  int64
	data []byte
	err  error
}

// copyInPieces reads one piece while it writes the one before.
func copyInPieces(ctx context.Context, dst, src *Buffer) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	size := src.mem.Size
	free, full := make(chan []byte, 2), make(chan piece)
	for range min(2, (size+acrossChunk-1)/acrossChunk) {
		free <- make([]byte, min(acrossChunk, size))
	}
	go func() {
		defer close(full)
		for off := int64(0); off < size; off += acrossChunk {
			p := piece{off: off, data: (<-free)[:min(acrossChunk, size-off)]}
			p.err = src.a.core.streams.own.Read(ctx, src, off, p.data)
			full <- p
			if p.err != nil {
				return
			}
		}
	}()
	var err error
	for p := range full { // to the end, so that the reading goroutine has ended before the return
		if err == nil {
			if err = p.err; err == nil {
				err = dst.a.core.streams.own.Write(ctx, dst, p.off, p.data)
			}
			if err != nil {
				cancel()
			}
		}
		free <- p.data[:cap(p.data)]
	}
	return err
}

func inChunks(data []byte, each func(off int64, chunk []byte) error) error {
	off := int64(0)
	for chunk := range slices.Chunk(data, acrossChunk) {
		if err := each(off, chunk); err != nil {
			return err
		}
		off += int64(len(chunk))
	}
	return nil
}
