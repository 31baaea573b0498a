package cluster

// What a group needs of processes that reach each other.

import "context"

// Link reaches the other members of a job in which each member is a process, for [Join]. Every member has one. A group
// makes its calls one at a time, all members in the same order, and Close comes last.
type Link interface {
	// Exchange sends out to the member with the rank to, and at the same time receives exactly len(in) bytes from the
	// member from. A rank of -1 is none; then its bytes are none as well. Messages between two members arrive in the
	// order in which they were sent. It blocks until out may be changed and in is filled, or ctx is done; out and in
	// are not used after it returns. Neither need be memory of Go's heap, and both may be empty: then only the calls
	// of the members meet.
	//
	// An error names the peer: it is a [*MemberError] where one member is to blame. After an error the group makes no
	// further exchange.
	Exchange(ctx context.Context, to int, out []byte, from int, in []byte) error
	// Close ends the link. A member that has called it is missing for the others.
	Close() error
}

// Watcher is implemented by links that find out without an Exchange that a member has failed. Only over such links is
// the library of the devices' vendor used (see [Group.Library]), in which members wait for each other without messages.
type Watcher interface {
	// Err returns why the next Exchange will fail, a [*MemberError], or nil. It returns at once, and may be called
	// from any goroutine, also during an Exchange.
	Err() error
}

// Breaker is implemented by links that can tell the other members of a failure beside the messages of Exchange.
type Breaker interface {
	// Break makes the present and the next Exchange of all other members return the error, as far as they can be
	// reached, and returns soon. A link without it leaves the others to find, by their contexts, that this member does
	// not answer. In either case a member that does not answer, and of which the link does not say that it has ended,
	// is found by time alone: then one may be named that only waits for another one.
	Break(err *MemberError)
}
