package cluster

// The library of the devices' vendor in a job of several processes.

import (
	"context"
	"fmt"

	"github.com/concord-compute/concord/runtime/driver"
)

// What a member tells the others of its library: whether its driver may have one, the backend, and of the first member
// the identity of a communicator, with its length.
const (
	backendBytes = 32
	idBytes      = 256
	offerBytes   = 1 + backendBytes + 1 + idBytes
)

// offer returns what a member tells, and why it has no identity for the others.
func (l *library) offer(m *Member) (offer []byte, why error) {
	offer = make([]byte, offerBytes)
	maker := m.maker()
	if maker == nil {
		return offer, nil
	}
	offer[0] = 1
	copy(offer[1:1+backendBytes], m.dev.Info().Backend)
	if m.rank > 0 {
		return offer, nil
	}
	id, why := maker.CommunicatorID()
	if why == nil && len(id) < idBytes {
		offer[1+backendBytes] = byte(len(id))
		copy(offer[2+backendBytes:], id)
	}
	return offer, why
}

// joinJob makes the members of a job ranks of one communicator, if the devices of all are of one backend, and the first
// has a library. All of them have it then, or none.
func (l *library) joinJob(ctx context.Context, p *linkPort) error {
	g, m := l.group, l.group.members[0]
	if _, ok := p.link.(Watcher); !ok || g.size == 1 || g.options.Algorithm != BySize && g.options.Algorithm != Library {
		return nil
	}
	c := &call{m: m, ctx: ctx, s: m.own, rank: m.rank, size: g.size}
	own, why := l.offer(m)
	all, err := p.gather(c, own)
	if err != nil {
		return err
	}
	for _, offer := range all {
		if offer[0] == 0 || string(offer[:1+backendBytes]) != string(all[0][:1+backendBytes]) {
			return nil
		}
	}
	l.able, l.tried = true, true
	n := int(all[0][1+backendBytes])
	if n == 0 {
		if l.why = why; why == nil {
			l.why = fmt.Errorf("member 0 has no library of collectives: %w", driver.ErrUnsupported)
		}
		return nil
	}
	comm, why := l.joinOne(c, all[0][2+backendBytes:][:n])
	state := []byte{0}
	if why == nil {
		state[0] = 1
	}
	all, err = p.gather(c, state)
	for rank, other := range all {
		if why == nil && len(other) > 0 && other[0] == 0 {
			why = fmt.Errorf("the library does not start at member %d: %w", rank, driver.ErrUnsupported)
		}
	}
	switch {
	case err != nil || why != nil:
		closeComms([]driver.Communicator{comm})
		l.why = why
	default:
		l.comms = []driver.Communicator{comm}
	}
	return err
}

// joinOne makes the member a rank. It leaves half of the time of a step for the members to tell each other that it did.
func (l *library) joinOne(c *call, id []byte) (driver.Communicator, error) {
	half, stop := context.WithTimeout(c.ctx, l.group.options.Timeout/2)
	defer stop()
	ctx, cancel := context.WithCancelCause(half)
	defer cancel(nil)
	go c.watch(ctx, cancel, nil)
	comm, err := c.m.maker().NewCommunicator(ctx, id, c.rank, c.size)
	if err != nil {
		return nil, err
	}
	return comm, nil
}
