package mempool

// Slabs, the blocks that they consist of, and the handles by which others know blocks.

import (
	"fmt"
	"math"
	"time"

	"github.com/concord-compute/concord/runtime/driver"
)

// ID names one use of a block: an index in the low half, a generation in the high
// one. After Put it names nothing, whatever becomes of the block.
type ID uint64

// NoID names no block ever.
const NoID ID = math.MaxUint64

// slab is one allocation of the driver.
type slab struct {
	mem   driver.Memory
	space int  // 0: small blocks, 1: large ones
	kept  bool // its blocks are reused
}

// node is a block, live or free. The blocks of a slab form a chain in the order of
// their places.
type node struct {
	slab       *slab
	off, size  int64
	prev, next *node // neighbours in the slab

	id    ID
	live  bool
	asked int64

	lane    *Lane  // whose queued work may still use it, or nil; of a free block
	at      uint64 // the lane's count of that work
	a, z    *node  // before and after in its bin
	bin     int
	la, lz  *node // before and after in the lane's order, or among empty slabs
	listed  bool
	history *history
}

// history is who allocated a block, when tracking is on.
type history struct {
	born  time.Time
	stack []uintptr
	tag   string
}

// classes are the sizes of blocks that are whole allocations.
var classes = [...]int64{64, 256, 1 << 10, 4 << 10, 16 << 10, 64 << 10, 256 << 10, 1 << 20, 4 << 20}

// largest bounds a request, so that no sum overflows.
const largest = 1 << 46

// sizeOf is how large a block for n bytes is.
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

// newNode makes the struct of a block that is free and nowhere yet.
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

// drop keeps the struct of a block that is no more.
func (p *Pool) drop(b *node) {
	*b = node{id: b.id, next: p.spare}
	p.spare = b
}

// retire ends the life of a block's handle.
func (p *Pool) retire(b *node) {
	if b.history != nil && b.history.stack != nil {
		liveProfile().Remove(owner{p, b.id})
	}
	b.live, b.asked, b.history = false, 0, nil
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
