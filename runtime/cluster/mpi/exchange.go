package mpi

// Exchanges: messages in pieces, tested until all pieces are through.

import (
	"context"
	"errors"
	"fmt"
	goruntime "runtime"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/concord-compute/concord/runtime"
	"github.com/concord-compute/concord/runtime/cluster"
	"github.com/concord-compute/concord/runtime/driver"
)

// pieceSize is the size of a message's pieces in bytes, the last one's excepted, since lengths in MPI are ints. A
// finished piece is progress.
const pieceSize = 4 << 20

// How an exchange waits: it tests eagerly, then gives way to others after each test, then sleeps between tests.
const (
	eager      = 200 // tests
	yielding   = 16  // tests of which each gives way
	sleeping   = 1   // test between sleeps, at which news are received, too
	awake      = 3 * time.Millisecond
	firstSleep = 20 * time.Microsecond
	longSleep  = time.Millisecond
)

// lane is one direction of an exchange.
type lane struct {
	f       function // isend or irecv
	peer    int
	rest    []byte  // what is not through
	request *uint64 // of the piece that the library has
	posted  bool    // it has one
}

// busy returns the address of the request, or 0.
func (l *lane) busy() uint64 {
	if !l.posted {
		return 0
	}
	return address(unsafe.Pointer(l.request))
}

// piece returns the first piece of the rest, which may be empty.
func (l *lane) piece() []byte { return l.rest[:min(pieceSize, len(l.rest))] }

// post gives the library the next piece.
func (l *lane) post(j *Job) error {
	p := l.piece()
	err := j.lib.call(l.f, address(unsafe.Pointer(unsafe.SliceData(p))), number(len(p)), j.lib.bytes, number(l.peer), tag,
		j.mem.data, address(unsafe.Pointer(l.request)))
	l.posted = err == nil
	if l.posted && l.f == isend {
		j.watch.passed[l.peer].sent++
	}
	return err
}

// through notes that the piece is through, as the code and the status say that the library has set, and posts the next.
func (l *lane) through(j *Job, code int32, status *[statusSize]byte) error {
	want := len(l.piece())
	l.rest, l.posted = l.rest[want:], false
	if err := j.lib.check(test, code); err != nil {
		return err
	}
	if l.f == irecv {
		j.watch.passed[l.peer].received++
		_, n := j.lib.answer.at()
		if err := j.lib.call(getCount, address(unsafe.Pointer(status)), j.lib.bytes, n); err != nil {
			return err
		}
		if got := int(j.lib.answer.number[0]); got != want {
			return fmt.Errorf("a message has %d bytes, and not %d: %w", got, want, runtime.ErrDimension)
		}
	}
	if len(l.rest) == 0 {
		return nil
	}
	return l.post(j)
}

var (
	_ cluster.Link    = (*Job)(nil)
	_ cluster.Breaker = (*Job)(nil)
	_ cluster.Watcher = (*Job)(nil)
)

// Break ends the job on all processes with an error, and returns at once. It does nothing if the job has ended before.
func (j *Job) Break(err *cluster.MemberError) { j.fail(&ending{err, true}) }

// Exchange sends out to process to, and at the same time receives exactly len(in) bytes from process from. A rank of
// -1 stands for none. Both processes have to give the same length; a message may be empty, and is waited for all the
// same. The slices may be memory of Go or of a device that the host can access; they must not overlap and must not be
// changed until Exchange returns. Exchanges of a job run one at a time.
//
// A process that lives is waited for until ctx is done. A failure, also of ctx, ends the job on all processes: the
// error is a [*cluster.MemberError], which names the process to blame. That is this one where ctx was cancelled, and
// where a deadline has passed the process for which the others wait.
func (j *Job) Exchange(ctx context.Context, to int, out []byte, from int, in []byte) error {
	for _, peer := range []int{to, from} {
		if peer < -1 || peer >= j.size {
			return fmt.Errorf("mpi: rank %d of %d: %w", peer, j.size, runtime.ErrInvalidArgument)
		}
	}
	j.exchanging.Lock()
	defer j.exchanging.Unlock()
	if j.closed.Load() {
		return fmt.Errorf("mpi: the job: %w", runtime.ErrClosed)
	}
	if err := j.Err(); err != nil {
		return err
	}
	// No other process knows of an exchange that has not begun.
	if err := ctx.Err(); err != nil {
		return j.fail(j.found(j.rank, err))
	}
	pins := new(goruntime.Pinner)
	for _, b := range [][]byte{out, in} {
		if len(b) > 0 {
			pins.Pin(unsafe.SliceData(b))
		}
	}
	defer j.watch.waitsFor(nobody)
	x := exchange{j: j, ctx: ctx}
	x.lanes[0] = lane{f: isend, peer: to, rest: out, request: &j.mem.send}
	x.lanes[1] = lane{f: irecv, peer: from, rest: in, request: &j.mem.receive}
	e := x.run()
	if e == nil {
		pins.Unpin()
		return nil
	}
	err := j.fail(e)
	if x.takeBack() {
		pins.Unpin()
	} else {
		kept.Store(&leftBehind{pins, out, in})
	}
	return err
}

// leftBehind is memory that the library may still have, and how it is pinned.
type leftBehind struct {
	pins    *goruntime.Pinner
	out, in []byte
}

// kept is what the exchange has left behind after which the library was never called again. A process has one job.
var kept atomic.Pointer[leftBehind]

// exchange is one that runs.
type exchange struct {
	j     *Job
	ctx   context.Context
	lanes [2]lane // sending and receiving
	asked int     // how often, since the last progress
}

// run exchanges all pieces. It returns why it could not.
func (x *exchange) run() *ending {
	j := x.j
	if e := x.begin(); e != nil {
		return x.newsOr(e)
	}
	var idle time.Time // since when there was no progress
	sleep := firstSleep
	for attempts, yield := eager, false; ; {
		moved, e := x.step(attempts, yield)
		if e != nil {
			return x.newsOr(e)
		}
		if !x.lanes[0].posted && !x.lanes[1].posted {
			// A process that knows of a failure may have given up the memory that it was sending from.
			return j.ended.Load()
		}
		if moved {
			idle, sleep, attempts, yield = time.Time{}, firstSleep, eager, false
			x.asked = 0
			continue
		}
		now := time.Now()
		if idle.IsZero() {
			idle = now
		}
		if e := x.stuck(now.Sub(idle)); e != nil {
			return e
		}
		attempts, yield = yielding, true
		if now.Sub(idle) > awake {
			attempts = sleeping
			time.Sleep(sleep)
			sleep = min(2*sleep, longSleep)
		}
	}
}

// begin posts the first pieces. What is received is posted first, so that what comes finds its place.
func (x *exchange) begin() *ending {
	x.j.mu.Lock()
	defer x.j.mu.Unlock()
	if x.j.quiet {
		return x.j.ended.Load()
	}
	for _, i := range []int{1, 0} {
		if x.lanes[i].peer < 0 {
			continue
		}
		if err := x.lanes[i].post(x.j); err != nil {
			return x.failed(i, err)
		}
	}
	return nil
}

// failed returns the ending for an error of the library at a message to or from a peer: unless it is a wrong length, or
// a mistake or a lack of memory here, the peer cannot be reached.
func (x *exchange) failed(lane int, err error) *ending {
	switch {
	case errors.Is(err, runtime.ErrOutOfMemory), errors.Is(err, runtime.ErrInvalidArgument):
		return x.j.found(x.j.rank, err)
	case !errors.Is(err, runtime.ErrDimension):
		err = fmt.Errorf("%w: %w", err, errLost)
	}
	return x.j.found(x.lanes[lane].peer, err)
}

// newsOr waits a beat for news of why the job has ended, and returns that, or e if none comes. A connection may be
// broken because that process has ended after another one's error; then the news name the other one.
func (x *exchange) newsOr(e *ending) *ending {
	j := x.j
	if !errors.Is(e.err, errLost) {
		return e
	}
	for until := time.Now().Add(j.beat()); ; time.Sleep(time.Millisecond) {
		j.mu.Lock()
		if !j.quiet {
			j.watch.receive(j)
		}
		over := j.quiet || time.Now().After(until)
		j.mu.Unlock()
		if known := j.ended.Load(); known != nil {
			return known
		}
		if over {
			return e
		}
	}
}

// step tests the pieces that the library has, and reports whether one is through.
func (x *exchange) step(attempts int, yield bool) (moved bool, e *ending) {
	j := x.j
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.quiet {
		return false, j.ended.Load()
	}
	p := &j.mem.pair
	for i := range x.lanes {
		p.request[i] = x.lanes[i].busy()
	}
	if !poll(j.lib.f[test], p, attempts, yield) {
		if attempts == sleeping {
			j.watch.receive(j)
		}
		return false, nil
	}
	for i := range x.lanes {
		if p.flag[i] == 0 && p.code[i] == 0 {
			continue
		}
		if err := x.lanes[i].through(j, p.code[i], &p.status[i]); err != nil && e == nil {
			e = x.failed(i, err)
		}
		moved = true
	}
	return moved, e
}

// stuck returns why an exchange without progress for some time ends now, or nil.
func (x *exchange) stuck(idle time.Duration) *ending {
	j := x.j
	if e := j.ended.Load(); e != nil {
		return e
	}
	ended := x.ctx.Err()
	if errors.Is(ended, context.Canceled) {
		return j.found(j.rank, ended)
	}
	l := &x.lanes[1]
	if !l.posted {
		l = &x.lanes[0]
	}
	j.watch.waitsFor(l.peer)
	switch {
	case ended != nil:
		return j.found(j.watch.culprit(l.peer), fmt.Errorf("no answer before the deadline: %w", driver.ErrTimeout))
	case l.peer == j.rank:
	case j.watch.gone[l.peer].Load() && idle > j.grace(l):
		return j.found(l.peer, fmt.Errorf("has left the job: %w", runtime.ErrClosed))
	case idle > time.Duration(x.asked+1)*j.beat():
		x.asked++
		j.watch.ask(j, l.peer)
	}
	return nil
}

// grace returns how long an exchange with a process that has left may make no progress. It said how many pieces it has
// sent: those may be on a slow connection.
func (j *Job) grace(l *lane) time.Duration {
	if p := &j.watch.passed[l.peer]; l.f == irecv && p.received != p.announced {
		return j.timeout
	}
	return j.timeout / gracePart
}

// takeBack makes the library forget the memory of an exchange that failed, as far as it can, and reports whether it
// has. Receiving can be cancelled. What is being sent gets a while to get through. If something is left, the library is
// never called again. Threads of its own and network cards may use the memory all the same.
func (x *exchange) takeBack() bool {
	j := x.j
	until := time.Now().Add(j.timeout / gracePart)
	for first := true; ; first = false {
		j.mu.Lock()
		left := false
		for i := range x.lanes {
			l := &x.lanes[i]
			if !l.posted {
				continue
			}
			if j.quiet {
				left = true
				continue
			}
			if first && l.f == irecv {
				_ = j.lib.call(cancel, l.busy())
			}
			_, flag := j.lib.answer.at()
			err := j.lib.call(test, l.busy(), flag, address(unsafe.Pointer(&j.mem.status)))
			l.posted = err == nil && j.lib.answer.number[0] == 0
			left = left || l.posted
		}
		over := !left || j.quiet || time.Now().After(until)
		j.quiet = j.quiet || over && left
		j.mu.Unlock()
		if over {
			return !left
		}
		time.Sleep(time.Millisecond)
	}
}
