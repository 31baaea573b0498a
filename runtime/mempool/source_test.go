package mempool

import (
	"errors"
	"fmt"
	"sync"

	"github.com/concord-compute/concord/runtime/driver"
)

// fakeSource is a driver without memory: it returns addresses that are never reused, counts bytes,
// and fails on demand.
type fakeSource struct {
	mu     sync.Mutex
	room   int64 // 0: unlimited
	next   uint64
	open   map[uint64]int64
	held   int64
	most   int64
	allocs int64
	frees  int64
	fail   func(n int64) error
	wrong  error // errors for wrong calls of Free
}

func (s *fakeSource) Alloc(n int64, kind driver.MemoryKind) (driver.Memory, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.fail != nil {
		if err := s.fail(n); err != nil {
			return driver.Memory{}, err
		}
	}
	if s.room > 0 && s.held+n > s.room {
		return driver.Memory{}, fmt.Errorf("fake: %w", driver.ErrOutOfMemory)
	}
	return s.give(n, kind), nil
}

// give is Alloc without its limits and faults.
func (s *fakeSource) give(n int64, kind driver.MemoryKind) driver.Memory {
	if s.open == nil {
		s.open = map[uint64]int64{}
	}
	s.next++
	s.open[s.next] = n
	s.held += n
	s.most = max(s.most, s.held)
	s.allocs++
	return driver.Memory{Handle: s.next, Size: n, Kind: kind}
}

func (s *fakeSource) Free(m driver.Memory) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if size, ok := s.open[m.Handle]; !ok || size != m.Size || m.Offset != 0 {
		s.wrong = errors.Join(s.wrong, fmt.Errorf("free of %+v", m))
		return s.wrong
	}
	delete(s.open, m.Handle)
	s.held -= m.Size
	s.frees++
	return nil
}
