// Package builtins has a table of the built-in functions of OpenCL C 1.2, without images. It types
// calls, checks their arguments, and lists the forms that the preludes have to define: for every
// function and every concrete form the preludes have a function cc_NAME with exactly these types.
// Overloads are resolved here, in Go, because the targets' compilers have other rules (C++ would
// turn pow(float, int) into double).
package builtins

import (
	"sync"

	"github.com/concord-compute/concord/source/internal/tree"
)

// Type is a type in the terms of the table. The zero value is a type that no built-in takes.
type Type struct {
	Kind  tree.Kind  // kind of the scalar, of the vector's lanes, or of a pointer's target
	Width int        // lanes: 1, 2, 3, 4, 8, 16; 0 counts as 1
	Ptr   bool       // a pointer to such a value; Kind Void is then "void *"
	Space tree.Space // the address space that a pointer points into
	Const bool       // a pointer to const
	Event bool       // event_t or a pointer to one; Kind is then ignored
	None  bool       // the result of a function that returns nothing
}

// Known reports whether the type is anything but the zero value.
func (t Type) Known() bool { return t.Kind != tree.Void || t.Ptr || t.Event || t.None }

// Lanes returns the number of lanes, at least 1.
func (t Type) Lanes() int {
	if t.Width == 0 {
		return 1
	}
	return t.Width
}

// Func is one row of the table.
type Func struct {
	Name     string // as OpenCL C spells it
	Member   bool   // in C++ renderings it is a member of the work item's base class (ids, barriers, printf)
	Barrier  bool   // synchronizes the group: the renderer adds a site number as last argument
	Variadic bool   // printf: arguments beyond the parameters are passed as they are
	Atomic   bool   // an atomic: with a 64-bit pointee it needs Features.Int64Atomic
	Ext      string // extension or later version that the whole function needs, or ""
	Forms    []Form
	once     sync.Once
	all      []*Overload // what overloads returns
}

// Call is one call with its overload chosen.
type Call struct {
	Func   *Func
	Name   string // the prelude's function: "cc_pow"
	Params []Type // the types that the arguments are converted to; a scalar for a vector parameter goes to all lanes
	Result Type   // None for void
}

// Lookup finds the built-in of that name. Conversions (convert_T, as_T)
// are not functions of the table; see ConversionOf.
func Lookup(name string) (*Func, bool) {
	b, ok := Table()[name]
	return b, ok
}

// Usage returns the forms of the function, for a message.
func (b *Func) Usage() string {
	s := ""
	for i, f := range b.Forms {
		if i > 0 {
			s += "; "
		}
		s += f.describe(b.Name)
	}
	return s
}

// Form is one family of overloads: the class of types that the generic type G stands for, and the
// slots that depend on G.
type Form struct {
	Class  *Class
	Result Slot
	Params []Slot
}

// Slot is one parameter or the result.
type Slot struct {
	Sym   byte // see slotNames
	Ptr   bool
	width int // fixed lanes of 'x' and 'f', else 0
}

// isInt reports whether k is an integer kind (bool is not).
func isInt(k tree.Kind) bool { return k >= tree.Char && k <= tree.ULong }

// unsignedOf returns the unsigned integer kind of the size of k.
func unsignedOf(k tree.Kind) tree.Kind { return tree.SignedOf(k) + 1 }

// TypeOf converts a type of the parser to a type of the table.
func TypeOf(t *tree.Type) Type {
	switch t.Kind {
	case tree.TEvent:
		return Type{Event: true}
	case tree.TScalar:
		return Type{Kind: t.Base, Width: 1, None: t.Base == tree.Void}
	case tree.TVector:
		return Type{Kind: t.Base, Width: t.N}
	case tree.TRecord:
		return Type{Kind: tree.Struct, Width: 1}
	case tree.TPointer, tree.TArray: // an array argument decays
		e := TypeOf(t.Elem)
		if e.Ptr || t.Elem.Kind == tree.TArray || t.Elem.Kind == tree.TFunc {
			e = Type{Kind: tree.Struct, Width: 1} // a pointer to a type that no built-in takes
		}
		e.Ptr, e.None, e.Space, e.Const = true, false, t.Elem.Space, t.Elem.IsConst()
		return e
	}
	return Type{}
}

// Tree converts t to a type of package tree.
func (t Type) Tree() *tree.Type {
	c := tree.Vector(t.Kind, t.Lanes())
	if t.Event {
		c = tree.EventType
	}
	if !t.Ptr {
		return c // None: Kind is Void
	}
	if t.Const {
		c = c.With(tree.QConst)
	}
	return tree.PointerTo(c.In(t.Space))
}
