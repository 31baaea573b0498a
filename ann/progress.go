package ann

// How far an Add is.

import (
	"sync"
	"sync/atomic"
	"time"
)

// Progress says how far an Add is, which makes lists or a graph. Its unit is a vector that was linked, stored or
// compared with the centres of lists; how often that is to be done may turn out while it runs. Of an index in shards it
// is that of the shards of this process.
type Progress struct {
	Done, Of  int64
	Elapsed   time.Duration // since the call began
	Remaining time.Duration // about, at the rate so far
}

// meter counts the work of an Add. A nil one counts nothing.
type meter struct {
	tell     func(Progress)
	start    time.Time
	done, of atomic.Int64

	mu   sync.Mutex // held while the program is told
	last time.Time
	full int64 // of what was told when it was done
}

// betweenTold is how long a program is told nothing, unless all is done that is known of.
const betweenTold = 100 * time.Millisecond

func newMeter(tell func(Progress)) *meter {
	if tell == nil {
		return nil
	}
	return &meter{tell: tell, start: time.Now()}
}

// expect adds work that is to be done.
func (m *meter) expect(n int) {
	if m != nil {
		m.of.Add(int64(n))
	}
}

// did counts work, and tells of it now and then.
func (m *meter) did(n int) {
	if m == nil {
		return
	}
	done := m.done.Add(int64(n))
	if done >= m.of.Load() {
		m.mu.Lock()
	} else if !m.mu.TryLock() {
		return
	}
	defer m.mu.Unlock()
	now := time.Now()
	if of := m.of.Load(); done >= of && of > m.full {
		m.full = of
	} else if now.Sub(m.last) < betweenTold {
		return
	}
	defer guarded("Progress")
	m.last = now
	done = m.done.Load()
	p := Progress{Done: done, Of: max(done, m.of.Load()), Elapsed: now.Sub(m.start)}
	if done > 0 {
		p.Remaining = time.Duration(float64(p.Elapsed) / float64(done) * float64(p.Of-done))
	}
	m.tell(p)
}

// measure has the next Add count its work in m.
func (s *storage) measure(m *meter) {
	s.writeLock.Lock()
	defer s.writeLock.Unlock()
	s.work = m
}

// metered calls f, an Add, and tells the program how far it is.
func (s *storage) metered(f func() error) (err error) {
	if s.progress == nil || s.work != nil { // of all shards
		return f()
	}
	defer catch(&err)
	s.work = newMeter(s.progress)
	defer func() { s.work = nil }()
	return f()
}
