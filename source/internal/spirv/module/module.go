// Package module builds SPIR-V modules in binary form: ids, types and constants of which each exists once, functions
// and their instructions. It knows nothing of OpenCL C. A Builder is not safe for concurrent use. Two builders that
// get the same calls make the same bytes.
package module

import (
	"encoding/binary"
	"slices"
)

// ID is the number of a result: a type, constant, variable, value, label or function. 0 is none.
type ID uint32

// MaxIDs is the largest number of ids that drivers have to accept.
const MaxIDs = 1<<22 - 1

// Builder collects a module.
type Builder struct {
	last         ID
	capabilities map[Capability]bool
	vulkanModel  bool

	// the sections of a module, in order
	imports, entries, modes, strings, names, decorations, globals, functions []uint32

	types     map[typeKey]ID
	constants map[constant]ID
	values    map[ID]constant // the reverse
	files     map[string]ID
	glsl      ID
	variables []ID // at module scope, for entry points
}

type typeKey struct {
	op   Op
	rest string
}

type constant struct {
	typ  ID
	bits uint64
}

// New returns an empty module, with addresses of 64 bits.
func New() *Builder {
	b := &Builder{capabilities: map[Capability]bool{}, types: map[typeKey]ID{}, constants: map[constant]ID{},
		values: map[ID]constant{}, files: map[string]ID{}}
	b.Need(Shader)
	b.Need(PhysicalStorageBufferAddresses)
	b.Need(Int64)
	return b
}

// Need declares a capability.
func (b *Builder) Need(c Capability) { b.capabilities[c] = true }

// UseVulkanModel selects the Vulkan memory model in place of that of GLSL.
func (b *Builder) UseVulkanModel() {
	b.vulkanModel = true
	b.Need(VulkanMemoryModel)
	b.Need(VulkanMemoryModelDeviceScope)
}

// VulkanModel reports whether UseVulkanModel was called.
func (b *Builder) VulkanModel() bool { return b.vulkanModel }

// NewID returns an id that nothing has.
func (b *Builder) NewID() ID {
	b.last++
	return b.last
}

// Count returns the number of ids so far.
func (b *Builder) Count() int { return int(b.last) }

// Size returns the number of bytes of finished functions and declarations so far.
func (b *Builder) Size() int { return 4 * (len(b.functions) + len(b.globals) + len(b.decorations)) }

// instruction appends an instruction to a section.
func instruction(to *[]uint32, op Op, words ...uint32) {
	*to = append(*to, uint32(len(words)+1)<<16|uint32(op))
	*to = append(*to, words...)
}

// text returns a string as words: its bytes and at least one zero.
func text(s string) []uint32 {
	words := make([]uint32, len(s)/4+1)
	for i := range len(s) {
		words[i/4] |= uint32(s[i]) << (i % 4 * 8)
	}
	return words
}

// Name gives an id a name for debuggers.
func (b *Builder) Name(id ID, name string) {
	instruction(&b.names, OpName, append([]uint32{uint32(id)}, text(name)...)...)
}

// Decorate adds a decoration to an id.
func (b *Builder) Decorate(id ID, decoration uint32, literals ...uint32) {
	instruction(&b.decorations, OpDecorate, append([]uint32{uint32(id), decoration}, literals...)...)
}

// define returns the id of a type, which it declares at its first use.
func (b *Builder) define(op Op, operands ...uint32) ID {
	bytes := make([]byte, 0, 64)
	for _, w := range operands {
		bytes = binary.LittleEndian.AppendUint32(bytes, w)
	}
	key := typeKey{op, string(bytes)}
	id, ok := b.types[key]
	if !ok {
		id = b.NewID()
		b.types[key] = id
		instruction(&b.globals, op, append([]uint32{uint32(id)}, operands...)...)
	}
	return id
}

// Void returns the type without values.
func (b *Builder) Void() ID { return b.define(OpTypeVoid) }

// Bool returns the type of conditions.
func (b *Builder) Bool() ID { return b.define(OpTypeBool) }

// Int returns the type of integers of so many bits. None has a sign: instructions do.
func (b *Builder) Int(bits int) ID {
	switch bits {
	case 8:
		b.Need(StorageBuffer8BitAccess)
	case 16:
		b.Need(StorageBuffer16BitAccess)
	}
	return b.define(OpTypeInt, uint32(bits), 0)
}

// Float returns the type of floating numbers of so many bits.
func (b *Builder) Float(bits int) ID {
	if bits == 64 {
		b.Need(Float64)
	}
	return b.define(OpTypeFloat, uint32(bits))
}

// Vector returns the type of vectors of n scalars.
func (b *Builder) Vector(scalar ID, n int) ID {
	return b.define(OpTypeVector, uint32(scalar), uint32(n))
}

// Array returns the type of arrays of n elements.
func (b *Builder) Array(elem ID, n int) ID {
	return b.define(OpTypeArray, uint32(elem), uint32(b.Uint(uint32(n))))
}

// ArrayOf returns the type of arrays whose length is a constant or a specialization constant.
func (b *Builder) ArrayOf(elem, length ID) ID {
	return b.define(OpTypeArray, uint32(elem), uint32(length))
}

// Struct returns the type of structs without a layout.
func (b *Builder) Struct(members ...ID) ID { return b.define(OpTypeStruct, words(members)...) }

// Pointer returns the type of pointers.
func (b *Builder) Pointer(class Class, to ID) ID {
	return b.define(OpTypePointer, uint32(class), uint32(to))
}

func (b *Builder) functionType(result ID, params []ID) ID {
	return b.define(OpTypeFunction, words(append([]ID{result}, params...))...)
}

func words(ids []ID) []uint32 {
	out := make([]uint32, len(ids))
	for i, id := range ids {
		out[i] = uint32(id)
	}
	return out
}

// Constant returns the constant with these bits of a type of at most 32 or, if wide, 64 bits.
func (b *Builder) Constant(typ ID, bits uint64, wide bool) ID {
	key := constant{typ, bits}
	id, ok := b.constants[key]
	if !ok {
		id = b.NewID()
		b.constants[key] = id
		b.values[id] = key
		w := []uint32{uint32(typ), uint32(id), uint32(bits)}
		if wide {
			w = append(w, uint32(bits>>32))
		}
		instruction(&b.globals, OpConstant, w...)
	}
	return id
}

// Value returns the bits of an id if it is a constant.
func (b *Builder) Value(id ID) (uint64, bool) {
	c, ok := b.values[id]
	return c.bits, ok
}

// Uint returns a constant of 32 bits.
func (b *Builder) Uint(v uint32) ID { return b.Constant(b.Int(32), uint64(v), false) }

// Ulong returns a constant of 64 bits.
func (b *Builder) Ulong(v uint64) ID { return b.Constant(b.Int(64), v, true) }

// Truth returns the constant true or false.
func (b *Builder) Truth(v bool) ID {
	op := OpConstantFalse
	if v {
		op = OpConstantTrue
	}
	key := typeKey{op: op}
	id, ok := b.types[key]
	if !ok {
		typ := b.Bool()
		id = b.NewID()
		b.types[key] = id
		instruction(&b.globals, op, uint32(typ), uint32(id))
	}
	return id
}

// IsTruth reports whether an id is the constant true or false.
func (b *Builder) IsTruth(id ID, v bool) bool {
	op := OpConstantFalse
	if v {
		op = OpConstantTrue
	}
	return b.types[typeKey{op: op}] == id
}

// Undef returns a value of a type that is not defined.
func (b *Builder) Undef(typ ID) ID {
	key := typeKey{op: OpUndef, rest: string(binary.LittleEndian.AppendUint32(nil, uint32(typ)))}
	id, ok := b.types[key]
	if !ok {
		id = b.NewID()
		b.types[key] = id
		instruction(&b.globals, OpUndef, uint32(typ), uint32(id))
	}
	return id
}

// SpecUint declares a specialization constant of 32 bits.
func (b *Builder) SpecUint(number, value uint32) ID {
	typ, id := b.Int(32), b.NewID()
	b.Decorate(id, SpecID, number)
	instruction(&b.globals, OpSpecConstant, uint32(typ), uint32(id), value)
	return id
}

// Variable declares a variable at module scope. id is 0, or one that NewID returned.
func (b *Builder) Variable(id ID, class Class, typ ID) ID {
	if id == 0 {
		id = b.NewID()
	}
	instruction(&b.globals, OpVariable, uint32(b.Pointer(class, typ)), uint32(id), uint32(class))
	b.variables = append(b.variables, id)
	return id
}

// Words declares the type of the push constants: a block with an array of n words of 32 bits.
func (b *Builder) Words(n int) ID {
	array := b.NewID()
	instruction(&b.globals, OpTypeArray, uint32(array), uint32(b.Int(32)), uint32(b.Uint(uint32(n))))
	b.Decorate(array, ArrayStride, 4)
	block := b.NewID()
	instruction(&b.globals, OpTypeStruct, uint32(block), uint32(array))
	b.Decorate(block, Block)
	instruction(&b.decorations, OpMemberDecorate, uint32(block), 0, Offset, 0)
	return block
}

// GLSL returns the set of instructions GLSL.std.450.
func (b *Builder) GLSL() ID {
	if b.glsl == 0 {
		b.glsl = b.NewID()
		instruction(&b.imports, OpExtInstImport, append([]uint32{uint32(b.glsl)}, text("GLSL.std.450")...)...)
	}
	return b.glsl
}

// file returns the string with the name of a file.
func (b *Builder) file(name string) ID {
	id, ok := b.files[name]
	if !ok {
		id = b.NewID()
		b.files[name] = id
		instruction(&b.strings, OpString, append([]uint32{uint32(id)}, text(name)...)...)
	}
	return id
}

// EntryPoint makes a function a kernel, whose group size are the constants of size. Drivers may not ignore signs of
// zeros, infinities and NaNs, as they otherwise do where they take a selection for a maximum: the device has to have
// shaderSignedZeroInfNanPreserveFloat32, and Float64 if the module has double. It has to be called after all variables
// of module scope and all functions.
func (b *Builder) EntryPoint(f ID, name string, size [3]ID) {
	w := append([]uint32{glCompute, uint32(f)}, text(name)...)
	instruction(&b.entries, OpEntryPoint, append(w, words(b.variables)...)...)
	instruction(&b.modes, OpExecutionModeID, uint32(f), localSizeID, uint32(size[0]), uint32(size[1]), uint32(size[2]))
	b.Need(signedZeroInfNanPreserve)
	instruction(&b.modes, OpExecutionMode, uint32(f), preserveSpecials, 32)
	b.Need(roundingModeRTE)
	instruction(&b.modes, OpExecutionMode, uint32(f), roundsToNearest, 32)
	if b.capabilities[Float64] {
		instruction(&b.modes, OpExecutionMode, uint32(f), preserveSpecials, 64)
	}
}

// Bytes returns the module.
func (b *Builder) Bytes() []byte {
	head := []uint32{magic, version, 0, uint32(b.last) + 1, 0}
	var caps []Capability
	for c := range b.capabilities {
		caps = append(caps, c)
	}
	slices.Sort(caps)
	for _, c := range caps {
		instruction(&head, OpCapability, uint32(c))
	}
	model := memoryGLSL450
	if b.vulkanModel {
		model = memoryVulkan
	}
	var memory []uint32
	instruction(&memory, OpMemoryModel, physicalStorageBuffer64, model)
	sections := [][]uint32{head, b.imports, memory, b.entries, b.modes, b.strings, b.names, b.decorations, b.globals,
		b.functions}
	n := 0
	for _, s := range sections {
		n += len(s)
	}
	out := make([]byte, 0, 4*n)
	for _, s := range sections {
		for _, w := range s {
			out = binary.LittleEndian.AppendUint32(out, w)
		}
	}
	return out
}
