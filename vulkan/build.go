package vulkan

// The compiler, which is package source, and the bytes of a program that csrc/vulkan/module.c reads.

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"

	"github.com/concord-compute/concord/runtime/driver"
	"github.com/concord-compute/concord/source"
)

// compilerVersion changes with every change of the emitter or of the bytes' form after which programs are others.
const compilerVersion = "spirv 1"

// mark is the first word of a program.
const mark = 0x31565343 // "CSV1"

// build makes the program's bytes. Options have no meaning to the emitter.
func build(ctx context.Context, unit *source.Unit, target string, _ []string) (code []byte, log string, err error) {
	m, err := unit.Module(ctx)
	if err != nil {
		return nil, "", err
	}
	if lacking := lacks(m.Words, target); lacking != "" {
		return nil, "", fmt.Errorf("the program needs %s, which %s does not have: %w", lacking, target, driver.ErrUnsupported)
	}
	return pack(m), "", nil
}

// needs are the capabilities of SPIR-V that only some devices have, with the part of an architecture that says so.
var needs = map[uint32]string{9: "fp16", 10: "fp64", 12: "i64", 61: "sg", 62: "sg", 63: "sg", 64: "sg", 65: "sg"}

// lacks returns the part that a module needs and a target does not have, or "".
func lacks(module []byte, target string) string {
	has := strings.Split(target, "-")
	const header, capability = 20, 2<<16 | 17 // bytes; the first word of an OpCapability
	for at := header; at+8 <= len(module) && binary.LittleEndian.Uint32(module[at:]) == capability; at += 8 {
		part := needs[binary.LittleEndian.Uint32(module[at+4:])]
		if part != "" && !slices.Contains(has, part) {
			return part
		}
	}
	return ""
}

// pack puts a module and what a launch has to know into the form of csrc/vulkan/module.c.
func pack(m *source.Module) []byte {
	var b bytes.Buffer
	words := func(list ...int) {
		for _, n := range list {
			b.Write(binary.NativeEndian.AppendUint32(nil, uint32(n)))
		}
	}
	padded := func(p []byte) {
		b.Write(p)
		b.Write(make([]byte, -len(p)&3))
	}
	words(mark, len(m.Kernels), len(m.Constants), len(m.Words)/4)
	for _, k := range m.Kernels {
		name := source.EntryPrefix + k.Name
		inMemory := 0
		if k.InMemory {
			inMemory = 1
		}
		words(len(name), k.LocalBytes, k.ArgBytes, inMemory)
		padded([]byte(name))
	}
	padded(m.Constants)
	for at := 0; at < len(m.Words); at += 4 { // the module is in the order of the host
		words(int(binary.LittleEndian.Uint32(m.Words[at:])))
	}
	return b.Bytes()
}
