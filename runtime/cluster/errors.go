package cluster

// The errors of a group.

import (
	"context"
	"errors"
	"fmt"

	"github.com/concord-compute/concord/runtime/driver"
)

// ErrSync is that the members of a group are not in step: one of them failed, is missing, or called something else. It
// comes as a [*MemberError], which names the member.
var ErrSync = errors.New("cluster: members are not in step")

// MemberError is the error that all members of a group return when one of them fails, does not arrive in time, or calls
// something else than the others. It matches [ErrSync], and by Unwrap what the member's own error matches, such as
// runtime.ErrDeviceLost, or driver.ErrTimeout for a member that does not arrive.
type MemberError struct {
	Rank int   // of the member to blame
	Err  error // what happened to it

	refused bool // by all members, before anything moved
	pair    bool // by the two of a transfer only
	unsure  bool // the member has only found that a collective does not end, and its own work before it is done
}

// Error returns "cluster: member 2: device lost".
func (e *MemberError) Error() string { return fmt.Sprintf("cluster: member %d: %v", e.Rank, e.Err) }

// Unwrap returns the member's own error.
func (e *MemberError) Unwrap() error { return e.Err }

// Is reports whether the target is ErrSync.
func (e *MemberError) Is(target error) bool { return target == ErrSync }

// errLeft ends the calls that wait for other members when the group is closed.
var errLeft = errors.New("the group is being closed")

// blame returns err as an error of a member: err itself if it names one already.
func blame(rank int, err error) *MemberError {
	if named, ok := errors.AsType[*MemberError](err); ok {
		return named
	}
	return &MemberError{Rank: rank, Err: err}
}

// sentinels are the errors that keep their kind between processes, which tell each other the index. The first stands
// for all others.
var sentinels = []error{nil, driver.ErrDeviceLost, driver.ErrTimeout, driver.ErrOutOfMemory, driver.ErrTooLarge,
	driver.ErrBudget, driver.ErrDimension, driver.ErrUnsupported, driver.ErrCompile, driver.ErrLaunch,
	driver.ErrClosed, driver.ErrNumerical, driver.ErrInvalidArgument, context.Canceled, context.DeadlineExceeded}

// KindOf returns the number of an error's kind, below 256, for a [Link] that sends errors to other processes: they get
// it back with [RemoteError]. 0 stands for errors that match none of those that are kept.
func KindOf(err error) int {
	for i, kind := range sentinels[1:] {
		if errors.Is(err, kind) {
			return i + 1
		}
	}
	return 0
}

// RemoteError returns an error of another process: with its text, and the kind that [KindOf] has returned there. A
// number that no kind has is as 0.
func RemoteError(kind int, text string) error {
	if kind < 0 || kind >= len(sentinels) {
		kind = 0
	}
	return &remoteError{text, sentinels[kind]}
}

type remoteError struct {
	text string
	kind error // or nil
}

func (e *remoteError) Error() string { return e.text }
func (e *remoteError) Unwrap() error { return e.kind }
