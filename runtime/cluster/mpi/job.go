package mpi

// A job: its start and its end.

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/concord-compute/concord/internal/blocking"
	"github.com/concord-compute/concord/runtime"
	"github.com/concord-compute/concord/runtime/cluster"
	"github.com/concord-compute/concord/runtime/config"
)

// Options are the settings of a job. All processes of a job need the same. The zero value is the default, and the
// functions [Group] and [Init] use it.
type Options struct {
	// Library is the path or the name of the MPI library. "" means that of CONCORD_MPI_LIBRARY, or without it the
	// launcher's, and the usual names.
	Library string
	// Timeout is the time within which all processes have found that one of them has ended or cannot be reached: 200 ms
	// or more, the same on all. 0 means 10 s.
	Timeout time.Duration
	// Cluster has the settings of the group. The zero value is theirs. Its Timeout is how long a collective waits for a
	// process that lives and does not come.
	Cluster cluster.Options
}

const (
	standardTimeout = 10 * time.Second       // of jobs that do not choose one
	leastTimeout    = 200 * time.Millisecond // a busy machine is late by some tens of milliseconds
)

// Job is this process's part of a job of several processes: a [cluster.Link] to the others, and a [cluster.Breaker].
// Its methods may be called from any goroutine.
type Job struct {
	lib        *library
	rank, size int
	hosts      []string
	timeout    time.Duration

	mu   sync.Mutex // held during calls of the library
	mem  *shared
	news news
	// quiet is set, under mu, when the library must not be called any more.
	quiet bool

	ended  atomic.Pointer[ending]
	closed atomic.Bool
	once   sync.Once // closes
	watch  watch

	exchanging sync.Mutex // held by the exchange that runs
}

// shared is memory of C that the library knows while requests are pending.
type shared struct {
	pair          pair
	send, receive uint64 // requests
	data, control uint64 // communicators
	status        [statusSize]byte
	own           card
}

// card is what processes tell each other when a job begins.
type card struct {
	timeout int64 // nanoseconds
	host    [256]byte
}

// pair has two requests that are tested together, and what the library says about them.
type pair struct {
	request [2]uint64 // addresses, 0: none
	flag    [2]int32
	code    [2]int32
	status  [2][statusSize]byte
}

const statusSize = 64 // bytes, more than any library's MPI_Status

// started is set while an Init runs, and from then on when it has found a library: MPI cannot be started twice in a
// process.
var started atomic.Bool

// Group makes the processes of the job one group, in which dev is the device of this process's member. All processes
// of the job have to call it, once, instead of [Init]. Closing the group closes the job; the caller closes the
// device after the group. Config.MPILibrary of the device's session names the library, if it is set.
func Group(ctx context.Context, dev *runtime.Device) (*cluster.Group, error) {
	return Options{}.Group(ctx, dev)
}

// Group is the function Group with options.
func (o Options) Group(ctx context.Context, dev *runtime.Device) (*cluster.Group, error) {
	if dev != nil && o.Library == "" {
		o.Library = dev.Session().Config().MPILibrary
	}
	j, err := o.begin(ctx)
	if err != nil {
		return nil, err
	}
	return o.Cluster.Join(ctx, dev, j.rank, j.size, j)
}

// Init starts MPI and joins the job that the process belongs to; a process without a launcher is a job of one. All
// processes of the job have to call it, once. The job is closed with [Job.Close]. Without a library, with one that the
// launcher does not know, and where another part of the program has started MPI, the error is
// [runtime.ErrUnsupported]; while another Init runs, or after one that has found a library, it is
// [runtime.ErrInvalidArgument]. MPI itself does not stop waiting when ctx is done: Init returns, and the process cannot
// join a job any more. CONCORD_MPI_LIBRARY is read from the environment.
func Init(ctx context.Context) (*Job, error) { return Options{}.Init(ctx) }

// Init is the function Init with options.
func (o Options) Init(ctx context.Context) (*Job, error) {
	if o.Library == "" {
		cfg, err := config.ParseEnv(os.Environ())
		if err != nil {
			return nil, fmt.Errorf("mpi: %w", err)
		}
		o.Library = cfg.MPILibrary
	}
	return o.begin(ctx)
}

// begin is Init with a library that has been chosen.
func (o Options) begin(ctx context.Context) (*Job, error) {
	if o.Timeout == 0 {
		o.Timeout = standardTimeout
	}
	if o.Timeout < leastTimeout {
		return nil, fmt.Errorf("mpi: a timeout of %v is less than %v: %w", o.Timeout, leastTimeout,
			runtime.ErrInvalidArgument)
	}
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("mpi: %w", err)
	}
	if !started.CompareAndSwap(false, true) {
		return nil, fmt.Errorf("mpi: a process joins one job: %w", runtime.ErrInvalidArgument)
	}
	lib, err := load(o.Library)
	if err != nil {
		started.Store(false)
		return nil, err
	}
	j, err := blocking.Call(ctx, func() (*Job, error) { return join(lib, o) }, func(j *Job) { j.quiet = true })
	if err != nil {
		return nil, fmt.Errorf("mpi: %s: %w", lib.version, err)
	}
	j.watch.begin(j)
	return j, nil
}

// load opens a library. That changes handlers of signals, as starting it does: one Init at a time notes them.
func load(name string) (*library, error) {
	keepSignals()
	defer restoreSignals()
	return openLibrary(name)
}

// join starts the library and asks it for all that a job has to know.
func join(lib *library, o Options) (*Job, error) {
	j := &Job{lib: lib, timeout: o.Timeout, mem: (*shared)(zeroed(unsafe.Sizeof(shared{})))}
	if j.mem == nil {
		return nil, runtime.ErrOutOfMemory
	}
	keepSignals()
	defer restoreSignals()
	if err := lib.start(); err != nil {
		return nil, err
	}
	restoreSignals() // before waiting for the others
	if err := j.ask(); err != nil {
		return nil, err
	}
	if err := j.launched(os.Getenv); err != nil {
		return nil, err
	}
	return j, j.news.begin(j)
}

// start starts MPI. It refuses what another part of the program has started: that may call the library at any time,
// and end it.
func (l *library) start() error {
	_, n := l.answer.at()
	for _, q := range []struct {
		asks function
		says string
	}{{finalized, "another part of the program has ended MPI, which cannot be started again"},
		{initialized, "another part of the program has started MPI"}} {
		if err := l.call(q.asks, n); err != nil {
			return err
		}
		if l.answer.number[0] != 0 {
			return fmt.Errorf("%s: %w", q.says, runtime.ErrUnsupported)
		}
	}
	if err := l.call(initThread, 0, 0, serialized, n); err != nil {
		return fmt.Errorf("%w: %w", err, runtime.ErrUnsupported)
	}
	if level := l.answer.number[0]; level < serialized {
		return fmt.Errorf("threads at level %d, and %d is needed: %w", level, serialized, runtime.ErrUnsupported)
	}
	return nil
}

// ask makes a communicator for exchanges and one for news, and asks MPI for the rank and the number of processes.
func (j *Job) ask() error {
	l, m := j.lib, j.mem
	_, n := l.answer.at()
	for _, of := range []uint64{l.world, l.self} { // errors that belong to no communicator of ours end the process
		if err := l.call(commSetErrhandler, of, l.errorsReturn); err != nil {
			return err
		}
	}
	for _, to := range []*uint64{&m.data, &m.control} {
		if err := l.call(commDup, l.world, address(unsafe.Pointer(to))); err != nil {
			return err
		}
		if err := l.call(commSetErrhandler, *to, l.errorsReturn); err != nil {
			return err
		}
	}
	if err := l.call(commSize, m.data, n); err != nil {
		return err
	}
	j.size = int(l.answer.number[0])
	if err := l.call(commRank, m.data, n); err != nil {
		return err
	}
	j.rank = int(l.answer.number[0])
	text, _ := l.answer.at()
	if err := l.call(getProcessorName, text, n); err != nil {
		return err
	}
	copy(m.own.host[:len(m.own.host)-1], upToNUL(l.answer.text[:]))
	m.own.timeout = int64(j.timeout)
	const size = unsafe.Sizeof(m.own)
	memory := zeroed(uintptr(j.size) * size)
	if memory == nil {
		return runtime.ErrOutOfMemory
	}
	own := address(unsafe.Pointer(&m.own))
	if err := l.call(allgather, own, uint64(size), l.bytes, address(memory), uint64(size), l.bytes, m.data); err != nil {
		return err
	}
	all := unsafe.Slice((*card)(memory), j.size)
	for r := range all {
		j.hosts = append(j.hosts, upToNUL(all[r].host[:]))
	}
	for r := range all { // all processes find the same
		if all[r].timeout != all[0].timeout {
			return fmt.Errorf("the timeout of rank %d is %v, and %v of rank 0: %w", r, time.Duration(all[r].timeout),
				time.Duration(all[0].timeout), runtime.ErrInvalidArgument)
		}
	}
	return nil
}

// launched returns an error if the launcher has started more processes than the library knows of: each of them would
// compute alone. The library then belongs to another launcher.
func (j *Job) launched(getenv func(string) string) error {
	for _, s := range sizes {
		set := func(variable string) bool { return getenv(variable) != "" }
		if s.with != nil && !slices.ContainsFunc(s.with, set) {
			continue
		}
		if n, err := strconv.Atoi(getenv(s.variable)); err == nil && n > 1 && j.size == 1 {
			return fmt.Errorf("the launcher has started %d processes (%s), of which this library knows nothing; set "+
				"CONCORD_MPI_LIBRARY to the launcher's own: %w", n, s.variable, runtime.ErrUnsupported)
		}
	}
	return nil
}

// Rank returns the number of this process, from 0.
func (j *Job) Rank() int { return j.rank }

// Size returns the number of processes.
func (j *Job) Size() int { return j.size }

// Library returns the library's name and version, as "Open MPI v4.1.4".
func (j *Job) Library() string { return j.lib.version }

// Hosts returns the names of the machines that the processes run on, by rank, as the library has them. The caller must
// not change it.
func (j *Job) Hosts() []string { return j.hosts }

// Err returns the [*cluster.MemberError] that has ended the job, or nil.
func (j *Job) Err() error {
	if e := j.ended.Load(); e != nil {
		return e.err
	}
	return nil
}

// Close ends this process's part of the job. It waits for an exchange that runs, and for the other processes to close
// theirs, as long as all of them live; for the library's own end it waits only a moment. After an error nothing is
// waited for: the library is left as it is, since it would wait for processes that have ended. An exchange of another
// process with this one fails then. A second Close waits for the first, and returns nil.
func (j *Job) Close() (err error) {
	j.once.Do(func() { err = j.close() })
	return err
}

func (j *Job) close() error {
	j.closed.Store(true)
	j.exchanging.Lock()
	defer j.exchanging.Unlock()
	if !j.watch.end(j) {
		return nil
	}
	j.mu.Lock()
	j.quiet = true
	j.news.end(j)
	j.mu.Unlock()
	done := make(chan error, 1) // without the lock, since Abort must not wait for a call that hangs
	go func() { done <- j.lib.call(finalize) }()
	select {
	case err := <-done:
		if err != nil {
			return fmt.Errorf("mpi: %s: %w", j.lib.version, err)
		}
	case <-time.After(j.timeout / gracePart):
		// All have said goodbye, so that nobody needs it any more. MPICH 4.0 over TCP now and then hangs in it.
	}
	return nil
}

// Abort ends all processes of the job, this one too, with an exit status, through the library. If it returns, the
// library has refused, or its launcher has not ended this process yet. Once Close has
// ended the library, the error is [runtime.ErrClosed].
func (j *Job) Abort(status int) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.quiet {
		return errors.Join(j.Err(), runtime.ErrClosed)
	}
	return j.lib.call(abort, j.mem.data, number(status))
}
