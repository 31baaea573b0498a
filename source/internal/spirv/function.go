package spirv

// Functions: their variables, parameters and calls.

import (
	"maps"
	"slices"

	"github.com/concord-compute/concord/source/internal/spirv/module"
	"github.com/concord-compute/concord/source/internal/token"
	"github.com/concord-compute/concord/source/internal/tree"
)

// function is a function that is being written, or finished.
type function struct {
	*emitter
	f                 *module.Func
	p                 *tree.Program // that it is a part of
	decl              *tree.Function
	isLibrary         bool
	vars              map[*tree.Symbol]*variable
	inMemory          map[*tree.Symbol]bool // variables whose address is taken
	byMemory          map[*tree.Symbol]bool // parameters that callers leave in the arena
	top               int                   // end of its place in the arena, which is behind those of its callees
	result            id                    // the type of its result
	resultAt          place                 // where it leaves a result that is not made of leaves
	arrays            int                   // bytes of arrays that are variables of the function
	localBase         id                    // pointer to the local memory of a kernel that is called; else 0
	blocks            map[*tree.Function]int
	localBytes        int // bytes of local memory
	jumps             []jump
	gotos             *gotos
	temporaries, free []slot
	inExpression      int // in how many statement expressions the statement is
	pos               token.Pos
}

// jump is where break and continue lead to; next is 0 in a switch.
type jump struct {
	end, next id
	isGoto    bool         // a loop that a goto makes, which break and continue leave for one around it
	left      map[int]bool // by which of them it was left
}

// function returns the finished form of a function of the program. Functions that it calls come first.
func (e *emitter) function(fn *tree.Function) *function {
	if f := e.done[fn]; f != nil {
		return f
	}
	f := &function{emitter: e, p: e.p, decl: fn, top: privateStart}
	for _, c := range fn.Calls {
		f.top = max(f.top, e.function(c.To).top)
	}
	e.done[fn] = f
	f.write()
	return f
}

// write writes the whole function.
func (f *function) write() {
	fn := f.decl
	f.pos = fn.Pos
	f.vars = map[*tree.Symbol]*variable{}
	f.findMemory()
	f.placeLocals()
	var params []id
	if f.hasLocalBase() {
		params = append(params, f.b.Int(32))
	}
	f.passInMemory()
	for _, s := range fn.Params {
		if !f.byMemory[s] {
			parts, _ := f.leaves(s.Type)
			for _, l := range parts {
				params = append(params, f.regType(l.t))
			}
		}
	}
	if len(params) > maxParams {
		f.refuse(fn.Pos, "limit", "'%s' has more than %d parameters", fn.Name, maxParams)
	}
	f.result = f.resultType(fn.Type.Elem)
	f.f = f.b.Function(f.result, params...)
	f.b.Name(f.f.ID, fn.CName)
	f.line(fn.Pos)
	if _, ok := f.leaves(fn.Type.Elem); !ok {
		f.resultAt = f.temporary(fn.Type.Elem)
	}
	f.findGotos()
	ids := f.f.Params
	if f.hasLocalBase() {
		f.localBase, ids = ids[0], ids[1:]
	}
	for _, s := range fn.Params {
		v := f.variable(s)
		if parts, ok := f.leaves(s.Type); ok && !f.byMemory[s] {
			f.store(f.placeOf(s, v), value{s.Type, ids[:len(parts)], nil})
			ids = ids[len(parts):]
		}
	}
	f.stmt(fn.Body)
	if f.f.Open() {
		if f.result == f.b.Void() {
			f.f.Return(0)
		} else { // the caller does not use the value
			f.f.Return(f.b.Undef(f.result))
		}
	}
	f.Wrote(f.f.Size()+f.b.Size()-f.written, f.pos)
	f.f.End()
	f.emitter.written = f.b.Size()
	f.arenaSize = max(f.arenaSize, f.top)
}

// maxParams is the largest number of parameters of a function in SPIR-V.
const maxParams = 255

// passInMemory chooses the parameters that callers leave in the arena: if there are too many, all vectors and records.
func (f *function) passInMemory() {
	f.byMemory = map[*tree.Symbol]bool{}
	n := 0
	for _, s := range f.decl.Params {
		parts, _ := f.leaves(s.Type)
		n += len(parts)
	}
	for _, s := range f.decl.Params {
		if parts, _ := f.leaves(s.Type); n >= maxParams && len(parts) > 1 {
			f.byMemory[s], f.inMemory[s] = true, true
		}
	}
}

// resultType returns the type of a function's result.
func (f *function) resultType(t *tree.Type) id {
	if t.IsVoid() {
		return f.b.Void()
	}
	parts, ok := f.leaves(t)
	switch {
	case !ok || len(parts) == 0:
		return f.b.Void()
	case len(parts) == 1:
		return f.regType(parts[0].t)
	}
	members := make([]id, len(parts))
	for i, l := range parts {
		members[i] = f.regType(l.t)
	}
	return f.b.Struct(members...)
}

// findMemory finds the variables that need an address.
func (f *function) findMemory() {
	f.inMemory = map[*tree.Symbol]bool{}
	direct := map[*tree.Expr]bool{}
	mark := func(e *tree.Expr) {
		if s := rootOf(e); s != nil {
			f.inMemory[s] = true
		}
	}
	tree.WalkStmt(f.decl.Body, func(e *tree.Expr) {
		switch e.Op {
		case tree.OpIndex:
			direct[e.A] = e.A.Op == tree.OpDecay
		case tree.OpBuiltin:
			for _, a := range e.Args {
				if target(a) != nil {
					direct[tree.Unparen(a)] = writesBack(e.Text)
				}
			}
		case tree.OpDecay:
			if !direct[e] {
				mark(e.A)
			}
		case tree.OpUnary:
			if e.Text == "&" && !direct[e] {
				mark(e.A)
			}
		}
	})
}

// rootOf returns the variable or compound literal that an object is a part of, or nil.
func rootOf(e *tree.Expr) *tree.Symbol {
	for {
		switch e.Op {
		case tree.OpParen, tree.OpSwizzle, tree.OpComponent, tree.OpMember, tree.OpDecay, tree.OpLoad:
			e = e.A
			continue
		case tree.OpIndex:
			if e.A.Op == tree.OpDecay {
				e = e.A
				continue
			}
		case tree.OpCompound:
			return e.Sym
		}
		return tree.RootVariable(e)
	}
}

// target returns the object whose address e takes, or nil.
func target(e *tree.Expr) *tree.Expr {
	if e = tree.Unparen(e); e.Op == tree.OpUnary && e.Text == "&" {
		return tree.Unparen(e.A)
	}
	return nil
}

// placeLocals places the local variables of a kernel, and the blocks of kernels that it calls.
func (f *function) placeLocals() {
	for _, s := range f.decl.Locals {
		size, _ := s.Type.Size()
		at := tree.AlignUp(f.localBytes, tree.LocalAlignment(s.Type))
		f.offsets[s] = at
		f.localBytes = at + size
	}
	f.blocks = map[*tree.Function]int{}
	for _, c := range f.decl.Calls {
		if to := f.done[c.To]; to != nil && to.localBytes > 0 {
			if _, placed := f.blocks[c.To]; !placed {
				f.localBytes = tree.AlignUp(f.localBytes, blockAlign)
				f.blocks[c.To] = f.localBytes
				f.localBytes += to.localBytes
			}
		}
	}
}

// hasLocalBase reports whether callers say where the local memory of the function, and of the kernels that it calls,
// begins.
func (f *function) hasLocalBase() bool { return f.called[f.decl] && f.localBytes > 0 }

// variable returns a variable or parameter, which it declares at its first use.
func (f *function) variable(s *tree.Symbol) *variable {
	v := f.vars[s]
	if v != nil {
		return v
	}
	v = &variable{}
	f.vars[s] = v
	n := 1
	t := s.Type
	for ; t.Kind == tree.TArray; t = t.Elem {
		n *= t.N
		v.dims++
	}
	parts, ok := f.leaves(t)
	if !ok || f.inMemory[s] {
		v.at = f.allocate(s.Type)
		return v
	}
	v.ids = []id{}
	if v.dims > 0 {
		size, _ := s.Type.Size()
		f.arrays += size
		f.limitPrivate()
	}
	for i, l := range parts {
		typ := f.regType(l.t)
		if v.dims > 0 {
			typ = f.b.Array(typ, max(n, 1))
		}
		one := f.f.Variable(typ)
		v.ids = append(v.ids, one)
		if name := s.Name; name != "" && i == 0 {
			f.b.Name(one, name)
		}
	}
	return v
}

// allocate returns the offset in the arena of a new object.
func (f *function) allocate(t *tree.Type) int {
	if f.isLibrary {
		panic("spirv: a function of the library needs memory: " + f.decl.Name)
	}
	size, _ := t.Size()
	at := tree.AlignUp(f.top, max(t.Alignment(), 4))
	f.top = at + size
	f.limitPrivate()
	return at
}

// maxPrivate is the largest number of bytes of private variables of a function and those that it calls, as far as they
// are arrays or in the arena: more than drivers cope with.
const maxPrivate = 1 << 18

func (f *function) limitPrivate() {
	if f.top+f.arrays > maxPrivate {
		f.refuse(f.pos, "limit", "'%s' and the functions that it calls have more than %d bytes of private arrays and records",
			f.decl.Name, maxPrivate)
		f.top, f.arrays = privateStart, 0
	}
}

// placeOf returns the place of a whole variable.
func (f *function) placeOf(s *tree.Symbol, v *variable) place {
	if v.ids == nil {
		return known(s.Type, tree.Private, v.at, max(s.Type.Alignment(), 4))
	}
	return place{t: s.Type, v: v}
}

// slot is the place of a temporary object in the arena.
type slot struct{ at, size, align int }

// temporary returns an object in the arena that lives until the end of the statement.
func (f *function) temporary(t *tree.Type) place {
	t = t.Bare()
	size, _ := t.Size()
	align := max(t.Alignment(), 4)
	i := slices.IndexFunc(f.free, func(s slot) bool { return s.size == size && s.align >= align })
	one := slot{size: size, align: align}
	if i < 0 {
		one.at = f.allocate(t)
	} else {
		one = f.free[i]
		f.free = slices.Delete(f.free, i, i+1)
	}
	f.temporaries = append(f.temporaries, one)
	return known(t, tree.Private, one.at, align)
}

// release gives back all temporaries but the first n.
func (f *function) release(n int) {
	f.free = append(f.free, f.temporaries[n:]...)
	f.temporaries = f.temporaries[:n]
}

// symbol returns the place of a variable, a constant or a local variable of a kernel.
func (f *function) symbol(s *tree.Symbol) place {
	switch {
	case s.Inst && s.Type.Space == tree.Local:
		p := known(s.Type, tree.Local, localStart+f.offsets[s], tree.LocalAlignment(s.Type))
		if f.localBase != 0 {
			p.base, p.off = f.localBase, f.offsets[s]
		}
		return p
	case s.Inst:
		p := known(s.Type, tree.Constant, f.constantAt(s), s.Type.Alignment())
		p.base = f.pushLong(pushConstants)
		return p
	}
	return f.placeOf(s, f.variable(s))
}

// userCall writes a call of a function of the program.
func (f *function) userCall(e *tree.Expr) value {
	var args []value
	for i, a := range e.Args {
		args = append(args, f.as(f.expr(a), e.Sym.Type.Params[i]))
	}
	if f.isLibrary {
		if isIntrinsic(e.Sym.Name) {
			return f.intrinsic(e.Sym.Name, args)
		}
		return f.invoke(f.library[e.Sym.Name], nil, args)
	}
	to := f.function(e.Sym.Fn)
	var first []id
	if to.hasLocalBase() {
		base := f.uint(localStart + f.blocks[to.decl])
		if f.localBase != 0 {
			base = f.add(tree.UInt, f.localBase, f.uint(f.blocks[to.decl]))
		}
		first = []id{base}
	}
	return f.invoke(to, first, args)
}

// invoke writes a call.
func (f *function) invoke(to *function, first []id, args []value) value {
	for i, a := range args {
		if s := to.decl.Params[i]; a.at != nil || to.byMemory[s] {
			f.store(to.placeOf(s, to.vars[s]), a)
			continue
		}
		first = append(first, a.ids...)
	}
	t := to.decl.Type.Elem.Bare()
	r := f.f.Emit(module.OpFunctionCall, to.result, append([]id{to.f.ID}, first...)...)
	out := value{t: t}
	parts, ok := f.leaves(t)
	switch {
	case t.IsVoid():
	case !ok: // another call would overwrite it
		p := f.temporary(t)
		f.copy(p, to.resultAt)
		out.at = &p
	case len(parts) == 1:
		out.ids = []id{r}
	default:
		for i, l := range parts {
			out.ids = append(out.ids, f.f.Emit(module.OpCompositeExtract, f.regType(l.t), r, id(i)))
		}
	}
	return out
}

// giveBack writes a return.
func (f *function) giveBack(e *tree.Expr) {
	if e == nil || e.Type.IsVoid() {
		if e != nil {
			f.expr(e)
		}
		if f.result == f.b.Void() {
			f.f.Return(0)
		}
		return
	}
	v := f.as(f.expr(e), f.decl.Type.Elem)
	switch {
	case v.at != nil:
		f.copy(f.resultAt, *v.at)
		f.f.Return(0)
	case len(v.ids) == 0:
		f.f.Return(0)
	case len(v.ids) == 1:
		f.f.Return(v.ids[0])
	default:
		f.f.Return(f.f.Emit(module.OpCompositeConstruct, f.result, v.ids...))
	}
}

// initialize assigns an initializer to an object.
func (f *function) initialize(p place, n *tree.Init) {
	if n.Value != nil {
		f.store(p, f.as(f.expr(n.Value), p.t))
		return
	}
	complete := n.Type.Kind == tree.TRecord && !n.Type.Rec.Union && len(n.Kids) == len(n.Type.Rec.Fields) ||
		n.Type.Kind == tree.TArray && len(n.Kids) == n.Type.N
	if !complete {
		f.clear(p)
	}
	for _, i := range slices.Sorted(maps.Keys(n.Kids)) {
		k := n.Kids[i]
		switch {
		case k.Value == nil && !complete && len(k.Kids) == 0:
		case n.Type.Kind == tree.TArray:
			f.initialize(f.element(p, n.Type.Elem, f.uint(i), tree.UInt), k)
		case n.Type.Kind == tree.TRecord:
			f.initialize(f.member(p, n.Type.Rec.Fields[i]), k)
		default:
			f.initialize(f.component(p, i), k)
		}
	}
}

// clear assigns zeros to an object.
func (f *function) clear(p place) {
	if _, ok := f.leaves(p.t); ok {
		f.store(p, f.zero(p.t))
		return
	}
	const most = 16
	if p.v != nil {
		n, t := 1, p.t
		for ; t.Kind == tree.TArray; t = t.Elem {
			n *= t.N
		}
		zero := func(i id) { f.store(f.element(p, t, i, tree.UInt), f.zero(t)) }
		if n > most {
			f.count(f.uint(n), zero)
			return
		}
		for i := range n {
			zero(f.uint(i))
		}
		return
	}
	size, _ := p.t.Size()
	unit := tree.UInt
	if size%4 != 0 || p.align < 4 {
		unit = tree.UChar
	}
	n := tree.KindSize(unit)
	t := tree.Scalar(unit)
	p = f.settled(p)
	if size/n > most {
		p.align = n
		f.count(f.uint(size/n), func(i id) { f.storeScalar(f.element(p, t, i, tree.UInt), f.uint(0)) })
		return
	}
	for at := 0; at < size; at += n {
		f.storeScalar(p.placeAt(at, t), f.uint(0))
	}
}

// line says which line of the text comes next.
func (f *function) line(pos token.Pos) {
	if f.isLibrary {
		return
	}
	f.pos = pos
	f.f.Line(pos.File, pos.Line, pos.Col)
}
