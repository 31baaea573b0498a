package check

// Declaration specifiers: storage, qualifiers, address spaces, type names,
// structs, unions, enums and attributes.

import (
	"slices"
	"strings"
	"sync"

	"github.com/concord-compute/concord/source/internal/token"
	"github.com/concord-compute/concord/source/internal/tree"
)

// typeWords are the words that start or continue declaration specifiers.
var typeWords = map[string]bool{
	"void": true, "bool": true, "_Bool": true, "char": true, "short": true, "int": true, "long": true,
	"signed": true, "__signed__": true, "__signed": true, "unsigned": true, "half": true, "float": true, "double": true,
	"struct": true, "union": true, "enum": true, "typeof": true, "__typeof__": true, "__typeof": true,
}

var qualifierWords = map[string]tree.Qual{
	"const": tree.QConst, "__const": tree.QConst, "__const__": tree.QConst, "volatile": tree.QVolatile,
	"__volatile__": tree.QVolatile,
	"__volatile":   tree.QVolatile, "restrict": tree.QRestrict, "__restrict": tree.QRestrict,
	"__restrict__": tree.QRestrict,
}

var spaceWords = map[string]tree.Space{
	"global": tree.Global, "__global": tree.Global, "local": tree.Local, "__local": tree.Local,
	"constant": tree.Constant, "__constant": tree.Constant, "private": tree.Private, "__private": tree.Private,
}

var storageWords = map[string]bool{
	"typedef": true, "static": true, "extern": true, "inline": true, "__inline": true, "__inline__": true,
	"register": true, "auto": true, "kernel": true, "__kernel": true, "__attribute__": true, "__attribute": true,
	"__extension__": true,
}

var accessWords = map[string]bool{
	"read_only": true, "__read_only": true, "write_only": true, "__write_only": true,
	"read_write": true, "__read_write": true,
}

// statementWords are keywords that can be neither a type nor a name.
var statementWords = map[string]bool{
	"if": true, "else": true, "for": true, "while": true, "do": true, "switch": true, "case": true,
	"default": true, "goto": true, "break": true, "continue": true, "return": true, "sizeof": true,
	"asm": true, "__asm__": true, "__asm": true, "vec_step": true, "alignof": true, "__alignof__": true, "_Alignof": true,
}

// refusedTypes are type names of OpenCL C that the portable language does not have.
var refusedTypes = map[string]string{
	"image1d_t": "image", "image1d_array_t": "image", "image1d_buffer_t": "image", "image2d_t": "image",
	"image2d_array_t": "image", "image2d_depth_t": "image", "image2d_array_depth_t": "image",
	"image3d_t": "image", "image2d_msaa_t": "image",
	"sampler_t": "sampler", "pipe": "pipe", "queue_t": "device enqueue", "ndrange_t": "device enqueue",
	"clk_event_t": "device enqueue", "reserve_id_t": "pipe",
	"generic": "generic address space", "__generic": "generic address space",
	"quad": "quad", "complex": "complex", "_Complex": "complex", "imaginary": "imaginary", "__int128": "__int128",
}

// isKeyword reports whether a word cannot be an identifier.
func isKeyword(w string) bool {
	_, q := qualifierWords[w]
	_, s := spaceWords[w]
	return q || s || typeWords[w] || storageWords[w] || accessWords[w] || statementWords[w]
}

// typeNames is the outermost scope of every program: the vector types and the named integers of
// OpenCL C, which a program can hide. Nothing is declared in it afterwards.
var typeNames = sync.OnceValue(func() *scope {
	names := map[string]tree.Kind{
		"char": tree.Char, "uchar": tree.UChar, "short": tree.Short, "ushort": tree.UShort, "int": tree.Int,
		"uint": tree.UInt,
		"long": tree.Long, "ulong": tree.ULong, "half": tree.Half, "float": tree.Float, "double": tree.Double,
	}
	s := &scope{names: map[string]*tree.Symbol{}, tags: map[string]*tag{}}
	add := func(name string, t *tree.Type) {
		s.names[name] = &tree.Symbol{Kind: tree.SymTypedef, Name: name, CName: "u_" + name, Type: t}
	}
	for name, k := range names {
		if !typeWords[name] {
			add(name, tree.Scalar(k))
		}
		for _, n := range []string{"2", "3", "4", "8", "16"} {
			w := map[string]int{"2": 2, "3": 3, "4": 4, "8": 8, "16": 16}[n]
			add(name+n, tree.Vector(k, w))
		}
	}
	add("size_t", tree.SizeType)
	add("ptrdiff_t", &tree.Type{Kind: tree.TScalar, Base: tree.Long, Alias: "ptrdiff_t"})
	add("intptr_t", &tree.Type{Kind: tree.TScalar, Base: tree.Long, Alias: "intptr_t"})
	add("uintptr_t", &tree.Type{Kind: tree.TScalar, Base: tree.ULong, Alias: "uintptr_t"})
	add("event_t", tree.EventType)
	add("cl_mem_fence_flags", tree.UIntType)
	return s
})

// specifiers holds the specifiers in front of the declarators of a declaration.
type specifiers struct {
	typ      *tree.Type
	typedef  bool
	static   bool
	extern   bool
	inline   bool
	kernel   bool
	space    bool // an address space was written
	attrs    tree.Attributes
	pos      token.Pos
	spaceVal tree.Space
}

// startsType reports whether token t can begin a type name or declaration.
func (p *parser) startsType(t *token.Token) bool {
	if t.Kind != token.Ident {
		return false
	}
	if _, ok := qualifierWords[t.Text]; ok {
		return true
	}
	if _, ok := spaceWords[t.Text]; ok {
		return true
	}
	if typeWords[t.Text] || storageWords[t.Text] || accessWords[t.Text] {
		return true
	}
	s := p.lookup(t.Text)
	if s != nil {
		return s.Kind == tree.SymTypedef
	}
	return refusedTypes[t.Text] != ""
}

// specifiers parses declaration specifiers. Without a type it fails.
func (p *parser) specifiers(construct string) specifiers {
	s := specifiers{pos: p.pos()}
	var q tree.Qual
	var words []string // char, unsigned, long, ... in any order
	var typ *tree.Type
	for {
		t := p.peek()
		if t.Kind != token.Ident {
			break
		}
		if v, ok := qualifierWords[t.Text]; ok {
			q |= v
			p.next()
			continue
		}
		if v, ok := spaceWords[t.Text]; ok {
			if s.space && s.spaceVal != v {
				p.errorf(t.Pos, "address space", "two address spaces: %s and %s", s.spaceVal, v)
			}
			s.space, s.spaceVal = true, v
			p.next()
			continue
		}
		if storageWords[t.Text] {
			p.storage(&s)
			continue
		}
		if accessWords[t.Text] {
			p.next()
			continue
		}
		if typeWords[t.Text] {
			if typ != nil {
				p.fail(t.Pos, construct, "'%s' after a complete type", t.Text)
			}
			switch t.Text {
			case "struct", "union":
				typ = p.recordSpecifier(&s)
			case "enum":
				typ = p.enumSpecifier(&s)
			case "typeof", "__typeof__", "__typeof":
				typ = p.typeofSpecifier()
			default:
				words = append(words, strings.Trim(t.Text, "_"))
				p.next()
			}
			continue
		}
		if typ != nil || len(words) > 0 {
			break
		}
		sym := p.lookup(t.Text)
		if sym == nil || sym.Kind != tree.SymTypedef {
			if what := refusedTypes[t.Text]; what != "" && sym == nil {
				p.fail(t.Pos, what, "'%s': %s is not part of the portable language", t.Text, article(what))
			}
			break
		}
		p.next()
		typ = sym.Type
	}
	if len(words) > 0 {
		if typ != nil {
			p.fail(s.pos, construct, "two types in one declaration")
		}
		typ = p.wordType(words, s.pos, construct)
	}
	if typ == nil {
		p.noType(construct)
	}
	p.checkFeature(typ, s.pos)
	typ = typ.With(q)
	if s.space {
		typ = typ.In(s.spaceVal)
	}
	s.typ = typ
	return s
}

// article puts "a" or "an" before a construct's name.
func article(what string) string {
	if strings.ContainsRune("aeiou", rune(what[0])) {
		return "an " + what
	}
	return "a " + what
}

// noType reports that a type was expected at the next token.
func (p *parser) noType(construct string) {
	t := p.peek()
	if t.Kind == token.Ident && !isKeyword(t.Text) {
		p.fail(t.Pos, construct, "unknown type name '%s'", t.Text)
	}
	p.fail(t.Pos, construct, "expected a type before %s", describe(t))
}

// checkFeature refuses double if the device does not have it.
func (p *parser) checkFeature(t *tree.Type, pos token.Pos) {
	if !p.feats.FP64 && (t.Kind == tree.TScalar || t.Kind == tree.TVector) && t.Base == tree.Double {
		p.errorf(pos, "double", "double needs the feature cl_khr_fp64, which the device does not have")
	}
}

// storage parses one storage class, kernel, inline or attribute.
func (p *parser) storage(s *specifiers) {
	t := p.peek()
	switch t.Text {
	case "__attribute__", "__attribute":
		p.attributes(&s.attrs)
		return
	case "typedef":
		s.typedef = true
	case "static":
		s.static = true
	case "extern":
		s.extern = true
	case "inline", "__inline", "__inline__":
		s.inline = true
	case "kernel", "__kernel":
		s.kernel = true
	} // auto and register have no effect; early compilers accepted them
	p.next()
}

// wordType returns the scalar type for words such as "unsigned long int".
func (p *parser) wordType(words []string, pos token.Pos, construct string) *tree.Type {
	n := map[string]int{}
	for _, w := range words {
		n[w]++
	}
	unsigned, signed, long := n["unsigned"] > 0, n["signed"] > 0, n["long"]
	sum := len(words) - n["unsigned"] - n["signed"]
	pick := func(s, u tree.Kind) *tree.Type {
		if unsigned {
			return tree.Scalar(u)
		}
		return tree.Scalar(s)
	}
	if !(unsigned && signed) && n["unsigned"] <= 1 && n["signed"] <= 1 && n["int"] <= 1 {
		switch {
		case n["char"] == 1 && sum == 1:
			return pick(tree.Char, tree.UChar)
		case n["short"] == 1 && sum == 1+n["int"]:
			return pick(tree.Short, tree.UShort)
		case long >= 1 && long <= 2 && sum == long+n["int"]:
			return pick(tree.Long, tree.ULong)
		case sum == n["int"]:
			return pick(tree.Int, tree.UInt)
		case unsigned || signed || sum != 1:
		case n["void"] == 1:
			return tree.VoidType
		case n["Bool"] == 1 || n["bool"] == 1:
			return tree.BoolType
		case n["half"] == 1:
			return tree.HalfType
		case n["float"] == 1:
			return tree.FloatType
		case n["double"] == 1:
			return tree.DoubleType
		}
	}
	p.errorf(pos, construct, "'%s' is not a type", strings.Join(words, " "))
	return tree.UnknownType
}

// typeofSpecifier parses typeof(type) and typeof(expression).
func (p *parser) typeofSpecifier() *tree.Type {
	p.next()
	p.expect("(", "typeof")
	var t *tree.Type
	if p.startsType(p.peek()) {
		t = p.typeName()
	} else {
		t = p.expression().Type
	}
	p.expect(")", "typeof")
	return t
}

// enumSpecifier parses enum tag { A, B = 2 }. Its type is an unsigned integer unless a value is
// negative, as with clang and GCC.
func (p *parser) enumSpecifier(s *specifiers) *tree.Type {
	p.next()
	p.attributes(&s.attrs)
	name, pos := "", p.pos()
	if t := p.peek(); t.Kind == token.Ident && !isKeyword(t.Text) {
		name = p.next().Text
	}
	p.attributes(&s.attrs)
	if !p.at("{") {
		t, _ := p.lookupTag(name)
		if t == nil || t.enum == nil {
			p.fail(pos, "enum", "enum '%s' is not declared", name)
		}
		return t.enum
	}
	p.next()
	next := tree.IntValue(tree.Int, 0)
	var list []*tree.Symbol
	for !p.at("}") {
		t := p.next()
		if t.Kind != token.Ident || isKeyword(t.Text) {
			p.fail(t.Pos, "enum", "expected a name before %s", describe(t))
		}
		if p.accept("=") {
			e := p.conditional()
			next = p.constantOf(e, "enum")
		}
		if next.Fits(tree.Int) {
			next = next.Convert(tree.IntType)
		}
		list = append(list, &tree.Symbol{Kind: tree.SymEnumConst, Name: t.Text, Type: tree.Scalar(next.Kind), Pos: t.Pos,
			Val: next})
		p.declare(list[len(list)-1])
		next = successor(next)
		if !p.accept(",") {
			break
		}
	}
	p.expect("}", "enum")
	typ := enumType(list)
	p.attributes(&s.attrs)
	if name != "" {
		p.scopes[len(p.scopes)-1].tags[name] = &tag{enum: typ, word: "enum"}
	}
	return typ
}

// successor returns the next value of an enumeration, in the next larger type if that of c ends with c.
func successor(c tree.Value) tree.Value {
	next := tree.IntValue(c.Kind, c.Int()+1)
	if next.Bits != 0 && !next.Negative() || c.Negative() {
		return next
	}
	wider := map[tree.Kind]tree.Kind{tree.Int: tree.Long, tree.UInt: tree.ULong}[c.Kind]
	if wider == tree.Void {
		wider = tree.ULong
	}
	return tree.IntValue(wider, c.Int()+1)
}

// enumType returns the type of an enumeration, as clang chooses it: the first of uint and ulong that holds all
// values, or of int and long if one is negative. Constants that int does not hold have that type, too.
func enumType(list []*tree.Symbol) *tree.Type {
	order := []*tree.Type{tree.UIntType, tree.ULongType}
	if slices.ContainsFunc(list, func(s *tree.Symbol) bool { return s.Val.Negative() }) {
		order = []*tree.Type{tree.IntType, tree.LongType}
	}
	typ := order[0]
	for _, s := range list {
		if !s.Val.Fits(order[0].Base) {
			typ = order[1]
		}
	}
	for _, s := range list {
		if s.Val.Kind != tree.Int {
			s.Type, s.Val = typ, s.Val.Convert(typ)
		}
	}
	return typ
}
