package runtime

// What a device's memory pool needs besides requests: a look at it now and then, who is
// told that memory runs short, what new buffers hold.

import (
	"context"
	"time"

	"github.com/concord-compute/concord/runtime/driver"
	"github.com/concord-compute/concord/runtime/mempool"
)

// idle is how long memory is kept that nobody uses, unless Config says otherwise.
const idle = 30 * time.Second

// startUpkeep has the pool looked after until the device is closed. Between two looks
// there is a timer and no goroutine, so that a device that is never closed costs none.
func (m *memory) startUpkeep() {
	every := m.core.session.cfg.MemoryIdle
	if every == 0 {
		every = idle
	}
	if every < 0 || m.core.session.cfg.NoMemoryPool {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.upkeep = time.AfterFunc(every, func() {
		if !m.core.enter() { // close waits for who has entered
			return
		}
		defer m.core.leave()
		m.drain()
		m.pool.Maintenance(every)
		m.staging.put(m.core, nil)
		m.mu.Lock()
		defer m.mu.Unlock()
		m.upkeep.Reset(every) // close stops it once this has left
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

// inUse tells the pool how full the device is. Asking the driver takes time, which is
// spent only if someone listens.
func (m *memory) inUse() (used, total int64, known bool) {
	if !m.watched.Load() && m.core.session.cfg.Debug < 1 {
		return 0, 0, false
	}
	info := m.core.drv.Info()
	return info.TotalMemory - info.FreeMemory, info.TotalMemory, info.FreeMemoryKnown
}

// spoilt is what Config.MemoryFill "pattern" writes: NaN in every format of floats.
const spoilt = 0xFF

// fillNew writes what Config.MemoryFill asks for into new memory, and waits for that.
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

// unget gives back memory that fillNew could not write: what it queued on the same
// stream may still run.
func (m *memory) unget(a *allocation, home *Stream) error {
	switch {
	case a.ordered:
		return m.putBack(a) // it is the driver's, which knows the order
	case home == nil:
		home = m.core.streams.own
	}
	if a.ready != nil {
		_ = a.ready.Close()
	}
	return m.pool.Put(a.id, home.lane, home.queued.Load())
}

// spoil makes memory that is given back useless to who still reads it, behind the work
// of the one stream that may use it. It reports the streams whose work uses it now.
func (m *memory) spoil(a *allocation, busy []*Stream) []*Stream {
	if m.core.session.cfg.MemoryFill != driver.FillPattern || a.ordered || len(busy) > 1 || m.core.streams.capturing.Load() > 0 {
		return busy
	}
	s := m.core.streams.own
	if len(busy) == 1 {
		s = busy[0]
	}
	if s.core != m.core || !s.mu.TryLock() { // who holds it may be the one who frees
		return busy
	}
	defer s.mu.Unlock()
	if s.closed || s.failed() != nil || s.drv.Fill(a.mem, []byte{spoilt}) != nil {
		return busy
	}
	s.queued.Add(1)
	return []*Stream{s}
}
