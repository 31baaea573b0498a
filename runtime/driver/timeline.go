package driver

// When work ran: the optional interface of streams that know it, and the host's clock beside theirs.

import "time"

// Timeliner is implemented by streams that know when their work ran on the device.
type Timeliner interface {
	// Time makes the work that is queued from now until the next call of Time operation number op, for Spans;
	// 0 is no operation. No number is used twice on one stream. ErrUnsupported means that this stream has no
	// times. Nobody calls it while the stream records a graph.
	Time(op uint64) error
	// Spans appends the spans of operations that are over, each once, in the order in which they were
	// queued. It does not wait for work. Operations that failed, or were queued behind one that
	// failed, have no spans. It may be called beside any other call, and also after Close: then it returns
	// what is left, and releases the rest.
	Spans(to []Span) []Span
	// Clock returns a reading of the device's clock, and of the host's, Now, at the same moment as nearly as the
	// driver allows. It may wait for a moment at which the device is free, but not for this stream's work.
	Clock() (device, host int64, err error)
}

// Span is when an operation ran: from the start of its first piece of work to the end of its last, in
// nanoseconds of the device's clock.
type Span struct {
	Op         uint64
	Start, End int64
	// of a graph's launch: the ends of its operations in the order of their capture, if the driver knows them
	Parts []int64
}

var started = time.Now()

// Now returns the time of the host's clock, in nanoseconds since the program started. It never goes back.
func Now() int64 { return int64(time.Since(started)) }
