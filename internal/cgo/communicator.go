//go:build cgo && unix

package cgo

// The vendor's library of collectives. Its communicators do not block: a call begins something, and the library is
// asked until that is done, so that a context can end the wait. NCCL_COMM_BLOCKING=1 in the environment makes NCCL's
// calls block in spite of that, and contexts do not end them.

import (
	"context"
	"sync"
	"time"

	"github.com/concord-compute/concord/runtime/driver"
)

// communicator is a rank.
type communicator struct {
	d           *device
	rank, ranks int

	mu     sync.Mutex // held by calls of the library, but not while it ends
	closed bool
	c      cComm
	ending sync.Once
}

// collectiveTypes are the numbers of cs_collective.type.
var collectiveTypes = map[driver.Type]int32{driver.I8: 0, driver.U8: 1, driver.I32: 2, driver.U32: 3, driver.I64: 4,
	driver.U64: 5, driver.F16: 6, driver.F32: 7, driver.F64: 8, driver.BF16: 9}

// HasCommunicators implements driver.Communicators.
func (d *device) HasCommunicators() bool { return d.b.v.Collectives != nil }

// CommunicatorID implements driver.Communicators.
func (d *device) CommunicatorID() ([]byte, error) {
	const op = "new communicator"
	if !d.HasCommunicators() {
		return nil, d.errorf(op, driver.ErrUnsupported, "there is no library of collectives")
	}
	if err := d.enter(op); err != nil {
		return nil, err
	}
	defer d.leave()
	id, f := d.t.commID(d.c, d.b.v.Collectives(d.lib.cfg))
	return id, d.failed(op, f)
}

// NewCommunicator implements driver.Communicators.
func (d *device) NewCommunicator(ctx context.Context, id []byte, rank, ranks int) (driver.Communicator, error) {
	const op = "join communicator"
	if !d.HasCommunicators() {
		return nil, d.errorf(op, driver.ErrUnsupported, "there is no library of collectives")
	}
	c := &communicator{d: d, rank: rank, ranks: ranks}
	if err := c.join(op, id); err != nil {
		return nil, err
	}
	if err := c.settle(ctx, op); err != nil {
		_ = c.Close()
		return nil, err
	}
	return c, nil
}

func (c *communicator) join(op string, id []byte) (err error) {
	d := c.d
	if err := d.enter(op); err != nil {
		return err
	}
	defer d.leave()
	var f *failure
	if c.c, f = d.t.commJoin(d.c, d.b.v.Collectives(d.lib.cfg), id, c.rank, c.ranks); f != nil {
		return d.failed(op, f)
	}
	d.hold(c)
	return nil
}

// call makes a call of the library.
func (c *communicator) call(op string, f func() *failure) error {
	if err := c.d.enter(op); err != nil {
		return err
	}
	defer c.d.leave()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return c.d.errorf(op, driver.ErrClosed, "communicator")
	}
	return c.d.failed(op, f())
}

// settle waits until the library has done what a call has begun: other ranks may have to do theirs first.
func (c *communicator) settle(ctx context.Context, op string) error {
	const longest = time.Millisecond
	for wait := time.Microsecond; ; wait = min(2*wait, longest) {
		done := false
		err := c.call(op, func() (f *failure) {
			done, f = c.d.t.commState(c.c)
			return f
		})
		if err != nil || done {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(wait):
		}
	}
}

// Queue implements driver.Communicator.
func (c *communicator) Queue(ctx context.Context, on driver.Stream, w *driver.Collective) error {
	op := w.Kind.String()
	s, ok := on.(*stream)
	if !ok || s.d != c.d {
		return c.d.errorf(op, driver.ErrInvalidArgument, "stream is a %T, or one of another device", on)
	}
	typ, ok := collectiveTypes[w.Type]
	if !ok {
		return c.d.errorf(op, driver.ErrUnsupported, "the library of collectives has no %v", w.Type)
	}
	if err := c.check(op, w); err != nil {
		return err
	}
	if err := s.enterRunning(op); err != nil {
		return err
	}
	err := c.call(op, func() *failure { return c.d.t.commQueue(c.c, s.c, w, typ) })
	if err == nil {
		err = c.settle(ctx, op)
	}
	if err != nil {
		s.leave()
		return err
	}
	return s.queued(op, nil)
}

// check checks what the library would read or write memory by.
func (c *communicator) check(op string, w *driver.Collective) error {
	dst, src := w.Dst.Size, w.Src.Size
	fits := true
	switch w.Kind {
	case driver.AllReduce:
		fits = dst == src
	case driver.Reduce:
		fits = dst == src || c.rank != w.Root
	case driver.Broadcast:
		fits = dst == src || c.rank != w.Root
	case driver.AllGather:
		fits = dst == int64(c.ranks)*src
	case driver.ReduceScatter:
		fits = src == int64(c.ranks)*dst
	}
	if !fits {
		return c.d.errorf(op, driver.ErrDimension, "%d bytes to %d, of %d ranks", src, dst, c.ranks)
	}
	for _, peer := range []int{w.Root, w.To, w.From} {
		if peer < -1 || peer >= c.ranks {
			return c.d.errorf(op, driver.ErrInvalidArgument, "rank %d of %d", peer, c.ranks)
		}
	}
	return nil
}

// Err implements driver.Communicator.
func (c *communicator) Err() error {
	return c.call("collective", func() *failure {
		_, f := c.d.t.commState(c.c)
		return f
	})
}

func (c *communicator) order() int { return orderCommunicators }

// Close implements driver.Communicator. Ending a communicator waits for the device, so that calls meanwhile are refused
// and do not wait with it; another Close does.
func (c *communicator) Close() (err error) {
	c.ending.Do(func() {
		c.mu.Lock()
		c.closed = true
		c.mu.Unlock()
		f := c.d.t.commAbort(c.c)
		c.d.forget(c)
		if c.d.lost() == nil { // which was reported already
			err = c.d.failed("close communicator", f)
		}
	})
	return err
}
