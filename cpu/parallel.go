package cpu

// Spreading the work of one Go kernel over threads.

import (
	goruntime "runtime"
	"runtime/debug"
	"sync/atomic"
	"time"
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
	// With several ranges per thread, the others take over ranges of a thread that is slow.
	return c.ranges(n, max(grain, 1, (n+4*threads-1)/(4*threads)), threads, f)
}

// ranges is Parallel with ranges of size indexes, of which the last may be shorter, on at most
// the given number of threads. The ranges start in order.
func (c *call) ranges(n, size, threads int, f func(lo, hi int)) error {
	if threads = min(threads, (n+size-1)/size); threads == 1 {
		return c.serial(n, size, f)
	}
	w := &c.device.workers
	s := &split{n: n, size: size, f: f, done: c.ctx.Done(), workers: w}
	s.most, s.help = threads-1, s.assist
	w.offer(&s.share)
	defer w.settle(&s.share) // deferred, so that helpers have ended also if f ends the goroutine
	for s.work() {
		w.yield()
	}
	w.settle(&s.share)
	if p := s.failed.Load(); p != nil {
		panic(p)
	}
	return c.ctx.Err()
}

func (c *call) serial(n, size int, f func(lo, hi int)) error {
	for lo := 0; lo < n; lo += size {
		if err := c.ctx.Err(); err != nil {
			return err
		}
		f(lo, min(lo+size, n))
		c.device.workers.yield()
	}
	return nil
}

// split is one call of Parallel.
type split struct {
	share
	workers *workers
	n, size int
	f       func(lo, hi int)
	next    atomic.Int64
	done    <-chan struct{}
	failed  atomic.Pointer[panicked]
}

// assist is work on a goroutine other than that of the launch.
func (s *split) assist() bool {
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
		case <-s.done:
			whole = true
			return false
		default:
		}
		lo := int(s.next.Add(1)-1) * s.size
		if lo >= s.n {
			break
		}
		s.f(lo, min(lo+s.size, s.n))
		if atomic.LoadInt32(&s.workers.crowded) > 0 {
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
		case turn > 2000:
			time.Sleep(20 * time.Microsecond)
		case turn > 50:
			goruntime.Gosched()
		}
	}
	return true
}
