package spirv

import (
	"github.com/concord-compute/concord/source/internal/spirv/module"
	"github.com/concord-compute/concord/source/internal/tree"
)

// variable is a variable or parameter of a function.
type variable struct {
	ids  []id // of the function's variables, one for each leaf of its elements; nil if it is in the arena
	dims int  // how many levels of arrays it has
	at   int  // its offset in the arena
}

// place is an object: a part of a variable of the function, or memory.
type place struct {
	t *tree.Type
	v *variable // nil for memory

	// a part of a variable
	first int // its first leaf
	index id  // of the element, if the variable is an array; 0 for the first

	// memory: base + off + terms
	space    tree.Space
	base     id // a pointer; 0 for none
	off      int
	terms    []term
	align    int
	volatile bool

	lane id // not 0: the component of the vector t with this number
}

// term is a part of an address: an index, as wide as the address, times a number of bytes.
type term struct {
	index id
	scale int
}

// memory returns the object of type t that a pointer points to.
func memory(t *tree.Type, pointer id) place {
	return place{t: t, space: t.Space, base: pointer, align: t.Alignment(), volatile: t.Q&tree.QVolatile != 0}
}

// known returns the object at a fixed place in local or private memory.
func known(t *tree.Type, s tree.Space, off, align int) place {
	return place{t: t, space: s, off: off, align: align, volatile: t.Q&tree.QVolatile != 0}
}

// placeAt returns the place of the bytes at an offset in p, as an object of type t.
func (p place) placeAt(off int, t *tree.Type) place {
	p.t = t
	p.off += off
	if off != 0 {
		p.align = min(p.align, off&-off)
	}
	return p
}

// member returns a member of a record.
func (f *function) member(p place, m *tree.Field) place {
	if p.v == nil {
		q := p.placeAt(m.Offset, m.Type)
		q.volatile = q.volatile || m.Type.Q&tree.QVolatile != 0
		return q
	}
	for _, before := range p.t.Rec.Fields[:m.Index] {
		parts, _ := f.leaves(before.Type)
		p.first += len(parts)
	}
	p.t = m.Type
	return p
}

// element returns the element of an array or of what a pointer points to, of type t; the index has kind k.
func (f *function) element(p place, t *tree.Type, index id, k tree.Kind) place {
	size, _ := t.Size()
	p.t = t
	if p.v != nil {
		n := 1
		for a := t; a.Kind == tree.TArray; a = a.Elem {
			n *= a.N
		}
		i := f.mul(tree.UInt, f.convert(index, k, tree.UInt), n)
		if p.index != 0 {
			i = f.add(tree.UInt, p.index, i)
		}
		p.index = i
		return p
	}
	if c, ok := f.b.Value(index); ok {
		p.off += int(tree.BitsValue(k, c).Int()) * size
	} else {
		p.terms = append(p.terms[:len(p.terms):len(p.terms)], term{f.convert(index, k, addressKind(p.space)), size})
	}
	p.align = min(p.align, t.Alignment())
	return p
}

// component returns component i of a vector.
func (f *function) component(p place, i int) place {
	t := tree.Scalar(p.t.Base)
	if p.v != nil {
		p.first += i
		p.t = t
		return p
	}
	return p.placeAt(i*tree.KindSize(p.t.Base), t)
}

// addressOf returns the pointer to an object in memory.
func (f *function) addressOf(p place) id {
	if p.v != nil {
		panic("spirv: the address of a variable that is not in memory")
	}
	k := addressKind(p.space)
	a := p.base
	for _, t := range p.terms {
		x := f.mul(k, t.index, t.scale)
		if a == 0 {
			a = x
		} else {
			a = f.add(k, a, x)
		}
	}
	off := f.constant(k, uint64(p.off))
	if a == 0 {
		return off
	}
	return f.add(k, a, off)
}

// settled returns p with its address computed.
func (f *function) settled(p place) place {
	if p.v == nil && (len(p.terms) > 1 || len(p.terms) == 1 && p.base != 0) {
		off := p.off
		p.off = 0
		p.base, p.terms = f.addressOf(p), nil
		p.off = off
	}
	return p
}

// array returns the pointer to word i of the array of a space.
func (f *function) array(s tree.Space, i id) id {
	class, of := module.Private, f.arena
	if s == tree.Local {
		class, of = module.Workgroup, f.local
		f.usesLocal = true
	} else {
		f.usesArena = true
	}
	return f.f.Emit(module.OpAccessChain, f.b.Pointer(class, f.b.Int(32)), of, i)
}

// wordOf returns the index of the word at offset off of a place in local or private memory that is aligned to words.
func (f *function) wordOf(p place, off int) id {
	off += p.off
	if p.space == tree.Local {
		off -= localStart
	}
	words := off%4 == 0
	for _, t := range p.terms {
		words = words && t.scale%4 == 0
	}
	if !words {
		p.off = off
		return f.shift(module.OpShiftRightLogical, tree.UInt, f.addressOf(p), 2)
	}
	i := id(0)
	if p.base != 0 {
		i = f.shift(module.OpShiftRightArithmetic, tree.Int, p.base, 2) // a pointer may lie in front of what it points into
	}
	for _, t := range p.terms {
		x := f.mul(tree.UInt, t.index, t.scale/4)
		if i == 0 {
			i = x
		} else {
			i = f.add(tree.UInt, i, x)
		}
	}
	c := f.constant(tree.UInt, uint64(off/4))
	if i == 0 {
		return c
	}
	return f.add(tree.UInt, i, c)
}
