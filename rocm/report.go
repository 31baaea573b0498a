package rocm

// The properties of compiled kernels, from the metadata of a code object: a note of the ELF file,
// in MessagePack. LLVM's "User Guide for AMDGPU Backend" describes it.

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"fmt"
	"math"
	"strings"

	"github.com/concord-compute/concord/internal/cgo"
	"github.com/concord-compute/concord/runtime/driver"
	"github.com/concord-compute/concord/source"
)

// noteMetadata is the type of the note, and noteOwner the name of its owner.
const (
	noteMetadata = 32
	noteOwner    = "AMDGPU"
)

// report lists the kernels of a compilation.
func report(c *cgo.Compilation) ([]driver.KernelInfo, error) { return codeObject(c.Code) }

// codeObject lists the kernels of a code object. Bytes that are not a code object are ErrFormat.
func codeObject(code []byte) ([]driver.KernelInfo, error) {
	note, err := metadata(code)
	if err != nil {
		return nil, err
	}
	value, err := unpack(note)
	if err != nil {
		return nil, fmt.Errorf("metadata of the code object: %w: %w", err, driver.ErrFormat)
	}
	top, _ := value.(map[string]any)
	list, ok := top["amdhsa.kernels"].([]any)
	if !ok {
		return nil, fmt.Errorf("metadata of the code object lists no kernels: %w", driver.ErrFormat)
	}
	var kernels []driver.KernelInfo
	for _, item := range list {
		k, ok := item.(map[string]any)
		name, named := k[".name"].(string)
		if !ok || !named {
			return nil, fmt.Errorf("metadata of the code object has a kernel without a name: %w", driver.ErrFormat)
		}
		kernels = append(kernels, kernelInfo(name, k))
	}
	return kernels, nil
}

// kernelInfo reads one kernel. Scalar registers belong to a whole wavefront and are not counted;
// they are spilled to lanes of vector registers. The private segment is an item's private memory.
func kernelInfo(name string, k map[string]any) driver.KernelInfo {
	return driver.KernelInfo{
		Name:           strings.TrimPrefix(name, source.EntryPrefix),
		Implementation: "hip",
		MaxGroup:       count(k[".max_flat_workgroup_size"]),
		GroupMultiple:  count(k[".wavefront_size"]),
		LocalBytes:     int64(count(k[".group_segment_fixed_size"])),
		Registers:      count(k[".vgpr_count"]),
		SpillBytes:     int64(count(k[".private_segment_fixed_size"])),
	}
}

// count reads a number. It is 0 (unknown) for other values and for implausible numbers.
func count(value any) int {
	switch n := value.(type) {
	case int64:
		if n >= 0 && n <= math.MaxInt32 {
			return int(n)
		}
	case uint64:
		if n <= math.MaxInt32 {
			return int(n)
		}
	}
	return 0
}

// metadata finds the note in a code object.
func metadata(code []byte) ([]byte, error) {
	f, err := elf.NewFile(bytes.NewReader(code))
	if err != nil {
		return nil, fmt.Errorf("not a code object: %w: %w", err, driver.ErrFormat)
	}
	defer f.Close()
	const machine = elf.Machine(224) // EM_AMDGPU
	if f.Machine != machine || f.ByteOrder != binary.LittleEndian {
		return nil, fmt.Errorf("a code object of machine %v: %w", f.Machine, driver.ErrFormat)
	}
	for _, s := range f.Sections {
		if s.Type != elf.SHT_NOTE || s.Offset > uint64(len(code)) || s.FileSize > uint64(len(code))-s.Offset {
			continue
		}
		if note, ok := findNote(code[s.Offset : s.Offset+s.FileSize]); ok {
			return note, nil
		}
	}
	return nil, fmt.Errorf("the code object has no metadata: %w", driver.ErrFormat)
}

// findNote looks for the note among those of a section. A note consists of the size of its name,
// the size of its content, its type, its name and its content, the last two padded to 4 bytes.
func findNote(b []byte) ([]byte, bool) {
	const header = 12
	for len(b) >= header {
		name, size := uint64(binary.LittleEndian.Uint32(b)), uint64(binary.LittleEndian.Uint32(b[4:]))
		kind := binary.LittleEndian.Uint32(b[8:])
		b = b[header:]
		padded, all := pad(name), pad(name)+pad(size)
		if padded+size > uint64(len(b)) {
			return nil, false
		}
		if kind == noteMetadata && string(bytes.TrimRight(b[:name], "\x00")) == noteOwner {
			return b[padded : padded+size], true
		}
		b = b[min(all, uint64(len(b))):]
	}
	return nil, false
}

func pad(n uint64) uint64 { return (n + 3) &^ 3 }
