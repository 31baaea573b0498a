package source

import (
	"strconv"

	"github.com/concord-compute/concord/source/internal/token"
)

// Declarations at program scope and in functions.

// externalDecl parses one declaration or function of program scope.
func (p *parser) externalDecl() {
	if p.accept(";") {
		return
	}
	if t := p.peek(); t.Text == "asm" || t.Text == "__asm__" || t.Text == "__asm" {
		p.fail(t.Pos, "asm", "inline assembly is not part of the portable language")
	}
	s := p.specifiers("declaration")
	if p.accept(";") {
		return
	}
	first := true
	for {
		name, typ, pos, params := p.fullDeclarator(s.typ, "declaration", false)
		attrs := s.attrs
		p.attributes(&attrs)
		if typ.kind == tFunc && !s.typedef {
			fn := p.declareFunction(name, typ, pos, params, &s, attrs)
			if first && p.at("{") {
				p.functionBody(fn, params, pos)
				return
			}
		} else {
			p.programVar(name, typ, pos, &s, attrs)
		}
		first = false
		if !p.accept(",") {
			break
		}
	}
	p.expect(";", "declaration")
}

// declareTypedef enters a typedef; an anonymous record takes its first name.
func (p *parser) declareTypedef(name string, typ *ctype, pos token.Pos, align int) {
	if typ.kind == tFunc {
		p.fail(pos, "function pointer", "a typedef of a function type is of no use: function pointers are not part of OpenCL C")
	}
	if typ.kind == tRecord && typ.rec.tag == "" && typ.rec.typedef == "" {
		typ.rec.typedef = name
	}
	if align > 0 {
		c := *typ
		c.align = align
		typ = &c
	}
	if k, ok := typeNamed(p.scopes[0], name); ok && p.level() == 1 {
		if !sameObject(k, typ) {
			p.errorf(pos, "typedef", "'%s' is a type of OpenCL C and cannot be redefined as '%s'", name, typ)
		}
	}
	p.declare(&symbol{kind: symTypedef, name: name, typ: typ, pos: pos})
}

func typeNamed(s *scope, name string) (*ctype, bool) {
	if sym := s.names[name]; sym != nil {
		return sym.typ, true
	}
	return nil, false
}

// programVar parses the rest of a variable (or typedef) of program scope.
func (p *parser) programVar(name string, typ *ctype, pos token.Pos, s *specifiers, attrs attributes) {
	if s.typedef {
		p.declareTypedef(name, typ, pos, attrs.align)
		return
	}
	if s.kernel {
		p.errorf(pos, "kernel", "'kernel' belongs to a function")
	}
	if typ.space == Private && typ.isConst() {
		typ = typ.in(Constant) // what early compilers took; it can only mean one thing
	}
	if typ.space != Constant && !typ.isUnknown() {
		p.errorf(pos, "program-scope variable", "'%s' must be constant: OpenCL C 1.2 has no other variables outside functions", name)
		typ = typ.in(Constant)
	}
	p.constantVar(name, typ, pos, s.extern)
}

// constantVar parses the initializer of a variable that exists once per program
// and declares it.
func (p *parser) constantVar(name string, typ *ctype, pos token.Pos, extern bool) {
	sym := &symbol{kind: symVar, name: name, typ: typ, pos: pos, inst: true}
	if old := p.scopes[len(p.scopes)-1].names[name]; old != nil && old.kind == symVar && old.inst && old.init == nil && sameType(old.typ, typ) {
		// extern constant int t[]; constant int t[] = {...};
		old.typ = typ
		sym = old
	} else {
		p.declare(sym)
		sym.cname = p.uniqueName("u", name)
		p.globals = append(p.globals, sym)
	}
	if !p.accept("=") {
		if !extern {
			p.errorf(pos, "constant", "the constant '%s' needs an initializer", name)
		}
		return
	}
	sym.init = p.initializer(typ)
	sym.typ = sym.init.typ.in(Constant)
	p.checkConstant(sym.init)
	p.foldVariable(sym)
}

// foldVariable remembers the value of an initialized integer or floating
// constant, so that it can size arrays.
func (p *parser) foldVariable(sym *symbol) {
	if sym.init != nil && sym.init.value != nil && sym.typ.isScalar() && sym.typ.isConst() && sym.typ.q&qVolatile == 0 {
		sym.val = fold(sym.init.value).convert(sym.typ)
	}
}

// localDecl parses a declaration inside a function.
func (p *parser) localDecl() *stmt {
	st := &stmt{kind: stDecl, pos: p.pos()}
	s := p.specifiers("declaration")
	if s.kernel {
		p.errorf(s.pos, "kernel", "a kernel cannot be declared inside a function")
	}
	if p.accept(";") {
		return st
	}
	for {
		name, typ, pos, params := p.fullDeclarator(s.typ, "declaration", false)
		attrs := s.attrs
		p.attributes(&attrs)
		switch {
		case s.typedef:
			p.declareTypedef(name, typ, pos, attrs.align)
		case typ.kind == tFunc:
			p.declareFunction(name, typ, pos, params, &s, attrs)
			if p.at("{") {
				p.fail(pos, "nested function", "a function cannot be defined inside a function")
			}
		default:
			if sym := p.localVar(name, typ, pos, &s, attrs); sym != nil {
				st.syms = append(st.syms, sym)
			}
		}
		if !p.accept(",") {
			break
		}
	}
	p.expect(";", "declaration")
	if len(st.syms) > 0 {
		p.body.declares++
	}
	return st
}

// localVar parses one variable of a function. Constants and local memory are
// kept elsewhere and give no symbol for the statement.
func (p *parser) localVar(name string, typ *ctype, pos token.Pos, s *specifiers, attrs attributes) *symbol {
	if attrs.align > 0 {
		c := *typ
		c.align = attrs.align
		typ = &c
	}
	if typ.isVoid() {
		p.errorf(pos, "declaration", "the variable '%s' cannot be void", name)
		typ = unknownType
	}
	switch typ.space {
	case Constant:
		p.constantVar(name, typ, pos, s.extern)
		return nil
	case Local:
		p.localMemory(name, typ, pos)
		return nil
	case Global:
		p.errorf(pos, "declaration", "the variable '%s' cannot be in global memory", name)
		typ = typ.in(Private)
	}
	if s.static || s.extern {
		p.errorf(pos, "storage class", "a variable of a function can be static or extern only in the constant address space")
	}
	sym := &symbol{kind: symVar, name: name, typ: typ, pos: pos}
	p.declare(sym)
	if p.accept("=") {
		sym.init = p.initializer(typ)
		sym.typ = sym.init.typ
		p.foldVariable(sym)
	}
	if _, ok := sym.typ.size(); !ok && !typ.isUnknown() {
		p.errorf(pos, "declaration", "the variable '%s' has the incomplete type '%s'", name, typ)
		sym.typ = unknownType
	}
	return sym
}

// localMemory declares a variable in local memory: only kernels have it.
func (p *parser) localMemory(name string, typ *ctype, pos token.Pos) {
	sym := &symbol{kind: symVar, name: name, typ: typ, pos: pos, inst: true}
	p.declare(sym)
	if _, ok := typ.size(); !ok {
		p.errorf(pos, "local variable", "'%s' has the incomplete type '%s'", name, typ)
		sym.typ = unknownType
	}
	if p.fn != nil && !p.fn.kernel {
		p.errorf(pos, "local variable", "'%s': only a kernel can declare variables in local memory, not the function '%s'", name, p.fn.name)
	}
	if p.at("=") {
		p.errorf(p.pos(), "local variable", "'%s' is in local memory and cannot have an initializer", name)
		p.next()
		p.initializer(typ)
	}
	if p.fn == nil {
		return
	}
	p.body.locals[name]++
	n := p.body.locals[name]
	sym.cname = "u_" + name
	if n > 1 {
		sym.cname = "u" + strconv.Itoa(n) + "_" + name
	}
	p.fn.locals = append(p.fn.locals, sym)
}
