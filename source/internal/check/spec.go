package check

// Declaration specifiers: storage, qualifiers, address spaces, type names,
// structs, unions, enums and attributes.

import (
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/concord-compute/concord/source/internal/token"
	"github.com/concord-compute/concord/source/internal/tree"
)

// keyword is what a word means that cannot be an identifier.
type keyword struct {
	class class
	qual  tree.Qual  // of a qualifierWord
	space tree.Space // of a spaceWord
}

type class uint8

// The classes of keywords; all but a statementWord start or continue declaration specifiers.
const (
	typeWord class = iota + 1
	qualifierWord
	spaceWord
	storageWord
	accessWord
	statementWord // neither a type nor a name
)

var keywords = func() map[string]keyword {
	out := map[string]keyword{}
	for k, words := range map[keyword]string{
		{class: typeWord}: "void bool _Bool char short int long signed __signed__ __signed unsigned half float double " +
			"struct union enum typeof __typeof__ __typeof",
		{class: qualifierWord, qual: tree.QConst}:    "const __const __const__",
		{class: qualifierWord, qual: tree.QVolatile}: "volatile __volatile __volatile__",
		{class: qualifierWord, qual: tree.QRestrict}: "restrict __restrict __restrict__",
		{class: spaceWord, space: tree.Global}:       "global __global",
		{class: spaceWord, space: tree.Local}:        "local __local",
		{class: spaceWord, space: tree.Constant}:     "constant __constant",
		{class: spaceWord, space: tree.Private}:      "private __private",
		{class: storageWord}: "typedef static extern inline __inline __inline__ register auto kernel __kernel " +
			"__attribute__ __attribute __extension__",
		{class: accessWord}: "read_only __read_only write_only __write_only read_write __read_write",
		{class: statementWord}: "if else for while do switch case default goto break continue return sizeof " +
			"asm __asm__ __asm vec_step alignof __alignof__ _Alignof",
	} {
		for w := range strings.FieldsSeq(words) {
			out[w] = k
		}
	}
	return out
}()

// plainTypes are the types of single words that have no signed and unsigned form.
var plainTypes = map[string]*tree.Type{
	"void": tree.VoidType, "Bool": tree.BoolType, "bool": tree.BoolType, "half": tree.HalfType, "float": tree.FloatType,
	"double": tree.DoubleType,
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
func isKeyword(w string) bool { return keywords[w].class != 0 }

// typeNames is the outermost scope of every program: the vector types and the named integers of
// OpenCL C, which a program can hide. Nothing is declared in it afterwards.
var typeNames = sync.OnceValue(func() *scope {
	s := &scope{names: map[string]*tree.Symbol{}, tags: map[string]*tag{}}
	add := func(name string, t *tree.Type) {
		s.names[name] = &tree.Symbol{Kind: tree.SymTypedef, Name: name, CName: "u_" + name, Type: t}
	}
	for k := tree.Char; k <= tree.Double; k++ {
		if !isKeyword(k.String()) {
			add(k.String(), tree.Scalar(k))
		}
		for _, n := range []int{2, 3, 4, 8, 16} {
			add(k.String()+strconv.Itoa(n), tree.Vector(k, n))
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
	if k := keywords[t.Text]; k.class != 0 && k.class != statementWord {
		return true
	}
	if s := p.lookup(t.Text); s != nil {
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
specifiers:
	for p.peek().Kind == token.Ident {
		t := p.peek()
		switch k := keywords[t.Text]; k.class {
		case qualifierWord:
			q |= k.qual
			p.next()
		case spaceWord:
			if s.space && s.spaceVal != k.space {
				p.errorf(t.Pos, "address space", "two address spaces: %s and %s", s.spaceVal, k.space)
			}
			s.space, s.spaceVal = true, k.space
			p.next()
		case storageWord:
			p.storage(&s)
		case accessWord:
			p.next()
		case typeWord:
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
		default:
			sym := p.lookup(t.Text)
			if what := refusedTypes[t.Text]; what != "" && sym == nil && typ == nil && len(words) == 0 {
				p.fail(t.Pos, what, "'%s': %s is not part of the portable language", t.Text, article(what))
			}
			if typ != nil || len(words) > 0 || sym == nil || sym.Kind != tree.SymTypedef {
				break specifiers
			}
			p.next()
			typ = sym.Type
		}
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
		case len(words) == 1 && plainTypes[words[0]] != nil:
			return plainTypes[words[0]]
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
	wider := tree.ULong
	if c.Kind == tree.Int {
		wider = tree.Long
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
