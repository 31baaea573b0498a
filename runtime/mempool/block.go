package mempool

// Slabs, the blocks that they consist of, and the handles of blocks.

import (
	"fmt"
	"math"
	"math/bits"
	"time"

	"github.com/concord-compute/concord/runtime/driver"
)

// ID names one use of a block: an index in the low half, a generation in the high
// one. After Put it is no longer valid, even when the block is used again.
type ID uint64

// NoID is never the ID of a block.
const NoID ID = math.MaxUint64

// slab is one allocation of the driver. It fits into one line of the processor's cache, as does the
// first half of node: using a block that is not in the cache costs few waits for memory.
type slab struct {
	mem    driver.Memory
	number int64  // counts the pool's slabs
	used   uint64 // the epoch in which one of its blocks was last put back
	key    *key
	space  uint8 // 0: small blocks, 1: large ones
	kept   bool  // its blocks are reused
}

// key is one size of slabs.
type key struct {
	size  int64
	slabs int    // slabs of this size
	ready int    // of those: free as a whole, and not used by queued work
	hit   uint64 // the epoch of the last Hit
	keep  int    // how many of ready a clean-up keeps
}

// keyFor returns the key of a new slab, and counts the slab.
func (p *Pool) keyFor(size int64) *key {
	k := p.keys[size]
	if k == nil {
		k = &key{size: size}
		p.keys[size] = k
	}
	k.slabs++
	return k
}

// node is a block, live or free. The blocks of a slab form a chain in the order of
// their places.
type node struct {
	slab      *slab
	off, size int64
	id        ID
	asked     int64
	lane      *Lane // of a free block: the lane whose queued work may still use it, or nil
	z         *node // the next block in its bin
	bin       int32 // for a warm block its place in Pool.warm
	live      bool
	warm      bool // free, and in Pool.warm alone
	listed    bool // in a list
	known     bool // has a history

	la, lz     *node // before and after in the lane's order, or among empty slabs
	history    *history
	at         uint64 // the count of that work on lane
	a          *node  // before it in its bin
	prev, next *node  // neighbours in the slab
}

// history says where and when a block was allocated, if tracking is on.
type history struct {
	born  time.Time
	stack []uintptr
	tag   string
}

// classes are the sizes of blocks that are whole allocations.
var classes = [...]int64{64, 256, 1 << 10, 4 << 10, 16 << 10, 64 << 10, 256 << 10, 1 << 20, 4 << 20}

// classOf returns the index in classes of the smallest one that holds n bytes, or len(classes)
// if none does. Each class is four times the one before.
func classOf(n int64) int { return min(len(classes), max(0, (bits.Len64(uint64(n-1))-5)/2)) }

// largest is the limit of a request, so that no sum overflows.
const largest = 1 << 46

// mostAlign is the limit of the alignment that requests are rounded up to.
const mostAlign = 1 << 30

// sizeOf returns the size of a block for n bytes.
func (p *Pool) sizeOf(n int64, kind driver.MemoryKind) (int64, error) {
	switch {
	case n <= 0:
		return 0, fmt.Errorf("%d bytes: %w", n, driver.ErrInvalidArgument)
	case n > largest:
		return 0, driver.ErrTooLarge
	case !p.keeps(kind) || p.o.Mode == Exact:
		return n, nil
	case p.o.Mode == Split:
		return roundUp(n, p.o.Align), nil
	}
	for _, size := range classes {
		if n <= size {
			return size, nil
		}
	}
	return roundUp(n, 64), nil
}

func roundUp(n, to int64) int64 { return (n + to - 1) &^ (to - 1) }

// newNode returns the struct of a free block that is in no set yet.
func (p *Pool) newNode(s *slab, off, size int64) *node {
	b := p.spare
	if b == nil {
		b = &node{id: ID(len(p.table))}
		p.table = append(p.table, b)
	} else {
		p.spare = b.next
	}
	id := b.id
	*b = node{slab: s, off: off, size: size, id: id}
	return b
}

// drop keeps the struct of a block that no longer exists, for reuse.
func (p *Pool) drop(b *node) {
	*b = node{id: b.id, next: p.spare}
	p.spare = b
}

// retire ends the life of a block's handle.
func (p *Pool) retire(b *node) {
	if b.known {
		if b.history.stack != nil {
			liveProfile().Remove(owner{p, b.id})
		}
		b.known, b.history = false, nil
	}
	b.live, b.asked = false, 0
	b.id += 1 << 32
}

// find returns the live block of a handle, or nil.
func (p *Pool) find(id ID) *node {
	i := uint64(id) & math.MaxUint32
	if i >= uint64(len(p.table)) {
		return nil
	}
	if b := p.table[i]; b.live && b.id == id {
		return b
	}
	return nil
}

// whole reports whether a block is all of its slab.
func (b *node) whole() bool { return b.prev == nil && b.next == nil }

// list is a chain of blocks by la and lz.
type list struct{ first, last *node }

func (l *list) push(b *node) {
	b.la, b.lz, b.listed = l.last, nil, true
	if l.last == nil {
		l.first = b
	} else {
		l.last.lz = b
	}
	l.last = b
}

func (l *list) remove(b *node) {
	if !b.listed {
		return
	}
	if b.la == nil {
		l.first = b.lz
	} else {
		b.la.lz = b.lz
	}
	if b.lz == nil {
		l.last = b.la
	} else {
		b.lz.la = b.la
	}
	b.la, b.lz, b.listed = nil, nil, false
}
