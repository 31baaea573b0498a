//go:build cgo

package cpu

import (
	"bytes"
	"debug/elf"
	"fmt"
	goruntime "runtime"

	"github.com/concord-compute/concord/runtime/driver"
)

// machines are the ELF names of the processors that Go runs on with cgo.
var machines = map[string]elf.Machine{
	"amd64": elf.EM_X86_64, "arm64": elf.EM_AARCH64, "386": elf.EM_386, "arm": elf.EM_ARM,
	"riscv64": elf.EM_RISCV, "ppc64le": elf.EM_PPC64, "s390x": elf.EM_S390, "loong64": elf.EM_LOONGARCH,
}

// checkObject returns an error for objects that would crash the dynamic loader. The loader maps and
// accesses the ranges that the headers name without checking that the file is long enough.
func checkObject(object []byte) error {
	f, err := elf.NewFile(bytes.NewReader(object))
	if err != nil {
		return fmt.Errorf("not a shared object (%w): %w", err, driver.ErrCorrupt)
	}
	if m, known := machines[goruntime.GOARCH]; f.Type != elf.ET_DYN || known && f.Machine != m {
		return fmt.Errorf("a shared object of another kind (%v, %v): %w", f.Type, f.Machine, driver.ErrCorrupt)
	}
	size := uint64(len(object))
	for _, p := range f.Progs {
		if p.Off > size || p.Filesz > size-p.Off {
			return fmt.Errorf("the shared object is shorter than its headers say: %w", driver.ErrCorrupt)
		}
	}
	return nil
}
