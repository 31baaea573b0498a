package cluster

// Collectives by the library of the devices' vendor, where all members are devices that have it.

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/concord-compute/concord/runtime"
	"github.com/concord-compute/concord/runtime/driver"
)

// library is what a group has of the vendor's library. The first collective that could use it opens it for all members
// of the process: then it has a communicator for each of them, or why says why not.
type library struct {
	group *Group
	able  bool          // all members' devices are of one backend, which may have a library
	gate  chan struct{} // held by the member that opens it

	end func() (held []*Member) // is release, once: others wait for it

	mu    sync.Mutex
	ended bool // the group has failed, or is closed
	tried bool
	comms []driver.Communicator
	why   error
}

func newLibrary(g *Group) *library {
	l := &library{group: g, gate: make(chan struct{}, 1)}
	l.end = sync.OnceValue(l.release)
	return l
}

// look finds out whether the members of one process could have a library.
func (l *library) look() {
	members, by := l.group.members, l.group.options.Algorithm
	if by != BySize && by != Library || by == BySize && len(members) == 1 {
		return
	}
	for i, m := range members {
		if m.maker() == nil || m.dev.Info().Backend != members[0].dev.Info().Backend ||
			i > 0 && m.dev == members[i-1].dev { // of Virtual
			return
		}
	}
	l.able = true
}

// maker returns what makes communicators for the member's device, or nil if there is no library for its backend.
func (m *Member) maker() driver.Communicators {
	if maker, ok := m.dev.Driver().(driver.Communicators); ok && maker.HasCommunicators() {
		return maker
	}
	return nil
}

// took reports whether a library does a collective: it has no integers of 16 bits, and of floats it may lose a NaN in
// the largest and the smallest.
func (r *request) took() bool {
	if !r.kind.combines() {
		return r.kind != pass && r.kind != barrier
	}
	if r.op == Max || r.op == Min {
		return !r.typ.IsFloat() && r.typ.Size() != 2
	}
	return r.typ.IsFloat() || r.typ.Size() != 2
}

// choose has the library do a collective if it can; the first time it opens it.
func (l *library) choose(c *call, r *request) error {
	if !l.able || r.n == 0 || !r.took() {
		return nil
	}
	why, err := l.open(c)
	switch {
	case err != nil:
		return err
	case why == nil:
		r.by = Library
	case l.group.options.Algorithm == Library && !errors.Is(why, driver.ErrUnsupported):
		return why
	default:
		l.group.traffic.fallbacks.Add(1)
	}
	return nil
}

// open opens the library, once, and returns why it does not work.
func (l *library) open(c *call) (why, err error) {
	select {
	case l.gate <- struct{}{}:
		defer func() { <-l.gate }()
	case <-l.group.failed:
		return nil, l.group.Err()
	case <-c.ctx.Done():
		return nil, &MemberError{Rank: c.rank, Err: c.ctx.Err()}
	}
	l.mu.Lock()
	tried, why := l.tried, l.why
	l.mu.Unlock()
	if tried {
		return why, nil
	}
	comms, why := l.join(c)
	if c.ctx.Err() != nil {
		closeComms(comms)
		return nil, &MemberError{Rank: c.rank, Err: c.ctx.Err()}
	}
	l.mu.Lock()
	ended := l.ended
	if !ended {
		l.tried, l.comms, l.why = true, comms, why
	}
	l.mu.Unlock()
	if ended {
		closeComms(comms)
		return nil, cmp.Or(l.group.Err(), errLeft)
	}
	return why, nil
}

// join makes all members ranks of one communicator, at the same time, since each waits for the others.
func (l *library) join(c *call) ([]driver.Communicator, error) {
	members := l.group.members
	id, err := members[0].maker().CommunicatorID()
	if err != nil {
		return nil, blame(0, err)
	}
	step, stop := c.step()
	defer stop()
	ctx, cancel := context.WithCancelCause(step)
	defer cancel(nil)
	go c.watch(ctx, cancel, nil)
	comms, errs := make([]driver.Communicator, len(members)), make([]error, len(members))
	var wg sync.WaitGroup
	for i, m := range members {
		wg.Go(func() {
			comms[i], errs[i] = m.maker().NewCommunicator(ctx, id, m.rank, len(members))
			if errs[i] != nil {
				cancel(nil)
			}
		})
	}
	wg.Wait()
	failed := -1
	for i, err := range errs {
		if err != nil && (failed < 0 || errors.Is(errs[failed], context.Canceled)) {
			failed = i // others' waits were cancelled
		}
	}
	if failed < 0 {
		return comms, nil
	}
	closeComms(comms)
	return nil, c.late(members[failed].rank, errs[failed])
}

// of returns the communicator of a member, or nil when the group has ended.
func (l *library) of(m *Member) driver.Communicator {
	l.mu.Lock()
	defer l.mu.Unlock()
	if i := slices.Index(l.group.members, m); l.comms != nil {
		return l.comms[i]
	}
	return nil
}

// release releases the communicators, which ends the collectives under way, and waits for it: until then the library
// may queue work on the members' streams, and write to their memory. It does not wait for a device that is lost or was
// given up, nor longer than a step for one whose earlier work does not end: those members it returns.
func (l *library) release() (held []*Member) {
	l.mu.Lock()
	comms := l.comms
	l.comms, l.ended = nil, true
	l.mu.Unlock()
	done := make([]chan struct{}, len(comms))
	for i, comm := range comms { // all at once: in some versions one waits for another
		done[i] = make(chan struct{})
		if l.group.members[i].lost() != nil { // its driver is not called, but by the Close of a device that is lost
			close(done[i])
			continue
		}
		go func() {
			defer close(done[i])
			_ = comm.Close() // an error is that of a device that is lost, or will be closed
		}()
	}
	over := time.After(l.group.options.Timeout)
	tick := time.NewTicker(libraryPoll)
	defer tick.Stop()
	late := false
	for i := 0; i < len(done); {
		select {
		case <-done[i]:
			i++
			continue
		case <-over:
			late = true
		case <-tick.C:
		}
		if m := l.group.members[i]; m.lost() != nil {
			i++
		} else if late {
			held, i = append(held, m), i+1
		}
	}
	return held
}

func closeComms(comms []driver.Communicator) {
	var wg sync.WaitGroup // in some versions one waits for another
	for _, comm := range comms {
		if comm != nil {
			wg.Go(func() { _ = comm.Close() }) // an error is that of a device that is lost, or will be closed
		}
	}
	wg.Wait()
}

// Library returns nil if collectives of the group are done by the library of its devices' vendor, where it has them,
// and else why not: [runtime.ErrUnsupported] where the devices or the [Options] are not for that, or it is not
// installed. It is opened by the first collective, and in a job by [Join].
func (g *Group) Library() error {
	l := g.library
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case !l.able:
		return fmt.Errorf("cluster: the group uses no library of collectives: %w", runtime.ErrUnsupported)
	case l.why != nil:
		return l.why
	case l.ended:
		return fmt.Errorf("cluster: group: %w", runtime.ErrClosed)
	case !l.tried:
		return fmt.Errorf("cluster: the library of collectives is not open yet: %w", runtime.ErrUnsupported)
	}
	return nil
}

// How often a member that waits asks the library whether a collective has failed, and how long one that is
// not known to be to blame gives another one time to say that it is.
const (
	libraryPoll  = 10 * time.Millisecond
	libraryGrace = 200 * time.Millisecond
)

// byLibrary makes a collective, and waits until it is done: a rank that is missing is found by no one else.
func (c *call) byLibrary(r *request) {
	g := c.m.group
	if c.comm = g.library.of(c.m); c.comm == nil {
		c.did(cmp.Or(g.Err(), errLeft))
		return
	}
	defer func() { c.comm = nil }()
	outer := c.ctx
	step, stop := c.step()
	defer stop()
	ctx, cancel := context.WithCancelCause(step)
	defer cancel(nil)
	go c.watch(ctx, cancel, c.comm)
	c.ctx = ctx
	c.did(c.s.RecordIn(&c.m.before))
	c.collect(r)
	if c.err == nil {
		c.did(c.s.RecordIn(&c.m.after))
	}
	if c.err == nil {
		c.did(c.m.after.Wait(ctx))
	}
	c.ctx = outer
	if c.err != nil { // nothing is released before the communicators are, whose library may still write
		c.err = g.fail(blame(c.rank, c.whose(c.err, step, context.Cause(ctx))))
	}
}

// watch cancels the wait for a collective once it or the group has failed.
func (c *call) watch(ctx context.Context, cancel context.CancelCauseFunc, comm driver.Communicator) {
	tick := time.NewTicker(libraryPoll)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-c.m.group.failed:
			cancel(c.m.group.Err())
			return
		case <-tick.C:
			err := c.m.port.failed()
			if err == nil && comm != nil {
				err = comm.Err()
			}
			if err != nil {
				cancel(err)
				return
			}
		}
	}
}

// whose returns the error of a collective that failed or is late, with the member to blame: one that has said so, or
// this one if its device is lost or its own earlier work is late. Else the library only tells what it has met here,
// which may come from another member, also one of another process, that is given time to say so.
func (c *call) whose(err error, step context.Context, cause error) error {
	over := step.Err() != nil
	if cause != nil && !over {
		err = cause // that of watch
	}
	if _, said := errors.AsType[*MemberError](err); said || c.ctx.Err() != nil {
		return c.late(c.rank, err)
	}
	done, _ := c.m.before.Done()
	if c.m.lost() == nil && (done || !over) {
		if other := c.told(libraryGrace); other != nil {
			return other
		}
	}
	if !over {
		return c.late(c.rank, err)
	}
	late := c.m.group.missing(c.rank)
	late.unsure = done
	return late
}

// told returns the error of the group, or of members of other processes, if there is one in time.
func (c *call) told(within time.Duration) error {
	over := time.After(within)
	tick := time.NewTicker(libraryPoll)
	defer tick.Stop()
	for {
		select {
		case <-c.m.group.failed:
			return c.m.group.Err()
		case <-tick.C:
			if err := c.m.port.failed(); err != nil {
				return blame(c.rank, err)
			}
		case <-over:
			return nil
		}
	}
}

var reductions = [...]driver.Reduction{Sum: driver.ReduceSum, Mean: driver.ReduceSum, Max: driver.ReduceMax,
	Min: driver.ReduceMin, Product: driver.ReduceProduct}

var libraryKinds = [...]driver.CollectiveKind{allReduce: driver.AllReduce, reduce: driver.Reduce,
	reduceScatter: driver.ReduceScatter, broadcast: driver.Broadcast, allGather: driver.AllGather}

// collect queues a collective. What only moves moves as bytes. Sums and products of halves are made of f32, which are
// rounded once, and a mean is divided, by kernels.
func (c *call) collect(r *request) {
	if r.kind == allToAll {
		c.allToAll(r)
		return
	}
	w := driver.Collective{Kind: libraryKinds[r.kind], Op: reductions[r.op], Type: r.typ, Root: r.root, To: -1, From: -1}
	dst, src := r.dst, r.src
	gets, gives := r.kind != reduce || c.rank == r.root, r.kind != broadcast || c.rank == r.root
	if !r.kind.combines() {
		w.Type, w.Op = runtime.U8, driver.ReduceSum
		c.queue(w, c.when(gets, c.bytes(dst)), c.when(gives, c.bytes(src)))
		return
	}
	if w.Type = r.op.between(r.typ); w.Type != r.typ {
		src = c.scratch(w.Type, r.src.Len())
		c.convert(src, r.src, false)
		if dst = src; r.kind == reduceScatter {
			dst = c.part(src, Part{c.rank * r.n, r.n})
		}
	}
	c.queue(w, c.when(gets, dst), src)
	if gets && (r.op == Mean || w.Type != r.typ) {
		c.convert(r.dst, dst, r.op == Mean)
	}
}

// when returns a buffer, or nil where there is no use for it.
func (c *call) when(use bool, b *runtime.Buffer) *runtime.Buffer {
	if !use {
		return nil
	}
	return b
}

// bytes returns a view of a buffer, if there is one, as bytes.
func (c *call) bytes(b *runtime.Buffer) *runtime.Buffer {
	if c.err != nil || b == nil || b.Type() == runtime.U8 {
		return b
	}
	return c.keep(b.As(runtime.U8))
}

// queue queues a collective of the library, and counts what it receives.
func (c *call) queue(w driver.Collective, dst, src *runtime.Buffer) {
	if c.err != nil {
		return
	}
	c.did(c.s.Collective(c.ctx, c.comm, w, dst, src))
	if c.err == nil && dst != nil {
		c.m.group.traffic.library.Add(dst.Bytes())
	}
}

// exchangeByLibrary makes a transfer of a collective.
func (c *call) exchangeByLibrary(t transfer) {
	w := driver.Collective{Kind: driver.SendReceive, Type: runtime.U8, To: t.to, From: t.from}
	c.queue(w, c.when(t.from >= 0, c.bytes(t.in)), c.when(t.to >= 0, c.bytes(t.out)))
}

// convert queues dst = src of another type, divided by the number of members if mean.
func (c *call) convert(dst, src *runtime.Buffer, mean bool) {
	if c.err == nil && src.Len() > 0 {
		c.did(c.m.group.folds.launch(c, convertKey(c.m, dst.Type(), src.Type(), mean), dst, src, nil))
	}
}

func convertKey(m *Member, to, from runtime.Type, mean bool) foldKey {
	return foldKey{dev: m.dev.Stream(), op: Mean, a: from, out: to, mean: mean}
}

// conversions returns the kernels that a collective of the library needs.
func (c *call) conversions(r *request) (keys []foldKey) {
	between := r.op.between(r.typ)
	if between != r.typ {
		keys = append(keys, convertKey(c.m, between, r.typ, false))
	}
	if between != r.typ || r.op == Mean {
		keys = append(keys, convertKey(c.m, r.typ, between, r.op == Mean))
	}
	return keys
}
