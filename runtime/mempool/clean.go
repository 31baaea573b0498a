package mempool

// Clean-ups: giving kept memory back to the driver. None of them touches live blocks.

import "time"

// Trim frees kept memory, the least recently used first, until Cached is at most keep bytes, and
// returns the number of bytes freed. Free parts of slabs that are in use, and blocks that queued
// work uses, stay.
func (p *Pool) Trim(keep int64) int64 {
	return p.clean(func() { p.shrink(func() bool { return p.n.Cached-p.given > keep }) })
}

// clean does the work of a clean-up under the lock, waits until the driver has freed the memory,
// and returns the number of bytes.
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

// CleanupFragmented thins out a pool of whole allocations that holds many sizes and few blocks of
// each (TypeDiversity above 0.5). Let a be the mean number of free blocks per size. Of sizes with
// at most a/2 free blocks, and of sizes that served no request since the last clean-up, it frees
// all blocks; of the others it keeps the 2a that were used last. It returns the number of bytes
// freed. Free parts of slabs never need it.
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

// thin frees blocks that are whole slabs until at most that number of each size is left.
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

// crowded is the utilization above which a pool keeps less.
const crowded = 0.7

// Maintenance is to be called periodically. It cleans up if the last clean-up, or the pool's beginning, is at least
// interval ago. Then it does the work of CleanupFragmented, frees slabs that were not used since, and at a utilization
// above 0.7 half of each size's free blocks. It reports whether it did so.
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
		for b := p.empty.first; b != nil && b.slab.used < p.epoch; b = p.empty.first { // the list is in the order of use
			p.unkeep(b)
			p.giveUp(b)
		}
		if p.utilization() > crowded {
			p.thin(func(k *key) int { return k.ready / 2 })
		}
	})
	return true
}

// utilization returns Reserved as a part of the soft limit.
func (p *Pool) utilization() float64 {
	return float64(p.n.Reserved-p.given) / float64(max(1, p.o.SoftLimit))
}

// coalesceEvery is the number of returns after which a pool that is nearly full looks for free
// blocks that queued work has finished with.
const coalesceEvery = 25

// ShouldCoalesce reports whether Coalesce is advisable: more than a quarter of Live is unused space
// inside blocks, or the pool is above 0.7 of its soft limit at a 25th return. Put then does it by
// itself.
func (p *Pool) ShouldCoalesce() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.n.Internal() > 0.25 || p.n.Deallocations%coalesceEvery == 0 && p.utilization() > crowded
}

// Coalesce finds free blocks that queued work has finished with, and joins them with their
// neighbours. Other free blocks are already joined. It never waits.
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
