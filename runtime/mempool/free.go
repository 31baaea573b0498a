package mempool

// Free blocks: taking one, cutting it, joining it with its neighbours, giving it up.

import "math"

// smallBlock is the size up to which blocks have slabs of their own.
const smallBlock = 1 << 20

func spaceOf(size int64) uint8 {
	if size <= smallBlock {
		return 0
	}
	return 1
}

// take returns a free block for size bytes, cut to size, or nil. With a lane that is
// one that work of the lane may still use; else one that nothing uses.
func (p *Pool) take(size int64, lane *Lane) *node {
	space := spaceOf(size)
	ofLane := lane != nil && lane.order.first != nil
	if !ofLane {
		if b := p.warm.take(size); b != nil { // as nearly always
			return b
		}
	}
	p.cool()
	most := p.most(size)
	var b *node
	if ofLane {
		b = lane.free[space].best(size, most)
	}
	if b == nil {
		b = p.ready[space].best(size, most)
	}
	if b == nil && p.n.Waiting > 0 {
		high := p.reaches(p.o.Thresholds.HighWater)
		p.settle()
		b = p.ready[space].best(size, most)
		p.high = high && b == nil
	}
	if b == nil {
		return nil
	}
	p.unkeep(b)
	if rest := b.size - size; rest > 0 && p.o.Mode == Split {
		p.cut(b, size)
	}
	return b
}

// most is the size up to which a block serves a request.
func (p *Pool) most(size int64) int64 {
	switch {
	case p.o.Mode == Split:
		return math.MaxInt64 >> 16
	case p.o.Mode == Whole && size > classes[len(classes)-1]:
		return size + size/8
	}
	return size
}

// cut leaves b size bytes, and the rest free.
func (p *Pool) cut(b *node, size int64) {
	r := p.newNode(b.slab, b.off+size, b.size-size)
	r.lane, r.at = b.lane, b.at
	r.prev, r.next = b, b.next
	if b.next != nil {
		b.next.prev = r
	}
	b.next, b.size = r, size
	p.n.CachedBlocks++
	p.file(r)
}

// keep puts a free block where it is found again, joined with its neighbours, or
// gives it to the driver.
func (p *Pool) keep(b *node) {
	if !b.slab.kept {
		if b.lane == nil {
			p.giveUp(b)
		} else {
			p.file(b)
		}
		return
	}
	if n := b.next; n != nil && !n.live && !n.warm && n.lane == b.lane {
		p.unkeep(n)
		p.join(b, n)
	}
	if n := b.prev; n != nil && !n.live && !n.warm && n.lane == b.lane {
		p.unkeep(n)
		p.join(n, b)
		b = n
	}
	p.file(b)
	if b.lane == nil && b.whole() && p.tooMany(b) {
		p.unkeep(b)
		p.giveUp(b)
	}
}

// mostReady is how many free blocks of one size are kept where blocks are allocations.
const mostReady = 1000

// tooMany reports whether a limit is passed above which b, a whole slab, is not kept.
func (p *Pool) tooMany(b *node) bool {
	return p.over() || b.slab.key.ready > mostReady && p.o.Mode != Split
}

// over reports whether the pool is above a limit, so that it keeps nothing. A hard one
// can be set below what is held.
func (p *Pool) over() bool {
	held := p.n.Reserved - p.given
	return held > p.o.SoftLimit || p.o.HardLimit > 0 && held > p.o.HardLimit ||
		p.o.SoftCount > 0 && p.n.Slabs-int64(len(p.dead)) > int64(p.o.SoftCount)
}

// join makes b and its right neighbour n, both free and filed nowhere, one.
func (p *Pool) join(b, n *node) {
	b.size += n.size
	b.at = max(b.at, n.at)
	b.next = n.next
	if n.next != nil {
		n.next.prev = b
	}
	p.n.CachedBlocks--
	p.drop(n)
}

// file puts a free block into its sets.
func (p *Pool) file(b *node) {
	if b.lane != nil {
		p.n.Waiting += b.size
		b.lane.order.push(b)
		if b.slab.kept {
			b.lane.free[b.slab.space].add(b)
		}
		return
	}
	p.ready[b.slab.space].add(b)
	if b.whole() {
		p.empty.push(b)
		b.slab.key.ready++
	}
}

// unkeep takes a free block out of its sets.
func (p *Pool) unkeep(b *node) {
	if b.lane != nil {
		p.n.Waiting -= b.size
		b.lane.order.remove(b)
		if b.slab.kept {
			b.lane.free[b.slab.space].remove(b)
		}
		return
	}
	p.ready[b.slab.space].remove(b)
	if b.listed {
		p.empty.remove(b)
		b.slab.key.ready--
	}
}

// giveUp leaves a block that is a whole slab to the driver: unlock sees to it.
func (p *Pool) giveUp(b *node) {
	p.dead = append(p.dead, b.slab)
	p.given += b.slab.mem.Size
	p.forget(b.slab)
	p.drop(b)
}

// forget counts a slab no more among those of its size.
func (p *Pool) forget(s *slab) {
	if s.key.slabs--; s.key.slabs == 0 {
		delete(p.keys, s.key.size)
	}
}
