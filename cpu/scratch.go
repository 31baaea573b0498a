package cpu

// Scratch memory of launches, such as packed panels. It is mapped as buffers are, so that
// C code may use it and it can have huge pages, and is kept for the next launch.

import (
	"errors"
	"slices"
	"sync"
)

// scratch keeps blocks that are not in use.
type scratch struct {
	mu     sync.Mutex
	idle   []block
	closed bool
}

// scratchKeep is the largest number of blocks that are kept: about as many as launches that run
// at the same time.
const scratchKeep = 4

// scratchLargest is the size of the largest block that is kept.
const scratchLargest = 256 << 20

// take returns a block of at least n bytes with undefined contents, aligned to baseAlign.
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

// give keeps b for a later launch. If there are then more than scratchKeep blocks, it unmaps the
// smallest.
func (s *scratch) give(b block) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed || len(b.data) > scratchLargest {
		_ = unmapBlock(b) // there is no caller that could receive the error
		return
	}
	s.idle = append(s.idle, b)
	slices.SortFunc(s.idle, func(a, b block) int { return len(a.data) - len(b.data) })
	if len(s.idle) > scratchKeep {
		_ = unmapBlock(s.idle[0])
		s.idle = slices.Delete(s.idle, 0, 1)
	}
}

// free unmaps the blocks that are not in use; others are unmapped when they are given back.
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
