package managed

// Arenas: many small buffers of one scope, cut from few allocations.

import (
	"context"
	"fmt"
	"sync"

	"github.com/concord-compute/concord/runtime"
	"github.com/concord-compute/concord/runtime/driver"
	"github.com/concord-compute/concord/runtime/mempool"
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
	device *runtime.Device
	alloc  func(t runtime.Type, n int) (*runtime.Buffer, error) // allocates a block
	align  int64

	mu     sync.Mutex
	blocks []*runtime.Buffer  // the last one is being filled
	filled int64              // bytes taken in the last block
	used   int64              // bytes taken in all blocks
	next   int64              // size of the next block
	out    [][]runtime.Buffer // the buffers, in pieces that are allocated as a whole
	closed bool
}

// arenaBuffers is how many Buffers of an arena are allocated at a time.
const arenaBuffers = 64

// NewArena returns an arena of the device's memory. With a stream of the device its memory is allocated and freed in
// the order of that stream, as with [runtime.Stream.Alloc]. The stream's next step can take the memory of the step
// before while that step still runs. s may be nil.
func NewArena(d *runtime.Device, s *runtime.Stream) (*Arena, error) {
	const op = "new arena"
	if err := d.Enter(op); err != nil {
		return nil, err
	}
	defer d.Leave()
	alloc := d.Alloc
	if s != nil {
		if err := s.WaitForStream(context.Background(), s); err != nil { // refuses one that records
			return nil, named(d, op, err)
		}
		alloc = s.Alloc
	}
	return &Arena{device: d, alloc: alloc, align: max(256, d.Info().BaseAlign), next: arenaFirst}, nil
}

// Alloc returns a buffer of n elements, contents undefined. It answers ErrClosed after Close or
// Reset of the arena, or after its own Close, which does not free its memory: only the arena does.
// The caller closes Slices and conversions (As) of it.
func (a *Arena) Alloc(t runtime.Type, n int) (*runtime.Buffer, error) {
	const op = "alloc in arena"
	size, err := t.Bytes(n)
	if err != nil {
		return nil, opError(a.device, op, err)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.closed {
		return nil, opError(a.device, op, fmt.Errorf("arena: %w", runtime.ErrClosed))
	}
	if err := a.room(size); err != nil {
		return nil, err
	}
	block := a.blocks[len(a.blocks)-1]
	last := len(a.out) - 1
	if last < 0 || len(a.out[last]) == arenaBuffers {
		a.out = append(a.out, make([]runtime.Buffer, 0, arenaBuffers))
		last++
	}
	a.out[last] = a.out[last][:len(a.out[last])+1]
	b := &a.out[last][len(a.out[last])-1]
	if err := block.Window(b, t, a.filled, n); err != nil {
		a.out[last] = a.out[last][:len(a.out[last])-1]
		return nil, err
	}
	up := (size + a.align - 1) / a.align * a.align
	a.filled += up
	a.used += up
	return b, nil
}

// room makes sure that the last block has size bytes free.
func (a *Arena) room(size int64) error {
	if len(a.blocks) > 0 && a.blocks[len(a.blocks)-1].Bytes()-a.filled >= size {
		return nil
	}
	block, err := a.alloc(runtime.U8, int(max(size, a.next)))
	if err != nil && a.next > size { // perhaps there is room for this buffer alone
		block, err = a.alloc(runtime.U8, int(size))
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
		held += b.Bytes()
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
		return opError(a.device, "reset arena", fmt.Errorf("arena: %w", runtime.ErrClosed))
	}
	a.next = max(arenaFirst, a.used) // next time one block suffices for the same buffers
	return a.end("reset arena")
}

// Close does the same as Reset and ends the arena. Closing twice does nothing.
func (a *Arena) Close() error {
	if a == nil || a.alloc == nil {
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
	var alive, bytes int64
	for _, b := range a.blocks {
		b.Close()
		if b.InUse() {
			alive++
			bytes += b.Bytes()
		}
	}
	a.blocks, a.out, a.filled, a.used = nil, nil, 0, 0
	if alive > 0 {
		return opError(a.device, op, fmt.Errorf("%d blocks of %s have views, graphs or calls under way: %w",
			alive, driver.FormatBytes(bytes), mempool.ErrLeak))
	}
	return nil
}
