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
func (c *core) startUpkeep() {
	every := c.session.cfg.MemoryIdle
	if every == 0 {
		every = idle
	}
	if every < 0 || c.session.cfg.NoMemoryPool {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.upkeep = time.AfterFunc(every, func() {
		if !c.enter() { // close waits for who has entered
			return
		}
		defer c.guests.Done()
		c.drain()
		c.pool.Maintenance(every)
		c.staging.put(c, nil)
		c.mu.Lock()
		defer c.mu.Unlock()
		if !c.closed {
			c.upkeep.Reset(every)
		}
	})
}

func (c *core) stopUpkeep() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.upkeep != nil {
		c.upkeep.Stop()
	}
}

func (c *core) logPressure(p mempool.Pressure) {
	if p.Up && p.Threshold >= mempool.Critical {
		c.session.debug(1, "memory runs short", "device", c.info.ID, "threshold", p.String())
	}
}

// inUse tells the pool how full the device is. Asking the driver takes time, which is
// spent only if someone listens.
func (c *core) inUse() (used, total int64, known bool) {
	if !c.watched.Load() && c.session.cfg.Debug < 1 {
		return 0, 0, false
	}
	info := c.drv.Info()
	return info.TotalMemory - info.FreeMemory, info.TotalMemory, info.FreeMemoryKnown
}

// spoilt is what Config.MemoryFill "pattern" writes: NaN in every format of floats.
const spoilt = 0xFF

// prepare writes what Config.MemoryFill asks for into new memory, and waits for that.
func (c *core) prepare(a *allocation, home *Stream) error {
	pattern := []byte{0}
	switch c.session.cfg.MemoryFill {
	case driver.FillPattern:
		pattern[0] = spoilt
	case driver.FillZero:
	default:
		return nil
	}
	if home == nil {
		home = c.stream
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

// unget gives back memory that prepare could not write: what it queued on the same
// stream may still run.
func (c *core) unget(a *allocation, home *Stream) error {
	switch {
	case a.ordered:
		return c.putBack(a) // it is the driver's, which knows the order
	case home == nil:
		home = c.stream
	}
	if a.ready != nil {
		_ = a.ready.Close()
	}
	return c.pool.Put(a.id, home.lane, home.queued.Load())
}

// spoil makes memory that is given back useless to who still reads it, behind the work
// of the one stream that may use it. It reports the streams whose work uses it now.
func (c *core) spoil(a *allocation, busy []*Stream) []*Stream {
	if c.session.cfg.MemoryFill != driver.FillPattern || a.ordered || len(busy) > 1 || c.capturing.Load() > 0 {
		return busy
	}
	s := c.stream
	if len(busy) == 1 {
		s = busy[0]
	}
	if s.core != c || !s.mu.TryLock() { // who holds it may be the one who frees
		return busy
	}
	defer s.mu.Unlock()
	if s.closed || s.failed() != nil || s.drv.Fill(a.mem, []byte{spoilt}) != nil {
		return busy
	}
	s.queued.Add(1)
	return []*Stream{s}
}
