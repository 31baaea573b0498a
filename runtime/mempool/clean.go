package mempool

// Clean-ups: giving back to the driver what is kept. None touches what is live.

import "time"

// Trim frees what is kept, the least recently used first, until Cached is at most
// keep bytes, and returns how much that was. Free parts of slabs that are in use, and
// blocks that queued work uses, stay.
func (p *Pool) Trim(keep int64) int64 {
	return p.clean(func() { p.shrink(func() bool { return p.n.Cached-p.given > keep }) })
}

// clean does the work of a clean-up under the lock, waits until the driver has freed
// what was given up, and returns how much that was.
func (p *Pool) clean(work func()) int64 {
	p.mu.Lock()
	p.settle()
	before := p.given
	work()
	freed := p.given - before
	p.swept = time.Now()
	p.epoch++
	p.n.Cleanups++
	p.note(Event{Kind: Cleanup, Bytes: freed})
	p.leave()
	p.mu.Lock()
	p.waitFrees()
	p.mu.Unlock()
	return freed
}

// CleanupFragmented is for a pool of whole allocations that holds many sizes and few
// blocks of each, TypeDiversity above 0.5. Let a be the number of free blocks for each
// size: of sizes with at most a/2 of them, and of those that served nothing since the
// clean-up before, it frees all; of the others all but 2a, the least recently used
// first. It returns how much that was. Free parts of slabs never need it.
func (p *Pool) CleanupFragmented() int64 { return p.clean(p.unfragment) }

func (p *Pool) unfragment() {
	sizes, blocks := 0, 0
	for _, k := range p.keys {
		if k.ready > 0 {
			sizes++
			blocks += k.ready
		}
	}
	if p.o.Mode == Split || 2*sizes <= blocks {
		return
	}
	a := max(1, blocks/sizes)
	p.thin(func(k *key) int {
		if k.ready <= a/2 || k.hit != p.epoch {
			return 0
		}
		return 2 * a
	})
}

// thin frees blocks that are whole slabs until there are at most so many of each size.
func (p *Pool) thin(most func(*key) int) {
	for _, k := range p.keys {
		k.keep = most(k)
	}
	for b := p.empty.first; b != nil; {
		next := b.lz
		if k := b.slab.key; k.ready > k.keep {
			p.unkeep(b)
			p.giveUp(b)
		}
		b = next
	}
}

// crowded is the utilization from which on a pool keeps less.
const crowded = 0.7

// Maintenance is for calls now and then. A pool whose last clean-up, or beginning, is
// at least that long ago is cleaned: of CleanupFragmented, of slabs that nobody used
// since the clean-up before, and at a utilization above 0.7 of half of each size's free
// blocks. It reports whether the time had come.
func (p *Pool) Maintenance(interval time.Duration) bool {
	p.mu.Lock()
	last := p.swept
	if last.IsZero() {
		last = p.made
	}
	p.mu.Unlock()
	if time.Since(last) < interval {
		return false
	}
	p.clean(func() {
		p.unfragment()
		for b := p.empty.first; b != nil && b.slab.used < p.epoch; b = p.empty.first { // in the order of use
			p.unkeep(b)
			p.giveUp(b)
		}
		if p.utilization() > crowded {
			p.thin(func(k *key) int { return k.ready / 2 })
		}
	})
	return true
}

// utilization is Reserved as a part of the soft limit.
func (p *Pool) utilization() float64 {
	return float64(p.n.Reserved-p.given) / float64(max(1, p.o.SoftLimit))
}

// coalesceEvery is after how many returns a pool that is nearly full looks for blocks
// that work has left.
const coalesceEvery = 25

// ShouldCoalesce advises Coalesce: more than a quarter of Live was not asked for, or
// the pool is at 0.7 of its soft limit at every 25th return. Then Put does it by itself.
func (p *Pool) ShouldCoalesce() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.n.Internal() > 0.25 || p.n.Deallocations%coalesceEvery == 0 && p.utilization() > crowded
}

// Coalesce looks which blocks work has left and joins them with their neighbours; those
// that are free of work are joined already. It never waits.
func (p *Pool) Coalesce() {
	p.mu.Lock()
	p.coalesce()
	p.leave()
}

func (p *Pool) coalesce() {
	p.settle()
	p.n.Coalesces++
	p.note(Event{Kind: Coalesced})
}

func (p *Pool) settleIfFull() {
	if p.n.Waiting > 0 && p.utilization() > crowded {
		p.coalesce()
	}
}
