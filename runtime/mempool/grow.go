package mempool

// The slow path: memory from the driver, limits, and the attempts that are made before a request
// fails.

import (
	"errors"
	"fmt"

	"github.com/concord-compute/concord/runtime/driver"
)

const (
	smallSlab = 2 << 20 // blocks up to smallBlock are cut from slabs of this size

	// Larger blocks are cut from slabs of an eighth of PeakLive, up to largeSlab: a small pool
	// wastes little, and a large one rarely grows. A block above half of largeSlab has a slab of
	// its own.
	largeSlab = 32 << 20
	grain     = 128 << 10 // sizes of slabs below largeSlab are multiples of this

	// The bytes that are kept regardless of Slack. More of them are needed where blocks are whole
	// allocations, which seldom suit another size.
	keptSplit = 4 << 20
	keptWhole = 64 << 20
)

// slabFor returns how much memory to allocate from the driver for a block.
func (p *Pool) slabFor(size int64, kind driver.MemoryKind) int64 {
	switch {
	case !p.keeps(kind) || p.o.Mode != Split:
		return size
	case size <= smallBlock:
		return smallSlab
	case size <= largeSlab/2:
		p.mu.Lock()
		defer p.mu.Unlock()
		return min(largeSlab, roundUp(max(size, p.n.PeakLive/8), grain))
	}
	return roundUp(size, smallSlab)
}

// kept returns the bytes beside the largest Live that are kept regardless of Slack.
func (p *Pool) kept() int64 {
	if p.o.Mode == Split {
		return keptSplit
	}
	return keptWhole
}

// miss serves a request that no free block fits.
func (p *Pool) miss(n, size int64, kind driver.MemoryKind, lane *Lane) (Block, error) {
	defer p.lookAtDevice()
	p.growing.Lock()
	defer p.growing.Unlock()
	want := p.slabFor(size, kind)
	if block, ok := p.prepare(n, size, want, kind, lane); ok {
		return block, nil
	}
	if err := p.allowed(want); err != nil {
		want = size // there may be room for the block, though not for a slab
		if p.allowed(want) != nil {
			if block, ok := p.reclaim(n, size, kind, lane); ok {
				return block, nil
			}
			if err = p.allowed(want); err != nil {
				return Block{}, p.explain(err)
			}
		}
	}
	mem, err := p.source.Alloc(want, kind)
	if want > size && errors.Is(err, driver.ErrTooLarge) { // as a slab, perhaps not as a block
		mem, err = p.source.Alloc(size, kind)
	}
	if errors.Is(err, driver.ErrOutOfMemory) {
		if block, ok := p.reclaim(n, size, kind, lane); ok {
			return block, nil
		}
		p.mu.Lock()
		p.n.Retries++
		p.note(Event{Kind: Retry, Bytes: n, Size: size})
		p.mu.Unlock()
		mem, err = p.source.Alloc(size, kind)
	}
	if err != nil {
		if errors.Is(err, driver.ErrOutOfMemory) {
			err = p.explain(err)
		}
		return Block{}, err
	}
	return p.adopt(mem, n, size, kind)
}

// prepare tries once more, since other calls may have put blocks back, and then frees kept memory
// to make room for a new slab below the limits on kept memory.
func (p *Pool) prepare(n, size, want int64, kind driver.MemoryKind, lane *Lane) (Block, bool) {
	p.mu.Lock()
	defer p.unlock()
	high := p.high || p.reaches(p.o.Thresholds.HighWater)
	p.high = false
	p.settle()
	if block, ok := p.again(n, size, kind, lane); ok {
		return block, true
	}
	if high {
		p.n.Coalesces++
		p.note(Event{Kind: Coalesced}) // settle has joined all blocks that can be joined
		if p.reaches(p.o.Thresholds.LowWater) {
			p.shrink(func() bool { return true })
		}
	}
	peak := max(p.n.PeakLive, p.n.Live+size)
	most := peak + max(p.kept(), int64(p.o.Slack*float64(peak)))
	most = min(most, p.o.SoftLimit)
	p.shrink(func() bool {
		return p.n.Reserved-p.given+want > most ||
			p.o.SoftCount > 0 && p.n.Slabs-int64(len(p.dead)) >= int64(p.o.SoftCount)
	})
	return Block{}, false
}

// reaches reports whether Reserved is at that part of the soft limit, or above.
func (p *Pool) reaches(part float64) bool {
	return float64(p.n.Reserved-p.given) >= part*float64(p.o.SoftLimit)
}

// again serves a request from blocks that have become free. The caller holds the lock.
func (p *Pool) again(n, size int64, kind driver.MemoryKind, lane *Lane) (Block, bool) {
	if !p.keeps(kind) {
		return Block{}, false
	}
	b := p.take(size, lane)
	if b == nil {
		return Block{}, false
	}
	var block Block
	p.handOut(b, n, Hit, &block)
	return block, true
}

// allowed returns nil if the hard limits leave room for a new slab, after freeing as much kept
// memory as necessary, and the error otherwise.
func (p *Pool) allowed(want int64) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	over := func() bool {
		return p.o.HardLimit > 0 && p.n.Reserved-p.given+want > p.o.HardLimit ||
			p.o.HardCount > 0 && p.n.Slabs-int64(len(p.dead)) >= int64(p.o.HardCount)
	}
	p.shrink(over)
	p.unlock() // the driver frees now
	p.mu.Lock()
	p.waitFrees()
	switch {
	case p.closed:
		return driver.ErrClosed
	case p.o.HardLimit > 0 && p.n.Reserved+want > p.o.HardLimit:
		return fmt.Errorf("holding %s of a limit of %s: %w",
			driver.FormatBytes(p.n.Reserved), driver.FormatBytes(p.o.HardLimit), driver.ErrBudget)
	case p.o.HardCount > 0 && p.n.Slabs >= int64(p.o.HardCount):
		return fmt.Errorf("holding %d allocations of a limit of %d: %w", p.n.Slabs, p.o.HardCount, driver.ErrBudget)
	}
	return nil
}

// waitFrees waits for frees that other calls have begun.
func (p *Pool) waitFrees() {
	for p.dying > 0 {
		p.freed.Wait()
	}
}

// reclaim makes everything that is not in use free, and serves the request if that suffices. It
// waits for queued work.
func (p *Pool) reclaim(n, size int64, kind driver.MemoryKind, lane *Lane) (Block, bool) {
	p.reclaims(1)
	defer p.reclaims(-1)
	if p.o.Drain != nil {
		p.o.Drain()
	}
	p.waitForLanes()
	if block, ok := p.sweep(n, size, kind, lane); ok || p.o.Collect == nil {
		return block, ok
	}
	p.o.Collect()
	p.waitForLanes()
	return p.sweep(n, size, kind, lane)
}

func (p *Pool) reclaims(n int) {
	p.mu.Lock()
	p.reclaiming += n
	p.mu.Unlock()
}

// sweep serves the request from free memory, or gives all free memory to the driver.
func (p *Pool) sweep(n, size int64, kind driver.MemoryKind, lane *Lane) (Block, bool) {
	p.mu.Lock()
	if block, ok := p.again(n, size, kind, lane); ok {
		p.unlock()
		return block, true
	}
	p.shrink(func() bool { return true })
	p.unlock()
	p.mu.Lock()
	p.waitFrees()
	p.mu.Unlock()
	return Block{}, false
}

// adopt makes a block of memory from the driver.
func (p *Pool) adopt(mem driver.Memory, n, size int64, kind driver.MemoryKind) (Block, error) {
	p.mu.Lock()
	defer p.unlock()
	b := p.newSlab(mem, size, kind)
	if p.closed { // closed meanwhile
		p.giveUp(b)
		return Block{}, driver.ErrClosed
	}
	if mem.Size > size {
		p.cut(b, size)
	}
	var block Block
	p.handOut(b, n, Miss, &block)
	return block, nil
}

// newSlab counts a slab for blocks of about that size, and returns all of it as a free block that
// is in no set yet.
func (p *Pool) newSlab(mem driver.Memory, size int64, kind driver.MemoryKind) *node {
	p.slabs++
	s := &slab{mem: mem, number: p.slabs, space: spaceOf(size), kept: p.keeps(kind), key: p.keyFor(mem.Size)}
	p.note(Event{Kind: Grow, Bytes: mem.Size, Size: mem.Size, Slab: s.number, Memory: mem.Kind})
	p.n.Slabs++
	p.n.Reserved += mem.Size
	p.n.PeakReserved = max(p.n.PeakReserved, p.n.Reserved)
	p.n.DriverAllocs++
	p.n.Cached += mem.Size
	p.n.CachedBlocks++
	return p.newNode(s, 0, mem.Size)
}

// shrink gives slabs that are free as a whole to the driver, the least recently used first, while
// reason returns true. The caller holds the lock and releases it with unlock.
func (p *Pool) shrink(reason func() bool) {
	p.cool()
	for b := p.empty.first; b != nil && reason(); b = p.empty.first {
		p.unkeep(b)
		p.giveUp(b)
	}
}
