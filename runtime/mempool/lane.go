package mempool

// Lanes: in-order queues whose work may use blocks after they were put back.

// Work is the progress of a queue, as the pool asks for it.
type Work interface {
	// Finished returns the count up to which the work is known to be done. It never waits. It is
	// called with the pool's lock held and must not call the pool.
	Finished() uint64
	// Wait returns when work up to a count is done, or when that cannot be waited for. It is called
	// without a lock.
	Wait(upTo uint64)
}

// Lane represents one queue in its pool. Pool.NewLane makes one.
type Lane struct {
	pool  *Pool
	work  Work
	done  uint64  // the last result of Finished
	free  [2]bins // blocks that work here may still use, by space
	order list    // the same blocks in the order in which they were put back
}

// NewLane adds a queue to the pool. Close the lane with the queue.
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

// passed reports whether work up to a count is known to be done, without calling Finished.
func (l *Lane) passed(at uint64) bool { return l.done >= at }

// Settle checks the progress of the lanes and frees blocks that they have passed. It never waits.
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

// promote makes blocks ready that the lane has passed.
func (p *Pool) promote(l *Lane) {
	p.cool() // earlier blocks are filed first
	for b := l.order.first; b != nil && b.at <= l.done; b = l.order.first {
		p.unkeep(b)
		b.lane = nil
		p.keep(b)
	}
}

// waitForLanes waits for all work that may still use free blocks.
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
		if _, open := p.lanes[u.lane]; open { // otherwise its work is over, and may no longer exist
			u.lane.done = max(u.lane.done, u.lane.work.Finished())
			p.promote(u.lane)
		}
	}
	p.unlock()
}
