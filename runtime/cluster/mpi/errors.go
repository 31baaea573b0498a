package mpi

import (
	"fmt"

	"github.com/concord-compute/concord/runtime"
	"github.com/concord-compute/concord/runtime/cluster"
)

// errLost is what has happened to a process of which nothing is heard.
var errLost = fmt.Errorf("its process has ended or cannot be reached: %w", runtime.ErrDeviceLost)

// ending is why a job's exchanges fail.
type ending struct {
	err  *cluster.MemberError
	here bool // found by this process, which has to tell the others
}

// found returns the ending for what this process has found out about a rank.
func (j *Job) found(rank int, err error) *ending {
	return &ending{&cluster.MemberError{Rank: rank, Err: fmt.Errorf("on %s: %w", j.hosts[rank], err)}, true}
}

// fail ends the job, unless it has ended before, and returns the error with which it has ended.
func (j *Job) fail(e *ending) *cluster.MemberError {
	if j.ended.CompareAndSwap(nil, e) {
		j.watch.wake()
	}
	return j.ended.Load().err
}
