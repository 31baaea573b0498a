package cluster

// Members of one process: mailboxes in which a sender leaves a buffer and an event, and the receiver takes them and
// queues the copy, or the kernel that reads the sender's memory itself.

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/concord-compute/concord/runtime"
	"github.com/concord-compute/concord/runtime/driver"
)

// hub is what the members of one process share.
type hub struct {
	group   *Group
	members []*Member
	boxes   []mailbox      // of collectives, by sender and receiver
	passed  []mailbox      // of Send and Recv
	waiting []atomic.Int32 // by rank: 1 + the rank of the member that it waits for, negative of its device, or 0
	left    chan struct{}  // closed when the group is being closed
	leaving sync.Once

	mu      sync.Mutex
	meeting *meeting
}

// meeting is the agreement on one call.
type meeting struct {
	all     []entry
	here    []bool
	arrived int
	gone    bool          // a member that was here has left, since the group is being closed: the others leave, too
	done    chan struct{} // closed when all are here and err is set
	err     error
}

// mailbox has what one member sends to another. The sender has the free parcels.
type mailbox struct {
	parcels   chan *parcel
	free, all []*parcel
}

// parcel is one buffer on its way. The sender has it until it is in the mailbox and after taken has a value, and the
// receiver in between. Its events are used again and again.
type parcel struct {
	box   *mailbox
	to    int
	out   *runtime.Buffer
	ready runtime.Event // of the sender's stream, behind the work that fills out
	read  runtime.Event // of the receiver's stream, behind the work that reads out
	taken chan error    // when read is recorded; nil, or why it is refused
}

// mailboxLength is how many parcels are in a mailbox before a sender waits.
const mailboxLength = 64

func newHub(g *Group) *hub {
	h := &hub{group: g, left: make(chan struct{}), meeting: newMeeting(g.size), waiting: make([]atomic.Int32, g.size)}
	for range g.size * g.size {
		h.boxes = append(h.boxes, mailbox{parcels: make(chan *parcel, mailboxLength)})
		h.passed = append(h.passed, mailbox{parcels: make(chan *parcel, mailboxLength)})
	}
	return h
}

func newMeeting(members int) *meeting {
	return &meeting{all: make([]entry, members), here: make([]bool, members), done: make(chan struct{})}
}

// localPort is the port of one member.
type localPort struct {
	hub  *hub
	rank int
}

// wait waits for a value of a channel, or that it is closed, as long as the group has not failed. from is the member
// that it comes from; without one, -1, absent tells who is missing when the time is over.
func wait[T any](c *call, h *hub, from int, absent func() int, ch <-chan T, left <-chan struct{}) (value T, err error) {
	select { // most are there already
	case value = <-ch:
		return value, nil
	default:
	}
	h.waiting[c.rank].Store(int32(from) + 1)
	defer h.waiting[c.rank].Store(0)
	timer := time.NewTimer(h.group.options.Timeout)
	defer timer.Stop()
	select {
	case value = <-ch:
	case <-h.group.failed:
		err = h.group.Err()
	case <-left:
		err = errLeft
	case <-c.ctx.Done():
		err = &MemberError{Rank: c.rank, Err: c.ctx.Err()}
	case <-timer.C:
		if from < 0 {
			from = absent()
		}
		if from < 0 {
			return <-ch, nil // the last one has come in the same moment
		}
		err = h.group.fail(h.group.missing(h.culprit(from))) // while all can still see who waits for whom
	}
	return value, err
}

// device waits for an event of another member's device.
func (h *hub) device(c *call, rank int, e *runtime.Event) error {
	step, cancel := c.step()
	defer cancel()
	h.waiting[c.rank].Store(-int32(rank) - 1)
	defer h.waiting[c.rank].Store(0)
	if err := c.late(rank, e.Wait(step)); err != nil {
		return h.group.fail(blame(rank, err))
	}
	return nil
}

// culprit returns the member for which all wait that wait for a member, itself or by others: one that waits for none,
// or whose device does not answer.
func (h *hub) culprit(rank int) int {
	for range h.group.size {
		switch next := int(h.waiting[rank].Load()); {
		case next == 0:
			return rank
		case next < 0:
			return -next - 1
		default:
			rank = next - 1
		}
	}
	return rank
}

// agree implements port: the last member to come judges.
func (p *localPort) agree(c *call, e entry) error {
	h := p.hub
	h.mu.Lock()
	m := h.meeting
	if m.gone {
		h.mu.Unlock()
		return errLeft
	}
	m.all[p.rank], m.here[p.rank] = e, true
	m.arrived++
	last := m.arrived == len(m.all)
	if last {
		h.meeting = newMeeting(len(m.all))
	}
	h.mu.Unlock()
	if last {
		for i := range m.all {
			if e := &m.all[i]; e.err == nil {
				e.err = e.s.Err() // which may have failed since it came
			}
		}
		m.err = judge(m.all)
		close(m.done)
		return m.err
	}
	absent := func() int {
		h.mu.Lock()
		defer h.mu.Unlock()
		return slices.Index(m.here, false)
	}
	if _, err := wait(c, h, -1, absent, m.done, h.left); err != nil && (err != errLeft || h.leaves(m)) {
		return err
	}
	<-m.done
	return m.err
}

// leaves takes a member out of a meeting, unless all have come: then it makes the call with the others.
func (h *hub) leaves(m *meeting) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if m.arrived < len(m.all) {
		m.gone = true
	}
	return m.gone
}

// exchange implements port.
func (p *localPort) exchange(c *call, t transfer) error {
	h := p.hub
	if t.to >= 0 {
		l, err := h.post(c, &h.boxes[p.rank*c.size+t.to], t.to, t.out, nil)
		if err != nil {
			return err
		}
		c.sent = append(c.sent, l)
	}
	if t.from < 0 {
		return nil
	}
	l, err := wait(c, h, t.from, nil, h.boxes[t.from*c.size+p.rank].parcels, nil)
	if err != nil {
		return err
	}
	return h.take(c, l, t)
}

// post leaves a buffer in a mailbox.
func (h *hub) post(c *call, box *mailbox, to int, out *runtime.Buffer, left <-chan struct{}) (*parcel, error) {
	var l *parcel
	if n := len(box.free); n > 0 {
		l, box.free = box.free[n-1], box.free[:n-1]
	} else {
		l = &parcel{box: box, to: to, taken: make(chan error, 1)}
		box.all = append(box.all, l)
	}
	l.out = out
	if err := c.s.RecordIn(&l.ready); err != nil {
		return nil, err
	}
	select {
	case box.parcels <- l:
		return l, nil
	default:
	}
	timer := time.NewTimer(h.group.options.Timeout)
	defer timer.Stop()
	select {
	case box.parcels <- l:
		return l, nil
	case <-h.group.failed:
		return nil, h.group.Err()
	case <-left:
		return nil, errLeft
	case <-c.ctx.Done():
		return nil, c.ctx.Err()
	case <-timer.C:
		return nil, h.group.missing(h.culprit(to))
	}
}

// take queues the receiver's part of a transfer.
func (h *hub) take(c *call, l *parcel, t transfer) error {
	sender := h.members[t.from]
	near := c.s.RunsOn(sender.dev)
	if l.out.Type() != t.typ || l.out.Len() != t.n {
		return fmt.Errorf("member %d sends %d %v for %d %v: %w", t.from, l.out.Len(), l.out.Type(), t.n, t.typ,
			runtime.ErrInvalidArgument)
	}
	if !near {
		if err := h.device(c, t.from, &l.ready); err != nil {
			return err
		}
	}
	step, cancel := c.step()
	defer cancel()
	in := t.in
	switch {
	case in == nil && near:
		if err := c.s.Wait(&l.ready); err != nil {
			return err
		}
		t.use(l.out, 0)
	default:
		if in == nil {
			if in = c.scratch(t.typ, t.n); c.err != nil {
				return c.err
			}
		}
		if err := c.s.CopyFrom(step, in, l.out, &l.ready); err != nil {
			return c.fault(sender, err)
		}
		if t.in == nil {
			t.use(in, 0)
		}
	}
	if c.err != nil {
		return c.err
	}
	h.group.count(near, c.m.dev, sender.dev, in, l.out)
	if err := c.s.RecordIn(&l.read); err != nil {
		return err
	}
	l.taken <- nil
	return nil
}

// fault returns the error of a copy from another member's device, which may be that device's.
func (c *call) fault(sender *Member, err error) error {
	var op *runtime.OpError
	if errors.As(err, &op) && op.Device == sender.dev.String() && op.Device != c.m.dev.String() {
		return c.late(sender.rank, err)
	}
	if c.ctx.Err() == nil && errors.Is(err, driver.ErrTimeout) {
		return blame(c.rank, err)
	}
	return c.late(c.rank, err)
}

// settle implements port.
func (p *localPort) settle(c *call) error {
	for _, l := range c.sent {
		if err := p.hub.settle(c, l, nil); err != nil {
			return err
		}
	}
	c.sent = c.sent[:0]
	return nil
}

// settle waits until a parcel has been taken, and makes the stream wait until it has been read.
func (h *hub) settle(c *call, l *parcel, left <-chan struct{}) error {
	refused, err := wait(c, h, l.to, nil, l.taken, left)
	if err != nil {
		return err
	}
	if refused != nil {
		h.free(l)
		return refused
	}
	if c.s.RunsOn(h.members[l.to].dev) {
		err = c.s.Wait(&l.read)
	} else {
		err = h.device(c, l.to, &l.read)
	}
	if err == nil {
		h.free(l)
	}
	return err
}

// free makes a parcel of the sender one that it can use again.
func (h *hub) free(l *parcel) {
	l.out = nil
	l.box.free = append(l.box.free, l)
}

// pass implements port.
func (p *localPort) pass(c *call, r *request) error {
	h := p.hub
	var sent *parcel
	if r.to >= 0 {
		l, err := h.post(c, &h.passed[p.rank*c.size+r.to], r.to, r.src, h.left)
		if err != nil {
			return err
		}
		sent = l
	}
	var failed error
	if r.from >= 0 {
		l, err := wait(c, h, r.from, nil, h.passed[r.from*c.size+p.rank].parcels, h.left)
		if err != nil {
			return err
		}
		if failed = differ(p.rank, r.dst, r.from, l.out.Type(), l.out.Len()); failed != nil {
			l.taken <- failed
		} else if err := h.take(c, l, transfer{from: r.from, in: r.dst, typ: r.dst.Type(), n: r.dst.Len()}); err != nil {
			return err
		}
	}
	if sent != nil {
		if err := h.settle(c, sent, h.left); err != nil {
			return err
		}
	}
	return failed
}

// differ returns why a member does not receive what another one sends, or nil.
func differ(rank int, in *runtime.Buffer, from int, t runtime.Type, n int) error {
	if in.Type() == t && in.Len() == n {
		return nil
	}
	return &MemberError{Rank: rank, refused: true, pair: true, Err: fmt.Errorf(
		"it receives %d %v, and member %d sends %d %v: %w", in.Len(), in.Type(), from, n, t, runtime.ErrInvalidArgument)}
}

// failed implements port: all members see the group's error.
func (p *localPort) failed() error { return nil }

// tell implements port: all members see the group's error.
func (p *localPort) tell(*MemberError) {}

// leave implements port.
func (p *localPort) leave() { p.hub.leaving.Do(func() { close(p.hub.left) }) }

// close implements port: it closes the events of what the member has sent.
func (p *localPort) close() error {
	var errs []error
	for _, boxes := range [][]mailbox{p.hub.boxes, p.hub.passed} {
		size := p.hub.group.size
		for i := range boxes[p.rank*size : (p.rank+1)*size] {
			for _, l := range boxes[p.rank*size+i].all {
				errs = append(errs, l.ready.Close(), l.read.Close())
			}
		}
	}
	return errors.Join(errs...)
}
