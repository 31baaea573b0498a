// Package tree has the types of a parsed program: types, typed expressions in which every
// conversion that C++ would not make implicitly is a node, statements, symbols, functions. It
// depends neither on the parser nor on the renderers. A finished program is immutable, and several
// goroutines may read it.
package tree

import "github.com/concord-compute/concord/source/internal/token"

// Program is a program without mistakes.
type Program struct {
	Tokens   []token.Token // preprocessed, pragmas included
	Toks     []token.Token // those that are parsed: without pragmas, and with an EOF at the end
	Origin   []int         // index of Toks[i] in Tokens
	Funcs    []*Function
	Globals  []*Symbol // program-scope constants in order
	Fused    bool      // the program calls fma or mad
	Loops    bool      // a function of the program contains a loop, or a label, which may be jumped back to
	ByteDots bool      // it calls functions of cl_khr_integer_dot_product
	Subgroup *Use      // the first call of a sub-group function, if any
	Records  []*Record // complete ones, in order of completion
	Tagged   []*Record // all, in order of their first mention
}

// PosOf is the place of the first token of e.
func (p *Program) PosOf(e *Expr) token.Pos { return p.Toks[e.Tok].Pos }

// Op is the kind of an expression.
type Op uint8

// The kinds of expressions, each with the fields of Expr that it uses besides Type.
const (
	OpBad       Op = iota // after an error
	OpLit                 // literal; Text is its portable spelling, Val its value
	OpString              // string literal, Text with quotes
	OpNull                // NULL
	OpNamed               // INFINITY, CLK_LOCAL_MEM_FENCE, ...: a constant the prelude names; Text
	OpSym                 // variable or parameter
	OpFunc                // the name of a user function, only below OpCall
	OpParen               // ( A )
	OpUnary               // Text A: + - ! ~ * &
	OpPreInc              // Text A: ++ --
	OpPostInc             // A Text: ++ --
	OpBinary              // A Text B, both converted as C++ would convert them itself
	OpShift               // A Text B on scalars: << >>
	OpCompare             // A Text B on scalars or pointers: int 0 or 1
	OpLogic               // A Text B on scalars: && ||
	OpCond                // A ? B : C
	OpElvis               // A ?: C, A evaluated once
	OpVecCond             // A ? B : C with a vector A
	OpAssign              // A Text B: = += -= ...
	OpComma               // A , B
	OpIndex               // A [ B ]; A is a pointer or array
	OpComponent           // A [ B ] with a vector A
	OpMember              // A . Path
	OpSwizzle             // A . Lanes; one lane: a scalar, more: a vector
	OpCall                // call of a user function or kernel: Sym, Args
	OpBuiltin             // call of a built-in: Text, Args converted to what it takes
	OpCast                // explicit cast of A
	OpConv                // implicit conversion of A
	OpDecay               // an array as the pointer to its first element
	OpLoad                // the value of a volatile vector or record, which C++ does not copy
	OpVecLit              // (float4)(Args...)
	OpCompound            // (T){...}; Init
	OpSizeof              // a constant of type size_t; Val
	OpStmts               // ({ ... }): Body, whose last statement has the value
)

// Expr is one expression.
type Expr struct {
	Op     Op
	LValue bool // designates an object
	Folded bool // Val holds the result of Fold
	Acts   bool // evaluating it changes something that other expressions can see
	Site   int  // OpBuiltin: number of this barrier in the program
	Tok    int  // index of its first token
	End    int  // OpCall: index of the closing parenthesis
	Depth  int  // number of nested operators
	Text   string
	Type   *Type
	A      *Expr
	B      *Expr
	C      *Expr
	Args   []*Expr
	Path   []*Field
	Lanes  []int
	Sym    *Symbol
	Init   *Init
	Body   *Stmt
	Val    Value // the value of a literal or a folded expression
}

// Init is an initializer in the order of its type: the user's braces,
// designators and elided braces are resolved.
type Init struct {
	Type  *Type
	Value *Expr         // leaf
	Kids  map[int]*Init // arrays, structs, vectors, by index; unions have one
}

// Len returns the number of elements up to the last that has an initializer.
func (n *Init) Len() int {
	count := 0
	for i := range n.Kids {
		count = max(count, i+1)
	}
	return count
}

// SymKind is the kind of thing that an identifier names.
type SymKind uint8

// The kinds of symbols.
const (
	SymVar SymKind = iota
	SymParam
	SymTypedef
	SymFunc
	SymEnumConst
)

// Symbol is a declared name.
type Symbol struct {
	Kind  SymKind
	Name  string
	CName string // the name in a rendering
	Type  *Type
	Pos   token.Pos
	Scope int // 0: built-in, 1: program, 2 and up: inside functions
	Val   Value
	Init  *Init
	Fn    *Function // SymFunc; for variables the function they belong to
	Next  *Symbol   // SymFunc: the next overload
	Inst  bool      // program scope or constant: it exists once
	Used  bool
}

// Function is a user function or kernel.
type Function struct {
	Name     string
	CName    string
	Sym      *Symbol
	Type     *Type
	Params   []*Symbol
	Attrs    Attributes
	Kernel   bool
	Overload bool
	Defined  bool
	Pos      token.Pos
	Body     *Stmt
	Locals   []*Symbol // local variables of a kernel, in order
	Memory   int       // bytes of local memory that it and the kernels that it calls declare
	Depth    int       // longest chain of calls that begins here
	Calls    []*Call
	Barrier  bool // calls a synchronizing built-in itself
	Split    bool // has labels or jumps, so that initializers have to be separated from declarations
	Close    int  // token of the parameter list's )
	Open     int  // token of the body's {
	Protos   []Proto
	Temps    []*Symbol // objects of compound literals
}

// Proto is a declaration of a kernel, whose name and parameters OpenCL renderings may change.
// All are indexes of tokens.
type Proto struct {
	Name  int
	Names []int
	Close int
}

// Call is a call of a user function or kernel.
type Call struct {
	To  *Function
	Pos token.Pos
	E   *Expr
}

// Use is a place at which a program uses the name of a built-in function or of a label.
type Use struct {
	Name string
	Pos  token.Pos
}

// Attributes holds the attributes (__attribute__) that the front end understands.
type Attributes struct {
	Packed   bool
	Align    int
	Reqd     [3]int
	HasReqd  bool
	Overload bool
}

// StmtKind is the kind of a statement.
type StmtKind uint8

// The kinds of statements.
const (
	StEmpty StmtKind = iota
	StExpr
	StDecl
	StBlock
	StIf
	StWhile
	StDo
	StFor
	StSwitch
	StCase    // Val; Body
	StDefault // Body
	StLabel   // Text; Body
	StGoto    // Text
	StBreak
	StContinue
	StReturn
)

// Stmt is one statement.
type Stmt struct {
	Kind   StmtKind
	Pos    token.Pos
	Text   string
	E      *Expr // condition, value
	Post   *Expr
	Init   *Stmt
	Body   *Stmt
	Alt    *Stmt
	List   []*Stmt
	Syms   []*Symbol // StDecl
	Val    Value
	Last   Value  // StCase: the end of its range, or Val for a single value
	Unroll string // the #pragma unroll in front of a loop
}
