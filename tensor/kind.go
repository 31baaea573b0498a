package tensor

// What the operations of tensors are. Gradients, compiled functions and the passes of the planner decide by these
// attributes, not by names.

import "github.com/concord-compute/concord/kernels/expr"

// kind is what an operation is.
type kind uint8

const (
	kindElementwise kind = iota // each element of the result is computed from the elements at its place
	kindLiteral                 // a number of Go beside a tensor
	kindFill                    // one number in all places, as Full makes it
	kindBarrier                 // the same elements, through which no gradient passes
	kindView                    // elements of another tensor in other places
	kindReduction               // of the last dimension
	kindJoin                    // parts, each in a place of its own
	kindCall                    // kernels of the catalog or of the program
	kindResult                  // a result of a call after its first one
	kindData                    // none
)

// attributes are what the planner needs to know of a kind of operation.
type attributes struct {
	name   string // for people
	maps   bool   // an expression computes each element, see expression
	stored bool   // its result is in memory, since it is computed there, or by several kernels
	inline bool   // it is worth no kernel: also without fusion those that read it compute it
	hidden bool   // a plan does not name it
	blocks bool   // no gradient passes it
}

// kinds has one row for each kind of operation.
var kinds = [...]attributes{
	kindElementwise: {name: "elementwise", maps: true},
	kindLiteral:     {name: "number", maps: true, inline: true, hidden: true},
	kindFill:        {name: "constant", maps: true, inline: true},
	kindBarrier:     {name: "barrier", maps: true, inline: true, hidden: true, blocks: true},
	kindView:        {name: "view"},
	kindReduction:   {name: "reduction"},
	kindJoin:        {name: "concatenation", stored: true},
	kindCall:        {name: "call", stored: true},
	kindResult:      {name: "result of a call", stored: true},
	kindData:        {name: "data"},
}

func (k kind) String() string { return kinds[k].name }

func (o *mapOp) kind() kind    { return o.what }
func (o *viewOp) kind() kind   { return kindView }
func (o *reduceOp) kind() kind { return kindReduction }
func (o *joinOp) kind() kind   { return kindJoin }
func (o *callOp) kind() kind   { return kindCall }
func (o *partOp) kind() kind   { return kindResult }

// kind returns what t is made by.
func (t *Tensor) kind() kind {
	if t.op == nil {
		return kindData
	}
	return t.op.kind()
}

// blocks reports whether no gradient passes t.
func (t *Tensor) blocks() bool { return kinds[t.kind()].blocks }

// expression returns what computes each element of t from those of its args at the same place, or nil if t is not
// computed so.
func (t *Tensor) expression() *expr.Expr {
	if !kinds[t.kind()].maps {
		return nil
	}
	return t.op.(*mapOp).e
}
