package mempool

// Limits, memory that the driver allocates in other ways, and Close.

import (
	"errors"
	"fmt"

	"github.com/concord-compute/concord/runtime/driver"
)

// SetLimits changes the limits; 0 means the default as in Options. Kept memory above a new limit is
// freed at once. If the hard limit is below Live, new requests that need the driver are refused.
// After Close it is ErrClosed.
func (p *Pool) SetLimits(soft, hard int64) error {
	if soft < 0 || hard < 0 {
		return fmt.Errorf("limits of %d and %d bytes: %w", soft, hard, driver.ErrInvalidArgument)
	}
	if soft == 0 {
		soft = 1 << 30
	}
	p.mu.Lock()
	if p.closed { // nothing is kept any more
		p.mu.Unlock()
		return driver.ErrClosed
	}
	p.settle()
	p.o.SoftLimit, p.o.HardLimit = soft, hard
	p.setLines()
	p.shrink(p.over)
	p.leave()
	return nil
}

// Reserve counts memory that the driver allocates in another way, such as its own allocator in
// stream order, under the same limits. The memory is live until Release.
func (p *Pool) Reserve(n int64) (ID, error) {
	id, err := p.reserve(n)
	p.mu.Lock()
	p.leave()
	return id, err
}

func (p *Pool) reserve(n int64) (ID, error) {
	if _, err := p.sizeOf(n, driver.Pinned); err != nil {
		return NoID, err
	}
	p.growing.Lock()
	defer p.growing.Unlock()
	const kind = driver.Pinned // never reused, so that making room hands nothing out
	p.prepare(n, n, n, kind, nil)
	if err := p.allowed(n); err != nil {
		if !errors.Is(err, driver.ErrBudget) {
			return NoID, err
		}
		p.reclaim(n, n, kind, nil)
		if err = p.allowed(n); err != nil {
			return NoID, p.explain(err)
		}
	}
	p.mu.Lock()
	defer p.unlock()
	if p.closed { // closed meanwhile
		return NoID, driver.ErrClosed
	}
	var block Block
	p.handOut(p.newSlab(driver.Memory{Size: n}, n, kind), n, Miss, &block)
	return block.ID, nil
}

// Release ends the accounting that Reserve began.
func (p *Pool) Release(id ID) error {
	p.mu.Lock()
	defer p.leave()
	b := p.find(id)
	if b == nil {
		return fmt.Errorf("block %#x is not in use: %w", uint64(id), driver.ErrInvalidArgument)
	}
	p.noteBlock(Free, b)
	p.note(Event{Kind: Shrink, Bytes: b.size, Size: b.size, Slab: b.slab.number})
	p.n.Live -= b.size
	p.n.Requested -= b.asked
	p.n.Reserved -= b.size
	p.n.LiveBlocks--
	p.n.Slabs--
	p.n.Deallocations++
	p.n.DriverFrees++
	p.retire(b)
	p.forget(b.slab)
	p.drop(b)
	if p.n.Live <= p.below {
		p.cross()
	}
	return nil
}

// Close frees kept memory, and returns an error that lists live blocks. These stay usable, and are
// freed when they are put back; Get returns ErrClosed. Closing twice does nothing more.
func (p *Pool) Close() error {
	p.mu.Lock()
	p.closed = true
	p.o.SoftLimit = 0 // nothing is kept any more
	p.mu.Unlock()
	p.Trim(0)
	return p.leaks()
}
