package cluster

// One call of a member: its steps, its memory, its kernels.

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/concord-compute/concord/runtime"
	"github.com/concord-compute/concord/runtime/driver"
)

// call is one call of a member under way. The algorithms are written as if every step succeeded: after the first error,
// which err keeps, the steps that follow do nothing.
type call struct {
	m          *Member
	ctx        context.Context
	s          *runtime.Stream
	rank, size int

	comm driver.Communicator // of the library, while it does the call

	err     error
	buffers []*runtime.Buffer // views and scratch memory, closed at the end
	sent    []*parcel         // that other members may still read
}

// transfer is a step of a member: it sends out to a member, and at the same time receives from one. It receives in,
// or else n elements that use is called with, one piece after the other, of which first is the number of the first
// element. use queues what is to be done with a piece.
type transfer struct {
	to   int
	out  *runtime.Buffer // nil: none
	from int
	in   *runtime.Buffer // nil: use
	typ  runtime.Type
	n    int
	use  func(piece *runtime.Buffer, first int)
}

// port is a member's end of its group: how it reaches the other members.
type port interface {
	// agree waits until every member has told its entry, and returns what judge says of them.
	agree(c *call, e entry) error
	// exchange queues a transfer. What is sent may not be changed before settle.
	exchange(c *call, t transfer) error
	// settle makes the stream wait until what was sent may be changed.
	settle(c *call) error
	// pass makes a transfer of which only those that take part know.
	pass(c *call, r *request) error
	// failed returns why members of other processes end what they wait for, or nil.
	failed() error
	// tell tells members of other processes why the group has failed.
	tell(err *MemberError)
	// leave ends the calls that wait for others to call: with errLeft.
	leave()
	close() error
}

// step returns the context of one step.
func (c *call) step() (context.Context, context.CancelFunc) {
	return context.WithTimeout(c.ctx, c.m.group.options.Timeout)
}

// late returns the error of a step that waited for a member.
func (c *call) late(peer int, err error) error {
	switch {
	case err == nil:
		return nil
	case c.ctx.Err() != nil:
		return &MemberError{Rank: c.rank, Err: c.ctx.Err()}
	case errors.Is(err, context.DeadlineExceeded):
		return c.m.group.missing(peer)
	}
	return blame(peer, err)
}

// missing returns the error of a member that others have waited for.
func (g *Group) missing(rank int) *MemberError {
	return &MemberError{Rank: rank, Err: fmt.Errorf("no answer in %v: %w", g.options.Timeout, driver.ErrTimeout)}
}

// did keeps the first error of the call.
func (c *call) did(err error) {
	if c.err == nil {
		c.err = err
	}
}

// keep closes a buffer at the end of the call.
func (c *call) keep(b *runtime.Buffer, err error) *runtime.Buffer {
	if err != nil {
		c.did(err)
		return nil
	}
	c.buffers = append(c.buffers, b)
	return b
}

// part returns a view of a part of a buffer.
func (c *call) part(b *runtime.Buffer, p Part) *runtime.Buffer {
	if c.err != nil || p.First == 0 && p.Count == b.Len() {
		return b
	}
	return c.keep(b.Slice(p.First, p.Count))
}

// scratch returns memory for the length of the call.
func (c *call) scratch(t runtime.Type, n int) *runtime.Buffer {
	if c.err != nil {
		return nil
	}
	b, err := c.m.dev.Alloc(t, n)
	if err == nil {
		b.SetTag("cluster")
	}
	return c.keep(b, err)
}

// release closes what the call has made; the work that is queued keeps its memory.
func (c *call) release() {
	for _, b := range c.buffers {
		b.Close()
	}
}

// exchange makes a transfer, of which neither side is empty.
func (c *call) exchange(t transfer) {
	if t.out == nil || t.out.Len() == 0 {
		t.to, t.out = -1, nil
	}
	if t.in != nil {
		t.typ, t.n = t.in.Type(), t.in.Len()
	}
	if t.n == 0 {
		t.from = -1
	}
	switch {
	case c.err != nil || t.to < 0 && t.from < 0:
	case c.comm != nil:
		c.exchangeByLibrary(t)
	default:
		c.did(c.m.port.exchange(c, t))
	}
}

// send sends a buffer to a member.
func (c *call) send(to int, out *runtime.Buffer) { c.exchange(transfer{to: to, out: out, from: -1}) }

// receive receives a buffer from a member.
func (c *call) receive(from int, in *runtime.Buffer) {
	c.exchange(transfer{to: -1, from: from, in: in})
}

// settle waits until what was sent may be changed.
func (c *call) settle() {
	if c.err == nil {
		c.did(c.m.port.settle(c))
	}
}

// copy queues a copy, unless both are the same memory.
func (c *call) copy(dst, src *runtime.Buffer) {
	if c.err == nil && src.Len() > 0 && !same(dst, src) {
		c.did(c.s.Copy(dst, src))
	}
}

// fold queues dst = op(a, b), which is the result of the whole group if last.
func (c *call) fold(op Op, dst, a, b *runtime.Buffer, last bool) {
	if c.err != nil || b.Len() == 0 {
		return
	}
	key := foldKey{dev: c.m.dev.Stream(), op: op, a: a.Type(), b: b.Type(), out: dst.Type(), mean: op == Mean && last}
	c.did(c.m.group.folds.launch(c, key, dst, a, b))
}

// foldPart is fold of the elements of a and dst from one on, and of all of b.
func (c *call) foldPart(op Op, dst, a *runtime.Buffer, b *runtime.Buffer, first int, last bool) {
	if c.err == nil {
		p := Part{first, b.Len()}
		c.fold(op, c.part(dst, p), c.part(a, p), b, last)
	}
}

// prepare builds the kernels that the call will probably need, so that building is no part of a step.
func (c *call) prepare(r *request) error {
	if !r.kind.combines() || c.size == 1 && r.by != Library || r.n == 0 {
		return nil
	}
	keys := c.conversions(r)
	if r.by != Library {
		keys = c.foldKeys(r)
	}
	for i, k := range keys {
		if slices.Contains(keys[:i], k) {
			continue
		}
		if _, err := c.m.group.folds.kernel(c, k); err != nil {
			return err
		}
	}
	return nil
}

// foldKeys returns the kernels of the algorithms.
func (c *call) foldKeys(r *request) []foldKey {
	key := foldKey{dev: c.m.dev.Stream(), op: r.op, a: r.typ, b: r.typ, out: r.typ}
	keys := make([]foldKey, min(c.size-1, 3)) // the first sum of a part, those that follow, and the last
	for i := range keys {
		k := key
		if i > 0 {
			if r.by != Ring {
				k.a = r.op.between(r.typ)
			}
			if r.by != Direct {
				k.b = r.op.between(r.typ)
			}
		}
		if i < len(keys)-1 {
			k.out = r.op.between(r.typ)
		} else {
			k.mean = r.op == Mean
		}
		keys[i] = k
	}
	return keys
}

// close releases the kernels of a group.
func (f *folds) close() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	var err error
	for _, k := range f.list {
		if k.program != nil {
			err = cmp.Or(err, k.program.Close())
		}
	}
	f.list = nil
	return err
}
