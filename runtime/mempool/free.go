package mempool

// Free blocks: taking, cutting, joining and giving them back to the driver.

import "math"

// smallBlock is the size up to which blocks have slabs of their own.
const smallBlock = 1 << 20

func spaceOf(size int64) uint8 {
	if size <= smallBlock {
		return 0
	}
	return 1
}

// take returns a free block for size bytes, cut to size, or nil. With a lane it prefers a block
// that queued work of the lane may still use; otherwise it returns a block that no work uses.
func (p *Pool) take(size int64, lane *Lane) *node {
	space := spaceOf(size)
	ofLane := lane != nil && lane.order.first != nil
	if !ofLane {
		if b := p.warm.take(size); b != nil { // the usual case
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

// most returns the size of the largest block that may serve a request.
func (p *Pool) most(size int64) int64 {
	switch {
	case p.o.Mode == Split:
		return math.MaxInt64 >> 16
	case p.o.Mode == Whole && size > classes[len(classes)-1]:
		return size + size/8
	}
	return size
}

// cut shortens b to size bytes, and makes the rest a free block.
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

// keep files a free block, joined with its neighbours, or gives it to the driver.
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

// mostReady is the number of free blocks of one size that are kept where blocks are whole
// allocations.
const mostReady = 1000

// tooMany reports whether b, a whole slab, is above a limit and not to be kept.
func (p *Pool) tooMany(b *node) bool {
	return p.over() || b.slab.key.ready > mostReady && p.o.Mode != Split
}

// over reports whether the pool is above a limit, so that it keeps nothing. A hard limit can be set
// below the memory that is held.
func (p *Pool) over() bool {
	held := p.n.Reserved - p.given
	return held > p.o.SoftLimit || p.o.HardLimit > 0 && held > p.o.HardLimit ||
		p.o.SoftCount > 0 && p.n.Slabs-int64(len(p.dead)) > int64(p.o.SoftCount)
}

// join makes one block of b and its right neighbour n, which are both free and in no set.
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

// giveUp marks a block that is a whole slab for the driver; unlock frees it.
func (p *Pool) giveUp(b *node) {
	p.dead = append(p.dead, b.slab)
	p.given += b.slab.mem.Size
	p.forget(b.slab)
	p.drop(b)
}

// forget removes a slab from the count of its size.
func (p *Pool) forget(s *slab) {
	if s.key.slabs--; s.key.slabs == 0 {
		delete(p.keys, s.key.size)
	}
}
