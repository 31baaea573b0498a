package driver

// Libraries of collectives: what a vendor has for exchanging data between its devices.

import (
	"context"
	"fmt"
)

// Communicators is implemented by devices that can exchange data with others of their vendor by its library of
// collectives, of which each device is a rank, in one process or in several.
type Communicators interface {
	// HasCommunicators reports whether there is such a library for the device's backend at all. CommunicatorID says
	// whether it is installed.
	HasCommunicators() bool
	// CommunicatorID makes the identity of a new communicator, for all of its ranks: opaque bytes that also another
	// process can be given. Without the library it is ErrUnsupported.
	CommunicatorID() ([]byte, error)
	// NewCommunicator makes the device a rank of the communicator. Every rank calls it, each with a device of its own,
	// and it returns once all have, or ctx is done. The device is none of the communicator's then if it fails.
	NewCommunicator(ctx context.Context, id []byte, rank, ranks int) (Communicator, error)
}

// Communicator is a rank of a communicator. Calls of Queue come one at a time; Err and Close may come during one.
type Communicator interface {
	// Queue queues this rank's part of a collective on a stream of the device, and returns once it is queued, or ctx is
	// done. All ranks queue the same collectives in the same order. The stream's later work waits until all ranks' parts
	// have run. All get the same bits; other runs do as far as the library says so. After an error the communicator
	// can only be closed.
	Queue(ctx context.Context, s Stream, c *Collective) error
	// Err returns why a collective under way will never be done, such as that another rank has failed, or nil. It calls
	// the library, and does not wait.
	Err() error
	// Close releases the communicator. Collectives under way are ended, their results undefined, and the library queues
	// no more of them once it has returned. It waits for the device, without end if work before them has none; other
	// calls meanwhile are ErrClosed, and another Close waits as well.
	Close() error
}

// CollectiveKind is what a collective does.
type CollectiveKind uint8

// The kinds.
const (
	AllReduce CollectiveKind = iota
	Reduce
	Broadcast
	AllGather
	ReduceScatter
	SendReceive // with one rank or two, at the same time
)

var collectiveNames = [...]string{"all-reduce", "reduce", "broadcast", "all-gather", "reduce-scatter",
	"send and receive"}

// String returns the kind's name, such as "all-reduce".
func (k CollectiveKind) String() string {
	if int(k) < len(collectiveNames) {
		return collectiveNames[k]
	}
	return fmt.Sprintf("CollectiveKind(%d)", uint8(k))
}

// Reduction is how the elements of several ranks become one.
type Reduction uint8

// The reductions. Integers wrap. Sums and products of F16 and BF16 may be rounded several times, and ReduceMax and
// ReduceMin may leave NaN out.
const (
	ReduceSum Reduction = iota
	ReduceProduct
	ReduceMax
	ReduceMin
)

// Collective is one rank's part of a collective. Dst and Src are memory of the device, either disjoint or in place: the
// same, or the smaller one at the rank's part of the larger one. Sizes are those of AllReduce, Reduce and Broadcast
// equal, of AllGather and ReduceScatter those of one rank and of all; those of SendReceive are those of the other
// ranks. Dst is not used by ranks other than the root of Reduce, and Src by those other than that of Broadcast.
type Collective struct {
	Kind     CollectiveKind
	Op       Reduction // of those that reduce
	Type     Type      // any but I16, U16 and Bool; others are ErrUnsupported
	Root     int       // of Reduce and Broadcast
	To, From int       // of SendReceive; -1 is none
	Dst, Src Memory
}
