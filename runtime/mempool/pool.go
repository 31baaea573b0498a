package mempool

// The pool: what it is made of, and the short way of a block out and back.

import (
	"fmt"
	"math/bits"
	"sync"
	"sync/atomic"
	"time"

	"github.com/concord-compute/concord/runtime/driver"
)

// Source is where memory comes from; every driver.Device is one.
type Source interface {
	Alloc(n int64, kind driver.MemoryKind) (driver.Memory, error)
	Free(m driver.Memory) error
}

// Mode says how blocks are made of the driver's allocations.
type Mode int

// The modes; the package documentation tells when which is right.
const (
	Split       Mode = iota // blocks are parts of slabs
	Whole                   // a block is an allocation of its class's size
	Exact                   // a block is an allocation, reused for the same size
	PassThrough             // a block is an allocation that is freed at once
)

// Options of a pool. The zero value is a pool that splits, with the limits of a
// device whose memory is unknown.
type Options struct {
	Mode  Mode
	Align int64 // of blocks in bytes; 0 means 256. A power of two up to 1 GiB, or the next one

	SoftLimit int64 // bytes above which nothing is kept; 0 means 1 GiB. See AdviseLimit
	HardLimit int64 // bytes that Reserved never passes; 0 means none
	SoftCount int   // allocations of the driver above which nothing is kept; 0 means no limit
	HardCount int   // allocations of the driver at any time; 0 means no limit

	// Slack bounds what is kept beside the largest Live so far, as a part of that, when
	// the pool grows; 0 means 0.25 where blocks are parts of slabs, 1 elsewhere. 4 MiB
	// there, and 64 MiB elsewhere, are always kept.
	Slack float64

	Thresholds    Thresholds // see Watch
	AutoEmergency bool       // Trim(0) whenever Live passes Thresholds.Critical

	// Device says how much of the device's memory is in use, by whomever. It is asked
	// when the driver has given memory, with no lock held. Nil means that nobody knows.
	Device func() (used, total int64, known bool)
	// Drain gives back what is closed and still in use, after waiting for its work;
	// Collect what is forgotten. They are called before memory is said to be out, with no
	// lock held, and may call Put. Nil means that there is nothing.
	Drain, Collect func()
	// Busy reports a time in which the driver cannot free. Nil means never.
	Busy func() bool
	// FreeFailed is told what the driver says when it cannot free. May be nil.
	FreeFailed func(error)
}

// Pool is the memory of one device. New makes one.
type Pool struct {
	o      Options
	source Source
	track  atomic.Bool

	growing sync.Mutex // held by who gets memory from the driver: one at a time

	mu     sync.Mutex
	freed  *sync.Cond // a free by the driver has ended
	closed bool
	ready  [2]bins // free blocks that no work uses, by space
	warm   warm
	lanes  map[*Lane]struct{}
	empty  list    // blocks that are whole slabs and free, least recently used first
	table  []*node // by index of ID
	spare  *node   // structs for reuse, linked by next
	dead   []*slab // for the driver, once the lock is given back
	given  int64   // bytes of dead and of what the driver is freeing
	dying  int     // slabs that the driver is freeing
	made   time.Time
	swept  time.Time      // of the last clean-up, or zero
	epoch  uint64         // of clean-ups, from 1
	keys   map[int64]*key // sizes of slabs that there are
	slabs  int64          // that there ever were
	hot    [len(classes) + 1]int64
	n      Stats // the counters; what is derived stays zero

	// Of Live: the thresholds, how many of them are passed, and between which two bytes
	// that stays so.
	lines        [4]int64
	level        int
	below, above int64
	full         bool // the device
	high         bool // Reserved was at HighWater before the last look for a block
	tell         func(Pressure)
	passed       []Pressure // and not told yet
	telling      bool
	reclaiming   int

	trace  *Recorder // or nil
	device string    // in trace
}

// Block is memory that Get handed out. Memory.Size is what was asked for, Memory.Offset
// the place in the driver's allocation.
type Block struct {
	Memory driver.Memory
	// Ordered says that work queued on the lane of Get may still use the memory: on any
	// other lane, and on the host, a use must come after it.
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

// AdviseLimit is the soft limit for a device with that much memory: 70 % of it.
func AdviseLimit(total int64) int64 { return total/100*70 + total%100*70/100 }

// Track makes the pool remember who allocates: stacks and times of blocks from now on.
func (p *Pool) Track(on bool) { p.track.Store(on) }

// Tracking reports whether Track is on.
func (p *Pool) Tracking() bool { return p.track.Load() }

// Get hands out n > 0 bytes, contents undefined, for work on a lane of this pool; with
// nil for work anywhere. Memory of other kinds than OnDevice is counted and never kept.
//
// ErrBudget means that a limit of the options would be passed, ErrOutOfMemory that the
// driver had no room: both only after everything that is kept, closed or forgotten was
// given back, and the driver was asked once more. The error lists the biggest holders.
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

// Put takes a block back. With a lane, work queued there up to its count at may still
// use the memory; with nil nothing does. A block that is not out, such as one that was
// put back before, is ErrInvalidArgument and changes nothing.
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
	if lane != nil { // live blocks have none
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

// handOut makes b live, by a Hit or a Miss, and says so in block. The caller holds the
// lock and has taken b from where it was free.
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

// unlock gives the lock back and lets the driver free what was given up under it.
// Until it has, those bytes count as cached.
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
