package cpu

// The threads of a device, which all its work shares: launches of compiled programs, native
// kernels and large copies, of all streams. A goroutine holds a place while it
// works, and there are as many places as the device has threads. A place that becomes
// free goes to the launch that has waited longest for its first place, or, if none waits, to a running
// launch that can use another one. A helper without work gives its place back and polls for other work
// for a short time before it ends, because waking a thread takes longer than many launches.

import (
	goruntime "runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/concord-compute/concord/runtime/choice"
)

// lingers is how long a helper polls for work before it ends, and how long a launch polls for the end of its
// helpers before it sleeps. As long as waking a thread takes, polling at most doubles what the pause costs, while
// launches that follow each other need no waking.
func (w *workers) lingers() time.Duration {
	return time.Duration(w.choose(lingerMicros)) * time.Microsecond
}

// workers distributes the places of one device.
type workers struct {
	crowded int32 // launches that wait for a place; read without mu between chunks, by C too
	chosen  atomic.Pointer[choice.Set]

	mu      sync.Mutex
	limit   int
	running int
	waiting []chan struct{}
	open    []*share // work that can use more places; first the one that got a place longest ago

	idle   int          // helpers that poll for work, without a place
	handed []*share     // work with a place, which these are to take; no more than there are helpers that poll
	calls  atomic.Int32 // len(handed), for polling
}

// share is work that several goroutines can do together. The launch that owns it holds one
// place; the other goroutines are its helpers. It can be offered again once it is settled.
type share struct {
	workers *workers
	start   func()      // assist as a func value, so that starting a helper allocates nothing
	most    int         // largest number of helpers at a time
	help    func() bool // works until nothing is left (false) or until a launch waits for a place (true)
	helpers int
	open    bool
	inside  atomic.Int32 // helpers that run, for polling
	out     sync.WaitGroup
}

var turns = sync.Pool{New: func() any { return make(chan struct{}, 1) }}

// enter waits for a place.
func (w *workers) enter() {
	w.mu.Lock()
	if w.running < w.limit {
		w.running++
		w.mu.Unlock()
		return
	}
	turn := turns.Get().(chan struct{})
	w.waiting = append(w.waiting, turn)
	atomic.AddInt32(&w.crowded, 1)
	w.mu.Unlock()
	<-turn
	turns.Put(turn)
}

// leave gives the caller's place back.
func (w *workers) leave() {
	w.mu.Lock()
	w.pass()
	w.mu.Unlock()
}

// yield gives the caller's place to the launch that has waited longest, if one waits, and waits for
// another place behind all that wait.
func (w *workers) yield() {
	if atomic.LoadInt32(&w.crowded) == 0 {
		return
	}
	w.mu.Lock()
	if len(w.waiting) == 0 {
		w.mu.Unlock()
		return
	}
	turn := turns.Get().(chan struct{})
	w.waiting = append(w.waiting, turn)
	atomic.AddInt32(&w.crowded, 1)
	w.pass()
	w.mu.Unlock()
	<-turn
	turns.Put(turn)
}

// pass gives a place to a waiting launch, or makes it free. The caller holds mu.
func (w *workers) pass() {
	if len(w.waiting) > 0 {
		turn := w.waiting[0]
		w.waiting = append(w.waiting[:0], w.waiting[1:]...)
		atomic.AddInt32(&w.crowded, -1)
		turn <- struct{}{}
		return
	}
	w.running--
	w.assign()
}

// assign gives free places to work that can use them. The caller holds mu.
func (w *workers) assign() {
	for w.running < w.limit {
		var needy *share
		at := -1
		for i, s := range w.open {
			if s.helpers < s.most && (needy == nil || s.helpers < needy.helpers) {
				needy, at = s, i
			}
		}
		if needy == nil {
			return
		}
		w.open = append(append(w.open[:at], w.open[at+1:]...), needy)
		w.running++
		needy.helpers++
		needy.out.Add(1)
		if len(w.handed) < w.idle {
			w.handed = append(w.handed, needy)
			w.calls.Store(int32(len(w.handed)))
		} else {
			go needy.start()
		}
	}
}

// assist is the goroutine of a helper, which works on s first.
func (s *share) assist() {
	for w := s.workers; s != nil; s = w.linger() {
		s.assistOnce()
	}
}

// assistOnce is the work of one helper on s. help recovers the panics of kernels, but a kernel may end the
// goroutine by runtime.Goexit. If it does not, the goroutine counts as idle afterwards.
func (s *share) assistOnce() {
	w, more, whole := s.workers, false, false
	s.inside.Add(1)
	defer func() {
		w.mu.Lock()
		s.helpers--
		if !more {
			w.drop(s)
		}
		if whole {
			w.idle++
		}
		w.pass()
		w.mu.Unlock()
		s.out.Done()
		s.inside.Add(-1) // after Done, so that a launch that polls need not sleep until Done
	}()
	more = s.help()
	whole = true
}

// linger polls for work that has a place for the caller, which counts as idle. It returns nil if there was none
// for some time.
func (w *workers) linger() *share {
	polls := w.choose(pollTurns)
	for start, most := time.Now(), w.lingers(); ; goruntime.Gosched() {
		over := time.Since(start) > most
		if !over && !becomes(&w.calls, false, polls) {
			continue
		}
		w.mu.Lock()
		var s *share
		if len(w.handed) > 0 {
			s = w.handed[0]
			w.unhand(0)
		}
		if s != nil || over {
			w.idle--
			w.mu.Unlock()
			return s
		}
		w.mu.Unlock()
	}
}

// becomes polls n some times, and reports whether it has become zero, or not zero.
func becomes(n *atomic.Int32, zero bool, polls int) bool {
	for range polls {
		if (n.Load() == 0) == zero {
			return true
		}
	}
	return false
}

// unhand removes an entry of handed. The caller holds mu.
func (w *workers) unhand(i int) {
	w.handed = slices.Delete(w.handed, i, i+1)
	w.calls.Store(int32(len(w.handed)))
}

// offer lets helpers work on s, on which the caller works itself.
func (w *workers) offer(s *share) {
	if s.workers = w; s.start == nil {
		s.start = s.assist
	}
	w.mu.Lock()
	s.open = true
	w.open = append(w.open, s)
	w.assign()
	w.mu.Unlock()
}

// settle ends the offer of s and returns when no helper works on it any more.
func (w *workers) settle(s *share) {
	w.mu.Lock()
	w.drop(s)
	for i := len(w.handed) - 1; i >= 0; i-- {
		if w.handed[i] == s { // no helper has taken it yet
			w.unhand(i)
			s.helpers--
			s.out.Done()
			w.pass()
		}
	}
	w.mu.Unlock()
	if s.inside.Load() > 0 {
		polls, most := w.choose(pollTurns), w.lingers()
		for start := time.Now(); time.Since(start) < most && !becomes(&s.inside, true, polls); goruntime.Gosched() {
		}
	}
	s.out.Wait()
}

// drop removes s from the list. The caller holds mu.
func (w *workers) drop(s *share) {
	if !s.open {
		return
	}
	s.open = false
	for i, o := range w.open {
		if o == s {
			w.open = append(w.open[:i], w.open[i+1:]...)
			return
		}
	}
}
