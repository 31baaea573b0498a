package cpu

// Spreading the work of one Go kernel over threads.

import (
	goruntime "runtime"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"github.com/concord-compute/concord/runtime/choice"
)

// Parallel implements kernels.Host. It calls f for consecutive ranges [lo, hi) that together are
// [0, n), on up to Threads goroutines at once, or fewer while other launches of the device use the
// threads. A range has at least grain indexes, except that n may be smaller. Parallel returns when
// all calls have returned. When the context of c is done, no further range is started and
// the context's error is returned. The launch fails then, even if its function ignores the error. A
// panic of f becomes the error of the launch.
func (c *call) Parallel(n, grain int, f func(lo, hi int)) error {
	if n <= 0 {
		return c.ctx.Err()
	}
	threads := c.device.threads
	return c.divide(n, max(grain, 1, c.each(n, threadParts)), threads, body{plain: f})
}

// each returns the length of the ranges of [0, n) if every thread gets as many as a choice says.
func (c *call) each(n int, ranges *choice.Choice) int {
	count := c.Choose(ranges) * c.device.threads
	return (n + count - 1) / count
}

// body is a function that computes a range. It takes the launch or not.
type body struct {
	with  func(c *call, lo, hi int)
	plain func(lo, hi int)
}

func (f *body) run(c *call, lo, hi int) {
	if f.plain != nil {
		f.plain(lo, hi)
	} else {
		f.with(c, lo, hi)
	}
}

// ranges is Parallel with ranges of size indexes, of which the last may be shorter, on at most
// the given number of threads. The ranges start in order, and f is called with c.
func (c *call) ranges(n, size, threads int, f func(c *call, lo, hi int)) error {
	return c.divide(n, size, threads, body{with: f})
}

// inRooms is ranges for a function that needs memory of some bytes for each range, with undefined contents.
func (c *call) inRooms(n, size, threads, bytes int, f func(lo, hi int, room block)) error {
	var failed atomic.Pointer[error]
	err := c.ranges(n, size, threads, func(_ *call, lo, hi int) {
		if failed.Load() != nil {
			return
		}
		room, err := c.device.scratch.take(int64(bytes))
		if err != nil {
			failed.Store(&err)
			return
		}
		defer c.device.scratch.give(room)
		f(lo, hi, room)
	})
	if e := failed.Load(); e != nil {
		return *e
	}
	return err
}

func (c *call) divide(n, size, threads int, f body) error {
	if threads = min(threads, (n+size-1)/size); threads == 1 {
		return c.serial(n, size, f)
	}
	s := splits.Get().(*split)
	s.call, s.n, s.size, s.f, s.most = c, n, size, f, threads-1
	s.together()
	if p := s.failed.Load(); p != nil {
		panic(p)
	}
	s.call, s.f = nil, body{}
	s.next.Store(0)
	splits.Put(s)
	return c.ctx.Err()
}

// together does the work on this goroutine and its helpers, and returns when all have ended.
func (s *split) together() {
	w := &s.call.device.workers
	w.offer(&s.share)
	defer w.settle(&s.share) // deferred, so that helpers have ended also if f ends the goroutine
	for s.work() {
		w.yield()
	}
}

func (c *call) serial(n, size int, f body) error {
	for lo := 0; lo < n; lo += size {
		if err := c.ctx.Err(); err != nil {
			return err
		}
		f.run(c, lo, min(lo+size, n))
		c.device.workers.yield()
	}
	return nil
}

// split is one call of Parallel. Later calls reuse it, unless it failed.
type split struct {
	share
	call    *call
	n, size int
	f       body
	next    atomic.Int64
	failed  atomic.Pointer[panicked]
}

var splits = sync.Pool{New: func() any {
	s := new(split)
	s.help = s.helped
	return s
}}

// helped is work on a goroutine other than that of the launch.
func (s *split) helped() bool {
	debug.SetPanicOnFault(true) // as in runGo; the setting ends with the goroutine
	return s.work()
}

// work calls f until no range is left, or until another launch waits for a place; then it
// returns true.
func (s *split) work() (more bool) {
	whole := false
	defer func() {
		switch v := recover().(type) {
		case nil:
			if !whole { // runtime.Goexit: the rest of the work is missing
				s.failed.CompareAndSwap(nil, &panicked{errGoexit, ""})
			}
		case *panicked: // from a Parallel within
			s.failed.CompareAndSwap(nil, v)
		default:
			s.failed.CompareAndSwap(nil, &panicked{v, panicSite()})
		}
	}()
	for s.failed.Load() == nil {
		select {
		case <-s.call.ctx.Done():
			whole = true
			return false
		default:
		}
		lo := int(s.next.Add(1)-1) * s.size
		if lo >= s.n {
			break
		}
		s.f.run(s.call, lo, min(lo+s.size, s.n))
		if atomic.LoadInt32(&s.call.device.workers.crowded) > 0 {
			whole = true
			return true
		}
	}
	whole = true
	return false
}

// await waits until counter has reached n. It returns false if counter will not reach n, because a part
// of the work has failed or the launch is to end. Running threads do the work that it waits
// for, so it polls, then yields to other goroutines, and sleeps only if the work takes
// so long that its thread seems to have been stopped.
func (c *call) await(counter *atomic.Int32, n int, failed *atomic.Bool) bool {
	for turn := 0; int(counter.Load()) < n; turn++ {
		switch {
		case failed.Load() || c.ctx.Err() != nil:
			return false
		case turn > c.Choose(yieldTurns):
			time.Sleep(time.Duration(c.Choose(sleepMicros)) * time.Microsecond)
		case turn > c.Choose(spinTurns):
			goruntime.Gosched()
		}
	}
	return true
}
