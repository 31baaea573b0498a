//go:build cgo && unix

package cgo

// Streams: queueing work.

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/concord-compute/concord/runtime/driver"
)

// stream is a vendor's queue with the names of its open operations.
//
// A failure of queued work is found by the first call that the driver reports it to. It is then
// kept in err, and every call but Close returns it.
type stream struct {
	d *device
	t table

	ops       ops
	times     times
	capturing atomic.Bool
	err       atomic.Pointer[firstFailure]

	alive  sync.RWMutex // held for reading while c is used
	closed bool
	c      cStream
}

// firstFailure is the first failure of a stream.
type firstFailure struct {
	err   error
	after uint64 // operations that were complete before it
}

var (
	_ driver.Stream          = (*stream)(nil)
	_ driver.PinnedCopier    = (*stream)(nil)
	_ driver.Prefetcher      = (*stream)(nil)
	_ driver.StreamAllocator = (*stream)(nil)
	_ driver.Capturer        = (*stream)(nil)
	_ driver.KnownFailure    = (*stream)(nil)
)

// Upload implements driver.Stream. Up to aside bytes are copied without waiting for the queue. For
// more, if ctx can be done, Upload first waits for the queue in a way that ctx can end, since the
// copy itself cannot be interrupted.
func (s *stream) Upload(ctx context.Context, dst driver.Memory, src []byte) error {
	const op = "upload"
	if len(src) == 0 {
		return nil
	}
	if err := s.ready(ctx, op, len(src) > aside); err != nil {
		return err
	}
	return s.queued(op, s.t.upload(s.c, address(dst), src))
}

// aside is the largest size, in bytes, for which an upload copies the data to staging memory and
// does not wait for the queue.
const aside = 64 << 10

// Download implements driver.Stream.
func (s *stream) Download(ctx context.Context, dst []byte, src driver.Memory) error {
	const op = "download"
	if len(dst) == 0 {
		return nil
	}
	if err := s.ready(ctx, op, true); err != nil {
		return err
	}
	at := s.ops.now()
	f := s.t.download(s.c, dst, address(src))
	if f == nil {
		s.ops.settle(at)
		s.leave()
		return nil
	}
	return s.queued(op, f)
}

// ready is enter for a copy that may block. If wait is set and ctx can be done, it first waits for
// all earlier work, which ctx can end.
func (s *stream) ready(ctx context.Context, op string, wait bool) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if wait && ctx.Done() != nil {
		if err := s.finish(ctx, op); err != nil {
			return err
		}
	}
	return s.enterRunning(op)
}

// Copy implements driver.Stream.
func (s *stream) Copy(dst, src driver.Memory) error {
	const op = "copy"
	if err := s.enter(op); err != nil {
		return err
	}
	return s.queued(op, s.t.copy(s.c, address(dst), address(src), src.Size))
}

// Fill implements driver.Stream.
func (s *stream) Fill(dst driver.Memory, pattern []byte) error {
	const op = "fill"
	if k := len(pattern); k != 1 && k != 2 && k != 4 && k != 8 || dst.Size%int64(k) != 0 {
		return s.d.errorf(op, driver.ErrInvalidArgument, "%d bytes with a pattern of %d", dst.Size, k)
	}
	if err := s.enter(op); err != nil {
		return err
	}
	return s.queued(op, s.t.fill(s.c, address(dst), dst.Size, pattern))
}

// Launch implements driver.Stream: one call into C, which gets the runtime's table of arguments
// without a copy.
func (s *stream) Launch(l *driver.Launch) error {
	k, ok := l.Kernel.(*kernel)
	if g, own := l.Kernel.(*gemm); !ok && own {
		return s.launchGEMM(g, l)
	}
	if !ok || k.m.d != s.d {
		return s.d.errorf("launch", driver.ErrInvalidArgument, "kernel is a %T, or one of another device", l.Kernel)
	}
	for _, i := range k.constants {
		if i < len(l.Args) && address(l.Args[i].Memory)%s.d.constantAlign != 0 {
			return s.d.errorf(k.op, driver.ErrInvalidArgument, "argument %d is constant memory, whose offset has to be a "+
				"multiple of %d bytes: it is %d",
				i, s.d.constantAlign, l.Args[i].Memory.Offset)
		}
	}
	groups, group := [3]uint64{1, 1, 1}, [3]uint64{1, 1, 1}
	for i := range l.Dim {
		group[i] = uint64(l.Local[i])
		groups[i] = uint64(l.Global[i]) / group[i]
	}
	if err := s.enter(k.op); err != nil {
		return err
	}
	if groups[0]*groups[1]*groups[2] == 0 { // an empty grid, which drivers refuse
		s.leave()
		return nil
	}
	if err := k.m.enter(k.op); err != nil {
		s.leave()
		return err
	}
	f := s.t.launch(s.c, k.c, &groups, &group, l.Args, l.Data)
	k.m.leave()
	if f != nil && f.status == statusInvalid {
		f.status = statusRefused
	}
	return s.queued(k.op, f)
}

// Wait implements driver.Stream.
func (s *stream) Wait(e driver.Event) error {
	const op = "wait for an event"
	ev, ok := e.(*event)
	if !ok || ev.s.d != s.d {
		return s.d.errorf(op, driver.ErrInvalidArgument, "event is a %T, or one of another device", e)
	}
	if s.capturing.Load() { // a graph cannot wait for an event outside of it
		done, err := ev.Done()
		if err == nil && !done {
			err = s.d.errorf(op, driver.ErrInvalidArgument, "the stream records a graph, and the event is not reached yet")
		}
		return err
	}
	if err := ev.acquire(op); err != nil {
		return err
	}
	defer ev.release()
	if err := s.enter(op); err != nil {
		return err
	}
	return s.queued(op, s.t.streamWait(s.c, ev.c))
}

// UploadPinned implements driver.PinnedCopier.
func (s *stream) UploadPinned(dst, src driver.Memory) error {
	return s.pinned("upload", src, func(host uint64) *failure {
		return s.t.uploadPinned(s.c, address(dst), host, src.Size)
	})
}

// DownloadPinned implements driver.PinnedCopier.
func (s *stream) DownloadPinned(dst, src driver.Memory) error {
	return s.pinned("download", dst, func(host uint64) *failure {
		return s.t.downloadPinned(s.c, host, address(src), src.Size)
	})
}

func (s *stream) pinned(op string, m driver.Memory, copy func(host uint64) *failure) error {
	host, ok := s.d.host(m)
	if !ok {
		return s.d.errorf(op, driver.ErrInvalidArgument, "the host's memory is not pinned memory of this device")
	}
	if err := s.enter(op); err != nil {
		return err
	}
	return s.queued(op, copy(host))
}

// Prefetch implements driver.Prefetcher.
func (s *stream) Prefetch(m driver.Memory, toHost bool) error {
	const op = "prefetch"
	if err := s.enter(op); err != nil {
		return err
	}
	return s.queued(op, s.t.prefetch(s.c, address(m), m.Size, toHost))
}

// AllocHere implements driver.StreamAllocator.
func (s *stream) AllocHere(n int64) (driver.Memory, error) {
	op := func() string { return "alloc " + driver.FormatBytes(n) + " in stream order" }
	if err := s.enter("alloc"); err != nil {
		return driver.Memory{}, err
	}
	defer s.leave()
	if limit := s.d.largest(driver.OnDevice); limit > 0 && n > limit {
		return driver.Memory{}, s.d.errorf(op(), driver.ErrTooLarge, "an allocation has at most %s",
			driver.FormatBytes(limit))
	}
	address, f := s.t.allocOn(s.c, n)
	if f != nil {
		return driver.Memory{}, s.refuse(op(), f)
	}
	s.d.keep(address, &allocation{kind: driver.OnDevice, size: n, ordered: true, refs: 1})
	return driver.Memory{Handle: address, Size: n}, nil
}

// FreeHere implements driver.StreamAllocator.
func (s *stream) FreeHere(m driver.Memory) error {
	const op = "free in stream order"
	if err := s.enter(op); err != nil {
		return err
	}
	defer s.leave()
	a, last := s.d.drop(m.Handle, true)
	switch {
	case a == nil:
		return s.d.errorf(op, driver.ErrInvalidArgument, "memory is not of AllocHere")
	case !last:
		return nil
	}
	f := s.t.freeOn(s.c, m.Handle)
	if f == nil {
		return nil
	}
	err := s.refuse(op, f)
	if s.d.lost() != nil {
		return nil // it was freed with the context
	}
	a.refs = 1
	s.d.keep(m.Handle, a) // for Free, or the device's Close
	return err
}
