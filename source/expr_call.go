package source

// Names and calls: of user functions, with overloads, and of built-ins.

import (
	"strconv"
	"strings"

	"github.com/concord-compute/concord/source/internal/token"
)

// name types an identifier; when ( follows, the whole call.
func (p *parser) name(t *token.Token, tok int) *expr {
	sym := p.lookup(t.Text)
	if sym == nil {
		if p.at("(") {
			return p.builtinCall(t, tok)
		}
		return p.namedConstant(t, tok)
	}
	switch sym.kind {
	case symTypedef:
		p.fail(t.Pos, "expression", "unexpected type name '%s'", t.Text)
	case symEnumConst:
		return p.node(&expr{op: opLit, typ: sym.typ, val: sym.val, tok: tok})
	case symFunc:
		if p.at("(") {
			return p.userCall(sym, tok)
		}
		return p.node(&expr{op: opFunc, sym: sym, typ: sym.typ, tok: tok})
	}
	sym.used = true
	return p.node(&expr{op: opSym, sym: sym, typ: sym.typ, lval: true, tok: tok})
}

// namedConstant types NULL, INFINITY and their like, or reports an undeclared
// identifier.
func (p *parser) namedConstant(t *token.Token, tok int) *expr {
	c, ok := lookupConst(t.Text)
	switch {
	case t.Text == "true" || t.Text == "false":
		return p.node(&expr{op: opLit, typ: intType, val: foldTruth(t.Text == "true"), tok: tok})
	case ok && c.Type.Ptr:
		return p.node(&expr{op: opNull, typ: pointerTo(voidType), text: c.Host, tok: tok})
	case ok:
		typ := c.Type.ctype()
		if typ.is(Double) && !p.feats.FP64 {
			typ = floatType
		}
		return p.node(&expr{op: opNamed, typ: typ, text: c.Host, tok: tok})
	}
	if _, isFunc := lookupBuiltin(t.Text); isFunc || isConversion(t.Text) {
		p.errorf(t.Pos, "function pointer", "the built-in function '%s' can only be called", t.Text)
		return p.bad(tok)
	}
	if t.Text == "__func__" || t.Text == "__FUNCTION__" {
		if p.fn == nil {
			p.fail(t.Pos, "expression", "'%s' stands outside of a function", t.Text)
		}
		typ := arrayOf(charType.in(Constant).with(qConst), len(p.fn.name)+1)
		return p.node(&expr{op: opString, text: `"` + p.fn.name + `"`, typ: typ, lval: true, tok: tok})
	}
	p.errorf(t.Pos, "identifier", "'%s' is not declared", t.Text)
	return p.bad(tok)
}

// arguments parses ( a, b, ... ) and returns the index of the closing one.
func (p *parser) arguments() (args []*expr, end int) {
	p.enter("call")
	defer func() { p.nest-- }()
	p.next()
	for !p.at(")") {
		args = append(args, p.assignment())
		if !p.accept(",") {
			break
		}
	}
	end = p.i
	p.expect(")", "call")
	return args, end
}

// userCall types a call of a user function or kernel.
func (p *parser) userCall(sym *symbol, tok int) *expr {
	args, end := p.arguments()
	pos := p.toks[tok].Pos
	for i := range args {
		args[i] = p.value(args[i])
		if args[i].typ.isUnknown() {
			return p.node(&expr{op: opBad, args: args, tok: tok})
		}
	}
	if sym.next != nil {
		if sym = p.overload(sym, args, pos); sym == nil {
			return p.bad(tok)
		}
	}
	want := sym.typ.params
	if b, ok := lookupBuiltin(sym.name); ok && sym.fn.kernel {
		// A kernel does not hide the built-in that it is named like: it may well be written with it.
		if _, fits := overloadCost(want, args); !fits {
			return p.builtinWith(b, pos, tok, args, end)
		}
	}
	if len(args) != len(want) {
		p.errorf(pos, "call", "'%s' takes %d arguments, not %d", sym.name, len(want), len(args))
		return p.bad(tok)
	}
	for i := range args {
		args[i] = p.assignConv(args[i], want[i], "argument "+strconv.Itoa(i+1)+" of '"+sym.name+"'")
	}
	e := p.node(&expr{op: opCall, sym: sym, args: args, typ: sym.typ.elem, tok: tok, end: end})
	if p.fn == nil {
		p.errorf(pos, "constant", "a constant cannot be initialized by a call")
		return e
	}
	p.fn.calls = append(p.fn.calls, &call{to: sym.fn, pos: pos, e: e})
	return e
}

// overload picks the function whose parameters fit the arguments best.
func (p *parser) overload(first *symbol, args []*expr, pos token.Pos) *symbol {
	var best *symbol
	bestCost, tie := 0, false
	for s := first; s != nil; s = s.next {
		cost, ok := overloadCost(s.typ.params, args)
		switch {
		case !ok:
		case best == nil || cost < bestCost:
			best, bestCost, tie = s, cost, false
		case cost == bestCost:
			tie = true
		}
	}
	if best == nil {
		p.errorf(pos, "call", "no '%s' takes these arguments", first.name)
	} else if tie {
		p.errorf(pos, "call", "several '%s' take these arguments equally well", first.name)
	}
	return best
}

// overloadCost ranks a conversion of every argument: exact 0, promotion 1,
// conversion 10.
func overloadCost(params []*ctype, args []*expr) (cost int, ok bool) {
	if len(params) != len(args) {
		return 0, false
	}
	for i, t := range params {
		from := args[i].typ
		switch {
		case sameType(t, from):
		case t.isPointer() && from.isPointer() && sameType(t.elem, from.elem) && t.elem.space == from.elem.space:
			cost++ // gains const or volatile
		case t.isScalar() && from.isScalar() && (sameType(promoted(from), t) || from.is(Float) && t.is(Double)):
			cost++
		case t.isScalar() && from.isScalar(), t.isPointer() && isNullConstant(args[i]):
			cost += 10
		case t.isPointer() && from.isPointer() && t.elem.isVoid() && t.elem.space == from.elem.space:
			cost += 10
		case t.isVector() && from.isScalar():
			cost += 20
		default:
			return 0, false
		}
	}
	return cost, true
}

// refusedCalls are families of functions that the portable language leaves out.
var refusedCalls = []struct{ prefix, construct string }{
	{"read_image", "image"}, {"write_image", "image"}, {"get_image_", "image"},
	{"enqueue_", "device enqueue"}, {"get_kernel_", "device enqueue"}, {"get_default_queue", "device enqueue"},
	{"read_pipe", "pipe"}, {"write_pipe", "pipe"}, {"reserve_", "pipe"}, {"commit_", "pipe"},
	{"sub_group_", "sub-group"}, {"get_sub_group_", "sub-group"},
}

// builtinCall types a call of a built-in.
func (p *parser) builtinCall(t *token.Token, tok int) *expr {
	for _, r := range refusedCalls {
		if strings.HasPrefix(t.Text, r.prefix) && !(p.feats.Subgroups && r.construct == "sub-group") {
			p.fail(t.Pos, r.construct, "'%s': %s functions are not part of the portable language", t.Text, r.construct)
		}
	}
	if isConversion(t.Text) {
		return p.conversionCall(t, tok)
	}
	b, ok := lookupBuiltin(t.Text)
	if !ok || b.Ext == subgroupExt && !p.feats.Subgroups {
		p.errorf(t.Pos, "call", "'%s' is not declared", t.Text)
		p.arguments()
		return p.bad(tok)
	}
	args, end := p.arguments()
	return p.builtinWith(b, t.Pos, tok, args, end)
}

// builtinWith types a call of a built-in whose arguments have been parsed.
func (p *parser) builtinWith(b *builtin, pos token.Pos, tok int, args []*expr, end int) *expr {
	types := make([]bType, len(args))
	for i, a := range args {
		if a.op != opString {
			args[i] = p.value(a)
		}
		if args[i].typ.isUnknown() {
			return p.node(&expr{op: opBad, args: args, tok: tok})
		}
		types[i] = bTypeOf(args[i].typ)
		if a.op == opString {
			types[i] = bType{Kind: Char, Width: 1, Ptr: true, Space: Constant, Const: true}
		}
	}
	c, fitting := b.resolve(types, &p.feats)
	switch {
	case len(fitting) == 0:
		p.errorf(pos, "call", "no '%s' takes (%s); there is: %s", b.Name, typeList(args), b.usage())
		return p.bad(tok)
	case len(fitting) > 1:
		p.errorf(pos, "call", "the call of '%s' with (%s) is ambiguous, cast an argument; candidates: %s",
			b.Name, typeList(args), candidates(b, fitting))
		return p.bad(tok)
	}
	if p.fn == nil {
		p.errorf(pos, "constant", "a constant cannot be initialized by a call")
	}
	p.fused = p.fused || b.Name == "fma" || b.Name == "mad"
	e := &expr{op: opBuiltin, text: c.Name, args: args, typ: c.Result.ctype(), tok: tok, end: end}
	p.convertArgs(e, b, c)
	p.checkBuiltin(e, b, c, pos)
	return p.node(e)
}

// convertArgs makes every argument exactly what the chosen form takes.
func (p *parser) convertArgs(e *expr, b *builtin, c builtinCall) {
	for i, want := range c.Params {
		a := e.args[i]
		switch {
		case want.Event && !want.Ptr:
			e.args[i] = p.conv(a, eventType) // 0 stands for no event
		case a.op == opString || !want.known() || want.Event:
		case want.Ptr:
			if a.typ.isPointer() && a.typ.elem.isVoid() && want.Kind != Void {
				e.args[i] = p.conv(a, want.ctype())
			}
		case b.Variadic && i >= 1:
		default:
			e.args[i] = p.conv(a, want.ctype())
		}
	}
}

func typeList(args []*expr) string {
	names := make([]string, len(args))
	for i, a := range args {
		names[i] = a.typ.bare().String()
	}
	return strings.Join(names, ", ")
}

// checkBuiltin refuses what the device cannot do and what would write constants,
// and numbers the barriers.
func (p *parser) checkBuiltin(e *expr, b *builtin, c builtinCall, pos token.Pos) {
	if b.Ext != "" {
		p.checkExtension(b, pos)
	}
	if b.Ext == subgroupExt && p.subgroup == nil {
		p.subgroup = &use{b.Name, pos}
	}
	if b.Barrier {
		p.sites++
		e.site = p.sites
	}
	if p.fn != nil && (b.Barrier || strings.HasPrefix(b.Name, "async_work_group")) {
		p.fn.barrier = true
	}
	for i, want := range c.Params {
		if want.Kind == Half && !want.Ptr && !p.feats.FP16 {
			p.errorf(pos, "half", "'%s' on half needs the feature cl_khr_fp16, which the device does not have", b.Name)
		}
		if want.Kind == Double && !p.feats.FP64 {
			p.errorf(pos, "double", "'%s' on double needs the feature cl_khr_fp64, which the device does not have", b.Name)
		}
		if b.Atomic && want.Ptr && kindSize(want.Kind) == 8 && !p.feats.Int64Atomic {
			p.errorf(pos, "atomic", "'%s' on 64 bits needs the feature cl_khr_int64_base_atomics, which the device does not have", b.Name)
		}
		if want.Ptr && (want.Const || want.Space == Constant) && writesArg(b.Name, i) {
			p.errorf(p.posOf(e.args[i]), "call", "'%s' would write to '%s'", b.Name, e.args[i].typ.bare())
		}
	}
	if b.Name == "printf" && e.args[0].op != opString {
		p.errorf(pos, "printf", "the format of printf must be a string literal")
	}
}

// checkExtension refuses a built-in that needs what the device does not have.
func (p *parser) checkExtension(b *builtin, pos token.Pos) {
	has := map[string]bool{
		"cl_khr_fp64": p.feats.FP64, "cl_khr_fp16": p.feats.FP16,
		subgroupExt:                 p.feats.Subgroups,
		"cl_khr_int64_base_atomics": p.feats.Int64Atomic, "cl_khr_int64_extended_atomics": p.feats.Int64Atomic,
	}
	if ok, known := has[b.Ext]; known && !ok {
		p.errorf(pos, "extension", "'%s' needs %s, which the device does not have", b.Name, b.Ext)
	}
}

// writesArg tells whether a built-in writes through its argument i.
func writesArg(name string, i int) bool {
	switch {
	case strings.HasPrefix(name, "vstore"):
		return true
	case strings.HasPrefix(name, "vload") || name == "printf" || name == "prefetch" || name == "wait_group_events":
		return false
	case strings.HasPrefix(name, "async"):
		return i == 0
	}
	return true
}
