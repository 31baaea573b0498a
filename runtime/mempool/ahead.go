package mempool

// Filling the pool before the memory is needed.

import (
	"errors"
	"fmt"

	"github.com/concord-compute/concord/runtime/driver"
)

// Spec is a number of blocks of one size.
type Spec struct {
	Bytes int64
	Count int
}

// Preallocate fills the pool, so that those blocks can be had later without a call to the driver.
// If a limit would be exceeded, a soft one included, it returns ErrBudget and holds no more memory
// than before. It may free other kept blocks to make room. PassThrough keeps nothing, which is no
// error.
func (p *Pool) Preallocate(specs []Spec) error {
	if err := p.roomFor(specs); err != nil || p.o.Mode == PassThrough {
		return err
	}
	p.mu.Lock()
	before := p.slabs
	p.mu.Unlock()
	ids, err := p.getAll(specs)
	if err == nil {
		err = p.overSoft()
	}
	for _, id := range ids {
		err = errors.Join(err, p.Put(id, nil, 0))
	}
	if err != nil {
		p.giveBack(before)
	}
	return err
}

// getAll gets blocks, and returns the ones it got also with an error.
func (p *Pool) getAll(specs []Spec) (ids []ID, err error) {
	for _, s := range specs {
		for range s.Count {
			b, err := p.Get(s.Bytes, driver.OnDevice, nil)
			if err != nil {
				return ids, err
			}
			ids = append(ids, b.ID)
		}
	}
	return ids, nil
}

// roomFor refuses blocks that exceed a limit or would not be kept, as far as can be known without
// the driver.
func (p *Pool) roomFor(specs []Spec) error {
	var bytes, blocks int64
	same := map[int64]int64{}
	p.mu.Lock()
	soft, count, live, held, closed := p.o.SoftLimit, int64(p.o.SoftCount), p.n.Live, p.n.LiveBlocks, p.closed
	p.mu.Unlock()
	if closed {
		return driver.ErrClosed
	}
	for _, s := range specs {
		size, err := p.sizeOf(s.Bytes, driver.OnDevice)
		n := int64(s.Count)
		switch {
		case err != nil:
			return err
		case n < 0:
			return fmt.Errorf("%d blocks: %w", n, driver.ErrInvalidArgument)
		case p.o.Mode == PassThrough || n == 0:
			continue
		case n > (soft-live-bytes)/size:
			return fmt.Errorf("%s live, and more than %s to keep: %w", driver.FormatBytes(live), driver.FormatBytes(soft-live),
				driver.ErrBudget)
		}
		bytes += n * size
		blocks += n
		same[size] += n
		switch {
		case p.o.Mode == Split:
		case same[size] > mostReady:
			return fmt.Errorf("%d blocks of %s, at most %d are kept: %w", same[size], driver.FormatBytes(size), mostReady,
				driver.ErrBudget)
		case count > 0 && held+blocks > count:
			return fmt.Errorf("%d allocations of a soft limit of %d: %w", held+blocks, count, driver.ErrBudget)
		}
	}
	return nil
}

// overSoft returns the error of a pool that is above a soft limit, or nil.
func (p *Pool) overSoft() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch held, slabs := p.n.Reserved-p.given, p.n.Slabs-int64(len(p.dead)); {
	case held > p.o.SoftLimit:
		return fmt.Errorf("holding %s of a soft limit of %s: %w", driver.FormatBytes(held), driver.FormatBytes(p.o.SoftLimit),
			driver.ErrBudget)
	case p.o.SoftCount > 0 && slabs > int64(p.o.SoftCount):
		return fmt.Errorf("holding %d allocations of a soft limit of %d: %w", slabs, p.o.SoftCount, driver.ErrBudget)
	}
	return nil
}

// giveBack frees the free slabs that were allocated after the slab with that number.
func (p *Pool) giveBack(after int64) {
	p.mu.Lock()
	p.settle()
	for b := p.empty.first; b != nil; {
		next := b.lz
		if b.slab.number > after {
			p.unkeep(b)
			p.giveUp(b)
		}
		b = next
	}
	p.leave()
	p.mu.Lock()
	p.waitFrees()
	p.mu.Unlock()
}
