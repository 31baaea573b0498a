package mempool

// Giving back to the driver what is kept, and filling it ahead of use.

import (
	"errors"
	"fmt"
	"time"

	"github.com/concord-compute/concord/runtime/driver"
)

// Trim frees what is kept, the least recently used first, until Cached is at most
// keep bytes, and returns how much that was. Free parts of slabs that are in use, and
// blocks that queued work uses, stay.
func (p *Pool) Trim(keep int64) int64 {
	p.mu.Lock()
	p.settle()
	before := p.given
	p.shrink(func() bool { return p.n.Cached-p.given > keep })
	freed := p.given - before
	p.swept = time.Now()
	p.n.Cleanups++
	p.unlock()
	p.mu.Lock()
	p.waitFrees()
	p.mu.Unlock()
	return freed
}

// EmergencyCleanup frees all that is kept and returns how much that was. What is live
// stays valid, and is counted as ever when it comes back.
func (p *Pool) EmergencyCleanup() int64 { return p.Trim(0) }

// Maintenance is EmergencyCleanup for a pool whose last clean-up, or beginning, is at
// least that long ago. It reports whether it was.
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
	p.EmergencyCleanup()
	return true
}

// SetLimits changes the limits; 0 means as in Options. What is kept above the new soft
// limit is freed at once. A hard limit below what is live refuses what comes.
func (p *Pool) SetLimits(soft, hard int64) error {
	if soft < 0 || hard < 0 {
		return fmt.Errorf("limits of %d and %d bytes: %w", soft, hard, driver.ErrInvalidArgument)
	}
	if soft == 0 {
		soft = 1 << 30
	}
	p.mu.Lock()
	p.settle()
	p.o.SoftLimit, p.o.HardLimit = soft, hard
	p.shrink(func() bool {
		held := p.n.Reserved - p.given
		return held > soft || hard > 0 && held > hard
	})
	p.unlock()
	return nil
}

// Spec is a number of blocks of one size.
type Spec struct {
	Bytes int64
	Count int
}

// Preallocate fills the pool, so that those blocks can be had at once without the
// driver. It is all or nothing, and within the limits; PassThrough keeps nothing.
func (p *Pool) Preallocate(specs []Spec) error {
	var ids []ID
	var err error
	for _, s := range specs {
		if s.Count < 0 {
			err = fmt.Errorf("%d blocks: %w", s.Count, driver.ErrInvalidArgument)
		}
		for i := 0; i < s.Count && err == nil; i++ {
			var b Block
			if b, err = p.Get(s.Bytes, driver.OnDevice, nil); err == nil {
				ids = append(ids, b.ID)
			}
		}
	}
	for _, id := range ids {
		err = errors.Join(err, p.Put(id, nil, 0))
	}
	return err
}

// Reserve counts memory that comes from the driver on another way, such as its own
// allocator in stream order, under the same limits. The memory is live until Release.
func (p *Pool) Reserve(n int64) (ID, error) {
	p.growing.Lock()
	defer p.growing.Unlock()
	if err := p.allowed(n); err != nil {
		if !errors.Is(err, driver.ErrBudget) {
			return NoID, err
		}
		p.reclaim(n, n, driver.Pinned, nil) // of a kind that is never reused, so nothing is handed out
		if err = p.allowed(n); err != nil {
			return NoID, p.explain(err)
		}
	}
	b, err := p.adopt(driver.Memory{Size: n}, n, n, driver.Pinned)
	return b.ID, err
}

// Release ends what Reserve began.
func (p *Pool) Release(id ID) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	b := p.find(id)
	if b == nil {
		return fmt.Errorf("block %#x is not in use: %w", uint64(id), driver.ErrInvalidArgument)
	}
	p.n.Live -= b.size
	p.n.Requested -= b.asked
	p.n.Reserved -= b.size
	p.n.LiveBlocks--
	p.n.Slabs--
	p.n.Deallocations++
	p.n.DriverFrees++
	p.retire(b)
	p.drop(b)
	return nil
}

// Close frees what is kept, and returns an error that lists what is live. That stays
// usable, and is freed when it comes back; Get answers ErrClosed. Closing twice does
// nothing more.
func (p *Pool) Close() error {
	p.mu.Lock()
	p.closed = true
	p.o.SoftLimit = 0 // nothing is kept any more
	p.mu.Unlock()
	p.Trim(0)
	return p.leaks()
}
