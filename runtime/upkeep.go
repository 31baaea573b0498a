package runtime

// Upkeep of a device's memory pool: periodic maintenance, pressure, and the fill of new buffers.

import (
	"context"
	"time"

	"github.com/concord-compute/concord/runtime/driver"
	"github.com/concord-compute/concord/runtime/mempool"
)

// defaultIdle is how long unused memory is kept, unless Config says otherwise.
const defaultIdle = 30 * time.Second

// startUpkeep starts the periodic maintenance of the pool, which ends when the device is closed.
// Between two rounds there is a timer and no goroutine, so that a device that is never closed costs
// none.
func (m *memory) startUpkeep() {
	every := m.core.session.cfg.MemoryIdle
	if every == 0 {
		every = defaultIdle
	}
	if every < 0 || m.core.session.cfg.NoMemoryPool {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.upkeep = time.AfterFunc(every, func() {
		if !m.core.enter() { // close waits for calls that have entered
			return
		}
		defer m.core.leave()
		m.drain()
		m.pool.Maintenance(every)
		m.staging.put(m.core, nil)
		m.mu.Lock()
		defer m.mu.Unlock()
		m.upkeep.Reset(every) // close stops it after this call has left
	})
}

func (m *memory) stopUpkeep() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.upkeep != nil {
		m.upkeep.Stop()
	}
}

func (m *memory) logPressure(p mempool.Pressure) {
	if p.Up && p.Threshold >= mempool.Critical {
		m.core.session.debug(1, "memory runs short", "device", m.core.info.ID, "threshold", p.String())
	}
}

// inUse tells the pool how full the device is. The question to the driver takes time, and is asked
// only if the answer is watched or logged.
func (m *memory) inUse() (used, total int64, known bool) {
	if !m.watched.Load() && m.core.session.cfg.Debug < 1 {
		return 0, 0, false
	}
	info := m.core.drv.Info()
	return info.TotalMemory - info.FreeMemory, info.TotalMemory, info.FreeMemoryKnown
}

// spoilt is the byte that Config.MemoryFill "pattern" writes: it makes NaN in every format of
// floats.
const spoilt = 0xFF

// fillNew writes the pattern of Config.MemoryFill into new memory, and waits for that.
func (m *memory) fillNew(a *allocation, home *Stream) error {
	pattern := []byte{0}
	switch m.core.session.cfg.MemoryFill {
	case driver.FillPattern:
		pattern[0] = spoilt
	case driver.FillZero:
	default:
		return nil
	}
	if home == nil {
		home = m.core.streams.own
	}
	if err := home.lock("fill"); err != nil {
		return err
	}
	err := home.drv.Fill(a.mem, pattern)
	home.unlock(err == nil)
	if err != nil {
		return err
	}
	return home.sync(context.Background())
}

// unget gives back memory that fillNew could not write: a fill that was queued on the same stream
// may still run.
func (m *memory) unget(a *allocation, home *Stream) error {
	switch {
	case a.ordered:
		return m.putBack(a) // the driver's allocator knows the order
	case home == nil:
		home = m.core.streams.own
	}
	if a.ready != nil {
		_ = a.ready.Close()
	}
	return m.pool.Put(a.id, home.lane, home.queued.Load())
}

// spoil overwrites memory that is given back, so that a kernel that still reads it gets useless
// values. The fill comes after the work of the one stream that may use the memory. It returns the
// streams whose work uses the memory then.
func (m *memory) spoil(a *allocation, busy []*Stream) []*Stream {
	if m.core.session.cfg.MemoryFill != driver.FillPattern || a.ordered || a.foreign != nil || len(busy) > 1 ||
		m.core.streams.capturing.Load() > 0 {
		return busy
	}
	s := m.core.streams.own
	if len(busy) == 1 {
		s = busy[0]
	}
	if s.core != m.core || !s.mu.TryLock() { // the call that holds it may be the one that frees
		return busy
	}
	defer s.mu.Unlock()
	if s.closed || s.failed() != nil || s.drv.Fill(a.mem, []byte{spoilt}) != nil {
		return busy
	}
	s.queued.Add(1)
	return []*Stream{s}
}
