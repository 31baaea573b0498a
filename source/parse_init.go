package source

import (
	"strconv"

	"github.com/concord-compute/concord/source/internal/token"
)

// Initializers: braces, designators and elided braces become a tree in the
// order of the type, so that a rendering needs no designators.

// Limits on one initializer and on all of a program.
const (
	maxInitIndex = 1 << 20
	maxInitNodes = 1 << 22
)

// initializer parses what follows = in a declaration of type typ. The node's
// type has the array's length filled in.
func (p *parser) initializer(typ *ctype) *initNode {
	if p.at("{") {
		return p.braced(typ)
	}
	e := p.assignment()
	if typ.kind == tArray {
		if n := p.stringInit(typ, e); n != nil {
			return n
		}
		if !e.typ.isUnknown() && !typ.isUnknown() {
			p.errorf(p.posOf(e), "initializer", "an array is initialized by { ... }")
		}
		return &initNode{typ: typ, kids: map[int]*initNode{}}
	}
	return p.leaf(typ, e)
}

func (p *parser) leaf(typ *ctype, e *expr) *initNode {
	return &initNode{typ: typ, value: p.assignConv(e, typ, "initialization")}
}

// stringInit initializes a char array from a string, or returns nil.
func (p *parser) stringInit(typ *ctype, e *expr) *initNode {
	s := unparen(e)
	if s.op != opString || !typ.elem.isInteger() || kindSize(typ.elem.base) != 1 {
		return nil
	}
	text, _ := stringBytes(s.text)
	n := typ.n
	if n < 0 {
		n = len(text) + 1
	}
	if len(text) > n {
		text = text[:n] // C compilers warn and cut it
	}
	if p.nodes += len(text); p.nodes > maxInitNodes {
		p.fail(p.posOf(e), "initializer", "the initializer is too long")
	}
	out := &initNode{typ: arrayOf(typ.elem, n), kids: map[int]*initNode{}}
	for i := range len(text) {
		p.Step()
		v := constant{ok: true, i: int64(int8(text[i]))}
		lit := &expr{op: opLit, typ: typ.elem.bare(), val: v.convert(typ.elem), tok: e.tok, depth: 1}
		out.kids[i] = &initNode{typ: typ.elem, value: lit}
	}
	return out
}

// slots is how many elements an aggregate takes; -1 for an array without a
// length.
func slots(t *ctype) int {
	switch t.kind {
	case tArray, tVector:
		return t.n
	case tRecord:
		if t.rec.union {
			return min(1, len(t.rec.fields))
		}
		return len(t.rec.fields)
	}
	return 1
}

// slotType is the type of element i.
func slotType(t *ctype, i int) *ctype {
	switch t.kind {
	case tArray:
		return t.elem
	case tVector:
		return scalar(t.base)
	case tRecord:
		return t.rec.fields[i].typ
	}
	return t
}

// braced parses { ... } for typ.
func (p *parser) braced(typ *ctype) *initNode {
	p.enter("initializer")
	defer func() { p.nest-- }()
	open := p.next().Pos
	switch {
	case typ.isVector():
		n := p.vectorBraces(typ)
		p.expect("}", "initializer")
		return n
	case typ.kind != tArray && typ.kind != tRecord:
		return p.scalarBraces(typ)
	}
	if typ.kind == tRecord && !typ.rec.complete {
		p.fail(open, "initializer", "'%s' is not defined here", typ)
	}
	node := &initNode{typ: typ, kids: map[int]*initNode{}}
	if s := p.peek(); typ.kind == tArray && s.Kind == token.String && typ.elem.isInteger() {
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
	if typ.kind == tArray && typ.n < 0 {
		node.typ = arrayOf(typ.elem, used)
	}
	return node
}

// scalarBraces parses { e } and { } for a scalar or pointer.
func (p *parser) scalarBraces(typ *ctype) *initNode {
	node := &initNode{typ: typ}
	if !p.at("}") {
		if p.at("{") {
			node = p.braced(typ)
		} else {
			node = p.leaf(typ, p.assignment())
		}
		for p.accept(",") && !p.at("}") {
			p.excess()
		}
	}
	p.expect("}", "initializer")
	return node
}

// slot makes room for element i of node.
func (p *parser) slot(node *initNode, i int, pos token.Pos) *ctype {
	n := slots(node.typ)
	if n >= 0 && i >= n && !(node.typ.kind == tRecord && node.typ.rec.union && i < len(node.typ.rec.fields)) {
		p.fail(pos, "initializer", "more values than '%s' has room for", node.typ.bare())
	}
	if i >= maxInitIndex || p.nodes >= maxInitNodes {
		p.fail(pos, "initializer", "the initializer is too long")
	}
	if i >= len(node.kids) { // gaps are written out too
		p.nodes += i - len(node.kids) + 1
	}
	if node.typ.kind == tRecord && node.typ.rec.union {
		clear(node.kids)
	}
	return slotType(node.typ, i)
}

// positional parses the next element of a braced list.
func (p *parser) positional(node *initNode, i int) {
	if n := slots(node.typ); n >= 0 && i >= n {
		p.excess()
		return
	}
	t := p.slot(node, i, p.pos())
	if p.at("{") {
		node.kids[i] = p.braced(t)
		return
	}
	node.kids[i] = p.place(t, p.assignment())
}

// excess parses a value that there is no room for: C compilers warn and drop it.
func (p *parser) excess() {
	if p.at("{") {
		p.skipBalanced("{", "}")
		return
	}
	p.value(p.assignment())
}

// place initializes an element of type t from e, whose braces may have been
// left out: then further values of the list go into the same element.
func (p *parser) place(t *ctype, e *expr) *initNode {
	if t.kind == tArray {
		if n := p.stringInit(t, e); n != nil {
			return n
		}
	}
	// A scalar fills all lanes of a vector here, as clang has it.
	if t.kind != tArray && t.kind != tRecord || e.typ.isUnknown() || e.typ.kind == tRecord && t.kind == tRecord {
		return p.leaf(t, e)
	}
	node := &initNode{typ: t, kids: map[int]*initNode{}}
	n := slots(t)
	if n <= 0 {
		p.fail(p.posOf(e), "initializer", "'%s' takes no value here", t.bare())
	}
	p.enter("initializer")
	defer func() { p.nest-- }()
	for i := 0; ; {
		kt := p.slot(node, i, p.posOf(e))
		node.kids[i] = p.place(kt, e)
		i++
		for i < n && p.more() && p.peekAt(1).Text == "{" {
			p.next()
			node.kids[i] = p.braced(p.slot(node, i, p.pos()))
			i++
		}
		if i >= n || !p.more() {
			return node
		}
		p.next()
		e = p.assignment()
	}
}

// more tells whether another undesignated value follows the comma.
func (p *parser) more() bool {
	if !p.at(",") {
		return false
	}
	t := p.peekAt(1)
	return t.Kind != token.Punct || t.Text != "}" && t.Text != "." && t.Text != "["
}

// lane checks one part of a vector's initializer.
func (p *parser) lane(t *ctype, e *expr) *expr {
	e = p.value(e)
	if e.typ.isVector() && e.typ.base == t.base || e.typ.isUnknown() {
		return e
	}
	return p.assignConv(e, scalar(t.base), "initialization")
}

// vectorBraces parses the list in { ... } for a vector.
func (p *parser) vectorBraces(t *ctype) *initNode {
	var args []*expr
	n := 0
	for !p.at("}") {
		if p.at("{") {
			inner := p.braced(scalar(t.base))
			if inner.value == nil {
				inner.value = zeroOf(scalar(t.base), p.i)
			}
			args = append(args, inner.value)
			n++
		} else {
			a := p.assignment()
			if len(args) == 0 && sameType(a.typ, t) {
				p.accept(",")
				return p.leaf(t, a)
			}
			a = p.lane(t, a)
			args = append(args, a)
			n += a.typ.width()
		}
		if !p.accept(",") {
			break
		}
	}
	return p.vectorNode(t, args, n)
}

func zeroOf(t *ctype, tok int) *expr {
	return &expr{op: opLit, typ: t, val: constant{ok: true}.convert(t), tok: tok, depth: 1}
}

// vectorNode makes a vector of its parts. Only {} stands for zeros: a list that
// is too short is an error, as it is to clang.
func (p *parser) vectorNode(t *ctype, args []*expr, n int) *initNode {
	if n > t.n || n > 0 && n < t.n {
		p.fail(p.pos(), "initializer", "'%s' has %d components, not %d", t.bare(), t.n, n)
	}
	for _, a := range args {
		if a.typ.isUnknown() {
			return &initNode{typ: t, value: p.bad(a.tok)}
		}
	}
	for ; n < t.n; n++ {
		args = append(args, zeroOf(scalar(t.base), p.i))
	}
	return &initNode{typ: t, value: p.node(&expr{op: opVecLit, typ: t.bare(), args: args, tok: args[0].tok})}
}

// designated parses .name = value or [i] = value and returns the index of the
// element of node that it named.
func (p *parser) designated(node *initNode) int {
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
		if p.at("{") {
			cur.kids[last] = p.braced(next)
		} else {
			cur.kids[last] = p.place(next, p.assignment())
		}
	}
	if levels > 1 && p.more() && p.peekAt(1).Text != "{" {
		p.errorf(p.pos(), "designator", "a value without a designator after a nested one: name its member")
	}
	return first
}

// descend returns the element i of node, making it if needed.
func (p *parser) descend(node *initNode, i int) *initNode {
	kid := node.kids[i]
	if kid != nil && kid.value != nil {
		p.fail(p.pos(), "designator", "the element is already initialized as a whole")
	}
	if kid == nil {
		t := p.slot(node, i, p.pos())
		kid = &initNode{typ: t, kids: map[int]*initNode{}}
		node.kids[i] = kid
	}
	return kid
}

// designator parses one .name or [i] and returns the indices that lead to it.
func (p *parser) designator(node *initNode) ([]int, *ctype) {
	pos := p.pos()
	if p.next().Text == "[" {
		c := p.constantOf(p.conditional(), "designator")
		p.expect("]", "designator")
		if node.typ.kind != tArray || c.i < 0 || c.i >= maxInitIndex {
			p.fail(pos, "designator", "[%d] is no element of '%s'", c.i, node.typ.bare())
		}
		return []int{int(c.i)}, node.typ.elem
	}
	name := p.next()
	if node.typ.kind != tRecord {
		p.fail(pos, "designator", "'%s' has no members", node.typ.bare())
	}
	path := node.typ.rec.find(name.Text)
	if path == nil || name.Kind != token.Ident {
		p.fail(pos, "designator", "'%s' has no member '%s'", node.typ.bare(), name.Text)
	}
	var index []int
	for _, f := range path {
		index = append(index, f.index)
	}
	return index, path[len(path)-1].typ
}

// compound parses the braces of (T){...}.
func (p *parser) compound(typ *ctype, tok int) *expr {
	if typ.isVoid() || typ.kind == tFunc {
		p.fail(p.pos(), "compound literal", "a compound literal cannot be '%s'", typ)
	}
	init := p.braced(typ)
	typ = init.typ
	e := &expr{op: opCompound, init: init, typ: typ, lval: true, tok: tok}
	if p.fn == nil {
		if typ.isAggregate() {
			p.fail(p.toks[tok].Pos, "compound literal", "a compound literal cannot initialize a constant")
		}
		return p.node(e)
	}
	sym := &symbol{kind: symVar, name: "literal", typ: typ.in(Private), cname: "cc_c" + strconv.Itoa(len(p.fn.temps)), fn: p.fn, scope: 2}
	p.fn.temps = append(p.fn.temps, sym)
	e.sym, e.typ = sym, sym.typ
	return p.node(e)
}
