package source

// The tree that the parser builds: typed expressions with every conversion that
// C++ would not make by itself written out as a node, statements, symbols.

import "github.com/concord-compute/concord/source/internal/token"

// program is a program that was read without a mistake.
type program struct {
	tokens   []token.Token // preprocessed, pragmas included
	toks     []token.Token // those that are parsed: without pragmas, and with a EOF at the end
	origin   []int         // index of toks[i] in tokens
	funcs    []*function
	globals  []*symbol // program-scope constants in order
	fused    bool      // the program calls fma or mad
	subgroup *use      // the first call of a sub-group function, if any
	records  []*record // complete ones, in order of completion
	tagged   []*record // all, in order of their first mention
}

// posOf is the place of the first token of e.
func (p *program) posOf(e *expr) token.Pos { return p.toks[e.tok].Pos }

// exprOp says what an expression is.
type exprOp uint8

const (
	opBad       exprOp = iota // after an error
	opLit                     // literal; text is its portable spelling, val its value
	opString                  // string literal, text with quotes
	opNull                    // NULL
	opNamed                   // INFINITY, CLK_LOCAL_MEM_FENCE, ...: a constant the prelude names; text
	opSym                     // variable or parameter
	opFunc                    // the name of a user function, only below opCall
	opParen                   // ( a )
	opUnary                   // text a: + - ! ~ * &
	opPreInc                  // text a: ++ --
	opPostInc                 // a text: ++ --
	opBinary                  // a text b, both converted as C++ would convert them itself
	opShift                   // a text b on scalars: << >>
	opCompare                 // a text b on scalars or pointers: int 0 or 1
	opLogic                   // a text b on scalars: && ||
	opCond                    // a ? b : c
	opElvis                   // a ?: c, a evaluated once
	opVecCond                 // a ? b : c with a vector a
	opAssign                  // a text b: = += -= ...
	opComma                   // a , b
	opIndex                   // a [ b ]; a is a pointer or array
	opComponent               // a [ b ] with a vector a
	opMember                  // a . path
	opSwizzle                 // a . lanes; one lane: a scalar, more: a vector
	opCall                    // call of a user function or kernel: sym, args
	opBuiltin                 // call of a built-in: text, args converted to what it takes
	opCast                    // explicit cast to typ
	opConv                    // implicit conversion to typ
	opDecay                   // an array as the pointer to its first element
	opLoad                    // the value of a volatile vector or record, which C++ does not copy
	opVecLit                  // (float4)(args...)
	opCompound                // (T){...}; init
	opSizeof                  // a constant of type size_t; val
	opStmts                   // ({ ... }): body, whose last statement has the value
)

// expr is one expression.
type expr struct {
	op     exprOp
	lval   bool // designates an object
	folded bool // val is what fold has to say
	acts   bool // evaluating it changes something that other expressions can see
	site   int  // opBuiltin: number of this barrier in the program
	tok    int  // index of its first token
	end    int  // opCall: index of the closing parenthesis
	depth  int
	text   string
	typ    *ctype
	a      *expr
	b      *expr
	c      *expr
	args   []*expr
	path   []*field
	lanes  []int
	sym    *symbol
	init   *initNode
	body   *stmt
	val    constant // of a literal, and of all that are folded
}

// initNode is an initializer in the order of its type: the user's braces,
// designators and elided braces are resolved.
type initNode struct {
	typ   *ctype
	value *expr             // leaf
	kids  map[int]*initNode // arrays, structs, vectors, by index; unions have one
}

// symKind is what an identifier names.
type symKind uint8

const (
	symVar symKind = iota
	symParam
	symTypedef
	symFunc
	symEnumConst
)

// symbol is a declared name.
type symbol struct {
	kind  symKind
	name  string
	cname string // in a rendering
	typ   *ctype
	pos   token.Pos
	scope int // 0: built-in, 1: program, 2 and up: inside functions
	val   constant
	init  *initNode
	fn    *function // symFunc; for variables the function they belong to
	next  *symbol   // symFunc: the next overload
	inst  bool      // program scope or constant: it exists once
	used  bool
}

// function is a user function or kernel.
type function struct {
	name     string
	cname    string
	sym      *symbol
	typ      *ctype
	params   []*symbol
	attrs    attributes
	kernel   bool
	overload bool
	defined  bool
	pos      token.Pos
	body     *stmt
	locals   []*symbol // local variables of a kernel, in order
	memory   int       // bytes of local memory that it and the kernels that it calls declare
	depth    int       // of the calls below
	calls    []*call
	barrier  bool // calls a synchronizing built-in itself
	split    bool // has labels or jumps: declarations and initializers part
	close    int  // token of the parameter list's )
	open     int  // token of the body's {
	protos   []proto
	temps    []*symbol // objects of compound literals
}

// proto is a declaration of a kernel, whose name and parameters OpenCL renderings may change.
// All are indexes of tokens.
type proto struct {
	name  int
	names []int
	close int
}

type call struct {
	to  *function
	pos token.Pos
	e   *expr
}

// use is where a program uses a name: that of a built-in function, or of a label.
type use struct {
	name string
	pos  token.Pos
}

// attributes are those __attribute__ that the front end understands.
type attributes struct {
	packed   bool
	align    int
	reqd     [3]int
	hasReqd  bool
	overload bool
}

// stmtKind says what a statement is.
type stmtKind uint8

const (
	stEmpty stmtKind = iota
	stExpr
	stDecl
	stBlock
	stIf
	stWhile
	stDo
	stFor
	stSwitch
	stCase    // val; body
	stDefault // body
	stLabel   // text; body
	stGoto    // text
	stBreak
	stContinue
	stReturn
)

// stmt is one statement.
type stmt struct {
	kind   stmtKind
	pos    token.Pos
	text   string
	e      *expr // condition, value
	post   *expr
	init   *stmt
	body   *stmt
	alt    *stmt
	list   []*stmt
	syms   []*symbol // stDecl
	val    constant
	last   constant // stCase: the end of its range, val if it is none
	unroll string   // the #pragma unroll in front of a loop
}

// constant is a value known at compile time.
type constant struct {
	ok    bool
	float bool
	i     int64
	f     float64
}
