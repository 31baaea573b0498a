package spirv

// Constants of program scope: bytes that the module's user puts into memory.

import (
	"maps"
	"slices"

	"github.com/concord-compute/concord/source/internal/tree"
)

// constantAt returns the offset of a constant, which is placed at its first use. Pointers among the constants are
// distances from their begin; see relocated.
func (f *function) constantAt(s *tree.Symbol) int {
	if at, ok := f.offsets[s]; ok {
		return at
	}
	size, _ := s.Type.Size()
	at := f.reserve(size, tree.LocalAlignment(s.Type))
	f.offsets[s] = at
	if s.Init != nil {
		f.fill(at, s.Type, s.Init)
	}
	return at
}

// reserve appends zeros to the constants. The first bytes belong to nothing, since no distance is 0.
func (f *function) reserve(size, align int) int {
	at := tree.AlignUp(max(len(f.constants), blockAlign), align)
	f.Wrote(at+size-len(f.constants), f.pos) // which ends the work if they are too many
	f.emitter.constants = append(f.constants, make([]byte, at+size-len(f.constants))...)
	return at
}

// fill writes the bytes of an initializer.
func (f *function) fill(at int, t *tree.Type, n *tree.Init) {
	if n.Value != nil {
		f.fillValue(at, t, n.Value)
		return
	}
	for _, i := range slices.Sorted(maps.Keys(n.Kids)) {
		f.Step()
		k := n.Kids[i]
		switch t.Kind {
		case tree.TRecord:
			m := t.Rec.Fields[i]
			f.fill(at+m.Offset, m.Type, k)
		case tree.TArray:
			size, _ := t.Elem.Size()
			f.fill(at+i*size, t.Elem, k)
		default:
			f.fill(at+i*tree.KindSize(t.Base), tree.Scalar(t.Base), k)
		}
	}
}

func (f *function) fillValue(at int, t *tree.Type, e *tree.Expr) {
	if v, ok := f.Lanes(e); ok {
		var bytes []byte
		for i := range t.Width() {
			bytes = v[min(i, len(v)-1)].Convert(tree.Scalar(t.Base)).AppendTo(bytes)
		}
		copy(f.constants[at:], bytes)
		return
	}
	if t.IsPointer() {
		if to, ok := f.constantPointer(e); ok {
			copy(f.constants[at:], tree.IntValue(tree.ULong, int64(to)).AppendTo(nil))
			return
		}
	}
	f.refuse(f.p.PosOf(e), "constant", "this initializer of a constant cannot be computed before the program runs")
}

// constantPointer returns the distance that a constant pointer has from the begin of the constants.
func (f *function) constantPointer(e *tree.Expr) (int, bool) {
	switch e.Op {
	case tree.OpParen, tree.OpCast, tree.OpConv:
		if v := tree.Fold(e.A); v.OK {
			return int(v.Int()), v.IsZero()
		}
		return f.constantPointer(e.A)
	case tree.OpNull:
		return 0, true
	case tree.OpDecay:
		return f.constantPlace(e.A)
	case tree.OpUnary:
		if e.Text == "&" {
			return f.constantPlace(e.A)
		}
	case tree.OpBinary:
		a, b := e.A, e.B
		if !a.Type.IsPointer() {
			a, b = b, a
		}
		if !a.Type.IsPointer() {
			return 0, false
		}
		base, ok := f.constantPointer(a)
		n := tree.Fold(b)
		size, _ := a.Type.Elem.Size()
		if e.Text == "-" {
			size = -size
		}
		return base + int(n.Int())*size, ok && n.OK
	}
	return 0, false
}

// constantPlace returns the distance of an object.
func (f *function) constantPlace(e *tree.Expr) (int, bool) {
	switch e.Op {
	case tree.OpParen:
		return f.constantPlace(e.A)
	case tree.OpString:
		return f.textAt(e.Text), true
	case tree.OpSym:
		if e.Sym.Inst && e.Sym.Type.Space == tree.Constant {
			return f.constantAt(e.Sym), true
		}
	case tree.OpMember:
		at, ok := f.constantPlace(e.A)
		for _, m := range e.Path {
			at += m.Offset
		}
		return at, ok
	case tree.OpIndex:
		at, ok := f.constantPointer(e.A)
		n := tree.Fold(e.B)
		size, _ := e.Type.Size()
		return at + int(n.Int())*size, ok && n.OK
	case tree.OpUnary:
		if e.Text == "*" {
			return f.constantPointer(e.A)
		}
	}
	return 0, false
}

// textAt returns the offset of a string.
func (f *function) textAt(literal string) int {
	at, ok := f.texts[literal]
	if !ok {
		s, _ := tree.StringBytes(literal)
		at = f.reserve(len(s)+1, 1)
		copy(f.constants[at:], s)
		f.texts[literal] = at
	}
	return at
}
