package cpu

// The device's memory: a table of blocks by address. Go kernels get slices of them, and a handle
// that names no block, or one that was freed, is an error and not a crash.

import (
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/concord-compute/concord/runtime/driver"
)

// baseAlign is the alignment of every block: a cache line, and the widest vector
// register. A block whose size is a multiple of 128 is aligned to 128, as the widest OpenCL
// vectors require.
const (
	baseAlign = 64
	wideAlign = 128
)

// mostGuarded is how many blocks there are before small ones, of up to smallBlock bytes, are Go's memory,
// without guard pages of their own. A block with guard pages is two or three mappings, of which a process on
// Linux can have 65,530 (vm.max_map_count), and without some that are left Go's runtime ends the process.
const mostGuarded, smallBlock = 8192, 64 << 10

// checkAbove is the size from which an allocation is compared with the memory that the
// system has available. Systems that overcommit grant every request and kill the
// process when it uses the memory.
const checkAbove = 16 << 20

// errNoRoom is the error of mapBlock if the system has no memory left.
var errNoRoom = fmt.Errorf("the system has no memory left: %w", driver.ErrOutOfMemory)

// block is one allocation.
type block struct {
	data    []byte // the bytes that the caller requested
	mapping []byte // the whole mapping with its guard pages; nil for Go memory
	foreign bool   // the program's
}

// memory is the table of a device's blocks.
type memory struct {
	total  int64 // bytes of memory of the machine; 0 if unknown
	mu     sync.RWMutex
	blocks map[uint64]block
	wraps  uint64 // foreign blocks so far
}

// goBlock returns n bytes of zeros of Go's memory, which the table keeps alive, aligned as the widest OpenCL
// vectors need it.
func goBlock(n int64) block {
	raw := make([]byte, n+wideAlign)
	skip := int64(-address(raw) & (wideAlign - 1))
	return block{data: raw[skip : skip+n : skip+n]}
}

func (m *memory) alloc(n int64) (at driver.Memory, err error) {
	if n <= 0 {
		return driver.Memory{}, fmt.Errorf("%d bytes: %w", n, driver.ErrInvalidArgument)
	}
	if m.total > 0 && n > m.total {
		return driver.Memory{}, fmt.Errorf("the machine has %s: %w", driver.FormatBytes(m.total), driver.ErrTooLarge)
	}
	if n > maxBlock {
		return driver.Memory{}, driver.ErrTooLarge
	}
	if n >= checkAbove {
		if _, available := systemMemory(); available > 0 && n > available {
			return driver.Memory{}, fmt.Errorf("the machine has %s left: %w", driver.FormatBytes(available),
				driver.ErrOutOfMemory)
		}
	}
	m.mu.RLock()
	many := len(m.blocks) >= mostGuarded
	m.mu.RUnlock()
	var b block
	if many && n <= smallBlock {
		b = goBlock(n)
	} else if b, err = mapBlock(n); err != nil {
		return driver.Memory{}, err
	}
	handle := address(b.data)
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.blocks == nil {
		m.blocks = map[uint64]block{}
	}
	m.blocks[handle] = b
	return driver.Memory{Handle: handle, Size: n}, nil
}

// firstForeign is the handle before that of the first foreign block. No address is as large, and a program can
// wrap the same memory twice.
const firstForeign = 1 << 63

// wrap adds memory of the program to the table.
func (m *memory) wrap(data []byte, writable bool) (driver.Memory, error) {
	if len(data) == 0 || address(data)%8 != 0 {
		return driver.Memory{}, fmt.Errorf("%d bytes at %#x, which is no multiple of 8: %w", len(data), address(data),
			driver.ErrInvalidArgument)
	}
	if err := accessible(data, writable); err != nil {
		return driver.Memory{}, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.blocks == nil {
		m.blocks = map[uint64]block{}
	}
	m.wraps++
	handle := firstForeign + m.wraps
	m.blocks[handle] = block{data: data, foreign: true}
	return driver.Memory{Handle: handle, Size: int64(len(data))}, nil
}

// accessible reads the first and the last byte, and writes them as they are if the memory is to be written. A
// launch that meets pages without access may end the process, since vector kernels have no fault handlers.
func accessible(data []byte, write bool) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if recover() != nil {
			what := "read"
			if write {
				what = "written"
			}
			err = fmt.Errorf("memory at %#x cannot be %s: %w", address(data), what, driver.ErrInvalidArgument)
		}
	}()
	for _, i := range []int{0, len(data) - 1} {
		word := (*uint32)(unsafe.Pointer(&data[i&^3])) // atomically, since another thread may use the memory
		have := atomic.LoadUint32(word)
		if write && i&^3+4 <= len(data) {
			atomic.CompareAndSwapUint32(word, have, have)
		}
	}
	return nil
}

func (m *memory) free(at driver.Memory) error {
	m.mu.Lock()
	b, ok := m.blocks[at.Handle]
	delete(m.blocks, at.Handle)
	m.mu.Unlock()
	if !ok {
		return fmt.Errorf("no memory at %#x: %w", at.Handle, driver.ErrInvalidArgument)
	}
	return b.unmap()
}

// unmap gives the block back, unless it is the program's.
func (b block) unmap() error {
	if b.foreign || b.mapping == nil {
		return nil
	}
	return unmapBlock(b)
}

// bytes returns the memory of a handle, from its offset and of its size.
func (m *memory) bytes(at driver.Memory) ([]byte, error) {
	if at.Size == 0 {
		return nil, nil
	}
	m.mu.RLock()
	b, ok := m.blocks[at.Handle]
	m.mu.RUnlock()
	if !ok {
		return nil, fmt.Errorf("no memory at %#x: %w", at.Handle, driver.ErrInvalidArgument)
	}
	if at.Offset < 0 || at.Size < 0 || at.Offset > int64(len(b.data))-at.Size {
		return nil, fmt.Errorf("bytes %d to %d of %d: %w", at.Offset, at.Offset+at.Size, len(b.data),
			driver.ErrBufferOverflow)
	}
	return b.data[at.Offset : at.Offset+at.Size : at.Offset+at.Size], nil
}

// freeAll frees all blocks that were not freed.
func (m *memory) freeAll() error {
	m.mu.Lock()
	blocks := m.blocks
	m.blocks = nil
	m.mu.Unlock()
	var errs []error
	for _, b := range blocks {
		errs = append(errs, b.unmap())
	}
	return errors.Join(errs...)
}

func roundUp(n, to int64) int64 { return (n + to - 1) / to * to }
