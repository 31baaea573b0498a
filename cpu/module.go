package cpu

// Compiled programs: checking their bytes, loading them, and packing the arguments of their launches.

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/concord-compute/concord/internal/cgo"
	"github.com/concord-compute/concord/internal/seal"
	"github.com/concord-compute/concord/runtime/driver"
	"github.com/concord-compute/concord/source"
)

// programs is the mark of compiled programs, which are sealed shared objects.
const programs seal.Mark = "CNCDHST2"

// sharedObjects are the first bytes of the file formats that dynamic loaders accept (ELF, Mach-O).
var sharedObjects = [][]byte{[]byte("\x7fELF"), {0xcf, 0xfa, 0xed, 0xfe}, {0xca, 0xfe, 0xba, 0xbe}}

// unseal verifies sealed code and returns the shared object in it.
func unseal(code []byte) ([]byte, error) {
	object, err := programs.Open(code)
	if err == nil && !slices.ContainsFunc(sharedObjects, func(magic []byte) bool {
		return bytes.HasPrefix(object, magic)
	}) {
		err = fmt.Errorf("not a shared object: %w", driver.ErrCorrupt)
	}
	return object, err
}

// hostEntry is the C description of an entry point, inside a loaded library.
type hostEntry unsafe.Pointer

// hostKernel is one row of the table of kernels in a compiled program.
type hostKernel struct {
	name       string
	fibers     bool
	localBytes int64
	params     []uint32 // sizes of the parameters in bytes
	entry      hostEntry
}

// module is a loaded program. Its library is unloaded when Close was called and no
// launch of it is queued any more.
type module struct {
	kernels map[string]*kernel

	mu     sync.Mutex
	lib    cgo.Library
	users  int
	closed bool
}

var _ driver.Module = (*module)(nil)

// newModule checks that the kernels of a library and their parameters are those of the unit.
func newModule(d *device, u *source.Unit, lib cgo.Library, rows []hostKernel) (*module, error) {
	m := &module{lib: lib, kernels: map[string]*kernel{}}
	for _, row := range rows {
		params := unitParams(u, row.name)
		if err := checkParams(row, params); err != nil {
			return nil, err
		}
		info := driver.KernelInfo{Name: row.name, Implementation: "c++", GroupMultiple: 1, MaxGroup: maxGroup,
			LocalBytes: row.localBytes}
		m.kernels[row.name] = &kernel{info: info, device: d, unit: u, params: params, module: m, entry: row.entry}
	}
	for _, k := range u.Kernels() {
		if m.kernels[k.Name] == nil {
			return nil, fmt.Errorf("kernel %s is missing: %w", k.Name, driver.ErrCorrupt)
		}
	}
	return m, nil
}

func checkParams(row hostKernel, params []source.Param) error {
	if len(row.params) != len(params) {
		return fmt.Errorf("kernel %s has %d parameters instead of %d: %w", row.name, len(row.params), len(params),
			driver.ErrCorrupt)
	}
	for i, p := range params {
		if !p.Pointer && p.Size > 0 && int(row.params[i]) != p.Size {
			return fmt.Errorf("kernel %s: parameter %s has %d bytes instead of %d: %w", row.name, p.Name, row.params[i], p.Size,
				driver.ErrCorrupt)
		}
	}
	return nil
}

// Kernel implements driver.Module.
func (m *module) Kernel(name string) (driver.Kernel, error) {
	m.mu.Lock()
	closed := m.closed
	m.mu.Unlock()
	if closed {
		return nil, fmt.Errorf("program: %w", driver.ErrClosed)
	}
	if k, ok := m.kernels[name]; ok {
		return k, nil
	}
	var names []string
	for n := range m.kernels {
		names = append(names, n)
	}
	slices.Sort(names)
	return nil, fmt.Errorf("%q, there are %s: %w", name, strings.Join(names, ", "), driver.ErrNoKernel)
}

func (m *module) use() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return fmt.Errorf("program: %w", driver.ErrClosed)
	}
	m.users++
	return nil
}

func (m *module) unuse() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.users--; m.users == 0 && m.closed {
		_ = m.lib.Close() // there is no caller that could receive the error
	}
}

// Close implements driver.Module.
func (m *module) Close() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return nil
	}
	m.closed = true
	if m.users > 0 {
		return nil // the last launch unloads it
	}
	return m.lib.Close()
}

// hostCall is a launch in the form that is passed to C: flat, without pointers.
type hostCall struct {
	grid    [6]uint64      // global, local
	offsets []uint32       // of each argument's value in the block
	locals  []uint64       // of each argument: bytes of local memory, or 0
	job     unsafe.Pointer // the executor's, while it runs
	share   share          // of the job
	helped  atomic.Int64
}

// pack lays the arguments out for the executor. Each value is aligned, because a kernel may load
// it with one aligned instruction, to the largest power of two that divides its size; no C type
// has a larger alignment.
func (p *launch) pack(l *driver.Launch) error {
	h := &p.host
	for i := range 3 {
		h.grid[i], h.grid[3+i] = uint64(l.Global[i]), uint64(l.Local[i])
	}
	h.offsets, h.locals = h.offsets[:0], h.locals[:0]
	end := 0
	for i := range l.Args {
		size, align, local := 8, 8, 0
		switch a := &l.Args[i]; a.Kind {
		case driver.ArgValue:
			size = a.Size
			align = min(max(size&-size, 1), maxAlign)
		case driver.ArgLocal:
			local = a.Size
		}
		at := int(roundUp(int64(end), int64(align)))
		h.offsets = append(h.offsets, uint32(at))
		h.locals = append(h.locals, uint64(local))
		end = at + size
	}
	if want := len(p.kernel.params); len(l.Args) != want {
		return fmt.Errorf("%d arguments instead of %d: %w", len(l.Args), want, driver.ErrInvalidArgument)
	}
	block := p.space(end)
	for i := range l.Args {
		at := block[h.offsets[i]:]
		switch a := &l.Args[i]; a.Kind {
		case driver.ArgValue:
			copy(at[:a.Size], l.Data[a.Offset:])
		case driver.ArgMemory:
			binary.NativeEndian.PutUint64(at, address(p.call.Args[i].Bytes))
		}
	}
	p.data = block
	return nil
}
