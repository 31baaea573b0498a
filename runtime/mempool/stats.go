package mempool

// The accounts.

import "time"

// Stats are the accounts of a pool at one moment. Unless a name says otherwise, they are in bytes.
type Stats struct {
	Live      int64 // blocks in use, as the device holds them
	Requested int64 // the requested bytes of those blocks
	Cached    int64 // free blocks
	Waiting   int64 // of Cached: work of some lane may still use them
	Reserved  int64 // Live + Cached: all memory from the driver

	PeakLive     int64 // since the pool's beginning or ResetPeak
	PeakReserved int64

	LiveBlocks   int64
	CachedBlocks int64
	Slabs        int64 // allocations of the driver

	Allocations   int64 // successful gets
	Deallocations int64 // successful returns
	Hits          int64 // gets served from free blocks
	Misses        int64 // gets served by the driver
	DriverAllocs  int64
	DriverFrees   int64
	Retries       int64 // second attempts after the driver had no room
	Cleanups      int64 // Trim, CleanupFragmented, Maintenance
	Coalesces     int64 // calls that looked for blocks to join after their work was done

	LargestFree int64 // the largest free block that no work uses
	Sizes       int64 // different sizes among free blocks
	Leaks       int64 // live blocks older than LeakAge that were allocated with tracking on
	SoftLimit   int64
	HardLimit   int64
	LastCleanup time.Time // zero if there was none
}

// Efficiency is the part of the gets that did not need the driver; 1 when there were none.
func (s *Stats) Efficiency() float64 {
	if s.Hits+s.Misses == 0 {
		return 1
	}
	return float64(s.Hits) / float64(s.Hits+s.Misses)
}

// Internal is the part of Live that was not requested: space lost inside blocks.
func (s *Stats) Internal() float64 {
	if s.Live == 0 {
		return 0
	}
	return 1 - float64(s.Requested)/float64(s.Live)
}

// TypeDiversity is the number of different sizes per free block: near 1, hardly any block is likely
// to be reused as it is.
func (s *Stats) TypeDiversity() float64 {
	if s.CachedBlocks == 0 {
		return 0
	}
	return float64(s.Sizes) / float64(s.CachedBlocks)
}

// LeakAge is the age from which on Stats counts a live block as a leak.
const LeakAge = time.Hour

// Pressure is Live as a part of the soft limit; above 1 when Live exceeds the limit.
func (s *Stats) Pressure() float64 { return float64(s.Live) / float64(s.SoftLimit) }

// Stats returns the accounts. It first checks the progress of the lanes.
func (p *Pool) Stats() Stats {
	p.Settle() // also lets the driver free slabs that are given up
	p.mu.Lock()
	defer p.leave()
	p.cool()
	s := p.counters()
	sizes := map[int64]struct{}{}
	see := func(b *node) {
		sizes[b.size] = struct{}{}
		if b.lane == nil {
			s.LargestFree = max(s.LargestFree, b.size)
		}
	}
	for space := range p.ready {
		p.ready[space].each(see)
		for l := range p.lanes {
			l.free[space].each(see)
		}
	}
	s.Sizes = int64(len(sizes))
	if p.track.Load() {
		old := time.Now().Add(-LeakAge)
		for _, b := range p.table {
			if b.live && b.history != nil && b.history.born.Before(old) {
				s.Leaks++
			}
		}
	}
	return s
}

// each calls f for every block.
func (s *bins) each(f func(*node)) {
	for i := s.next(0); i >= 0; i = s.next(i + 1) {
		for b := s.first[i]; b != nil; b = b.z {
			f(b)
		}
	}
}

// Counters returns the accounts without the fields that need a walk through the free blocks, for
// frequent calls: LargestFree and Sizes are 0, as is Leaks.
func (p *Pool) Counters() Stats {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.counters()
}

func (p *Pool) counters() Stats {
	s := p.n
	s.SoftLimit, s.HardLimit, s.LastCleanup = p.o.SoftLimit, p.o.HardLimit, p.swept
	return s
}

// ResetPeak sets both peaks to the present values.
func (p *Pool) ResetPeak() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.n.PeakLive, p.n.PeakReserved = p.n.Live, p.n.Reserved
}
