package check

import (
	"strconv"

	"github.com/concord-compute/concord/source/internal/token"
	"github.com/concord-compute/concord/source/internal/tree"
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
		name, typ, pos, params := p.declarator(s.typ, "declaration")
		attrs := s.attrs
		p.attributes(&attrs)
		if typ.Kind == tree.TFunc && !s.typedef {
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
func (p *parser) declareTypedef(name string, typ *tree.Type, pos token.Pos, align int) {
	if typ.Kind == tree.TFunc {
		p.fail(pos, "function pointer", "a typedef of a function type is of no use: function pointers are not part of "+
			"OpenCL C")
	}
	if typ.Kind == tree.TRecord && typ.Rec.Tag == "" && typ.Rec.Typedef == "" {
		typ.Rec.Typedef = name
	}
	typ = typ.Aligned(align)
	if own := p.scopes[0].names[name]; own != nil && p.level() == 1 && !tree.SameObject(own.Type, typ) {
		p.errorf(pos, "typedef", "'%s' is a type of OpenCL C and cannot be redefined as '%s'", name, typ)
	}
	p.declare(&tree.Symbol{Kind: tree.SymTypedef, Name: name, Type: typ, Pos: pos})
}

// programVar parses the rest of a variable (or typedef) of program scope.
func (p *parser) programVar(name string, typ *tree.Type, pos token.Pos, s *specifiers, attrs tree.Attributes) {
	if s.typedef {
		p.declareTypedef(name, typ, pos, attrs.Align)
		return
	}
	if s.kernel {
		p.errorf(pos, "kernel", "'kernel' belongs to a function")
	}
	if typ.Space == tree.Private && typ.IsConst() {
		typ = typ.In(tree.Constant) // as early compilers accepted it; nothing else can be meant
	}
	if typ.Space != tree.Constant && !typ.IsUnknown() {
		p.errorf(pos, "program-scope variable",
			"'%s' must be constant: OpenCL C 1.2 has no other variables outside functions", name)
		typ = typ.In(tree.Constant)
	}
	p.constantVar(name, typ, pos, s.extern)
}

// constantVar parses the initializer of a variable that exists once per program
// and declares it.
func (p *parser) constantVar(name string, typ *tree.Type, pos token.Pos, extern bool) {
	sym := &tree.Symbol{Kind: tree.SymVar, Name: name, Type: typ, Pos: pos, Inst: true}
	if old := p.scopes[len(p.scopes)-1].names[name]; old != nil && old.Kind == tree.SymVar && old.Inst &&
		old.Init == nil && tree.SameType(old.Type, typ) {
		// extern constant int t[]; constant int t[] = {...};
		old.Type = typ
		sym = old
	} else {
		p.declare(sym)
		sym.CName = p.uniqueName("u", name)
		p.Globals = append(p.Globals, sym)
	}
	if !p.accept("=") {
		if !extern {
			p.errorf(pos, "constant", "the constant '%s' needs an initializer", name)
		}
		return
	}
	sym.Init = p.initializer(typ)
	sym.Type = sym.Init.Type.In(tree.Constant)
	p.checkConstant(sym.Init)
	p.foldVariable(sym)
}

// foldVariable remembers the value of an initialized integer or floating
// constant, so that it can size arrays.
func (p *parser) foldVariable(sym *tree.Symbol) {
	if sym.Init != nil && sym.Init.Value != nil && sym.Type.IsScalar() && sym.Type.IsConst() &&
		sym.Type.Q&tree.QVolatile == 0 {
		sym.Val = tree.Fold(sym.Init.Value).Convert(sym.Type)
	}
}

// localDecl parses a declaration inside a function.
func (p *parser) localDecl() *tree.Stmt {
	st := &tree.Stmt{Kind: tree.StDecl, Pos: p.pos()}
	s := p.specifiers("declaration")
	if s.kernel {
		p.errorf(s.pos, "kernel", "a kernel cannot be declared inside a function")
	}
	if p.accept(";") {
		return st
	}
	for {
		name, typ, pos, params := p.declarator(s.typ, "declaration")
		attrs := s.attrs
		p.attributes(&attrs)
		switch {
		case s.typedef:
			p.declareTypedef(name, typ, pos, attrs.Align)
		case typ.Kind == tree.TFunc:
			p.declareFunction(name, typ, pos, params, &s, attrs)
			if p.at("{") {
				p.fail(pos, "nested function", "a function cannot be defined inside a function")
			}
		default:
			if sym := p.localVar(name, typ, pos, &s, attrs); sym != nil {
				st.Syms = append(st.Syms, sym)
			}
		}
		if !p.accept(",") {
			break
		}
	}
	p.expect(";", "declaration")
	if len(st.Syms) > 0 {
		p.body.declares++
	}
	return st
}

// localVar parses one variable of a function. Constants and local memory are
// kept elsewhere and give no symbol for the statement.
func (p *parser) localVar(name string, typ *tree.Type, pos token.Pos, s *specifiers,
	attrs tree.Attributes) *tree.Symbol {
	typ = typ.Aligned(attrs.Align)
	if typ.IsVoid() {
		p.errorf(pos, "declaration", "the variable '%s' cannot be void", name)
		typ = tree.UnknownType
	}
	switch typ.Space {
	case tree.Constant:
		p.constantVar(name, typ, pos, s.extern)
		return nil
	case tree.Local:
		p.localMemory(name, typ, pos)
		return nil
	case tree.Global:
		p.errorf(pos, "declaration", "the variable '%s' cannot be in global memory", name)
		typ = typ.In(tree.Private)
	}
	if s.static || s.extern {
		p.errorf(pos, "storage class", "a variable of a function can be static or extern only in the constant address space")
	}
	sym := &tree.Symbol{Kind: tree.SymVar, Name: name, Type: typ, Pos: pos}
	p.declare(sym)
	if p.accept("=") {
		sym.Init = p.initializer(typ)
		sym.Type = sym.Init.Type
		p.foldVariable(sym)
	}
	if _, ok := sym.Type.Size(); !ok && !typ.IsUnknown() {
		p.errorf(pos, "declaration", "the variable '%s' has the incomplete type '%s'", name, typ)
		sym.Type = tree.UnknownType
	}
	return sym
}

// localMemory declares a variable in local memory: only kernels have it.
func (p *parser) localMemory(name string, typ *tree.Type, pos token.Pos) {
	sym := &tree.Symbol{Kind: tree.SymVar, Name: name, Type: typ, Pos: pos, Inst: true}
	p.declare(sym)
	if _, ok := typ.Size(); !ok {
		p.errorf(pos, "local variable", "'%s' has the incomplete type '%s'", name, typ)
		sym.Type = tree.UnknownType
	}
	if p.fn != nil && !p.fn.Kernel {
		p.errorf(pos, "local variable", "'%s': only a kernel can declare variables in local memory, not the function '%s'",
			name, p.fn.Name)
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
	sym.CName = "u_" + name
	if n > 1 {
		sym.CName = "u" + strconv.Itoa(n) + "_" + name
	}
	p.fn.Locals = append(p.fn.Locals, sym)
}
