package runtime

// The memory pool of a device, and the progress of streams that it asks for.

import (
	"context"
	"log/slog"
	goruntime "runtime"
	"time"

	"github.com/concord-compute/concord/runtime/driver"
	"github.com/concord-compute/concord/runtime/mempool"
)

// newPool makes the pool of a device.
func (m *memory) newPool() *mempool.Pool {
	pool := mempool.New(observedSource{m.core}, mempool.Options{
		Mode:          poolMode(&m.core.info, &m.core.session.cfg),
		Align:         max(256, m.core.info.BaseAlign),
		SoftLimit:     mempool.AdviseLimit(m.core.info.TotalMemory),
		HardLimit:     m.core.session.cfg.MemoryLimit,
		SoftCount:     m.core.session.cfg.MemorySoftCount,
		HardCount:     m.core.session.cfg.MemoryHardCount,
		AutoEmergency: m.core.session.cfg.MemoryEmergency,
		Device:        m.inUse,
		Drain:         m.drainWaiting,
		Collect:       m.collect,
		// not every driver can free while it records
		Busy: func() bool { return m.core.streams.capturing.Load() > 0 },
		FreeFailed: func(err error) {
			m.core.session.debug(1, "free failed", "device", m.core.info.ID, "error", err)
			if m.core.isClosed() {
				m.mu.Lock()
				m.failed = append(m.failed, err)
				m.mu.Unlock()
			}
		},
	})
	_ = pool.Watch(mempool.Thresholds{}, m.logPressure) // the default thresholds are valid
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

// collect finds buffers that were never closed.
func (m *memory) collect() {
	goruntime.GC()
	time.Sleep(time.Millisecond) // for the clean-ups, which run in another goroutine
	m.drain()
}

// progress is the pool's view of a stream. The pool's lock guards it.
type progress struct {
	s    *Stream
	mark driver.Event // at some point of the stream, or nil
	at   uint64       // the count of work queued before mark
}

// Finished implements mempool.Work: it checks an event, and records one if there is none. One event
// covers all work before it, so a stream needs one at most.
func (w *progress) Finished() uint64 {
	s := w.s
	if s.core.streams.capturing.Load() > 0 { // not every driver answers while it records
		return s.finished.Load()
	}
	if w.mark == nil && !w.record() {
		return s.finished.Load()
	}
	switch done, err := w.mark.Done(); {
	case err != nil: // says nothing about the work; Close of the stream waits for it
		w.close()
	case done:
		s.finish(w.at)
		w.close()
	}
	return s.finished.Load()
}

// record records an event now, unless a call holds the stream or it has no work under way.
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
	if err != nil { // the stream failed; earlier work may still run
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
		_ = w.mark.Close() // an event that is only polled has nothing to report
		w.mark = nil
	}
}

// report logs memory that is in use when its device is closed, with Track or CONCORD_DEBUG.
func (m *memory) report() {
	if !m.pool.Tracking() && m.core.session.cfg.Debug < 1 {
		return
	}
	holders := m.pool.Holders()
	if len(holders) == 0 {
		return
	}
	list := make([]string, len(holders))
	for i := range holders {
		list[i] = holders[i].String()
	}
	slog.Warn("concord: memory is open at close", "device", m.core.info.ID, "holders", list)
}
