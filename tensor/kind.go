package tensor

// What the operations of tensors are. Gradients, compiled functions and the passes of the planner decide by these
// attributes, not by names.

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
)

// attributes are what the planner needs to know of a kind of operation.
type attributes struct {
	name   string // for people
	stored bool   // its result is in memory, since it is computed there, or by several kernels
	inline bool   // it is worth no kernel: also without fusion those that read it compute it
	hidden bool   // a plan does not name it
	blocks bool   // no gradient passes it
}

// kinds has one row for each kind of operation.
var kinds = [...]attributes{
	kindElementwise: {name: "elementwise"},
	kindLiteral:     {name: "number", inline: true, hidden: true},
	kindFill:        {name: "constant", inline: true},
	kindBarrier:     {name: "barrier", inline: true, hidden: true, blocks: true},
	kindView:        {name: "view"},
	kindReduction:   {name: "reduction"},
	kindJoin:        {name: "concatenation", stored: true},
	kindCall:        {name: "call", stored: true},
	kindResult:      {name: "result of a call", stored: true},
}

func (k kind) String() string { return kinds[k].name }

func (o *mapOp) kind() kind    { return o.what }
func (o *viewOp) kind() kind   { return kindView }
func (o *reduceOp) kind() kind { return kindReduction }
func (o *joinOp) kind() kind   { return kindJoin }
func (o *callOp) kind() kind   { return kindCall }
func (o *partOp) kind() kind   { return kindResult }

// blocks reports whether no gradient passes t.
func (t *Tensor) blocks() bool { return t.op != nil && kinds[t.op.kind()].blocks }
