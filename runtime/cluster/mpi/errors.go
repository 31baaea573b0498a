package mpi

import (
	"context"
	"errors"
	"fmt"

	"github.com/concord-compute/concord/runtime"
	"github.com/concord-compute/concord/runtime/cluster"
	"github.com/concord-compute/concord/runtime/driver"
)

// errLost is what has happened to a process of which nothing is heard.
var errLost = fmt.Errorf("its process has ended or cannot be reached: %w", runtime.ErrDeviceLost)

// kinds are the errors that keep their kind between processes, which tell each other the index. The first stands for
// all others.
var kinds = []error{nil, runtime.ErrDeviceLost, driver.ErrTimeout, driver.ErrOutOfMemory,
	driver.ErrTooLarge, driver.ErrBudget, driver.ErrDimension, driver.ErrUnsupported, driver.ErrCompile, driver.ErrLaunch,
	driver.ErrClosed, driver.ErrNumerical, driver.ErrInvalidArgument, context.Canceled, context.DeadlineExceeded}

// kindOf returns the index of an error's kind.
func kindOf(err error) int32 {
	for i, kind := range kinds {
		if errors.Is(err, kind) {
			return int32(i)
		}
	}
	return 0
}

// remoteError is an error that another process has found.
type remoteError struct {
	text string
	kind error
}

func (e *remoteError) Error() string { return e.text }
func (e *remoteError) Unwrap() error { return e.kind }

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
