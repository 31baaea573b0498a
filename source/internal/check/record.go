package check

// Structs, unions and __attribute__.

import (
	"maps"
	"slices"
	"strconv"

	"github.com/concord-compute/concord/source/internal/token"
	"github.com/concord-compute/concord/source/internal/tree"
)

// recordSpecifier parses struct or union, with or without its members.
func (p *parser) recordSpecifier(s *specifiers) *tree.Type {
	word := p.next().Text
	pos := p.pos()
	var attrs tree.Attributes
	p.attributes(&attrs)
	name := ""
	if t := p.peek(); t.Kind == token.Ident && !isKeyword(t.Text) {
		name = p.next().Text
	}
	p.attributes(&attrs)
	top := p.scopes[len(p.scopes)-1]
	if !p.at("{") {
		if name == "" {
			p.fail(p.pos(), word, "expected a name or '{' before %s", describe(p.peek()))
		}
		t, level := p.lookupTag(name)
		if t == nil || p.at(";") && level != p.level() {
			t = p.newRecord(name, word, pos)
			top.tags[name] = t
		}
		return p.taggedRecord(t, name, word, pos)
	}
	t := top.tags[name]
	if name == "" || t == nil {
		t = p.newRecord(name, word, pos)
		if name != "" {
			top.tags[name] = t
		}
	}
	typ := p.taggedRecord(t, name, word, pos)
	if t.rec.Complete {
		p.fail(pos, word, "%s '%s' is already declared at %s", word, name, t.rec.Pos)
	}
	p.members(t.rec, word)
	p.attributes(&attrs)
	t.rec.Packed, t.rec.ReqAlign = attrs.Packed, attrs.Align
	t.rec.Layout()
	if t.rec.Size >= tree.BigSize {
		p.errorf(pos, word, "the %s is too large", word)
	}
	p.Records = append(p.Records, t.rec)
	return typ
}

func (p *parser) newRecord(name, word string, pos token.Pos) *tag {
	rec := &tree.Record{Tag: name, Union: word == "union", Pos: pos}
	base := name
	if base == "" {
		base = "anonymous"
	}
	rec.CName = p.uniqueName("t", base)
	p.Tagged = append(p.Tagged, rec)
	return &tag{rec: rec, word: word}
}

func (p *parser) taggedRecord(t *tag, name, word string, pos token.Pos) *tree.Type {
	if t.word != word {
		p.fail(pos, word, "'%s' is declared as %s", name, t.word)
	}
	return &tree.Type{Kind: tree.TRecord, Rec: t.rec}
}

// members parses { ... } of a struct or union.
func (p *parser) members(r *tree.Record, word string) {
	p.enter(word)
	defer p.leave()
	p.next()
	for !p.at("}") {
		if p.peek().Kind == token.EOF {
			p.fail(p.pos(), word, "expected '}' before the end of the program")
		}
		if p.accept(";") {
			continue
		}
		p.memberDecl(r, word)
	}
	p.next()
}

func (p *parser) memberDecl(r *tree.Record, word string) {
	s := p.specifiers("member")
	if s.typedef || s.static || s.extern || s.kernel {
		p.errorf(s.pos, "member", "a member cannot have a storage class")
	}
	if p.at(";") && s.typ.Kind == tree.TRecord {
		p.next()
		f := &tree.Field{Type: s.typ.Bare(), CName: "cc_a" + strconv.Itoa(len(r.Fields))}
		p.checkMember(r, f, s.pos)
		return
	}
	for {
		name, typ, pos, _ := p.declarator(s.typ, "member")
		attrs := s.attrs
		p.attributes(&attrs)
		if p.at(":") {
			p.fail(p.pos(), "bit-field", "bit-fields are not part of OpenCL C 1.2")
		}
		f := &tree.Field{Name: name, CName: "u_" + name, Type: typ, Align: attrs.Align, Packed: attrs.Packed}
		p.checkMember(r, f, pos)
		if !p.accept(",") {
			break
		}
	}
	p.expect(";", "member")
}

// checkMember adds a member that has a size and an unused name.
func (p *parser) checkMember(r *tree.Record, f *tree.Field, pos token.Pos) {
	if f.Type.IsUnknown() {
		r.Add(f)
		return
	}
	if base := tree.ArrayBase(f.Type); base.Space != tree.Private && base.Kind != tree.TFunc {
		p.errorf(pos, "member", "member '%s' cannot have an address space of its own", f.Name)
		f.Type = f.Type.In(tree.Private)
	}
	switch _, ok := f.Type.Size(); {
	case f.Type.Kind == tree.TFunc:
		p.fail(pos, "function pointer", "member '%s' is a function", f.Name)
	case f.Type.Kind == tree.TArray && f.Type.N < 0:
		p.fail(pos, "flexible array member", "member '%s' has no size: flexible array members are not part of OpenCL C",
			f.Name)
	case !ok || f.Type.IsVoid():
		p.fail(pos, "member", "member '%s' has the incomplete type '%s'", f.Name, f.Type)
	}
	if f.Type.Kind == tree.TEvent {
		p.errorf(pos, "member", "event_t cannot be a member")
	}
	if f.Name != "" && r.Find(f.Name) != nil {
		p.errorf(pos, "member", "member '%s' is declared twice", f.Name)
	}
	if f.Name == "" {
		if f.Type.Rec.Unnamed >= maxNest {
			p.fail(pos, "member", "members without a name are nested deeper than %d levels", maxNest)
		}
		for _, name := range slices.Sorted(maps.Keys(f.Type.Rec.Names)) {
			if r.Names[name] != nil {
				p.errorf(pos, "member", "member '%s' is declared twice", name)
			}
		}
	}
	r.Add(f)
}

// attributes parses any number of __attribute__((...)) into a.
func (p *parser) attributes(a *tree.Attributes) {
	for p.at("__attribute__") || p.at("__attribute") {
		p.next()
		p.expect("(", "attribute")
		p.expect("(", "attribute")
		for !p.at(")") {
			if p.accept(",") {
				continue
			}
			p.attribute(a)
		}
		p.next()
		p.expect(")", "attribute")
	}
}

// attribute parses one attribute; unknown ones are skipped.
func (p *parser) attribute(a *tree.Attributes) {
	t := p.next()
	if t.Kind != token.Ident {
		p.fail(t.Pos, "attribute", "expected an attribute before %s", describe(t))
	}
	name := trimUnderscores(t.Text)
	switch name {
	case "packed":
		a.Packed = true
	case "overloadable":
		a.Overload = true
	case "aligned":
		a.Align = 16
		if p.accept("(") {
			n := p.constantOf(p.assignment(), "aligned").Int()
			if n <= 0 || n&(n-1) != 0 || n > 4096 {
				p.errorf(t.Pos, "aligned", "the alignment must be a power of two up to 4096")
				n = 16
			}
			a.Align = int(n)
			p.expect(")", "aligned")
		}
	case "reqd_work_group_size":
		p.expect("(", name)
		for i := range a.Reqd {
			n := p.constantOf(p.assignment(), name).Int()
			if n <= 0 || n > 1<<31 {
				p.errorf(t.Pos, name, "the sizes must be positive")
				n = 1
			}
			a.Reqd[i] = int(n)
			if i < 2 {
				p.expect(",", name)
			}
		}
		a.HasReqd = true
		p.expect(")", name)
	default:
		if p.at("(") {
			p.skipParens()
		}
	}
}

func trimUnderscores(s string) string {
	if len(s) > 4 && s[:2] == "__" && s[len(s)-2:] == "__" {
		return s[2 : len(s)-2]
	}
	return s
}

// skipParens skips a balanced ( ... ).
func (p *parser) skipParens() { p.skipBalanced("(", ")") }

// skipBalanced skips a pair of brackets and everything between them.
func (p *parser) skipBalanced(open, end string) {
	level := 0
	for p.peek().Kind != token.EOF {
		t := p.next()
		if t.Kind != token.Punct {
			continue
		}
		if t.Text == open {
			level++
		} else if t.Text == end {
			level--
			if level == 0 {
				return
			}
		}
	}
	p.fail(p.pos(), "declaration", "expected '%s' before the end of the program", end)
}
