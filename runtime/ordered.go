package runtime

// Memory that is allocated and freed in the order of a stream.

import (
	"errors"

	"github.com/concord-compute/concord/runtime/driver"
)

// Alloc returns a buffer like Device.Alloc whose memory comes and goes in the order
// of the stream, for what one step of its work needs: allocating and closing do not
// make the device wait, and the next Alloc gets the same memory while the work that
// used it is still queued. Other streams may use the buffer as any other; they come
// after the allocation, and its memory stays until they are done.
//
// Where the driver cannot do that it is Device.Alloc.
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
	size, err := sizeOf(t, n)
	if err != nil {
		return nil, c.error(op, err)
	}
	a, err := c.alloc(size, OnDevice, s)
	if err != nil {
		return nil, err
	}
	return newBuffer(a, t, a.mem, n), nil
}

// get gets memory from the driver. With ready it comes in the order of the stream,
// and is there behind that event.
func (c *core) get(n int64, kind driver.MemoryKind, home *Stream) (mem driver.Memory, ready driver.Event, err error) {
	if home != nil {
		if here, ok := home.drv.(driver.StreamAllocator); ok {
			mem, ready, err = home.allocHere(here, n)
			if !errors.Is(err, ErrUnsupported) {
				return mem, ready, err
			}
		}
	}
	mem, err = c.drv.Alloc(n, kind)
	return mem, nil, err
}

func (s *Stream) allocHere(here driver.StreamAllocator, n int64) (mem driver.Memory, ready driver.Event, err error) {
	if err := s.lock("alloc"); err != nil {
		return mem, nil, err
	}
	defer s.unlock(true)
	if mem, err = here.AllocHere(n); err != nil {
		return mem, nil, err
	}
	if ready, err = s.drv.Record(false); err != nil {
		_ = here.FreeHere(mem) // the stream has failed, which is the error to tell
		return driver.Memory{}, nil, err
	}
	return mem, ready, nil
}

// give frees memory: in the order of its stream while that runs, else at once. It
// reports false if the stream is busy with a call and may not be waited for.
func (c *core) give(d *deferredFree, wait bool) (given bool, err error) {
	s := d.home
	if s == nil {
		return true, c.drv.Free(d.mem)
	}
	if wait {
		s.mu.Lock()
	} else if !s.mu.TryLock() {
		return false, nil
	}
	defer s.mu.Unlock()
	switch {
	case !s.closed && s.drv.Err() == nil:
		s.queued++
		if err := s.drv.(driver.StreamAllocator).FreeHere(d.mem); err == nil {
			return true, nil
		}
	case s.closed && s.finished.Load() < s.queued: // it is being closed at this moment
		return false, nil
	}
	return true, c.drv.Free(d.mem) // nothing of the stream runs any more
}
