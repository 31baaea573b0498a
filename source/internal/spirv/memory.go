package spirv

// Loads and stores. Scalars that may not be aligned are accessed byte by byte.

import (
	"github.com/concord-compute/concord/source/internal/spirv/module"
	"github.com/concord-compute/concord/source/internal/tree"
)

// load returns the value of an object.
func (f *function) load(p place) value {
	if p.lane != 0 {
		return scalar(tree.Scalar(p.t.Base), f.pick(f.load(p.whole()), p.lane))
	}
	out := value{t: p.t.Bare()}
	parts, ok := f.leaves(p.t)
	switch {
	case !ok:
		out.at = &p
	case p.v != nil:
		for i, l := range parts {
			out.ids = append(out.ids, f.f.Load(f.regType(l.t), f.variableAt(p, p.first+i, l.t)))
		}
	case p.t.Kind == tree.TVector && isFar(p.space) && p.align >= tree.KindSize(p.t.Base):
		return f.loadVector(p)
	default:
		p = f.settled(p)
		for _, l := range parts {
			out.ids = append(out.ids, f.loadScalar(p.placeAt(l.off, l.t)))
		}
	}
	return out
}

// whole returns the vector that a place is a component of.
func (p place) whole() place {
	p.lane = 0
	return p
}

// store assigns to an object.
func (f *function) store(p place, v value) {
	if p.lane != 0 {
		f.storeComponent(p, v.one())
		return
	}
	parts, ok := f.leaves(p.t)
	switch {
	case !ok:
		f.copy(p, *v.at)
	case p.v != nil:
		for i, l := range parts {
			f.f.Store(f.variableAt(p, p.first+i, l.t), v.ids[i])
		}
	case p.t.Kind == tree.TVector && isFar(p.space) && p.align >= tree.KindSize(p.t.Base):
		f.storeVector(p, v)
	default:
		p = f.settled(p)
		for i, l := range parts {
			f.storeScalar(p.placeAt(l.off, l.t), v.ids[i])
		}
	}
}

// storeComponent assigns to a component of a vector whose number is computed. One in memory is stored alone, since
// other items may store to the others.
func (f *function) storeComponent(p place, v id) {
	w := p.whole()
	if w.v == nil {
		f.storeScalar(f.element(w, tree.Scalar(p.t.Base), p.lane, tree.UInt), v)
		return
	}
	all := f.load(w)
	typ := f.kindType(p.t.Base)
	for i := range all.ids {
		is := f.f.Emit(module.OpIEqual, f.b.Bool(), p.lane, f.uint(i))
		all.ids[i] = f.f.Emit(module.OpSelect, typ, is, v, all.ids[i])
	}
	f.store(w, all)
}

// pick returns the component of a vector with a computed number.
func (f *function) pick(v value, lane id) id {
	if c, ok := f.b.Value(lane); ok && c < uint64(len(v.ids)) {
		return v.ids[c]
	}
	out := v.ids[0]
	for i := 1; i < len(v.ids); i++ {
		is := f.f.Emit(module.OpIEqual, f.b.Bool(), lane, f.uint(i))
		out = f.f.Emit(module.OpSelect, f.kindType(v.t.Base), is, v.ids[i], out)
	}
	return out
}

// variableAt returns a pointer to a leaf of a variable of the function.
func (f *function) variableAt(p place, leaf int, t *tree.Type) id {
	if p.v.dims == 0 {
		return p.v.ids[leaf]
	}
	index := p.index
	if index == 0 {
		index = f.uint(0)
	}
	return f.f.Emit(module.OpAccessChain, f.b.Pointer(module.Function, f.regType(t)), p.v.ids[leaf], index)
}

// access returns the operands of a load or store of device memory. Where items exchange data, barriers and fences make
// it available and visible; doing that at each access would be a barrier for some drivers, and hang them in loops
// whose number of rounds differs.
func (f *function) access(p place, align int) []uint32 {
	return []uint32{f.shared(p) | module.Aligned, uint32(align)}
}

// wordAccess returns the operands of a load or store of local memory; private memory needs none.
func (f *function) wordAccess(p place) []uint32 {
	if bits := f.shared(p); p.space == tree.Local && bits != 0 {
		return []uint32{bits}
	}
	return nil
}

func (f *function) shared(p place) (bits uint32) {
	if p.volatile {
		bits = module.Volatile
	}
	if f.b.VulkanModel() {
		bits |= module.NonPrivatePointer
	}
	return bits
}

// storageType returns the type of a scalar of kind k in device memory.
func (f *function) storageType(k tree.Kind) id {
	if isFloating(k) {
		return f.kindType(k)
	}
	return f.b.Int(8 * tree.KindSize(k))
}

// pointerTo returns the pointer to device memory at a place.
func (f *function) pointerTo(p place, typ id) id {
	return f.f.Emit(module.OpConvertUToPtr, f.b.Pointer(module.PhysicalStorageBuffer, typ), f.addressOf(p))
}

// alignFor returns the alignment to declare for an access of size bytes.
func alignFor(p place, size int) int { return min(p.align, max(size, 16)) }

// extended returns a loaded scalar as it is held.
func (f *function) extended(k tree.Kind, v id) id {
	if tree.KindSize(k) >= 4 {
		return v
	}
	op := module.OpUConvert
	if isSigned(k) {
		op = module.OpSConvert
	}
	return f.f.Emit(op, f.b.Int(32), v)
}

// memoryKind returns the kind as which a leaf is in memory: pointers and events are 64 bits there.
func memoryKind(t *tree.Type) tree.Kind {
	if t.Kind != tree.TScalar {
		return tree.ULong
	}
	return t.Base
}

// loadScalar loads a leaf.
func (f *function) loadScalar(p place) id {
	k := memoryKind(p.t)
	var v id
	switch size := tree.KindSize(k); {
	case p.align < size:
		v = f.loadBytes(p, k)
	case isFar(p.space):
		typ := f.storageType(k)
		v = f.extended(k, f.f.Load(typ, f.pointerTo(p, typ), f.access(p, alignFor(p, size))...))
	case size >= 4:
		v = f.loadWords(p, k)
	default:
		v = f.loadPart(p, k)
	}
	if p.t.Kind == tree.TScalar {
		return v
	}
	if p.t.Kind == tree.TPointer && p.t.Elem.Space == tree.Constant && p.space == tree.Constant {
		return f.relocated(v)
	}
	return f.convert(v, k, regKind(p.t))
}

// relocated returns the address that a pointer among the constants stands for: there it is the distance from the
// constants' begin.
func (f *function) relocated(v id) id {
	sum := f.add(tree.ULong, v, f.pushLong(pushConstants))
	null := f.f.Emit(module.OpIEqual, f.b.Bool(), v, f.b.Ulong(0))
	return f.f.Emit(module.OpSelect, f.b.Int(64), null, v, sum)
}

// loadWords loads one or two words of local or private memory.
func (f *function) loadWords(p place, k tree.Kind) id {
	word := func(off int) id {
		return f.f.Load(f.b.Int(32), f.array(p.space, f.wordOf(p, off)), f.wordAccess(p)...)
	}
	if !isWide(k) {
		return f.bitcast(word(0), tree.UInt, k)
	}
	p = f.settled(p)
	return f.joined(k, word(0), word(4))
}

// joined returns the value of a 64-bit kind with these words.
func (f *function) joined(k tree.Kind, low, high id) id {
	pair := f.f.Emit(module.OpCompositeConstruct, f.b.Vector(f.b.Int(32), 2), low, high)
	return f.f.Emit(module.OpBitcast, f.kindType(k), pair)
}

// halves returns the words of a value of a 64-bit kind.
func (f *function) halves(v id) (low, high id) {
	pair := f.f.Emit(module.OpBitcast, f.b.Vector(f.b.Int(32), 2), v)
	low = f.f.Emit(module.OpCompositeExtract, f.b.Int(32), pair, 0)
	return low, f.f.Emit(module.OpCompositeExtract, f.b.Int(32), pair, 1)
}

// bitcast returns a value of one kind as one of another of the same size in registers.
func (f *function) bitcast(v id, from, to tree.Kind) id {
	if f.kindType(from) == f.kindType(to) {
		return v
	}
	if c, ok := f.b.Value(v); ok {
		return f.constant(to, c)
	}
	return f.f.Emit(module.OpBitcast, f.kindType(to), v)
}

// byteAt returns the word of local or private memory that a byte is in, and the number of its first bit.
func (f *function) byteAt(p place) (word, bit id) {
	if p.space == tree.Local {
		p.off -= localStart
	}
	a := f.addressOf(p)
	word = f.array(p.space, f.shift(module.OpShiftRightLogical, tree.UInt, a, 2))
	return word, f.shift(module.OpShiftLeftLogical, tree.UInt, f.op(module.OpBitwiseAnd, tree.UInt, a, f.uint(3)), 3)
}

// loadPart loads 8 or 16 bits of local or private memory.
func (f *function) loadPart(p place, k tree.Kind) id {
	at, bit := f.byteAt(p)
	word := f.f.Load(f.b.Int(32), at, f.wordAccess(p)...)
	op := module.OpBitFieldUExtract
	if isSigned(k) {
		op = module.OpBitFieldSExtract
	}
	return f.f.Emit(op, f.b.Int(32), word, bit, f.uint(8*tree.KindSize(k)))
}

// loadBytes loads a scalar that may not be aligned.
func (f *function) loadBytes(p place, k tree.Kind) id {
	p = f.settled(p)
	unit, n := tree.UChar, tree.KindSize(k)
	if p.align == 2 {
		unit = tree.UShort
	} else if p.align == 4 {
		unit = tree.UInt
	}
	var words []id
	for at := 0; at < n; at += tree.KindSize(unit) {
		v := f.loadScalar(p.placeAt(at, tree.Scalar(unit)))
		if at%4 == 0 {
			words = append(words, v)
			continue
		}
		v = f.shift(module.OpShiftLeftLogical, tree.UInt, v, at%4*8)
		words[at/4] = f.op(module.OpBitwiseOr, tree.UInt, words[at/4], v)
	}
	if len(words) == 2 {
		return f.joined(k, words[0], words[1])
	}
	if n < 4 {
		return f.narrow(words[0], k)
	}
	return f.bitcast(words[0], tree.UInt, k)
}

// storeScalar stores a leaf.
func (f *function) storeScalar(p place, v id) {
	k := memoryKind(p.t)
	if p.t.Kind != tree.TScalar {
		v = f.convert(v, regKind(p.t), k)
	}
	switch size := tree.KindSize(k); {
	case p.align < size:
		f.storeBytes(p, k, v)
	case isFar(p.space):
		typ := f.storageType(k)
		if size < 4 {
			v = f.f.Emit(module.OpUConvert, typ, v)
		}
		f.f.Store(f.pointerTo(p, typ), v, f.access(p, alignFor(p, size))...)
	case size == 4:
		f.storeWord(p, 0, f.bitcast(v, k, tree.UInt))
	case size == 8:
		p = f.settled(p)
		low, high := f.halves(v)
		f.storeWord(p, 0, low)
		f.storeWord(p, 4, high)
	default:
		f.storePart(p, size, v)
	}
}

func (f *function) storeWord(p place, off int, v id) {
	f.f.Store(f.array(p.space, f.wordOf(p, off)), v, f.wordAccess(p)...)
}

// storePart stores 8 or 16 bits of local or private memory. In local memory other items may store to the rest of
// the word at the same time, so that it is changed by atomics. Of different values that items store to the same
// place at the same time, the bits may mix.
func (f *function) storePart(p place, size int, v id) {
	at, bit := f.byteAt(p)
	mask := uint32(1)<<(8*size) - 1
	v = f.op(module.OpShiftLeftLogical, tree.UInt, f.op(module.OpBitwiseAnd, tree.UInt, v, f.b.Uint(mask)), bit)
	keep := f.f.Emit(module.OpNot, f.b.Int(32), f.op(module.OpShiftLeftLogical, tree.UInt, f.b.Uint(mask), bit))
	if p.space == tree.Local {
		scope, none := f.b.Uint(module.ScopeWorkgroup), f.uint(0)
		f.f.Emit(module.OpAtomicAnd, f.b.Int(32), at, scope, none, keep)
		f.f.Emit(module.OpAtomicOr, f.b.Int(32), at, scope, none, v)
		return
	}
	old := f.f.Load(f.b.Int(32), at)
	f.f.Store(at, f.op(module.OpBitwiseOr, tree.UInt, f.op(module.OpBitwiseAnd, tree.UInt, old, keep), v))
}

// storeBytes stores a scalar that may not be aligned.
func (f *function) storeBytes(p place, k tree.Kind, v id) {
	p = f.settled(p)
	unit, n := tree.UChar, tree.KindSize(k)
	if p.align == 2 {
		unit = tree.UShort
	} else if p.align == 4 {
		unit = tree.UInt
	}
	words := []id{0}
	if n == 8 {
		low, high := f.halves(v)
		words = []id{low, high}
	} else {
		words[0] = f.bitcast(v, k, tree.UInt)
	}
	for at := 0; at < n; at += tree.KindSize(unit) {
		x := f.shift(module.OpShiftRightLogical, tree.UInt, words[at/4], at%4*8)
		f.storeScalar(p.placeAt(at, tree.Scalar(unit)), x)
	}
}

// chunk returns how many of the remaining lanes one access has.
func chunk(left int) int { return min(left, 4) }

// loadVector loads a vector of device memory whose lanes are aligned.
func (f *function) loadVector(p place) value {
	out := value{t: p.t.Bare()}
	k, size := p.t.Base, tree.KindSize(p.t.Base)
	p = f.settled(p)
	for i := 0; i < p.t.N; {
		n := chunk(p.t.N - i)
		if n == 1 {
			out.ids = append(out.ids, f.loadScalar(p.placeAt(i*size, tree.Scalar(k))))
			break
		}
		typ := f.b.Vector(f.storageType(k), n)
		q := p.placeAt(i*size, p.t)
		v := f.f.Load(typ, f.pointerTo(q, typ), f.access(q, alignFor(q, n*size))...)
		if size < 4 {
			op := module.OpUConvert
			if isSigned(k) {
				op = module.OpSConvert
			}
			v = f.f.Emit(op, f.b.Vector(f.b.Int(32), n), v)
		}
		for j := range n {
			out.ids = append(out.ids, f.f.Emit(module.OpCompositeExtract, f.kindType(k), v, id(j)))
		}
		i += n
	}
	return out
}

// storeVector stores a vector to device memory whose lanes are aligned.
func (f *function) storeVector(p place, v value) {
	k, size := p.t.Base, tree.KindSize(p.t.Base)
	p = f.settled(p)
	for i := 0; i < p.t.N; {
		n := chunk(p.t.N - i)
		if n == 1 {
			f.storeScalar(p.placeAt(i*size, tree.Scalar(k)), v.ids[i])
			break
		}
		typ := f.b.Vector(f.storageType(k), n)
		all := f.f.Emit(module.OpCompositeConstruct, f.b.Vector(f.kindType(k), n), v.ids[i:i+n]...)
		if size < 4 {
			all = f.f.Emit(module.OpUConvert, typ, all)
		}
		q := p.placeAt(i*size, p.t)
		f.f.Store(f.pointerTo(q, typ), all, f.access(q, alignFor(q, n*size))...)
		i += n
	}
}

// copy copies an object in memory to another place. A long one is copied by a loop.
func (f *function) copy(to, from place) {
	size, _ := to.t.Size()
	to, from = f.settled(to), f.settled(from)
	if base := tree.ArrayBase(to.t); from.space == tree.Constant && base.Kind == tree.TRecord && base.Rec.Pointers {
		f.copyParts(to, from)
		return
	}
	unit := tree.UInt
	for _, k := range []tree.Kind{tree.UShort, tree.UChar} {
		if n := tree.KindSize(unit); size%n != 0 || to.align < n || from.align < n {
			unit = k
		}
	}
	n := tree.KindSize(unit)
	const most = 16
	if size/n <= most {
		for at := 0; at < size; at += n {
			t := tree.Scalar(unit)
			f.storeScalar(to.placeAt(at, t), f.loadScalar(from.placeAt(at, t)))
		}
		return
	}
	f.count(f.uint(size/n), func(i id) {
		t := tree.Scalar(unit)
		to.align, from.align = n, n
		f.storeScalar(f.element(to, t, i, tree.UInt), f.loadScalar(f.element(from, t, i, tree.UInt)))
	})
}

// copyParts copies a constant with pointers in it, which are relocated.
func (f *function) copyParts(to, from place) {
	if _, ok := f.leaves(to.t); ok {
		f.store(to, f.load(from))
		return
	}
	switch t := to.t; {
	case t.Kind == tree.TArray:
		f.count(f.uint(t.N), func(i id) {
			f.copyParts(f.settled(f.element(to, t.Elem, i, tree.UInt)), f.settled(f.element(from, t.Elem, i, tree.UInt)))
		})
	case t.Rec.Union:
		f.refuse(f.pos, "union", "a constant union with a pointer in it cannot be copied in SPIR-V")
	default:
		for _, m := range t.Rec.Fields {
			f.copyParts(f.member(to, m), f.member(from, m))
		}
	}
}

// count writes a loop over the integers below n.
func (f *function) count(n id, body func(i id)) {
	i := f.f.Variable(f.b.Int(32))
	f.f.Store(i, f.uint(0))
	head, test, first, next, end := f.b.NewID(), f.b.NewID(), f.b.NewID(), f.b.NewID(), f.b.NewID()
	f.f.Label(head)
	f.f.Loop(end, next, test, 0)
	f.f.Label(test)
	f.f.BranchIf(f.f.Emit(module.OpULessThan, f.b.Bool(), f.f.Load(f.b.Int(32), i), n), first, end)
	f.f.Label(first)
	body(f.f.Load(f.b.Int(32), i))
	f.f.Label(next)
	f.f.Store(i, f.add(tree.UInt, f.f.Load(f.b.Int(32), i), f.uint(1)))
	f.f.Branch(head)
	f.f.Merge(end)
}
