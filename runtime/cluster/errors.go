package cluster

// The errors of a group.

import (
	"errors"
	"fmt"
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
