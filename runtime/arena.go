package runtime

// Arenas: many small buffers of one scope, cut from few allocations.

import (
	"fmt"
	"sync"

	"github.com/concord-compute/concord/runtime/driver"
)

// Sizes of an arena's blocks: each is twice the one before, or the size of a larger request.
const (
	arenaFirst = 1 << 20
	arenaMost  = 64 << 20
)

// Arena allocates buffers that are freed together: those of one step, one request, one layer.
// They are parts of a few blocks from the device's pool, so that allocating one only advances an
// offset. None of them needs a Close. An Arena is safe for concurrent use.
type Arena struct {
	core  *core
	alloc func(t Type, n int) (*Buffer, error) // allocates a block
	align int64

	mu     sync.Mutex
	blocks []*Buffer  // the last one is being filled
	filled int64      // bytes taken in the last block
	used   int64      // bytes taken in all blocks
	next   int64      // size of the next block
	out    [][]Buffer // the buffers, in pieces that are allocated as a whole
	closed bool
}

// arenaBuffers is how many Buffers of an arena are allocated at a time.
const arenaBuffers = 64

// NewArena returns an arena of the device's memory.
func (d *Device) NewArena() (*Arena, error) {
	c, err := d.get("new arena")
	if err != nil {
		return nil, err
	}
	return c.newArena(d.Alloc), nil
}

// NewArena returns an arena whose memory is allocated and freed in the order of the stream, as with
// Stream.Alloc: the stream's next step can take the memory of the step before while that step
// still runs.
func (s *Stream) NewArena() (*Arena, error) {
	const op = "new arena"
	if err := s.live(op); err != nil {
		return nil, err
	}
	if err := s.lock(op); err != nil {
		return nil, err
	}
	s.mu.Unlock()
	return s.core.newArena(s.Alloc), nil
}

func (c *core) newArena(alloc func(Type, int) (*Buffer, error)) *Arena {
	return &Arena{core: c, alloc: alloc, align: max(256, c.info.BaseAlign), next: arenaFirst}
}

// Alloc returns a buffer of n elements, contents undefined. It answers ErrClosed after Close or
// Reset of the arena, or after its own Close, which does not free its memory: only the arena does.
// The caller closes Slices and conversions (As) of it.
func (a *Arena) Alloc(t Type, n int) (*Buffer, error) {
	const op = "alloc in arena"
	size, err := sizeOf(t, n)
	if err != nil {
		return nil, a.core.error(op, err)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.closed {
		return nil, a.core.error(op, fmt.Errorf("arena: %w", ErrClosed))
	}
	if a.core.isClosed() {
		return nil, a.core.closedError(op)
	}
	if err := a.room(size); err != nil {
		return nil, err
	}
	block := a.blocks[len(a.blocks)-1]
	last := len(a.out) - 1
	if last < 0 || len(a.out[last]) == arenaBuffers {
		a.out = append(a.out, make([]Buffer, 0, arenaBuffers))
		last++
	}
	a.out[last] = a.out[last][:len(a.out[last])+1]
	b := &a.out[last][len(a.out[last])-1]
	b.a, b.typ, b.mem, b.n, b.block = block.a, t, part(block.mem, a.filled, size), n, block
	up := (size + a.align - 1) / a.align * a.align
	a.filled += up
	a.used += up
	return b, nil
}

// room makes sure that the last block has size bytes free.
func (a *Arena) room(size int64) error {
	if len(a.blocks) > 0 && a.blocks[len(a.blocks)-1].mem.Size-a.filled >= size {
		return nil
	}
	block, err := a.alloc(U8, int(max(size, a.next)))
	if err != nil && a.next > size { // perhaps there is room for this buffer alone
		block, err = a.alloc(U8, int(size))
	}
	if err != nil {
		return err
	}
	a.blocks = append(a.blocks, block)
	a.filled = 0
	a.next = max(a.next, min(2*a.next, arenaMost))
	return nil
}

// Size returns the bytes that the arena's buffers take, and the bytes of the blocks that hold them.
func (a *Arena) Size() (used, held int64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, b := range a.blocks {
		held += b.mem.Size
	}
	return a.used, held
}

// Reset ends all buffers and gives their memory back to the pool, for the next step. It does not
// wait: memory that queued work still uses is not reused before that work is done. An error that
// matches ErrLeak reports blocks that are kept alive by views, graphs or calls under way. These
// stay usable, and the arena goes on without them.
func (a *Arena) Reset() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.closed {
		return a.core.error("reset arena", fmt.Errorf("arena: %w", ErrClosed))
	}
	a.next = max(arenaFirst, a.used) // next time one block suffices for the same buffers
	return a.end("reset arena")
}

// Close does the same as Reset and ends the arena. Closing twice does nothing.
func (a *Arena) Close() error {
	if a == nil || a.core == nil {
		return nil
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.closed {
		return nil
	}
	a.closed = true
	return a.end("close arena")
}

func (a *Arena) end(op string) error {
	for _, piece := range a.out {
		for i := range piece {
			piece[i].closed.Store(true)
		}
	}
	var alive, bytes int64
	for _, b := range a.blocks {
		b.Close()
		if b.a.refs.Load() > 0 && !b.a.dead.Load() {
			alive++
			bytes += b.mem.Size
		}
	}
	a.blocks, a.out, a.filled, a.used = nil, nil, 0, 0
	if alive > 0 {
		return a.core.error(op, fmt.Errorf("%d blocks of %s have views, graphs or calls under way: %w",
			alive, driver.FormatBytes(bytes), ErrLeak))
	}
	return nil
}
