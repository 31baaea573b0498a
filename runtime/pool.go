package runtime

// The memory pool of a device, and what it is told of streams.

import (
	"context"
	"log/slog"
	goruntime "runtime"
	"time"

	"github.com/concord-compute/concord/runtime/driver"
	"github.com/concord-compute/concord/runtime/mempool"
)

// newPool makes the pool of a device.
func (c *core) newPool() *mempool.Pool {
	pool := mempool.New(c.drv, mempool.Options{
		Mode:          poolMode(&c.info, &c.session.cfg),
		Align:         max(256, c.info.BaseAlign),
		SoftLimit:     mempool.AdviseLimit(c.info.TotalMemory),
		HardLimit:     c.session.cfg.MemoryLimit,
		SoftCount:     c.session.cfg.MemorySoftCount,
		HardCount:     c.session.cfg.MemoryHardCount,
		AutoEmergency: c.session.cfg.MemoryEmergency,
		Device:        c.inUse,
		Drain:         c.drainWaiting,
		Collect:       c.collect,
		Busy:          func() bool { return c.capturing.Load() > 0 }, // not every driver can free while it records
		FreeFailed: func(err error) {
			c.session.debug(1, "free failed", "device", c.info.ID, "error", err)
			c.mu.Lock()
			if c.closed {
				c.failed = append(c.failed, err)
			}
			c.mu.Unlock()
		},
	})
	_ = pool.Watch(mempool.Thresholds{}, c.logPressure) // the defaults are in order
	return pool
}

// poolMode returns how the pool of a device serves requests. Config decides if it says
// anything. Devices that run on the host's processor detect overruns at the end of an
// allocation, so each of their buffers ends where its allocation ends, even where
// suballocation is possible.
func poolMode(info *Info, cfg *Config) mempool.Mode {
	switch {
	case cfg.NoMemoryPool:
		return mempool.PassThrough
	case cfg.MemoryMode == driver.PoolSplit:
		return mempool.Split
	case cfg.MemoryMode == driver.PoolWhole:
		return mempool.Whole
	case cfg.MemoryMode == driver.PoolExact:
		return mempool.Exact
	case info.Kind == driver.CPU || info.Simulated:
		return mempool.Exact
	case info.Suballocation:
		return mempool.Split
	}
	return mempool.Whole
}

// collect looks for buffers that nobody closed.
func (c *core) collect() {
	goruntime.GC()
	time.Sleep(time.Millisecond) // for the clean-ups, which run beside
	c.drain()
}

// progress is a stream as the pool knows it. The pool's lock guards it.
type progress struct {
	s    *Stream
	mark driver.Event // at some point of the stream, or nil
	at   uint64       // the count of work there
}

// Finished implements mempool.Work: it asks an event, and records one where there is
// none. One event tells of everything before, so that a stream has one at most.
func (w *progress) Finished() uint64 {
	s := w.s
	if s.core.capturing.Load() > 0 { // not every driver answers while it records
		return s.finished.Load()
	}
	if w.mark == nil && !w.record() {
		return s.finished.Load()
	}
	switch done, err := w.mark.Done(); {
	case err != nil: // which tells nothing of the work; Close of the stream waits for it
		w.close()
	case done:
		s.finish(w.at)
		w.close()
	}
	return s.finished.Load()
}

// record marks where the stream is, unless a call is under way or nothing is to come.
func (w *progress) record() bool {
	s := w.s
	if !s.busy() || !s.mu.TryLock() {
		return false
	}
	defer s.mu.Unlock()
	if s.closed || !s.busy() {
		return false
	}
	e, err := s.drv.Record(false)
	if err != nil { // the stream failed; what it began before may still run
		return false
	}
	w.mark, w.at = e, s.queued.Load()
	return true
}

// Wait implements mempool.Work.
func (w *progress) Wait(upTo uint64) {
	if w.s.finished.Load() >= upTo {
		return
	}
	_ = w.s.passed(context.Background()) // its error belongs to the stream, which reports it
}

func (w *progress) close() {
	if w.mark != nil {
		_ = w.mark.Close() // an event that is only asked has nothing to report
		w.mark = nil
	}
}

// report logs what is open when its device is closed, if someone wants to know.
func (c *core) report() {
	if !c.pool.Tracking() && c.session.cfg.Debug < 1 {
		return
	}
	holders := c.pool.Holders()
	if len(holders) == 0 {
		return
	}
	list := make([]string, len(holders))
	for i := range holders {
		list[i] = holders[i].String()
	}
	slog.Warn("concord: memory is open at close", "device", c.info.ID, "holders", list)
}
