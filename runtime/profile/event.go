package profile

// Events, and where they are kept.

import (
	"fmt"
	"slices"
	"sync"
	"time"
)

// Kind is what an event is of.
type Kind uint8

// The kinds. The first five are work of a device; the others happen on the host.
const (
	Launch   Kind = iota // a kernel
	Copy                 // a copy; Name says from where to where
	Fill                 // a fill
	Graph                // a recorded graph as a whole
	Node                 // an operation of a graph, whose time is part of the graph's; only some drivers tell of them
	Alloc                // an allocation that went to the driver
	Compile              // getting a program; Detail says from where: "compiled", "memory", "disk", "bundle", "native"
	Wait                 // the host waited for a device
	Fallback             // another device stands in; Detail says why
	Region               // a part of the program that the user named
	kinds
)

var kindNames = [kinds]string{"launch", "copy", "fill", "graph", "node", "alloc", "compile", "wait", "fallback",
	"region"}

// String returns the kind as a word.
func (k Kind) String() string {
	if k < kinds {
		return kindNames[k]
	}
	return fmt.Sprintf("Kind(%d)", uint8(k))
}

// OnDevice reports whether events of the kind are work of a device.
func (k Kind) OnDevice() bool { return k <= Node }

// Event is something that happened. Times are nanoseconds of one clock for all events that are looked
// at together; only their differences count.
type Event struct {
	Kind   Kind
	Name   string // of the kernel, the region, the program; what the summary groups by
	Device string // as Open names it; "" for the host alone
	Stream int64  // which stream of the device: any numbers that tell them apart; 0: none

	Queued     int64 // when it was handed over; 0: unknown
	Start, End int64
	// DeviceTime says that Start and End are the device's own times. Else they are the host's: of device work from
	// the call that queued it to the moment at which the host knew that it was done.
	DeviceTime bool

	Items, Group [3]int // of a launch
	// Flops and Bytes are the work: operations, and bytes read and written, each counted once. Both 0: unknown.
	Flops, Bytes float64
	// What the kernel of a launch needs, as driver.KernelInfo has it: registers and bytes beside them for each item, and
	// local memory for each group, without what the launch adds. 0: unknown, or none.
	Registers              int
	SpillBytes, LocalBytes int64

	Detail string // anything else worth reading
	Err    error  // why it failed
}

// Duration returns how long it took, and 0 where the times make no sense.
func (e *Event) Duration() time.Duration { return time.Duration(max(e.End-e.Start, 0)) }

// hasWork reports whether the amount of work is known.
func (e *Event) hasWork() bool { return counts(e.Flops) && counts(e.Bytes) && e.Flops+e.Bytes > 0 }

// Observer is told what happens. Observe is called on the goroutine where it happens, by many at a time:
// it has to be safe for concurrent use and must not block.
type Observer interface{ Observe(e Event) }

// DefaultEvents is the number of events that a Recording keeps if it is not told otherwise.
const DefaultEvents = 1 << 18

// Recording is an Observer that keeps the newest events, up to a number. The zero value is ready. It must
// not be copied after its first use, and is safe for concurrent use.
type Recording struct {
	Most int // events to keep, set before the first; 0 means DefaultEvents

	mu sync.Mutex
	// of perBlock events, but for the last: recording never copies what it has, however much that becomes
	blocks  [][]Event
	kept    int
	next    int // the place of the oldest, once there are Most
	dropped int64
}

const perBlock = 1024

var _ Observer = (*Recording)(nil)

// Observe keeps an event. Once there are Most, it takes the place of the oldest.
func (r *Recording) Observe(e Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	most := r.Most
	if most <= 0 {
		most = DefaultEvents
	}
	most = max(most, r.kept)
	at := r.kept
	switch {
	case r.kept == most:
		at, r.next = r.next, (r.next+1)%most
		r.dropped++
	case r.kept%perBlock == 0:
		r.blocks = append(r.blocks, make([]Event, min(perBlock, most-r.kept)))
		fallthrough
	default:
		r.kept++
	}
	r.blocks[at/perBlock][at%perBlock] = e
}

// Events returns a copy of the events, in the order in which they were observed, and the number of older
// ones that were dropped.
func (r *Recording) Events() (events []Event, dropped int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	all := slices.Concat(r.blocks...)[:r.kept]
	if r.next > 0 {
		all = slices.Concat(all[r.next:], all[:r.next])
	}
	return all, r.dropped
}

// Reset forgets all events, and the number of those that were dropped.
func (r *Recording) Reset() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.blocks, r.kept, r.next, r.dropped = nil, 0, 0, 0
}
