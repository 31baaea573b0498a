package spirv

// Entry points: arguments, ids of work items.

import (
	"github.com/concord-compute/concord/source/internal/spirv/module"
	"github.com/concord-compute/concord/source/internal/tree"
)

// blockAlign is the alignment of a kernel's local memory, and of the constants.
const blockAlign = 128

// entry is an entry point that was written.
type entry struct {
	Kernel
	id id
}

// kernel writes a kernel's function and its entry point, whose arguments are where the layout says.
func (e *emitter) kernel(fn *tree.Function) entry {
	to := e.function(fn)
	f := &function{emitter: e, p: e.p, decl: fn, vars: map[*tree.Symbol]*variable{}, top: to.top, pos: fn.Pos}
	f.f = e.b.Function(e.b.Void())
	e.b.Name(f.f.ID, EntryPrefix+fn.Name)
	offsets, bytes := layout(fn)
	out := entry{Kernel{Name: fn.Name, LocalBytes: to.localBytes, ReqdLocal: fn.Attrs.Reqd, ArgBytes: bytes,
		InMemory: bytes > 4*(pushWords-pushArguments)}, f.f.ID}
	f.line(fn.Pos)
	var block id
	if out.InMemory {
		block = f.pushLong(pushBlock)
	}
	var args []value
	for i, s := range fn.Params {
		args = append(args, f.argument(s, offsets[i], block))
	}
	var first []id
	if to.hasLocalBase() {
		first = []id{f.uint(localStart)}
	}
	f.invoke(to, first, args)
	f.f.Return(0)
	f.f.End()
	e.arenaSize = max(e.arenaSize, f.top)
	return out
}

// layout returns the offsets of a kernel's arguments and their size: a pointer to device memory has 8 bytes at a
// multiple of 8, an offset in local memory 4 at a multiple of 4, a value its size rounded up to 4 at a multiple of 4.
func layout(fn *tree.Function) (offsets []int, bytes int) {
	for _, s := range fn.Params {
		size, align := 4, 4
		switch {
		case !s.Type.IsPointer():
			size, _ = s.Type.Size()
		case isFar(s.Type.Elem.Space):
			size, align = 8, 8
		}
		bytes = tree.AlignUp(bytes, align)
		offsets = append(offsets, bytes)
		bytes += tree.AlignUp(size, 4)
	}
	return offsets, bytes
}

// argument returns the value of a parameter. block is the address of the arguments, or 0 if they are push constants.
func (f *function) argument(s *tree.Symbol, off int, block id) value {
	p := place{t: s.Type.Bare(), space: tree.Constant, base: block, off: off, align: 4}
	if s.Type.IsPointer() {
		p.t, p.align = tree.ULongType, 8
		if !isFar(s.Type.Elem.Space) {
			p.t = tree.UIntType
		}
		v := f.fetch(p)
		if p.t == tree.UIntType {
			return scalar(s.Type, f.add(tree.UInt, v, f.uint(localStart)))
		}
		return scalar(s.Type, v)
	}
	if parts, ok := f.leaves(s.Type); ok {
		out := value{t: s.Type.Bare()}
		for _, l := range parts {
			out.ids = append(out.ids, f.fetch(p.placeAt(l.off, l.t)))
		}
		return out
	}
	to := f.temporary(s.Type)
	size, _ := s.Type.Size()
	for at := 0; at < size; at += 4 {
		t := tree.UIntType
		if size-at < 4 {
			t = tree.Scalar(tree.UChar)
			for ; at < size; at++ {
				f.storeScalar(to.placeAt(at, t), f.fetch(p.placeAt(at, t)))
			}
			break
		}
		f.storeScalar(to.placeAt(at, t), f.fetch(p.placeAt(at, t)))
	}
	return value{t: s.Type.Bare(), at: &to}
}

// fetch loads a scalar argument.
func (f *function) fetch(p place) id {
	if p.base != 0 {
		return f.loadScalar(p)
	}
	k := p.t.Base
	word := f.pushWord(pushArguments + p.off/4)
	switch n := tree.KindSize(k); n {
	case 8:
		return f.joined(k, word, f.pushWord(pushArguments+p.off/4+1))
	case 4:
		return f.bitcast(word, tree.UInt, k)
	}
	return f.narrow(f.shift(module.OpShiftRightLogical, tree.UInt, word, p.off%4*8), k)
}

// pushWord loads a word of the push constants.
func (f *function) pushWord(i int) id {
	p := f.f.Emit(module.OpAccessChain, f.b.Pointer(module.PushConstant, f.b.Int(32)), f.push, f.uint(0), f.uint(i))
	return f.f.Load(f.b.Int(32), p)
}

// pushLong loads an address from the push constants.
func (f *function) pushLong(i int) id { return f.joined(tree.ULong, f.pushWord(i), f.pushWord(i+1)) }

// input returns a component of a built-in variable of three components, or the built-in variable of one.
func (f *function) input(number uint32, component int) id {
	typ := f.b.Int(32)
	whole := typ
	if component >= 0 {
		whole = f.b.Vector(typ, 3)
	}
	v := f.inputs[number]
	if v == 0 {
		v = f.b.Variable(0, module.Input, whole)
		f.b.Decorate(v, module.BuiltIn, number)
		f.inputs[number] = v
	}
	if component < 0 {
		return f.f.Load(typ, v)
	}
	p := f.f.Emit(module.OpAccessChain, f.b.Pointer(module.Input, typ), v, f.uint(component))
	return f.f.Load(typ, p)
}

// idOf returns the value of get_global_id and its like in a dimension. A launch may be cut into several that begin at
// different groups.
func (f *function) idOf(name string, dim int) id {
	switch name {
	case "get_global_id":
		first := f.op(module.OpIMul, tree.UInt, f.idOf("get_group_id", dim), f.size[dim])
		return f.op(module.OpIAdd, tree.UInt, first, f.input(module.LocalInvocationID, dim))
	case "get_local_id":
		return f.input(module.LocalInvocationID, dim)
	case "get_group_id":
		return f.op(module.OpIAdd, tree.UInt, f.input(module.WorkgroupID, dim), f.pushWord(pushFirstGroup+dim))
	case "get_global_size":
		return f.pushWord(dim)
	case "get_local_size":
		return f.size[dim]
	case "get_num_groups":
		return f.op(module.OpUDiv, tree.UInt, f.pushWord(dim), f.size[dim])
	}
	return f.uint(0) // get_global_offset
}

// idFunction writes get_global_id(dim) and its like; in dimensions that are not there, ids are 0 and sizes 1.
func (f *function) idFunction(name string, dim value) id {
	outside := f.uint(0)
	if name == "get_global_size" || name == "get_local_size" || name == "get_num_groups" {
		outside = f.uint(1)
	}
	if c, ok := f.b.Value(dim.one()); ok {
		if c > 2 {
			return f.convert(outside, tree.UInt, tree.ULong)
		}
		return f.convert(f.idOf(name, int(c)), tree.UInt, tree.ULong)
	}
	out := outside
	for d := range 3 {
		is := f.test(module.OpIEqual, dim.one(), f.uint(d))
		out = f.choose(tree.UInt, is, f.idOf(name, d), out)
	}
	return f.convert(out, tree.UInt, tree.ULong)
}
