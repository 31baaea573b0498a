package cluster

// Members, and what they call.

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/concord-compute/concord/runtime"
)

// Member is one member of a group: a rank, and a device of this process. Its collectives are calls that every member
// of the group makes, in the same order and with arguments that agree, each for its own part; they come after the
// work that is queued on the stream so far, and later work of the stream comes after them. A nil stream is the
// member's own. The host waits until all members have called, so that one goroutine cannot make the calls of several
// members one after the other: see [Group.Do]. It does not wait for the result, unless several devices
// exchange data, or processes.
//
// A buffer is one of the member's device, closed by the caller whenever it likes after the call. dst and src are either
// disjoint, or the same memory where that is said; all else is refused. Until a collective's work is done nothing else
// may write to its buffers. Where one fails, src is unchanged unless it shares its memory with dst, and dst is
// undefined.
//
// If members call different collectives, or with other types, lengths, operations or roots, all of them return the same
// [*MemberError], and nothing has moved. So they do when a member's arguments are refused, or its stream has failed
// before.
//
// A Member is safe for concurrent use, but its collectives run one at a time, in the order of the calls.
type Member struct {
	group *Group
	rank  int
	dev   *runtime.Device
	own   *runtime.Stream
	port  port

	mu            sync.Mutex    // held by a collective
	before, after runtime.Event // of a collective of the library: behind the work before it, and behind it
	health        health
}

// Rank returns the member's number in its group, from 0 on.
func (m *Member) Rank() int { return m.rank }

// Size returns the number of members of the group.
func (m *Member) Size() int { return m.group.size }

// Device returns the member's device.
func (m *Member) Device() *runtime.Device { return m.dev }

// Stream returns the member's own stream, which the group closes.
func (m *Member) Stream() *runtime.Stream { return m.own }

// Group returns the member's group.
func (m *Member) Group() *Group { return m.group }

// String returns "member 1 of 4 (cuda:1)".
func (m *Member) String() string {
	return fmt.Sprintf("member %d of %d (%s)", m.rank, m.group.size, m.dev)
}

// Fail tells the group that the member's work has failed, outside of a collective: present and later collectives of all
// members return the error that Fail returns, a [*MemberError] with this member's rank unless err names one. An error
// that all members got from one collective, which left the group as it was, changes nothing here either. A nil err is
// nil.
func (m *Member) Fail(err error) error {
	if err == nil {
		return nil
	}
	named := blame(m.rank, err)
	if named.Rank < 0 || named.Rank >= m.group.size { // of another group
		named = &MemberError{Rank: m.rank, Err: err}
	}
	if named.refused && !named.pair || m.group.enter() != nil { // a closed group's link is closed, too
		return named
	}
	defer m.group.calls.Done()
	return m.group.fail(named)
}

// AllReduce combines the elements of src of all members, and stores the result in dst of all of them: the same bits.
// dst and src have the same length, and may be the same memory.
func (m *Member) AllReduce(ctx context.Context, s *runtime.Stream, op Op, dst, src *runtime.Buffer) error {
	return m.call(ctx, s, &request{kind: allReduce, op: op, dst: dst, src: src})
}

// Reduce combines the elements of src of all members, and stores the result in dst of the member root. dst of the
// others is not used, and may be nil. dst and src have the same length, and may be the same memory.
func (m *Member) Reduce(ctx context.Context, s *runtime.Stream, op Op, root int, dst, src *runtime.Buffer) error {
	return m.call(ctx, s, &request{kind: reduce, op: op, root: root, dst: dst, src: src})
}

// Broadcast copies src of the member root to dst of all members. src of the others is not used, and may be nil. dst and
// src have the same length, and may be the same memory.
func (m *Member) Broadcast(ctx context.Context, s *runtime.Stream, root int, dst, src *runtime.Buffer) error {
	return m.call(ctx, s, &request{kind: broadcast, root: root, dst: dst, src: src})
}

// AllGather stores src of all members one after the other, by rank, in dst of all members, which is as long as all of
// them, of one length each. src may be the member's part of dst.
func (m *Member) AllGather(ctx context.Context, s *runtime.Stream, dst, src *runtime.Buffer) error {
	return m.call(ctx, s, &request{kind: allGather, dst: dst, src: src})
}

// ReduceScatter combines the elements of src of all members, and stores in dst of each member its part of the result:
// as many parts of one length, by rank, as there are members. dst may be the member's part of src.
func (m *Member) ReduceScatter(ctx context.Context, s *runtime.Stream, op Op, dst, src *runtime.Buffer) error {
	return m.call(ctx, s, &request{kind: reduceScatter, op: op, dst: dst, src: src})
}

// AllToAll divides src into as many parts of one length as there are members, and sends part i to the member i; part i
// of dst is what that one has sent. dst and src have the same length, and may be the same memory.
func (m *Member) AllToAll(ctx context.Context, s *runtime.Stream, dst, src *runtime.Buffer) error {
	return m.call(ctx, s, &request{kind: allToAll, dst: dst, src: src})
}

// Barrier waits until all members have called it, and the work queued on their streams before is done.
func (m *Member) Barrier(ctx context.Context, s *runtime.Stream) error {
	return m.call(ctx, s, &request{kind: barrier})
}

// Send sends src to the member to, which calls Recv or SendRecv with as many elements of the same type; others call
// nothing. It waits until that member has called. Two members that send to each other first both wait until the time is
// over: see SendRecv. Unlike with collectives, any error but that of different lengths or types makes the group fail.
func (m *Member) Send(ctx context.Context, s *runtime.Stream, to int, src *runtime.Buffer) error {
	return m.call(ctx, s, &request{kind: pass, to: to, src: src, from: -1})
}

// Recv receives in dst what the member from sends: see Send.
func (m *Member) Recv(ctx context.Context, s *runtime.Stream, from int, dst *runtime.Buffer) error {
	return m.call(ctx, s, &request{kind: pass, to: -1, from: from, dst: dst})
}

// SendRecv is Send and Recv at the same time, with one member or two: a shift along a ring, for example. dst and src
// are disjoint. A member may send to itself if it also receives from itself.
func (m *Member) SendRecv(ctx context.Context, s *runtime.Stream, to int, src *runtime.Buffer, from int,
	dst *runtime.Buffer) error {
	return m.call(ctx, s, &request{kind: pass, to: to, src: src, from: from, dst: dst})
}

// call makes one call of the member.
func (m *Member) call(ctx context.Context, s *runtime.Stream, r *request) error {
	if m == nil || ctx == nil {
		return fmt.Errorf("cluster: %v: member or context is nil: %w", r.kind, runtime.ErrInvalidArgument)
	}
	if err := m.group.enter(); err != nil {
		return err
	}
	defer m.group.calls.Done()
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.group.Err(); err != nil {
		return err
	}
	c := &call{m: m, ctx: ctx, s: s, rank: m.rank, size: m.group.size}
	if s == nil {
		c.s = m.own
	}
	err := c.run(r)
	switch {
	case err == nil:
		m.did(nil)
		return nil
	case errors.Is(err, errLeft):
		return fmt.Errorf("cluster: group: %w", runtime.ErrClosed)
	}
	named := blame(m.rank, err)
	if !named.refused {
		return m.group.fail(named)
	}
	if named.Rank == m.rank {
		m.did(named.Err)
	}
	return named
}

// close ends the member, which no call uses any more.
func (m *Member) close() error {
	return errors.Join(m.before.Close(), m.after.Close(), m.own.Close(), m.port.close())
}

// run makes the call: first the members agree on it, then the data moves.
func (c *call) run(r *request) error {
	if err := c.ctx.Err(); err != nil {
		return err
	}
	err := c.m.dev.Enter(r.kind.String())
	if err == nil {
		defer c.m.dev.Leave()
		defer c.release()
		if err = cmp.Or(c.checkStream(), c.check(r)); err == nil {
			err = cmp.Or(c.m.group.library.choose(c, r), c.prepare(r))
		}
	}
	if r.kind == pass {
		if err == nil {
			err = c.m.port.pass(c, r)
		}
		return err
	}
	if r.kind == barrier && err == nil {
		step, cancel := c.step()
		defer cancel()
		if err = c.s.Sync(step); err != nil && step.Err() != nil { // too late to agree on anything
			return c.late(c.rank, err)
		}
	}
	if err := c.m.port.agree(c, entry{call: r.signature(), err: err, s: c.s}); err != nil {
		return err
	}
	if r.n > 0 {
		c.work(r)
		c.settle()
	}
	return c.err
}

// checkStream refuses a stream that is not the device's, or has failed.
func (c *call) checkStream() error {
	if !c.s.RunsOn(c.m.dev) {
		return fmt.Errorf("the stream is not one of %s: %w", c.m.dev, runtime.ErrInvalidArgument)
	}
	return c.s.Err()
}
