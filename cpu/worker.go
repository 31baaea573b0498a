package cpu

// The operations of a stream, the goroutine that runs them, and the notification of goroutines that
// wait for them.

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/concord-compute/concord/runtime/driver"
)

type opKind uint8

const (
	opCopy opKind = iota
	opFill
	opLaunch
	opRecord
	opWait
	opTape
)

// op is one queued operation.
type op struct {
	kind     opKind
	size     uint8 // bytes of the pattern
	pattern  [8]byte
	dst, src []byte
	stage    *[]byte // the memory of src, which goes back to the pool
	launch   *launch
	event    *event
	at       point // that is recorded, or waited for
	tape     *tape
	timed    *timed // what the work is part of, if its times are wanted
	began    int64  // when it began, of a timed one
}

// heavy reports whether o needs a place among the device's workers.
func (o *op) heavy(w *workers) bool {
	return o.kind == opLaunch || o.kind == opTape || len(o.dst) > w.inlineBytes()
}

// runHeld runs o, with a place if it needs one.
func (o *op) runHeld(w *workers) error {
	if o.kind == opTape {
		o.tape.turn.Lock()
		defer o.tape.turn.Unlock()
	}
	if o.heavy(w) {
		w.enter()
		defer w.leave() // deferred, because a Go kernel may end the goroutine
	}
	if o.timed != nil {
		o.began = driver.Now()
	}
	if o.kind == opTape {
		return o.tape.run(w, o.timed)
	}
	return o.run()
}

// run performs the operation.
func (o *op) run() error {
	switch o.kind {
	case opCopy:
		copy(o.dst, o.src)
	case opFill:
		fill(o.dst, o.pattern[:o.size])
	case opLaunch:
		return o.launch.execute()
	case opRecord:
		o.event.stamp(o.at)
	case opWait:
		d := o.at.stream.device
		if err := o.at.reach(d.ctx); err != nil {
			return &driver.OpError{Backend: "cpu", Device: d.id, Op: "wait",
				Err: fmt.Errorf("the event was not reached: %w", err)}
		}
	}
	return nil
}

// drop releases the launch, event or memory that o refers to.
func (o *op) drop() {
	if o.launch != nil {
		o.launch.done()
	}
	if o.stage != nil {
		stages.Put(o.stage)
	}
	if o.tape != nil {
		o.tape.release()
	}
	*o = op{}
}

// fill repeats pattern over dst, by doubling the filled part.
func fill(dst, pattern []byte) {
	for n := copy(dst, pattern); n > 0 && n < len(dst); n *= 2 {
		copy(dst[n:], dst[:n])
	}
}

var stages = sync.Pool{New: func() any { return new([]byte) }}

func takeStage(n int) *[]byte {
	b := stages.Get().(*[]byte)
	if cap(*b) < n {
		*b = make([]byte, n)
	}
	*b = (*b)[:n]
	return b
}

// deep reports whether the operation needs more stack than a new goroutine has: every launch that is not of a Go
// function does.
func (o *op) deep() bool {
	return o.tape != nil || o.launch != nil && o.launch.kernel.info.Implementation != "go"
}

// growStack makes a new goroutine's stack large enough for most launches. While little is on it, that takes a fraction
// of what it takes in the middle of a launch, since a stack is copied when it grows.
//
//go:noinline
func growStack(i int) byte {
	var room [6 << 10]byte
	return room[i]
}

// work runs queued operations and returns when the queue is empty.
func (s *stream) work() {
	grown := false
	s.mu.Lock()
	for len(s.pending) > 0 && s.failure.Load() == nil {
		batch := s.pending
		s.pending, s.spare = s.spare, nil
		s.mu.Unlock()
		if last := &batch[len(batch)-1]; !grown && last.deep() {
			grown = true
			growStack(0)
		}
		s.runBatch(batch)
		s.mu.Lock()
		if cap(batch) <= 1024 { // the memory of a long queue is not kept
			s.spare = batch[:0]
		}
	}
	s.working = false
	s.mu.Unlock()
}

func (s *stream) runBatch(batch []op) {
	seq := s.done.Load()
	i := 0
	whole := false
	defer func() {
		if !whole && (batch[i].launch != nil || batch[i].tape != nil) {
			// A Go kernel called runtime.Goexit, and this goroutine cannot continue.
			s.fail(batch[i].failed(fmt.Errorf("%w: %w", driver.ErrLaunch, errGoexit)), seq+1)
			dropAll(batch[i:])
			s.finish()
		}
	}()
	for ; i < len(batch); i++ {
		if err := batch[i].runHeld(&s.device.workers); err != nil {
			s.fail(err, seq+1)
			dropAll(batch[i:])
			s.finish()
			break
		}
		if t := batch[i].timed; t != nil {
			s.passed(t, batch[i].began)
		}
		batch[i].drop()
		seq++
		s.reach(seq)
	}
	whole = true
}

// failed returns an error that names the launch.
func (o *op) failed(err error) error {
	if o.launch != nil {
		return o.launch.failed("", err)
	}
	d := o.tape.device
	return d.opError("launch graph", err)
}

func dropAll(ops []op) {
	for i := range ops {
		ops[i].drop()
	}
}

// fail makes err the result of the stream's operations from operation at on.
func (s *stream) fail(err error, at uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.failure.Store(&failure{err, at})
}

// finish ends the work of a failed stream: it drops the operations that are still queued and notifies
// the waiters.
func (s *stream) finish() {
	s.mu.Lock()
	dropAll(s.pending)
	s.pending, s.working = nil, false
	seq := s.queued
	s.mu.Unlock()
	s.reach(seq)
}

// reach records that operation seq and all before it are done, and notifies the waiters.
func (s *stream) reach(seq uint64) {
	s.done.Store(seq)
	if s.waiting.Load() == 0 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.waiters = slices.DeleteFunc(s.waiters, func(w *waiter) bool {
		if w.seq > seq {
			return false
		}
		w.ch <- struct{}{}
		return true
	})
	s.waiting.Store(int32(len(s.waiters)))
}

// await waits until operation seq is done or ctx is.
func (s *stream) await(ctx context.Context, seq uint64) error {
	if s.done.Load() >= seq {
		return nil
	}
	w := waiterPool.Get().(*waiter)
	w.seq = seq
	s.mu.Lock()
	s.waiters = append(s.waiters, w)
	s.waiting.Store(int32(len(s.waiters)))
	// The worker stores done and then loads waiting, and this function stores waiting and then loads
	// done, so that at least one of the two sees the other's store.
	if s.done.Load() >= seq {
		s.remove(w)
		s.mu.Unlock()
		waiterPool.Put(w)
		return nil
	}
	s.mu.Unlock()
	select {
	case <-w.ch:
		waiterPool.Put(w)
		return nil
	case <-ctx.Done():
	}
	s.mu.Lock()
	if !s.remove(w) {
		<-w.ch // the worker is notifying this waiter at the same time
	}
	s.mu.Unlock()
	waiterPool.Put(w)
	return ctx.Err()
}

// remove removes w from the list and reports whether it was in it. The caller holds
// mu.
func (s *stream) remove(w *waiter) bool {
	i := slices.Index(s.waiters, w)
	if i < 0 {
		return false
	}
	s.waiters = slices.Delete(s.waiters, i, i+1)
	s.waiting.Store(int32(len(s.waiters)))
	return true
}

// errorAt returns the failure of the stream if operation seq or one before it failed.
func (s *stream) errorAt(seq uint64) error {
	if f := s.failure.Load(); f != nil && f.at <= seq {
		return f.err
	}
	return nil
}
