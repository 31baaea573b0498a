package check

// Names and calls: of user functions, with overloads, and of built-ins.

import (
	"strconv"
	"strings"

	"github.com/concord-compute/concord/source/internal/builtins"
	"github.com/concord-compute/concord/source/internal/token"
	"github.com/concord-compute/concord/source/internal/tree"
)

// name types an identifier, or a whole call if ( follows.
func (p *parser) name(t *token.Token, tok int) *tree.Expr {
	sym := p.lookup(t.Text)
	if sym == nil {
		if p.at("(") {
			return p.builtinCall(t, tok)
		}
		return p.namedConstant(t, tok)
	}
	switch sym.Kind {
	case tree.SymTypedef:
		p.fail(t.Pos, "expression", "unexpected type name '%s'", t.Text)
	case tree.SymEnumConst:
		return p.node(&tree.Expr{Op: tree.OpLit, Type: sym.Type, Val: sym.Val, Tok: tok})
	case tree.SymFunc:
		if p.at("(") {
			return p.userCall(sym, tok)
		}
		return p.node(&tree.Expr{Op: tree.OpFunc, Sym: sym, Type: sym.Type, Tok: tok})
	}
	sym.Used = true
	return p.node(&tree.Expr{Op: tree.OpSym, Sym: sym, Type: sym.Type, LValue: true, Tok: tok})
}

// namedConstant types named constants such as NULL and INFINITY, or reports an undeclared
// identifier.
func (p *parser) namedConstant(t *token.Token, tok int) *tree.Expr {
	c, ok := builtins.LookupConst(t.Text)
	switch {
	case t.Text == "true":
		return p.node(&tree.Expr{Op: tree.OpLit, Type: tree.IntType, Val: tree.IntValue(tree.Int, 1), Tok: tok})
	case t.Text == "false":
		return p.node(&tree.Expr{Op: tree.OpLit, Type: tree.IntType, Val: tree.IntValue(tree.Int, 0), Tok: tok})
	case ok && c.Type.Ptr:
		return p.node(&tree.Expr{Op: tree.OpNull, Type: tree.PointerTo(tree.VoidType), Text: c.Host, Tok: tok})
	case ok:
		typ := c.Type.Tree()
		if typ.Is(tree.Double) && !p.feats.FP64 {
			typ = tree.FloatType
		}
		return p.node(&tree.Expr{Op: tree.OpNamed, Type: typ, Text: c.Host, Tok: tok})
	}
	if _, isFunc := builtins.Lookup(t.Text); isFunc || builtins.IsConversion(t.Text) {
		return p.refuse(tok, t.Pos, "function pointer", "the built-in function '%s' can only be called", t.Text)
	}
	if t.Text == "__func__" || t.Text == "__FUNCTION__" {
		if p.fn == nil {
			p.fail(t.Pos, "expression", "'%s' is used outside of a function", t.Text)
		}
		typ := tree.ArrayOf(tree.CharType.In(tree.Constant).With(tree.QConst), len(p.fn.Name)+1)
		return p.node(&tree.Expr{Op: tree.OpString, Text: `"` + p.fn.Name + `"`, Type: typ, LValue: true, Tok: tok})
	}
	return p.refuse(tok, t.Pos, "identifier", "'%s' is not declared", t.Text)
}

// arguments parses ( a, b, ... ) and returns the index of the closing one.
func (p *parser) arguments() (args []*tree.Expr, end int) {
	p.enter("call")
	defer p.leave()
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
func (p *parser) userCall(sym *tree.Symbol, tok int) *tree.Expr {
	args, end := p.arguments()
	pos := p.Toks[tok].Pos
	for i := range args {
		args[i] = p.value(args[i])
		if args[i].Type.IsUnknown() {
			return p.node(&tree.Expr{Op: tree.OpBad, Args: args, Tok: tok})
		}
	}
	if sym.Next != nil {
		if sym = p.overload(sym, args, pos); sym == nil {
			return p.bad(tok)
		}
	}
	want := sym.Type.Params
	if b, ok := builtins.Lookup(sym.Name); ok && sym.Fn.Kernel {
		// A kernel does not hide a built-in function of the same name, and may call it.
		if _, fits := overloadCost(want, args); !fits {
			return p.builtinWith(b, pos, tok, args, end)
		}
	}
	if len(args) != len(want) {
		return p.refuse(tok, pos, "call", "'%s' takes %d arguments, not %d", sym.Name, len(want), len(args))
	}
	for i := range args {
		args[i] = p.assignConv(args[i], want[i], "argument "+strconv.Itoa(i+1)+" of '"+sym.Name+"'")
	}
	e := p.node(&tree.Expr{Op: tree.OpCall, Sym: sym, Args: args, Type: sym.Type.Elem, Tok: tok, End: end})
	if p.fn == nil {
		p.errorf(pos, "constant", "a constant cannot be initialized by a call")
		return e
	}
	p.fn.Calls = append(p.fn.Calls, &tree.Call{To: sym.Fn, Pos: pos, E: e})
	return e
}

// overload picks the function whose parameters fit the arguments best.
func (p *parser) overload(first *tree.Symbol, args []*tree.Expr, pos token.Pos) *tree.Symbol {
	var best *tree.Symbol
	bestCost, tie := 0, false
	for s := first; s != nil; s = s.Next {
		cost, ok := overloadCost(s.Type.Params, args)
		switch {
		case !ok:
		case best == nil || cost < bestCost:
			best, bestCost, tie = s, cost, false
		case cost == bestCost:
			tie = true
		}
	}
	if best == nil {
		p.errorf(pos, "call", "no '%s' takes these arguments", first.Name)
	} else if tie {
		p.errorf(pos, "call", "several '%s' take these arguments equally well", first.Name)
	}
	return best
}

// overloadCost ranks a conversion of every argument: exact 0, promotion 1,
// conversion 10.
func overloadCost(params []*tree.Type, args []*tree.Expr) (cost int, ok bool) {
	if len(params) != len(args) {
		return 0, false
	}
	for i, t := range params {
		from := args[i].Type
		switch {
		case tree.SameType(t, from):
		case t.IsPointer() && from.IsPointer() && tree.SameType(t.Elem, from.Elem) && t.Elem.Space == from.Elem.Space:
			cost++ // gains const or volatile
		case t.IsScalar() && from.IsScalar() && (tree.SameType(tree.Promoted(from), t) || from.Is(tree.Float) &&
			t.Is(tree.Double)):
			cost++
		case t.IsScalar() && from.IsScalar(), t.IsPointer() && tree.IsNullConstant(args[i]):
			cost += 10
		case t.IsPointer() && from.IsPointer() && t.Elem.IsVoid() && t.Elem.Space == from.Elem.Space:
			cost += 10
		case t.IsVector() && from.IsScalar():
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
func (p *parser) builtinCall(t *token.Token, tok int) *tree.Expr {
	for _, r := range refusedCalls {
		if strings.HasPrefix(t.Text, r.prefix) && !(p.feats.Subgroups && r.construct == "sub-group") {
			p.fail(t.Pos, r.construct, "'%s': %s functions are not part of the portable language", t.Text, r.construct)
		}
	}
	if builtins.IsConversion(t.Text) {
		return p.conversionCall(t, tok)
	}
	b, ok := builtins.Lookup(t.Text)
	if !ok || b.Ext == builtins.SubgroupExt && !p.feats.Subgroups {
		p.errorf(t.Pos, "call", "'%s' is not declared", t.Text)
		p.arguments()
		return p.bad(tok)
	}
	args, end := p.arguments()
	return p.builtinWith(b, t.Pos, tok, args, end)
}

// builtinWith types a call of a built-in whose arguments have been parsed.
func (p *parser) builtinWith(b *builtins.Func, pos token.Pos, tok int, args []*tree.Expr, end int) *tree.Expr {
	types := make([]builtins.Type, len(args))
	for i, a := range args {
		if a.Op != tree.OpString {
			args[i] = p.value(a)
		}
		if args[i].Type.IsUnknown() {
			return p.node(&tree.Expr{Op: tree.OpBad, Args: args, Tok: tok})
		}
		types[i] = builtins.TypeOf(args[i].Type)
		if a.Op == tree.OpString {
			types[i] = builtins.Type{Kind: tree.Char, Width: 1, Ptr: true, Space: tree.Constant, Const: true}
		}
	}
	c, fitting := b.Resolve(types, &p.feats)
	switch {
	case len(fitting) == 0:
		return p.refuse(tok, pos, "call", "no '%s' takes (%s); there is: %s", b.Name, typeList(args), b.Usage())
	case len(fitting) > 1:
		return p.refuse(tok, pos, "call", "the call of '%s' with (%s) is ambiguous, cast an argument; candidates: %s",
			b.Name, typeList(args), builtins.Candidates(b, fitting))
	}
	if p.fn == nil {
		p.errorf(pos, "constant", "a constant cannot be initialized by a call")
	}
	p.ByteDots = p.ByteDots || builtins.IsByteDot(b.Name, c.Result)
	p.Fused = p.Fused || b.Name == "fma" || b.Name == "mad"
	e := &tree.Expr{Op: tree.OpBuiltin, Text: c.Name, Args: args, Type: c.Result.Tree(), Tok: tok, End: end}
	p.convertArgs(e, b, c)
	p.checkBuiltin(e, b, c, pos)
	return p.node(e)
}

// convertArgs converts every argument to the type that the chosen form takes.
func (p *parser) convertArgs(e *tree.Expr, b *builtins.Func, c builtins.Call) {
	for i, want := range c.Params {
		a := e.Args[i]
		switch {
		case want.Event && !want.Ptr:
			e.Args[i] = p.conv(a, tree.EventType) // 0 means no event
		case a.Op == tree.OpString || !want.Known() || want.Event:
		case want.Ptr:
			if a.Type.IsPointer() && a.Type.Elem.IsVoid() && want.Kind != tree.Void {
				e.Args[i] = p.conv(a, want.Tree())
			}
		case b.Variadic && i >= 1:
		default:
			e.Args[i] = p.conv(a, want.Tree())
		}
	}
}

func typeList(args []*tree.Expr) string {
	names := make([]string, len(args))
	for i, a := range args {
		names[i] = a.Type.Bare().String()
	}
	return strings.Join(names, ", ")
}

// checkBuiltin refuses calls that need a feature the device does not have or that would write to
// constants, and numbers the barriers.
func (p *parser) checkBuiltin(e *tree.Expr, b *builtins.Func, c builtins.Call, pos token.Pos) {
	if b.Ext != "" {
		p.checkExtension(b, pos)
	}
	if b.Ext == builtins.SubgroupExt && p.Subgroup == nil {
		p.Subgroup = &tree.Use{Name: b.Name, Pos: pos}
	}
	if b.Barrier {
		p.sites++
		e.Site = p.sites
	}
	if p.fn != nil && (b.Barrier || strings.HasPrefix(b.Name, "async_work_group")) {
		p.fn.Barrier = true
	}
	for i, want := range c.Params {
		if want.Kind == tree.Half && !want.Ptr && !p.feats.FP16 {
			p.errorf(pos, "half", "'%s' on half needs the feature cl_khr_fp16, which the device does not have", b.Name)
		}
		if want.Kind == tree.Double && !p.feats.FP64 {
			p.errorf(pos, "double", "'%s' on double needs the feature cl_khr_fp64, which the device does not have", b.Name)
		}
		if b.Atomic && want.Ptr && tree.KindSize(want.Kind) == 8 && !p.feats.Int64Atomic {
			p.errorf(pos, "atomic",
				"'%s' on 64 bits needs the feature cl_khr_int64_base_atomics, which the device does not have", b.Name)
		}
		if want.Ptr && (want.Const || want.Space == tree.Constant) && writesArg(b.Name, i) {
			p.errorf(p.PosOf(e.Args[i]), "call", "'%s' would write to '%s'", b.Name, e.Args[i].Type.Bare())
		}
	}
	if b.Name == "printf" && e.Args[0].Op != tree.OpString {
		p.errorf(pos, "printf", "the format of printf must be a string literal")
	}
}

// checkExtension refuses a built-in that needs an extension the device does not have.
func (p *parser) checkExtension(b *builtins.Func, pos token.Pos) {
	has := map[string]bool{
		"cl_khr_fp64": p.feats.FP64, "cl_khr_fp16": p.feats.FP16,
		builtins.SubgroupExt:        p.feats.Subgroups,
		"cl_khr_int64_base_atomics": p.feats.Int64Atomic, "cl_khr_int64_extended_atomics": p.feats.Int64Atomic,
	}
	if ok, known := has[b.Ext]; known && !ok {
		p.errorf(pos, "extension", "'%s' needs %s, which the device does not have", b.Name, b.Ext)
	}
}

// writesArg reports whether a built-in writes through its argument i.
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
