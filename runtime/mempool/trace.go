package mempool

// Traces: the operations of pools, event by event, for analysis and replay.

import (
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/concord-compute/concord/runtime/driver"
)

// Kind is the kind of an Event.
type Kind string

// The kinds of events. An allocation is a Hit or a Miss.
const (
	Hit       Kind = "hit"      // Get, served from free blocks
	Miss      Kind = "miss"     // Get, served by the driver
	Free      Kind = "free"     // Put
	Grow      Kind = "grow"     // the driver allocated a slab
	Shrink    Kind = "shrink"   // the driver freed a slab
	Retry     Kind = "retry"    // the driver was out of memory and was asked again
	Cleanup   Kind = "cleanup"  // a clean-up, which freed Bytes
	Coalesced Kind = "coalesce" // free blocks were joined
	Tagged    Kind = "tag"      // SetTag
	Live      Kind = "live"     // a block that was live when recording began; its slab is a Grow before it
)

// Event is one operation of a pool.
type Event struct {
	At     time.Duration     `json:"t"` // since the trace began, in nanoseconds
	Device string            `json:"d,omitempty"`
	Kind   Kind              `json:"k"`
	Bytes  int64             `json:"n,omitempty"`    // requested
	Size   int64             `json:"s,omitempty"`    // of the block or slab: the key of pools that reuse whole blocks
	Slab   int64             `json:"slab,omitempty"` // the number of the slab on the device
	Offset int64             `json:"off,omitempty"`  // of the block in its slab
	ID     ID                `json:"id,omitempty"`   // of the block: Hit, Miss and Free of one use have the same
	Memory driver.MemoryKind `json:"m,omitempty"`
	Tag    string            `json:"tag,omitempty"`
}

// PoolInfo describes a pool of a trace.
type PoolInfo struct {
	Device    string `json:"device"`
	Mode      Mode   `json:"mode"`
	Align     int64  `json:"align"`
	SoftLimit int64  `json:"soft_limit"`
	HardLimit int64  `json:"hard_limit,omitempty"`
}

// Trace is a recording of pools. Dropped events came before the ones in Events.
type Trace struct {
	Start   time.Time
	Pools   []PoolInfo
	Dropped int64
	Events  []Event
}

// Of returns the part of a trace that belongs to one device. The events are shared.
func (t *Trace) Of(device string) *Trace {
	part := &Trace{Start: t.Start, Dropped: t.Dropped}
	for _, p := range t.Pools {
		if p.Device == device {
			part.Pools = append(part.Pools, p)
		}
	}
	for i := range t.Events {
		if t.Events[i].Device == device {
			part.Events = append(part.Events, t.Events[i])
		}
	}
	return part
}

// Devices lists the devices of a trace, sorted.
func (t *Trace) Devices() []string {
	var list []string
	last := ""
	for i := range t.Events {
		if d := t.Events[i].Device; d != last || i == 0 {
			list, last = append(list, d), d
		}
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// Recorder keeps the latest events of the pools that record to it. It is safe for
// concurrent use.
type Recorder struct {
	start time.Time
	limit int
	now   func() time.Duration // since start

	mu      sync.Mutex
	ring    []Event
	next    int // where the next event goes once the ring is full
	dropped int64
	pools   []PoolInfo
}

// DefaultEvents is the number of events that a Recorder keeps by default.
const DefaultEvents = 1 << 16

// NewRecorder returns a recorder that keeps that number of events; 0 means DefaultEvents. Each
// recorded event takes about a hundred bytes.
func NewRecorder(events int) *Recorder {
	if events <= 0 {
		events = DefaultEvents
	}
	r := &Recorder{start: time.Now(), limit: events}
	r.now = func() time.Duration { return time.Since(r.start) }
	return r
}

func (r *Recorder) add(e Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	e.At = r.now()
	if len(r.ring) < r.limit {
		r.ring = append(r.ring, e)
		return
	}
	r.ring[r.next] = e
	r.next = (r.next + 1) % r.limit
	r.dropped++
}

// follow makes the recorder take the time from a replay.
func (r *Recorder) follow(start time.Time, now func() time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.start, r.now = start, now
}

// register notes a pool, and returns its name among those of the recorder: "cpu:0", and
// for a second pool of the same device "cpu:0#2".
func (r *Recorder) register(info PoolInfo) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	device := info.Device
	for n := 2; slices.ContainsFunc(r.pools, func(p PoolInfo) bool { return p.Device == info.Device }); n++ {
		info.Device = fmt.Sprintf("%s#%d", device, n)
	}
	r.pools = append(r.pools, info)
	return info.Device
}

// Trace returns the events recorded so far.
func (r *Recorder) Trace() *Trace {
	r.mu.Lock()
	defer r.mu.Unlock()
	return &Trace{
		Start: r.start, Dropped: r.dropped, Pools: slices.Clone(r.pools),
		Events: slices.Concat(r.ring[r.next:], r.ring[:r.next]),
	}
}

// Record makes the pool record its operations, under the name of its device; nil ends the
// recording. Existing slabs and blocks come first, as events of kind Grow and Live.
func (p *Pool) Record(r *Recorder, device string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.record(r, device)
}

func (p *Pool) record(r *Recorder, device string) {
	p.trace = r
	if r == nil {
		return
	}
	p.device = r.register(PoolInfo{device, p.o.Mode, p.o.Align, p.o.SoftLimit, p.o.HardLimit})
	for _, b := range p.table {
		if b.slab != nil && b.prev == nil {
			s := b.slab
			p.note(Event{Kind: Grow, Bytes: s.mem.Size, Size: s.mem.Size, Slab: s.number, Memory: s.mem.Kind})
		}
	}
	for _, b := range p.table {
		if b.live {
			p.noteBlock(Live, b)
		}
	}
}

// note records an event if the pool is recorded. The caller holds the lock.
func (p *Pool) note(e Event) {
	if p.trace != nil {
		e.Device = p.device
		p.trace.add(e)
	}
}

// noteBlock records an event of a live block.
func (p *Pool) noteBlock(k Kind, b *node) {
	e := Event{Kind: k, Bytes: b.asked, Size: b.size, Slab: b.slab.number, Offset: b.off, ID: b.id,
		Memory: b.slab.mem.Kind}
	if b.history != nil {
		e.Tag = b.history.tag
	}
	p.note(e)
}
