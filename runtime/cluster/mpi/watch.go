package mpi

// Processes watch each other. Each sends a beat to the next one, and tells all others when the one before it is silent,
// when an exchange of its own has failed, and when it leaves. Nobody waits for such a message: they are short, and
// libraries send short messages without the receiver's help.

import (
	"errors"
	"fmt"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/concord-compute/concord/runtime"
	"github.com/concord-compute/concord/runtime/cluster"
)

// Parts of a job's timeout.
const (
	beatPart   = 20  // the time between beats
	gracePart  = 10  // what an exchange that has failed gets to take its messages back
	silentPart = 0.6 // after which a process is lost: the rest is for telling all, and for what they are doing
)

// leavingBeat is how often a process that closes its job looks for the others.
const leavingBeat = 2 * time.Millisecond

// beat returns the time between a process's beats.
func (j *Job) beat() time.Duration { return j.timeout / beatPart }

// subject is what a message is about.
type subject int32

const (
	beats   subject = iota
	leaves          // the sender closes its job, and has sent the receiver count pieces
	fails           // the rank, with an error of a kind, and its text
	asks            // for whom the receiver waits, on behalf of a rank, passed on at most count times
	answers         // the sender waits for nobody
)

// message is what processes tell each other.
type message struct {
	subject           subject
	from, rank, count int32
	text              [240]byte
}

// parcel is a message in memory of C.
type parcel struct {
	message
	request uint64
}

// tag is the tag of all messages. The communicators tell exchanges and news apart.
const tag = 1

// news are the messages of a job. All is used under the job's lock.
type news struct {
	in   *parcel  // the one that is received next
	out  []parcel // memory of C
	busy []bool   // which of out are being sent
}

// begin gets memory for as many messages as can be under way, and expects the first.
func (n *news) begin(j *Job) error {
	count := 4*j.size + 3
	p := zeroed(uintptr(count) * unsafe.Sizeof(parcel{}))
	if p == nil {
		return runtime.ErrOutOfMemory
	}
	all := unsafe.Slice((*parcel)(p), count)
	n.in, n.out, n.busy = &all[0], all[1:], make([]bool, count-1)
	return n.expect(j)
}

func (n *news) expect(j *Job) error { return n.pass(j, irecv, n.in, j.lib.anySource) }

// pass gives a parcel to the library.
func (n *news) pass(j *Job, f function, p *parcel, peer int) error {
	return j.lib.call(f, address(unsafe.Pointer(&p.message)), uint64(unsafe.Sizeof(p.message)), j.lib.bytes, number(peer),
		tag, j.mem.control, address(unsafe.Pointer(&p.request)))
}

// done reports whether a message has been sent or received.
func (n *news) done(j *Job, p *parcel) (bool, error) {
	_, flag := j.lib.answer.at()
	err := j.lib.call(test, address(unsafe.Pointer(&p.request)), flag, address(unsafe.Pointer(&j.mem.status)))
	return err == nil && j.lib.answer.number[0] != 0, err
}

// errFull is that of a message for which no place is free.
var errFull = errors.New("no place for a message")

// send sends a message, if one of the memory's places is free. Of what may be sent again at the next beat, some places
// are left free.
func (n *news) send(j *Job, to int, m message) error {
	last := len(n.out)
	if m.subject != leaves && m.subject != fails {
		last -= 2 * j.size
	}
	for i := range last {
		p := &n.out[i]
		if n.busy[i] {
			ok, err := n.done(j, p)
			if !ok || err != nil {
				continue
			}
		}
		m.from = int32(j.rank)
		p.message = m
		err := n.pass(j, isend, p, to)
		n.busy[i] = err == nil
		return err
	}
	return errFull
}

// sent reports whether nothing is being sent.
func (n *news) sent(j *Job) bool {
	for i := range n.out {
		if n.busy[i] {
			if ok, err := n.done(j, &n.out[i]); !ok && err == nil {
				return false
			}
			n.busy[i] = false
		}
	}
	return true
}

// end takes the receive back that waits for a message which does not come any more.
func (n *news) end(j *Job) {
	_ = j.lib.call(cancel, address(unsafe.Pointer(&n.in.request)))
	_, _ = n.done(j, n.in)
}

// nobody is a rank that no process has.
const nobody = -1

// tally is how many pieces of messages have passed between this process and a peer, modulo 2³². The peer announces
// how many it has sent before it is noted as gone.
type tally struct{ sent, received, announced uint32 }

// watch is the goroutine that sends and receives a job's news.
type watch struct {
	woken  chan struct{}
	leave  chan struct{}
	ended  chan struct{}
	gone   []atomic.Bool // who has left
	passed []tally       // by peer
	peer   atomic.Int32  // for which this process's exchange waits, or nobody
	idle   atomic.Int32  // who has answered that it waits for nobody, or nobody
	heard  time.Time     // of the process before this one
	looked time.Time

	refused bool // the last beat
}

func (w *watch) begin(j *Job) {
	w.woken, w.leave, w.ended = make(chan struct{}, 1), make(chan struct{}), make(chan struct{})
	w.gone, w.passed = make([]atomic.Bool, j.size), make([]tally, j.size)
	w.waitsFor(nobody)
	w.heard = time.Now()
	w.looked = w.heard
	go w.run(j)
}

// wake makes the goroutine tell the others at once.
func (w *watch) wake() {
	select {
	case w.woken <- struct{}{}:
	default:
	}
}

// end says goodbye and waits until all others have, or the job has failed. It reports whether all have.
func (w *watch) end(j *Job) bool {
	close(w.leave)
	<-w.ended
	return j.ended.Load() == nil
}

func (w *watch) run(j *Job) {
	defer close(w.ended)
	ticker := time.NewTicker(j.beat())
	defer ticker.Stop()
	leave := w.leave
	var farewell *message // for all
	told := make([]bool, j.size)
	var until time.Time // for telling of a failure
	for {
		select {
		case <-ticker.C:
		case <-w.woken:
		case <-leave:
			leave = nil // a closed channel is always ready
			ticker.Reset(leavingBeat)
		}
		j.mu.Lock()
		if j.quiet {
			j.mu.Unlock()
			return
		}
		w.receive(j)
		e := j.ended.Load()
		switch {
		case e != nil && until.IsZero():
			until = time.Now().Add(j.timeout / gracePart)
			ticker.Reset(leavingBeat)
			farewell, told = nil, make([]bool, j.size)
			if e.here {
				farewell = &message{subject: fails, rank: int32(e.err.Rank), count: int32(cluster.KindOf(e.err.Err))}
				copy(farewell.text[:len(farewell.text)-1], e.err.Err.Error())
			}
		case e == nil && leave == nil && farewell == nil:
			w.gone[j.rank].Store(true)
			farewell = &message{subject: leaves}
		case e == nil:
			w.look(j)
		}
		sent := (farewell == nil || w.tell(j, *farewell, told)) && j.news.sent(j)
		over := e != nil && (sent || time.Now().After(until)) || e == nil && farewell != nil && sent && w.allGone()
		j.mu.Unlock()
		if over {
			return
		}
	}
}

// tell sends a message to all others that were not told, and reports whether all are.
func (w *watch) tell(j *Job, m message, told []bool) bool {
	all := true
	for r := range told {
		if told[r] || r == j.rank {
			continue
		}
		if m.subject == leaves {
			m.count = int32(w.passed[r].sent)
		}
		told[r] = j.news.send(j, r, m) == nil
		all = all && told[r]
	}
	return all
}

// look sends a beat to the next process and judges the silence of the one before.
func (w *watch) look(j *Job) {
	now := time.Now()
	late := now.Sub(w.looked) > 4*j.beat() // this process was stopped, and cannot have heard anything
	if late {
		w.heard = now
	}
	if j.size == 1 || now.Sub(w.looked) < j.beat()/2 {
		return
	}
	w.looked = now
	next, before := (j.rank+1)%j.size, (j.rank+j.size-1)%j.size
	if !w.gone[j.rank].Load() { // what follows a goodbye is received by nobody
		err := j.news.send(j, next, message{})
		lost := err != nil && !errors.Is(err, errFull) && !w.gone[next].Load()
		if lost && w.refused { // at the second time, since news of another one's failure may be on their way
			j.fail(j.found(next, fmt.Errorf("%w: %w", err, errLost)))
			return
		}
		w.refused = lost
	}
	if !w.gone[before].Load() && now.Sub(w.heard) > time.Duration(silentPart*float64(j.timeout)) {
		j.fail(j.found(before, errLost))
	}
}

// receive takes all messages that have come.
func (w *watch) receive(j *Job) {
	for {
		ok, err := j.news.done(j, j.news.in)
		if !ok && err == nil {
			return
		}
		m := j.news.in.message
		if err == nil {
			err = j.news.expect(j)
			w.take(j, m)
		}
		if err != nil {
			j.fail(j.found(j.rank, err))
			return
		}
	}
}

// take notes what a message says. A damaged one says nothing.
func (w *watch) take(j *Job, m message) {
	from, rank := int(m.from), int(m.rank)
	if min(from, rank) < 0 || max(from, rank) >= j.size {
		return
	}
	if from == (j.rank+j.size-1)%j.size {
		w.heard = time.Now()
	}
	switch m.subject {
	case leaves:
		if !w.gone[from].Load() {
			w.passed[from].announced = uint32(m.count)
			w.gone[from].Store(true)
		}
	case fails:
		err := cluster.RemoteError(int(m.count), upToNUL(m.text[:]))
		j.fail(&ending{&cluster.MemberError{Rank: rank, Err: err}, false})
	case asks:
		switch peer := w.peer.Load(); {
		case peer == nobody:
			_ = j.news.send(j, rank, message{subject: answers})
		case m.count > 0 && int(peer) != j.rank:
			m.count--
			_ = j.news.send(j, int(peer), m)
		}
	case answers:
		w.idle.Store(m.from)
	}
}

// waitsFor notes for whom this process waits. As soon as that is another one, what is known of the chain is old.
func (w *watch) waitsFor(peer int) {
	if w.peer.Swap(int32(peer)) != int32(peer) {
		w.idle.Store(nobody)
	}
}

// ask asks a process for whom it waits. It asks that one in its turn, so that the one at the chain's end answers. There
// is none where processes wait for each other in a circle.
func (w *watch) ask(j *Job, rank int) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if !j.quiet {
		_ = j.news.send(j, rank, message{subject: asks, rank: int32(j.rank), count: int32(j.size)})
	}
}

// culprit returns the process for which all in the chain wait, or the peer where no such one is known.
func (w *watch) culprit(peer int) int {
	if last := w.idle.Load(); last != nobody {
		return int(last)
	}
	return peer
}

func (w *watch) allGone() bool {
	for r := range w.gone {
		if !w.gone[r].Load() {
			return false
		}
	}
	return true
}
