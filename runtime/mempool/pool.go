package mempool

// The pool itself, and the fast path of Get and Put.

import (
	"fmt"
	"math/bits"
	"sync"
	"sync/atomic"
	"time"

	"github.com/concord-compute/concord/runtime/driver"
)

// Source allocates memory for a pool; every driver.Device is one.
type Source interface {
	Alloc(n int64, kind driver.MemoryKind) (driver.Memory, error)
	Free(m driver.Memory) error
}

// Mode says how blocks are made of the driver's allocations.
type Mode int

// The modes; the package documentation says which one suits which device.
const (
	Split       Mode = iota // blocks are parts of slabs
	Whole                   // a block is an allocation of its class's size
	Exact                   // a block is an allocation, reused for the same size
	PassThrough             // a block is an allocation that is freed at once
)

// Options of a pool. The zero value is a pool that splits, with the limits of a
// device whose memory is unknown.
type Options struct {
	Mode  Mode  // how requests are served; 0 means Split
	Align int64 // alignment of blocks in bytes; 0 means 256. Rounded up to a power of two, at most 1 GiB

	SoftLimit int64 // bytes above which nothing is kept; 0 means 1 GiB. See AdviseLimit
	HardLimit int64 // bytes that Reserved never exceeds; 0 means no limit
	SoftCount int   // driver allocations above which nothing is kept; 0 means no limit
	HardCount int   // driver allocations that are never exceeded; 0 means no limit

	// Slack limits kept memory when the pool grows, as a part of the largest Live so far; 0 means
	// 0.25 in mode Split and 1 in the others. 4 MiB in mode Split, and 64 MiB in the others, may
	// always be kept.
	Slack float64

	Thresholds    Thresholds // see Watch; the zero value means none
	AutoEmergency bool       // Trim(0) whenever Live passes Thresholds.Critical

	// Device returns how much of the device's memory is in use by all programs. It is called after
	// the driver has allocated memory, with no lock held. Nil means that this is unknown.
	Device func() (used, total int64, known bool)
	// Drain gives back closed memory that is still in use, after waiting for its work; Collect
	// gives back forgotten memory. They are called before a request fails for lack of memory, with
	// no lock held, and may call Put. Nil means that there is no such memory.
	Drain, Collect func()
	// Busy reports a time in which the driver cannot free. Nil means never.
	Busy func() bool
	// FreeFailed is called with errors of the driver's Free. Nil means that nobody wants to know.
	FreeFailed func(error)
}

// Pool is the memory of one device. New makes one.
type Pool struct {
	o      Options
	source Source
	track  atomic.Bool

	growing sync.Mutex // held by the call that gets memory from the driver, one at a time

	mu     sync.Mutex
	freed  *sync.Cond // a free by the driver has ended
	closed bool
	ready  [2]bins // free blocks that no work uses, by space
	warm   warm
	lanes  map[*Lane]struct{}
	empty  list    // blocks that are whole slabs and free, least recently used first
	table  []*node // by index of ID
	spare  *node   // structs for reuse, linked by next
	dead   []*slab // slabs to be freed by the driver once the lock is released
	given  int64   // bytes of dead and of slabs that the driver is freeing
	dying  int     // slabs that the driver is freeing
	made   time.Time
	swept  time.Time      // of the last clean-up, or zero
	epoch  uint64         // of clean-ups, from 1
	keys   map[int64]*key // sizes of existing slabs
	slabs  int64          // slabs ever allocated
	hot    [len(classes) + 1]int64
	n      Stats // the counters; derived fields stay zero

	// For thresholds of Live: the lines in bytes, how many of them are crossed, and the range of
	// Live in which that does not change.
	lines        [4]int64
	level        int
	below, above int64
	full         bool // the device's memory is nearly full
	high         bool // Reserved was at HighWater before the last search for a block
	tell         func(Pressure)
	passed       []Pressure // thresholds that were crossed and not yet reported
	telling      bool
	reclaiming   int

	trace  *Recorder // or nil
	toFile bool      // trace is that of a file
	device string    // in trace
}

// Block is memory that Get handed out. Memory.Size is the requested size, Memory.Offset the place
// in the driver's allocation.
type Block struct {
	Memory driver.Memory
	// Ordered says that work queued on the lane of Get may still use the memory: a use on any other
	// lane, and on the host, must come after that work.
	Ordered bool
	ID      ID
}

// New makes a pool over a source of memory.
func New(source Source, o Options) *Pool {
	if o.Align <= 0 {
		o.Align = 256
	}
	o.Align = 1 << bits.Len64(uint64(min(o.Align, mostAlign)-1))
	if o.SoftLimit <= 0 {
		o.SoftLimit = 1 << 30
	}
	if o.Slack <= 0 {
		o.Slack = 1
		if o.Mode == Split {
			o.Slack = 0.25
		}
	}
	o.Thresholds.defaults()
	p := &Pool{o: o, source: source, lanes: map[*Lane]struct{}{}, keys: map[int64]*key{}, made: time.Now(), epoch: 1}
	p.freed = sync.NewCond(&p.mu)
	p.setLines()
	return p
}

// AdviseLimit returns the soft limit for a device with that much memory: 70 % of it, and below 8 GiB half of it. What
// drivers, contexts and screens take is about the same on all devices, and more of a small memory.
func AdviseLimit(total int64) int64 {
	if total < 8<<30 {
		return total / 2
	}
	return total/100*70 + total%100*70/100
}

// Track makes the pool record stacks and times of allocations from now on.
func (p *Pool) Track(on bool) { p.track.Store(on) }

// Tracking reports whether Track is on.
func (p *Pool) Tracking() bool { return p.track.Load() }

// Get hands out n > 0 bytes, contents undefined, for work on a lane of this pool, or with nil for
// any work. Memory of other kinds than OnDevice is counted but never kept.
//
// ErrBudget means that a limit of the options would be exceeded, ErrOutOfMemory that the driver had
// no memory. Before either is returned, all kept, closed and forgotten memory is given back, and
// the driver is asked once more. The error lists the largest holders.
func (p *Pool) Get(n int64, kind driver.MemoryKind, lane *Lane) (block Block, err error) {
	size, err := p.sizeOf(n, kind)
	if err != nil {
		return block, err
	}
	p.mu.Lock()
	if p.closed {
		p.mu.Unlock()
		return block, driver.ErrClosed
	}
	var b *node
	if p.keeps(kind) {
		b = p.take(size, lane)
	}
	if b != nil {
		p.handOut(b, n, Hit, &block)
		p.leave()
	} else {
		p.unlock()
		block, err = p.miss(n, size, kind, lane)
		p.mu.Lock()
		p.leave()
	}
	if err == nil && p.track.Load() {
		p.remember(block.ID)
	}
	return block, err
}

// Put takes a block back. With a lane, work queued there up to the count at may still use the
// memory; with nil no work does. A block that is not in use, such as one that was put back before,
// is ErrInvalidArgument and changes nothing.
func (p *Pool) Put(id ID, lane *Lane, at uint64) error {
	p.mu.Lock()
	b := p.find(id)
	if b == nil {
		p.mu.Unlock()
		return fmt.Errorf("block %#x is not in use: %w", uint64(id), driver.ErrInvalidArgument)
	}
	if p.warm.end == mostWarm {
		p.cool()
	}
	if lane != nil && lane.passed(at) {
		lane = nil
	}
	if p.trace != nil {
		p.noteBlock(Free, b)
	}
	p.n.Live -= b.size
	p.n.Requested -= b.asked
	p.n.Cached += b.size
	p.n.LiveBlocks--
	p.n.CachedBlocks++
	p.n.Deallocations++
	p.retire(b)
	if lane != nil { // live blocks have no lane
		b.lane, b.at = lane, at
	}
	b.slab.used = p.epoch
	if p.mayWarm(b) {
		p.warm.put(b)
	} else {
		p.keep(b)
	}
	if p.n.Live <= p.below {
		p.cross()
	}
	if p.n.Deallocations%coalesceEvery == 0 {
		p.settleIfFull()
	}
	p.leave()
	return nil
}

// keeps reports whether memory of a kind is ever reused.
func (p *Pool) keeps(kind driver.MemoryKind) bool {
	return kind == driver.OnDevice && p.o.Mode != PassThrough
}

// handOut makes b live, by a Hit or a Miss, and fills in block. The caller holds the lock and has
// removed b from the free blocks.
func (p *Pool) handOut(b *node, asked int64, how Kind, block *Block) {
	block.Memory.Handle, block.Memory.Kind = b.slab.mem.Handle, b.slab.mem.Kind
	block.Memory.Offset, block.Memory.Size = b.off, asked
	block.Ordered, block.ID = b.lane != nil, b.id
	b.live, b.asked, b.lane = true, asked, nil
	p.n.Cached -= b.size
	p.n.CachedBlocks--
	p.n.Live += b.size
	p.n.Requested += asked
	p.n.LiveBlocks++
	p.n.Allocations++
	p.n.PeakLive = max(p.n.PeakLive, p.n.Live)
	p.hot[classOf(asked)]++
	if how == Hit {
		p.n.Hits++
		b.slab.key.hit = p.epoch
	} else {
		p.n.Misses++
	}
	if p.n.Live > p.above {
		p.cross()
	}
	if p.trace != nil {
		p.noteBlock(how, b)
	}
}

// unlock releases the lock and lets the driver free the slabs that were given up under it. Until
// the driver has freed them, their bytes count as cached.
func (p *Pool) unlock() {
	if len(p.dead) == 0 || p.o.Busy != nil && p.o.Busy() {
		p.mu.Unlock()
		return
	}
	dead := p.dead
	p.dead = nil
	p.dying += len(dead)
	p.mu.Unlock()
	var bytes int64
	for _, s := range dead {
		bytes += s.mem.Size
		if err := p.source.Free(s.mem); err != nil && p.o.FreeFailed != nil {
			p.o.FreeFailed(err)
		}
	}
	p.mu.Lock()
	if p.trace != nil {
		for _, s := range dead {
			p.note(Event{Kind: Shrink, Bytes: s.mem.Size, Size: s.mem.Size, Slab: s.number})
		}
	}
	p.given -= bytes
	p.n.Cached -= bytes
	p.n.CachedBlocks -= int64(len(dead))
	p.n.Reserved -= bytes
	p.n.Slabs -= int64(len(dead))
	p.n.DriverFrees += int64(len(dead))
	p.dying -= len(dead)
	p.freed.Broadcast()
	p.mu.Unlock()
}
