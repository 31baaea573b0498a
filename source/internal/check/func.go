package check

// Functions: prototypes, overloads, definitions.

import (
	"slices"
	"strconv"

	"github.com/concord-compute/concord/source/internal/token"
	"github.com/concord-compute/concord/source/internal/tree"
)

// maxOverloads is the limit for functions of one name, since every call is compared with all of
// them.
const maxOverloads = 256

// declareFunction enters a prototype or the head of a definition. With the same parameters as an
// earlier declaration it is the same function; with others it is an overload, which needs
// __attribute__((overloadable)).
func (p *parser) declareFunction(name string, typ *tree.Type, pos token.Pos, l *paramList, s *specifiers,
	attrs tree.Attributes) *tree.Function {
	if typ.Variadic {
		p.errorf(pos, "variadic function", "functions with '...' are not part of OpenCL C")
	}
	if s.kernel && s.static {
		p.errorf(pos, "kernel", "the kernel '%s' cannot be static", name)
	}
	old := p.scopes[1].names[name]
	if cur := p.lookup(name); cur != nil && cur.Kind == tree.SymFunc {
		old = cur
	}
	if old != nil && old.Kind != tree.SymFunc {
		p.fail(pos, "function", "'%s' is already declared at %s", name, old.Pos)
	}
	overloads := 0
	for sym := old; sym != nil; sym = sym.Next {
		overloads++
		if slices.EqualFunc(sym.Type.Params, typ.Params, tree.SameType) {
			return p.redeclareFunction(sym.Fn, typ, pos, l, s, attrs)
		}
		if !sym.Fn.Overload && !attrs.Overload {
			p.fail(pos, "function", "'%s' is already declared with other parameters at %s", name, sym.Pos)
		}
	}
	if overloads >= maxOverloads {
		p.fail(pos, "overload", "'%s' has more than %d overloads", name, maxOverloads)
	}
	fn := &tree.Function{Name: name, Type: typ, Pos: pos, Kernel: s.kernel, Overload: attrs.Overload, Attrs: attrs}
	fn.CName = p.uniqueName("u", name)
	if s.kernel {
		fn.CName = "k_" + name
	}
	fn.Sym = &tree.Symbol{Kind: tree.SymFunc, Name: name, Type: typ, Pos: pos, Fn: fn, CName: fn.CName, Scope: 1}
	if old != nil {
		for old.Next != nil {
			old = old.Next
		}
		old.Next = fn.Sym
	} else {
		p.scopes[1].names[name] = fn.Sym
	}
	if s.kernel {
		p.addProto(fn, l)
	}
	p.Funcs = append(p.Funcs, fn)
	return fn
}

// addProto records the tokens of a kernel's name and parameters.
func (p *parser) addProto(fn *tree.Function, l *paramList) {
	if l == nil {
		return
	}
	name := l.close
	for depth := 1; depth > 0; { // back to the list's (
		name--
		switch p.Toks[name].Text {
		case ")":
			depth++
		case "(":
			depth--
		}
	}
	for name--; p.Toks[name].Text == ")"; { // (name)(parameters)
		name--
	}
	if !fn.Defined {
		fn.Params = l.syms
	}
	fn.Protos = append(fn.Protos, tree.Proto{Name: name, Names: l.nameToks, Close: l.close})
}

func (p *parser) redeclareFunction(fn *tree.Function, typ *tree.Type, pos token.Pos, l *paramList, s *specifiers,
	attrs tree.Attributes) *tree.Function {
	if !tree.SameType(fn.Type.Elem, typ.Elem) && !typ.Elem.IsUnknown() {
		p.errorf(pos, "function", "'%s' returns '%s', but '%s' where it is declared at %s", fn.Name, typ.Elem, fn.Type.Elem,
			fn.Pos)
	}
	if p.at("{") {
		fn.Type, fn.Sym.Type = typ, typ
	}
	fn.Kernel = fn.Kernel || s.kernel
	if fn.Kernel {
		fn.CName = "k_" + fn.Name
		fn.Sym.CName = fn.CName
		p.addProto(fn, l)
	}
	if attrs.HasReqd {
		fn.Attrs.Reqd, fn.Attrs.HasReqd = attrs.Reqd, true
	}
	fn.Overload = fn.Overload || attrs.Overload
	return fn
}

// functionBody parses the body of a definition.
func (p *parser) functionBody(fn *tree.Function, l *paramList, pos token.Pos) {
	if fn.Defined {
		p.errorf(pos, "function", "'%s' is defined twice", fn.Name)
	}
	if l == nil {
		p.fail(p.pos(), "function", "a function cannot be defined through a typedef")
	}
	fn.Defined, fn.Pos = true, pos
	fn.Params = l.syms
	fn.Close, fn.Open = l.close, p.i
	p.fn, p.body = fn, body{locals: map[string]int{}, labels: map[string]token.Pos{}}
	p.push()
	for i, s := range fn.Params {
		if s.Name == "" {
			s.CName = "cc_p" + strconv.Itoa(i)
			continue
		}
		p.declare(s)
	}
	fn.Body = p.block()
	p.pop()
	p.fn = nil
	for _, g := range p.body.gotos {
		if _, ok := p.body.labels[g.Name]; !ok {
			p.errorf(g.Pos, "goto", "there is no label '%s' in '%s'", g.Name, fn.Name)
		}
	}
}
