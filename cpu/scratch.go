package cpu

// Memory that a launch works in and gives back: packed panels and the like. It is
// mapped like buffers, so that C may have it and large pages serve it, and is kept
// for the next launch.

import (
	"errors"
	"slices"
	"sync"
)

// scratch keeps what is not in use.
type scratch struct {
	mu     sync.Mutex
	idle   []block
	closed bool
}

// scratchKeep is how many blocks wait for the next launch: as many as launches are
// likely to run at the same time.
const scratchKeep = 4

// scratchLargest is the size above which nothing is kept.
const scratchLargest = 256 << 20

// take returns a block of at least n bytes with any contents, aligned to baseAlign.
func (s *scratch) take(n int64) (block, error) {
	s.mu.Lock()
	for i, b := range s.idle {
		if int64(len(b.data)) >= n {
			s.idle = slices.Delete(s.idle, i, i+1)
			s.mu.Unlock()
			return b, nil
		}
	}
	s.mu.Unlock()
	return mapBlock(roundUp(n, 1<<16))
}

// give keeps b for a later launch, in place of a smaller one if there are enough.
func (s *scratch) give(b block) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed || len(b.data) > scratchLargest {
		_ = unmapBlock(b) // nobody is left to tell
		return
	}
	s.idle = append(s.idle, b)
	slices.SortFunc(s.idle, func(a, b block) int { return len(a.data) - len(b.data) })
	if len(s.idle) > scratchKeep {
		_ = unmapBlock(s.idle[0])
		s.idle = slices.Delete(s.idle, 0, 1)
	}
}

// free unmaps what is not in use, now and later.
func (s *scratch) free() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	var errs []error
	for _, b := range s.idle {
		errs = append(errs, unmapBlock(b))
	}
	s.idle = nil
	return errors.Join(errs...)
}
