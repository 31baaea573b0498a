package runtime

// Memory that is allocated and freed in the order of a stream.

import (
	"errors"

	"github.com/concord-compute/concord/runtime/driver"
	"github.com/concord-compute/concord/runtime/mempool"
)

// Alloc returns a buffer like Device.Alloc whose memory is allocated and freed in the order of the stream, for one
// step of its work. Allocating and closing do not make the device wait, and the next Alloc can get the same memory
// while the work that used it is still queued. Other streams may use the buffer like any other: their work runs after
// the allocation, and the memory is kept until that work is done. The host may read the buffer after a Sync.
//
// The memory comes from the device's pool. Without a pool it comes from the driver's own allocator
// in stream order if it has one, and else from Device.Alloc.
func (s *Stream) Alloc(t Type, n int) (*Buffer, error) {
	const op = "alloc"
	if err := s.live(op); err != nil {
		return nil, err
	}
	if err := s.lock(op); err != nil {
		return nil, err
	}
	s.mu.Unlock()
	c := s.core
	size, err := t.Bytes(n)
	if err != nil {
		return nil, c.error(op, err)
	}
	a, err := c.memory.alloc(size, OnDevice, s)
	if err != nil {
		return nil, err
	}
	return newBuffer(a, t, part(a.mem, 0, size), n), nil
}

// get allocates memory: from the driver in the order of the stream if there is no pool and the
// driver can do that, otherwise from the pool, which follows that order as well.
func (m *memory) get(n int64, kind driver.MemoryKind, home *Stream) (*allocation, error) {
	var lane *mempool.Lane
	if home != nil {
		if m.core.session.cfg.NoMemoryPool {
			a, err := m.getHere(n, home)
			if !errors.Is(err, ErrUnsupported) {
				return a, err
			}
		}
		lane = home.lane
	}
	block, err := m.pool.Get(n, kind, lane)
	if err != nil {
		return nil, err
	}
	a := &allocation{core: m.core, mem: block.Memory, id: block.ID}
	if !block.Ordered {
		return a, nil
	}
	a.home, a.used = home, []*Stream{home}
	if a.ready, err = home.mark(); err != nil {
		return nil, errors.Join(err, m.pool.Put(a.id, lane, home.queued.Load()))
	}
	return a, nil
}

// getHere allocates with the driver's own allocator in the order of a stream. If the device has no
// room, it frees closed memory, waiting for the work that uses it, and tries once more.
func (m *memory) getHere(n int64, home *Stream) (*allocation, error) {
	here, ok := home.drv.(driver.StreamAllocator)
	if !ok {
		return nil, ErrUnsupported
	}
	id, err := m.pool.Reserve(n)
	if err != nil {
		return nil, err
	}
	mem, ready, err := home.allocHere(here, n)
	if errors.Is(err, ErrOutOfMemory) {
		m.drainWaiting()
		mem, ready, err = home.allocHere(here, n)
	}
	if err != nil {
		return nil, errors.Join(err, m.pool.Release(id))
	}
	return &allocation{core: m.core, mem: mem, id: id, home: home, ready: ready, ordered: true, used: []*Stream{home}}, nil
}

// mark records an event that other streams wait for.
func (s *Stream) mark() (driver.Event, error) {
	if err := s.lock("alloc"); err != nil {
		return nil, err
	}
	defer s.unlock(false)
	return s.drv.Record(false)
}

// putBack gives back memory that is not in use.
func (m *memory) putBack(a *allocation) error {
	if a.ready != nil {
		_ = a.ready.Close()
	}
	if a.foreign != nil {
		return a.foreign.end(m.core, a.mem)
	}
	if !a.ordered {
		return m.pool.Put(a.id, nil, 0)
	}
	return errors.Join(m.core.drv.Free(a.mem), m.pool.Release(a.id))
}

func (s *Stream) allocHere(here driver.StreamAllocator, n int64) (mem driver.Memory, ready driver.Event, err error) {
	if err := s.lock("alloc"); err != nil {
		return mem, nil, err
	}
	defer s.unlock(true)
	if mem, err = s.observedAlloc(here, n); err != nil {
		return mem, nil, err
	}
	if ready, err = s.drv.Record(false); err != nil {
		_ = here.FreeHere(mem) // the stream has failed; that is the error to return
		return driver.Memory{}, nil, err
	}
	return mem, ready, nil
}

// give frees memory that waited: to the pool, or in the order of its stream while the stream is
// usable. It reports false if the memory has to wait longer: a call holds the stream and may not be
// waited for, or the driver did not take the memory back.
func (m *memory) give(d *deferredFree, wait bool) (given bool, err error) {
	if d.foreign != nil {
		return true, d.foreign.end(m.core, d.mem)
	}
	s := d.home
	if s == nil {
		return true, m.pool.Put(d.id, nil, 0)
	}
	given, err = s.freeHere(d, wait)
	if given {
		err = errors.Join(err, m.pool.Release(d.id))
	}
	return given, err
}

func (s *Stream) freeHere(d *deferredFree, wait bool) (given bool, err error) {
	if wait {
		s.mu.Lock()
	} else if !s.mu.TryLock() {
		return false, nil
	}
	defer s.mu.Unlock()
	switch {
	case !s.closed && s.failed() == nil:
		err := s.drv.(driver.StreamAllocator).FreeHere(d.mem)
		if err == nil {
			s.queued.Add(1)
			return true, nil
		}
		if s.failed() == nil { // its work runs on: try again later
			return false, err
		}
	case s.closed && s.busy(): // Close is waiting for its work
		return false, nil
	}
	return true, s.core.drv.Free(d.mem) // nothing of the stream runs any more
}
