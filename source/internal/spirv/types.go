package spirv

import "github.com/concord-compute/concord/source/internal/tree"

// leaf is a scalar or pointer in an object.
type leaf struct {
	t   *tree.Type
	off int // in bytes
}

// maxLeaves is the largest number of leaves of a record that is a value; larger ones, and those with arrays or
// unions in them, are copied in memory.
const maxLeaves = 64

// leaves returns the parts of an object of type t in order. ok is false if it has to be in memory.
func (e *emitter) leaves(t *tree.Type) (list []leaf, ok bool) {
	switch t.Kind {
	case tree.TVector:
		n := tree.KindSize(t.Base)
		for i := range t.N {
			list = append(list, leaf{tree.Scalar(t.Base), i * n})
		}
		return list, true
	case tree.TRecord:
		known, asked := e.records[t.Rec]
		if !asked {
			known, ok = e.recordLeaves(t.Rec)
			if !ok {
				known = nil
			} else if known == nil {
				known = []leaf{}
			}
			e.records[t.Rec] = known
		}
		return known, known != nil
	case tree.TArray:
		return nil, false
	}
	return []leaf{{t.Bare(), 0}}, true
}

func (e *emitter) recordLeaves(r *tree.Record) (list []leaf, ok bool) {
	if r.Union {
		return nil, false
	}
	for _, f := range r.Fields {
		parts, ok := e.leaves(f.Type)
		if !ok || len(list)+len(parts) > maxLeaves {
			return nil, false
		}
		for _, p := range parts {
			list = append(list, leaf{p.t, f.Offset + p.off})
		}
	}
	return list, true
}

// isWide reports whether scalars of kind k are held in 64 bits.
func isWide(k tree.Kind) bool { return tree.KindSize(k) == 8 }

// isSigned reports whether k is a signed integer.
func isSigned(k tree.Kind) bool {
	return k == tree.Char || k == tree.Short || k == tree.Int || k == tree.Long
}

// isFloating reports whether k is float or double, whose values are floating numbers; those of half are bits.
func isFloating(k tree.Kind) bool { return k == tree.Float || k == tree.Double }

// kindType returns the type of values of a scalar kind.
func (e *emitter) kindType(k tree.Kind) id {
	switch k {
	case tree.Float:
		return e.b.Float(32)
	case tree.Double:
		return e.b.Float(64)
	case tree.Long, tree.ULong:
		return e.b.Int(64)
	}
	return e.b.Int(32)
}

// isFar reports whether pointers into a space are addresses of device memory.
func isFar(s tree.Space) bool { return s == tree.Global || s == tree.Constant }

// addressKind returns the integer kind that is computed as pointers into a space are.
func addressKind(s tree.Space) tree.Kind {
	if isFar(s) {
		return tree.ULong
	}
	return tree.UInt
}

// regKind returns the kind as which a scalar, pointer or event is held.
func regKind(t *tree.Type) tree.Kind {
	switch t.Kind {
	case tree.TPointer:
		return addressKind(t.Elem.Space)
	case tree.TEvent:
		return tree.UInt
	}
	return t.Base
}

// regType returns the type of the values of a scalar, pointer or event.
func (e *emitter) regType(t *tree.Type) id { return e.kindType(regKind(t)) }

// value is the value of an expression.
type value struct {
	t   *tree.Type
	ids []id   // one for each leaf
	at  *place // of an object that is not made of leaves: where it is
}

// scalar returns a value of one leaf.
func scalar(t *tree.Type, v id) value { return value{t: t, ids: []id{v}} }

// one returns the only leaf of a scalar.
func (v value) one() id { return v.ids[0] }

// constant returns a constant of a kind.
func (e *emitter) constant(k tree.Kind, bits uint64) id {
	wide := isWide(k)
	if !wide {
		bits &= 1<<32 - 1
	}
	return e.b.Constant(e.kindType(k), bits, wide)
}

// constantOf returns the constant of a value that is known. Small signed integers are extended.
func (e *emitter) constantOf(v tree.Value) id { return e.constant(v.Kind, v.Bits) }

// zero returns a value of zeros.
func (e *emitter) zero(t *tree.Type) value {
	v := value{t: t}
	parts, _ := e.leaves(t)
	for _, l := range parts {
		v.ids = append(v.ids, e.constant(regKind(l.t), 0))
	}
	return v
}

func (e *emitter) uint(v int) id { return e.b.Uint(uint32(v)) }
