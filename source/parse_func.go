package source

// Functions: prototypes, overloads, definitions.

import (
	"strconv"

	"github.com/concord-compute/concord/source/internal/token"
)

// maxOverloads is how many functions may have one name: every call looks at all of them.
const maxOverloads = 256

// declareFunction enters a prototype or the head of a definition. A function of
// the same parameters is the same function; another one is an overload, which
// __attribute__((overloadable)) allows.
func (p *parser) declareFunction(name string, typ *ctype, pos token.Pos, l *paramList, s *specifiers, attrs attributes) *function {
	if typ.variadic {
		p.errorf(pos, "variadic function", "functions with '...' are not part of OpenCL C")
	}
	if s.kernel && s.static {
		p.errorf(pos, "kernel", "the kernel '%s' cannot be static", name)
	}
	old := p.scopes[1].names[name]
	if cur := p.lookup(name); cur != nil && cur.kind == symFunc {
		old = cur
	}
	if old != nil && old.kind != symFunc {
		p.fail(pos, "function", "'%s' is already declared at %s", name, old.pos)
	}
	overloads := 0
	for sym := old; sym != nil; sym = sym.next {
		overloads++
		if sameParams(sym.typ, typ) {
			return p.redeclareFunction(sym.fn, typ, pos, l, s, attrs)
		}
		if !sym.fn.overload && !attrs.overload {
			p.fail(pos, "function", "'%s' is already declared with other parameters at %s", name, sym.pos)
		}
	}
	if overloads >= maxOverloads {
		p.fail(pos, "overload", "'%s' has more than %d overloads", name, maxOverloads)
	}
	fn := &function{name: name, typ: typ, pos: pos, kernel: s.kernel, overload: attrs.overload, attrs: attrs}
	fn.cname = p.uniqueName("u", name)
	if s.kernel {
		fn.cname = "k_" + name
	}
	fn.sym = &symbol{kind: symFunc, name: name, typ: typ, pos: pos, fn: fn, cname: fn.cname, scope: 1}
	if old != nil {
		for old.next != nil {
			old = old.next
		}
		old.next = fn.sym
	} else {
		p.scopes[1].names[name] = fn.sym
	}
	if s.kernel {
		p.addProto(fn, l)
	}
	p.funcs = append(p.funcs, fn)
	return fn
}

// addProto remembers where the name and the parameters of a kernel stand.
func (p *parser) addProto(fn *function, l *paramList) {
	if l == nil {
		return
	}
	name := l.close
	for depth := 1; depth > 0; { // back to the list's (
		name--
		switch p.toks[name].Text {
		case ")":
			depth++
		case "(":
			depth--
		}
	}
	for name--; p.toks[name].Text == ")"; { // (name)(parameters)
		name--
	}
	fn.protos = append(fn.protos, proto{name: name, names: l.nameToks, close: l.close})
}

func sameParams(a, b *ctype) bool {
	if len(a.params) != len(b.params) {
		return false
	}
	for i := range a.params {
		if !sameType(a.params[i], b.params[i]) {
			return false
		}
	}
	return true
}

func (p *parser) redeclareFunction(fn *function, typ *ctype, pos token.Pos, l *paramList, s *specifiers, attrs attributes) *function {
	if !sameType(fn.typ.elem, typ.elem) && !typ.elem.isUnknown() {
		p.errorf(pos, "function", "'%s' returns '%s', but '%s' where it is declared at %s", fn.name, typ.elem, fn.typ.elem, fn.pos)
	}
	if p.at("{") {
		fn.typ, fn.sym.typ = typ, typ
	}
	fn.kernel = fn.kernel || s.kernel
	if fn.kernel {
		fn.cname = "k_" + fn.name
		fn.sym.cname = fn.cname
		p.addProto(fn, l)
	}
	if attrs.hasReqd {
		fn.attrs.reqd, fn.attrs.hasReqd = attrs.reqd, true
	}
	fn.overload = fn.overload || attrs.overload
	return fn
}

// functionBody parses the body of a definition.
func (p *parser) functionBody(fn *function, l *paramList, pos token.Pos) {
	if fn.defined {
		p.errorf(pos, "function", "'%s' is defined twice", fn.name)
	}
	if l == nil {
		p.fail(p.pos(), "function", "a function cannot be defined through a typedef")
	}
	fn.defined, fn.pos = true, pos
	fn.params = l.syms
	fn.close, fn.open = l.close, p.i
	p.fn, p.body = fn, body{locals: map[string]int{}, labels: map[string]token.Pos{}}
	p.push()
	for i, s := range fn.params {
		if s.name == "" {
			s.cname = "cc_p" + strconv.Itoa(i)
			continue
		}
		p.declare(s)
	}
	fn.body = p.block()
	p.pop()
	p.fn = nil
	for _, g := range p.body.gotos {
		if _, ok := p.body.labels[g.name]; !ok {
			p.errorf(g.pos, "goto", "there is no label '%s' in '%s'", g.name, fn.name)
		}
	}
}
