package check

import (
	"strconv"

	"github.com/concord-compute/concord/source/internal/token"
	"github.com/concord-compute/concord/source/internal/tree"
)

// Initializers: the program's braces, designators and omitted braces become a tree in the order of
// the type's elements, so that a rendering needs no designators.

// Limits on one initializer and on all of a program.
const (
	maxInitIndex = 1 << 20
	maxInitNodes = 1 << 22
)

// initializer parses the initializer after the = of a declaration of type typ. The node's type has
// the array's length filled in.
func (p *parser) initializer(typ *tree.Type) *tree.Init {
	if p.at("{") {
		return p.braced(typ)
	}
	e := p.assignment()
	if typ.Kind == tree.TArray {
		if n := p.stringInit(typ, e); n != nil {
			return n
		}
		if !e.Type.IsUnknown() && !typ.IsUnknown() {
			p.errorf(p.PosOf(e), "initializer", "an array is initialized by { ... }")
		}
		return &tree.Init{Type: typ, Kids: map[int]*tree.Init{}}
	}
	return p.leaf(typ, e)
}

func (p *parser) leaf(typ *tree.Type, e *tree.Expr) *tree.Init {
	return &tree.Init{Type: typ, Value: p.assignConv(e, typ, "initialization")}
}

// stringInit initializes a char array from a string, or returns nil.
func (p *parser) stringInit(typ *tree.Type, e *tree.Expr) *tree.Init {
	s := tree.Unparen(e)
	if s.Op != tree.OpString || !typ.Elem.IsInteger() || tree.KindSize(typ.Elem.Base) != 1 {
		return nil
	}
	text, _ := tree.StringBytes(s.Text)
	n := typ.N
	if n < 0 {
		n = len(text) + 1
	}
	if len(text) > n {
		text = text[:n] // C compilers warn and cut it
	}
	if p.nodes += len(text); p.nodes > maxInitNodes {
		p.fail(p.PosOf(e), "initializer", "the initializer is too long")
	}
	out := &tree.Init{Type: tree.ArrayOf(typ.Elem, n), Kids: map[int]*tree.Init{}}
	for i := range len(text) {
		p.Step()
		v := tree.IntValue(typ.Elem.Base, int64(int8(text[i])))
		lit := &tree.Expr{Op: tree.OpLit, Type: typ.Elem.Bare(), Val: v, Tok: e.Tok, Depth: 1}
		out.Kids[i] = &tree.Init{Type: typ.Elem, Value: lit}
	}
	return out
}

// slots returns the number of elements of an aggregate, and -1 for an array without a length.
func slots(t *tree.Type) int {
	switch t.Kind {
	case tree.TArray, tree.TVector:
		return t.N
	case tree.TRecord:
		if t.Rec.Union {
			return min(1, len(t.Rec.Fields))
		}
		return len(t.Rec.Fields)
	}
	return 1
}

// slotType returns the type of element i.
func slotType(t *tree.Type, i int) *tree.Type {
	switch t.Kind {
	case tree.TArray:
		return t.Elem
	case tree.TVector:
		return tree.Scalar(t.Base)
	case tree.TRecord:
		return t.Rec.Fields[i].Type
	}
	return t
}

// braced parses { ... } for typ.
func (p *parser) braced(typ *tree.Type) *tree.Init {
	p.enter("initializer")
	defer p.leave()
	open := p.next().Pos
	switch {
	case typ.IsVector():
		n := p.vectorBraces(typ)
		p.expect("}", "initializer")
		return n
	case typ.Kind != tree.TArray && typ.Kind != tree.TRecord:
		return p.scalarBraces(typ)
	}
	if typ.Kind == tree.TRecord && !typ.Rec.Complete {
		p.fail(open, "initializer", "'%s' is not defined here", typ)
	}
	node := &tree.Init{Type: typ, Kids: map[int]*tree.Init{}}
	if s := p.peek(); typ.Kind == tree.TArray && s.Kind == token.String && typ.Elem.IsInteger() {
		if n := p.stringInit(typ, p.assignment()); n != nil {
			p.accept(",")
			p.expect("}", "initializer")
			return n
		}
	}
	i, used := 0, 0
	for !p.at("}") {
		if p.at(".") || p.at("[") {
			i = p.designated(node)
		} else {
			p.positional(node, i)
		}
		i++
		used = max(used, i)
		if !p.accept(",") {
			break
		}
	}
	p.expect("}", "initializer")
	if typ.Kind == tree.TArray && typ.N < 0 {
		node.Type = tree.ArrayOf(typ.Elem, used)
	}
	return node
}

// scalarBraces parses { e } and { } for a scalar or pointer.
func (p *parser) scalarBraces(typ *tree.Type) *tree.Init {
	node := &tree.Init{Type: typ}
	if !p.at("}") {
		node = p.element(typ)
		for p.accept(",") && !p.at("}") {
			p.excess()
		}
	}
	p.expect("}", "initializer")
	return node
}

// slot makes room for element i of node.
func (p *parser) slot(node *tree.Init, i int, pos token.Pos) *tree.Type {
	n := slots(node.Type)
	if n >= 0 && i >= n && !(node.Type.Kind == tree.TRecord && node.Type.Rec.Union && i < len(node.Type.Rec.Fields)) {
		p.fail(pos, "initializer", "more values than '%s' has room for", node.Type.Bare())
	}
	if i >= maxInitIndex || p.nodes >= maxInitNodes {
		p.fail(pos, "initializer", "the initializer is too long")
	}
	if i >= len(node.Kids) { // elements that are skipped are added, too
		p.nodes += i - len(node.Kids) + 1
	}
	if node.Type.Kind == tree.TRecord && node.Type.Rec.Union {
		clear(node.Kids)
	}
	return slotType(node.Type, i)
}

// positional parses the next element of a braced list.
func (p *parser) positional(node *tree.Init, i int) {
	if n := slots(node.Type); n >= 0 && i >= n {
		p.excess()
		return
	}
	node.Kids[i] = p.element(p.slot(node, i, p.pos()))
}

// element parses the initializer of an element of type t, with or without braces.
func (p *parser) element(t *tree.Type) *tree.Init {
	if p.at("{") {
		return p.braced(t)
	}
	return p.place(t, p.assignment())
}

// excess parses a value after the last element, which C compilers drop with a warning.
func (p *parser) excess() {
	if p.at("{") {
		p.skipBalanced("{", "}")
		return
	}
	p.value(p.assignment())
}

// place initializes an element of type t from e. If the element's braces were omitted, further
// values of the list go into the same element.
func (p *parser) place(t *tree.Type, e *tree.Expr) *tree.Init {
	if t.Kind == tree.TArray {
		if n := p.stringInit(t, e); n != nil {
			return n
		}
	}
	// A scalar fills all lanes of a vector here, as with clang.
	if t.Kind != tree.TArray && t.Kind != tree.TRecord || e.Type.IsUnknown() || e.Type.Kind == tree.TRecord &&
		t.Kind == tree.TRecord {
		return p.leaf(t, e)
	}
	node := &tree.Init{Type: t, Kids: map[int]*tree.Init{}}
	n := slots(t)
	if n <= 0 {
		p.fail(p.PosOf(e), "initializer", "'%s' cannot be initialized by this value", t.Bare())
	}
	p.enter("initializer")
	defer p.leave()
	for i := 0; ; {
		kt := p.slot(node, i, p.PosOf(e))
		node.Kids[i] = p.place(kt, e)
		i++
		for i < n && p.more() && p.peekAt(1).Text == "{" {
			p.next()
			node.Kids[i] = p.braced(p.slot(node, i, p.pos()))
			i++
		}
		if i >= n || !p.more() {
			return node
		}
		p.next()
		e = p.assignment()
	}
}

// more reports whether another value without a designator follows the comma.
func (p *parser) more() bool {
	if !p.at(",") {
		return false
	}
	t := p.peekAt(1)
	return t.Kind != token.Punct || t.Text != "}" && t.Text != "." && t.Text != "["
}

// lane checks one part of a vector's initializer.
func (p *parser) lane(t *tree.Type, e *tree.Expr) *tree.Expr {
	e = p.value(e)
	if e.Type.IsVector() && e.Type.Base == t.Base || e.Type.IsUnknown() {
		return e
	}
	return p.assignConv(e, tree.Scalar(t.Base), "initialization")
}

// vectorBraces parses the list in { ... } for a vector.
func (p *parser) vectorBraces(t *tree.Type) *tree.Init {
	var args []*tree.Expr
	n := 0
	for !p.at("}") {
		if p.at("{") {
			inner := p.braced(tree.Scalar(t.Base))
			if inner.Value == nil {
				inner.Value = zeroOf(tree.Scalar(t.Base), p.i)
			}
			args = append(args, inner.Value)
			n++
		} else {
			a := p.assignment()
			if len(args) == 0 && tree.SameType(a.Type, t) {
				p.accept(",")
				return p.leaf(t, a)
			}
			a = p.lane(t, a)
			args = append(args, a)
			n += a.Type.Width()
		}
		if !p.accept(",") {
			break
		}
	}
	return p.vectorNode(t, args, n)
}

func zeroOf(t *tree.Type, tok int) *tree.Expr {
	return &tree.Expr{Op: tree.OpLit, Type: t, Val: tree.BitsValue(t.Base, 0), Tok: tok, Depth: 1}
}

// vectorNode makes a vector from its parts. {} means zeros; any other list that is too short is an
// error, as with clang.
func (p *parser) vectorNode(t *tree.Type, args []*tree.Expr, n int) *tree.Init {
	if n > t.N || n > 0 && n < t.N {
		p.fail(p.pos(), "initializer", "'%s' has %d components, not %d", t.Bare(), t.N, n)
	}
	for _, a := range args {
		if a.Type.IsUnknown() {
			return &tree.Init{Type: t, Value: p.bad(a.Tok)}
		}
	}
	for ; n < t.N; n++ {
		args = append(args, zeroOf(tree.Scalar(t.Base), p.i))
	}
	return &tree.Init{Type: t, Value: p.node(&tree.Expr{Op: tree.OpVecLit, Type: t.Bare(), Args: args, Tok: args[0].Tok})}
}

// designated parses .name = value or [i] = value and returns the index of the
// element of node that it named.
func (p *parser) designated(node *tree.Init) int {
	first, cur := -1, node
	levels := 0
	for p.at(".") || p.at("[") {
		i, next := p.designator(cur)
		if first < 0 {
			first = i[0]
		}
		levels++
		for _, k := range i[:len(i)-1] { // anonymous members on the way
			cur = p.descend(cur, k)
		}
		last := i[len(i)-1]
		if p.at(".") || p.at("[") {
			cur = p.descend(cur, last)
			continue
		}
		p.expect("=", "designator")
		p.slot(cur, last, p.pos())
		cur.Kids[last] = p.element(next)
	}
	if levels > 1 && p.more() && p.peekAt(1).Text != "{" {
		p.errorf(p.pos(), "designator", "a value without a designator after a nested one: name its member")
	}
	return first
}

// descend returns the element i of node, making it if needed.
func (p *parser) descend(node *tree.Init, i int) *tree.Init {
	kid := node.Kids[i]
	if kid != nil && kid.Value != nil {
		p.fail(p.pos(), "designator", "the element is already initialized as a whole")
	}
	if kid == nil {
		t := p.slot(node, i, p.pos())
		kid = &tree.Init{Type: t, Kids: map[int]*tree.Init{}}
		node.Kids[i] = kid
	}
	return kid
}

// designator parses one .name or [i] and returns the indices that lead to it.
func (p *parser) designator(node *tree.Init) ([]int, *tree.Type) {
	pos := p.pos()
	if p.next().Text == "[" {
		c := p.constantOf(p.conditional(), "designator")
		p.expect("]", "designator")
		if node.Type.Kind != tree.TArray || c.Negative() || c.Bits >= maxInitIndex {
			p.fail(pos, "designator", "[%s] is not an element of '%s'", c, node.Type.Bare())
		}
		return []int{int(c.Int())}, node.Type.Elem
	}
	name := p.next()
	if node.Type.Kind != tree.TRecord {
		p.fail(pos, "designator", "'%s' has no members", node.Type.Bare())
	}
	path := node.Type.Rec.Find(name.Text)
	if path == nil || name.Kind != token.Ident {
		p.fail(pos, "designator", "'%s' has no member '%s'", node.Type.Bare(), name.Text)
	}
	var index []int
	for _, f := range path {
		index = append(index, f.Index)
	}
	return index, path[len(path)-1].Type
}

// compound parses the braces of (T){...}.
func (p *parser) compound(typ *tree.Type, tok int) *tree.Expr {
	if typ.IsVoid() || typ.Kind == tree.TFunc {
		p.fail(p.pos(), "compound literal", "a compound literal cannot be '%s'", typ)
	}
	init := p.braced(typ)
	typ = init.Type
	e := &tree.Expr{Op: tree.OpCompound, Init: init, Type: typ, LValue: true, Tok: tok}
	if p.fn == nil {
		if typ.IsAggregate() {
			p.fail(p.Toks[tok].Pos, "compound literal", "a compound literal cannot initialize a constant")
		}
		return p.node(e)
	}
	sym := &tree.Symbol{Kind: tree.SymVar, Name: "literal", Type: typ.In(tree.Private), CName: "cc_c" +
		strconv.Itoa(len(p.fn.Temps)), Fn: p.fn, Scope: 2}
	p.fn.Temps = append(p.fn.Temps, sym)
	e.Sym, e.Type = sym, sym.Type
	return p.node(e)
}
