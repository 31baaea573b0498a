package mempool

// Lanes: in-order queues whose work uses blocks after they came back.

// Work is what the pool needs to know of a queue.
type Work interface {
	// Finished returns up to which count the work is known to be done. It never waits,
	// and is called with the pool's lock held: it calls nothing of the pool.
	Finished() uint64
	// Wait returns when work up to a count is done, or when that cannot be waited for.
	// No lock is held.
	Wait(upTo uint64)
}

// Lane is one queue, as its pool knows it. Pool.NewLane makes one.
type Lane struct {
	pool  *Pool
	work  Work
	done  uint64  // what Finished said last
	free  [2]bins // blocks that work here may still use, by space
	order list    // the same in the order in which they came
}

// NewLane tells the pool of a queue. Close the lane with the queue.
func (p *Pool) NewLane(w Work) *Lane {
	l := &Lane{pool: p, work: w}
	p.mu.Lock()
	p.lanes[l] = struct{}{}
	p.mu.Unlock()
	return l
}

// Close ends a lane whose work is all done. Blocks may still be put back with it.
func (l *Lane) Close() {
	p := l.pool
	p.mu.Lock()
	l.done = 1<<64 - 1
	p.promote(l)
	delete(p.lanes, l)
	p.unlock()
}

// passed reports whether work up to a count is known to be done, without asking.
func (l *Lane) passed(at uint64) bool { return l.done >= at }

// Settle looks how far lanes are and frees what they have passed. It never waits.
func (p *Pool) Settle() {
	p.mu.Lock()
	p.settle()
	p.unlock()
}

// settle makes blocks ready that lanes have passed. The caller holds the lock.
func (p *Pool) settle() {
	p.cool()
	if p.n.Waiting == 0 {
		return
	}
	for l := range p.lanes {
		if l.order.first != nil {
			l.done = max(l.done, l.work.Finished())
			p.promote(l)
		}
	}
}

// promote makes blocks ready up to what the lane has done.
func (p *Pool) promote(l *Lane) {
	p.cool() // what came back before goes before
	for b := l.order.first; b != nil && b.at <= l.done; b = l.order.first {
		p.unkeep(b)
		b.lane = nil
		p.keep(b)
	}
}

// waitForLanes waits for all work that free blocks were left to.
func (p *Pool) waitForLanes() {
	type until struct {
		lane *Lane
		at   uint64
	}
	var waits []until
	p.mu.Lock()
	for l := range p.lanes {
		if l.order.last != nil {
			u := until{l, 0}
			for b := l.order.first; b != nil; b = b.lz {
				u.at = max(u.at, b.at)
			}
			waits = append(waits, u)
		}
	}
	p.mu.Unlock()
	for _, u := range waits {
		u.lane.work.Wait(u.at)
	}
	p.mu.Lock()
	for _, u := range waits {
		if _, open := p.lanes[u.lane]; open { // else its work is over, and may be gone
			u.lane.done = max(u.lane.done, u.lane.work.Finished())
			p.promote(u.lane)
		}
	}
	p.unlock()
}
