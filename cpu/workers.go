package cpu

// The threads of a device, which all its work shares: launches of compiled programs, native
// kernels and large copies, of all streams. A goroutine holds a place while it
// works, and there are as many places as the device has threads. A place that becomes
// free goes to the launch that has waited longest for its first place, or, if none waits, to a running
// launch that can use another one. No goroutine spins or idles: a helper ends when there is no work.

import (
	"sync"
	"sync/atomic"
)

// workers distributes the places of one device.
type workers struct {
	crowded int32 // launches that wait for a place; read without mu between chunks, by C too

	mu      sync.Mutex
	limit   int
	running int
	waiting []chan struct{}
	open    []*share // work that can use more places; first the one that got a place longest ago
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
		go needy.start()
	}
}

// assist is the goroutine of a helper. help recovers the panics of kernels, but a kernel may end the
// goroutine by runtime.Goexit.
func (s *share) assist() {
	defer s.out.Done()
	w, more := s.workers, false
	defer func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		s.helpers--
		if !more {
			w.drop(s)
		}
		w.pass()
	}()
	more = s.help()
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
	w.mu.Unlock()
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
