// Package render writes a program in the language of a target. OpenCL devices get the text as it
// was written. For the C++ targets, it writes a prelude, which defines OpenCL C's types and
// built-ins, and then the tree as C++. A dialect describes the differences between the C++ targets.
// If a rendering is too large, or the caller's context is done, the work ends by a panic, which the
// caller's deferred token.Settle turns into an error.
package render

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/concord-compute/concord/source/internal/loops"
	"github.com/concord-compute/concord/source/internal/token"
	"github.com/concord-compute/concord/source/internal/tree"
)

// dialect describes how a C++ target differs from the others.
type dialect struct {
	target   Target
	gpu      bool   // functions are marked with where they run; constants are in separate memory
	gnu      bool   // the compiler has GNU's extensions: ({ ... }), a ?: b, case 1 ... 3
	msl      bool   // Metal: pointers have address spaces, there are no lambdas, half is a type of the language
	function string // stands before a function of the program
	kernel   string // stands before a kernel of it
	block
}

// block has the texts around a block with a value: a statement expression, or a lambda for compilers without
// statement expressions.
type block struct{ opening, result, closing string }

var (
	gnuBlock = block{opening: "({ ", closing: "})"}
	lambda   = block{opening: "[&] { ", result: "return ", closing: "}()"}
)

var dialects = map[Target]*dialect{
	Host: {target: Host, gnu: true, block: gnuBlock},
	CUDA: {target: CUDA, gpu: true, block: lambda, function: "static CC_FN ", kernel: "static CC_INLINE "},
	HIP:  {target: HIP, gpu: true, gnu: true, block: gnuBlock, function: "static CC_FN ", kernel: "static CC_INLINE "},
	// Metal's compiler is clang, which always has the extensions.
	Metal: {target: Metal, gpu: true, gnu: true, block: gnuBlock, msl: true},
}

// renderer writes one program for one C++ target.
type renderer struct {
	*token.Meter
	tree.Folder
	p       *tree.Program
	d       *dialect
	out     strings.Builder
	fn      *tree.Function
	pos     token.Pos // position of the construct that is being written
	file    string    // file of the last #line
	line    int
	bol     bool
	called  map[*tree.Function]bool        // kernels that other kernels call
	places  map[*tree.Symbol]string        // on GPUs: the memory that a constant lives in
	errs    token.ErrorList                // constructs that the target does not support
	plans   map[*tree.Function]*loops.Plan // on the host: kernels that are cut at their barriers
	plan    *loops.Plan                    // the plan of the kernel that is being written, if it has one
	vectors loops.Vectors                  // how that kernel's loop over the items can be vectorized
	names   []map[*tree.Symbol]string      // other names for some variables, the innermost last
	asks    map[*tree.Function]bool        // stored results of asksGroup

	assigned map[*tree.Init]bool     // stored results of needsAssign
	asWords  map[*tree.Symbol]bool   // on GPUs: constants that are written as integers
	memory   map[*tree.Function]bool // stored results of hasLocals

	straight map[*tree.Expr]string // while a region of a plan is written: its straight indices
	returns  bool                  // while a strip is written: an item that returns sets cc_left

	inPlace bool // Metal: the next expression is needed as an object and not as its value
}

// CPP writes a program in C++ or the Metal Shading Language. The error, if any, is an ErrorList of
// constructs that the target does not support. With fibers, host kernels with barriers run on
// fibers.
func CPP(m *token.Meter, p *tree.Program, t Target, fibers bool) (string, error) {
	text, err := body(m, p, t, fibers)
	if err != nil {
		return "", err
	}
	prelude := ""
	if p.Fused && t == Host {
		prelude = fusedDefine
	}
	return prelude + preludeText(t, text) + text, nil
}

// HostBody is CPP for the host without the prelude, as a part of HostBatch.
func HostBody(m *token.Meter, p *tree.Program, fibers bool) (string, error) {
	return body(m, p, Host, fibers)
}

// HostBatch joins the bodies of several programs behind one prelude. Either all of them call fma, or
// none does. Program i is in a namespace of its own, and what it exports is named as BatchName says.
func HostBatch(bodies []string, fused bool) string {
	var b strings.Builder
	if fused {
		b.WriteString(fusedDefine)
	}
	b.WriteString(preludeText(Host, bodies...))
	for i, text := range bodies {
		b.WriteString("namespace cc_batch_" + strconv.Itoa(i) + " {\n#define concord_program " + BatchName(i) + "\n")
		b.WriteString(text)
		b.WriteString("#undef concord_program\n}\n")
	}
	return b.String()
}

// BatchName returns what the table of program i of a batch is named.
func BatchName(i int) string { return "concord_program_" + strconv.Itoa(i) }

// body writes everything after the prelude.
func body(m *token.Meter, p *tree.Program, t Target, fibers bool) (string, error) {
	d := dialects[t]
	r := &renderer{Meter: m, p: p, d: d, bol: true, called: map[*tree.Function]bool{}, asks: map[*tree.Function]bool{},
		assigned: map[*tree.Init]bool{}, asWords: map[*tree.Symbol]bool{}, memory: map[*tree.Function]bool{}}
	if t == Host && !fibers {
		r.plans = loops.Plans(p.Funcs, m)
	}
	for _, fn := range r.p.Funcs {
		for _, c := range fn.Calls {
			if c.To.Kernel {
				r.called[c.To] = true
			}
		}
	}
	r.program()
	if s := p.Subgroup; s != nil && !d.gpu {
		r.refuse(s.Pos, "sub-group", "'%s': there are no sub-groups on the host", s.Name)
	}
	if err := r.errs.Err(); err != nil {
		return "", err
	}
	return r.out.String(), nil
}

// refuse records a construct that the target does not support.
func (r *renderer) refuse(pos token.Pos, construct, format string, args ...any) {
	r.errs.Add(pos, construct, format, args...)
}

// program writes everything after the prelude.
func (r *renderer) program() {
	around, base, end := "namespace {\n", " : cc_item", "};\n}\n"
	if r.d.msl {
		around, base, end = "", "", "};\n"
	}
	r.raw(around)
	for _, rec := range r.p.Tagged {
		r.raw(recordWord(rec) + " " + rec.CName + ";\n")
	}
	for _, rec := range r.p.Records {
		r.record(rec)
	}
	if r.d.gpu && !r.d.msl {
		r.places = r.placeConstants(r.p.Globals)
	}
	for _, g := range r.p.Globals {
		r.global(g)
	}
	var kernels []*tree.Function
	for _, fn := range r.p.Funcs {
		if fn.Kernel && fn.Defined {
			kernels = append(kernels, fn)
		}
	}
	done := map[*tree.Function]bool{}
	for _, k := range kernels {
		r.locals(k, done)
	}
	r.raw("struct cc_program" + base + " {\n")
	if r.d.msl {
		r.metalItem()
	}
	for _, fn := range r.p.Funcs {
		if fn.Defined {
			r.function(fn)
		}
	}
	r.raw(end)
	if !r.d.gpu {
		r.table(kernels)
		return
	}
	for _, k := range kernels {
		if r.d.msl {
			r.metalEntry(k)
		} else {
			r.entry(k)
		}
	}
	r.raw("")
}

// table writes the table in which the host executor finds the kernels.
func (r *renderer) table(kernels []*tree.Function) {
	for _, k := range kernels {
		if r.plans[k] != nil {
			r.splitEntry(k)
		}
	}
	r.raw("#line 1 \"concord\"\nCC_PROGRAM_BEGIN\n")
	for _, k := range kernels {
		bytes := "0"
		if r.hasLocals(k) {
			bytes = "sizeof(cc_locals_" + k.Name + ")"
		}
		if p := r.plans[k]; p != nil {
			r.raw("CC_SPLIT_KERNEL(\"" + k.Name + "\", " + k.Name + ", " + p.Flags(r.asks) + ", " + bytes + ", " +
				strconv.Itoa(p.KeptSize()) + ")\n")
			continue
		}
		fibers := "0"
		if k.Barrier {
			fibers = "1"
		}
		r.raw("CC_KERNEL(\"" + k.Name + "\", cc_program, " + k.CName + ", " + fibers + ", " + bytes + ")\n")
	}
	r.raw("CC_PROGRAM_END\n")
}

// raw writes whole lines that do not come from the program.
func (r *renderer) raw(text string) {
	r.Wrote(len(text), r.pos)
	if !r.bol {
		r.out.WriteByte('\n')
	}
	r.out.WriteString(text)
	r.file, r.bol = "", true
}

// at begins a line for position pos of the portable text.
func (r *renderer) at(pos token.Pos) {
	if pos.Line > 0 {
		r.pos = pos
	}
	if !r.bol {
		r.out.WriteByte('\n')
		r.line++
		r.bol = true
	}
	if pos.Line == 0 || r.file == pos.File && r.line == pos.Line {
		return
	}
	if gap := pos.Line - r.line; r.file == pos.File && gap > 0 && gap < 4 {
		r.out.WriteString("\n\n\n"[:gap])
	} else {
		line := LineDirective(pos)
		r.Wrote(len(line), pos)
		r.out.WriteString(line)
	}
	r.file, r.line = pos.File, pos.Line
}

// inQuotes escapes a file's name. It is built once, which takes longer than its use.
var inQuotes = strings.NewReplacer("\\", "\\\\", "\"", "\\\"", "\n", " ", "\r", " ")

// LineDirective returns the #line that gives the next line the position pos.
func LineDirective(pos token.Pos) string {
	return "#line " + strconv.Itoa(pos.Line) + " \"" + inQuotes.Replace(pos.File) + "\"\n"
}

// truth is an expression where C++ needs a truth value.
type truth struct{ e *tree.Expr }

// w writes texts, numbers and parts of the program, one after the other.
func (r *renderer) w(parts ...any) {
	for _, part := range parts {
		switch p := part.(type) {
		case *tree.Expr:
			r.expr(p)
		case truth:
			r.cond(p.e)
		case *tree.Init:
			r.initializer(p)
		case tree.Value:
			r.literal(p)
		case string:
			r.text(p)
		default:
			r.text(fmt.Sprint(p))
		}
	}
}

func (r *renderer) text(s string) {
	r.Wrote(len(s), r.pos)
	r.out.WriteString(s)
	r.bol = false
}

// comma separates element i of a list from the one before it.
func (r *renderer) comma(i int) {
	if i > 0 {
		r.w(", ")
	}
}

// typeText writes a type of the program, as a declaration of name if that is not empty.
func (r *renderer) typeText(t *tree.Type, name string) string {
	if r.d.msl {
		return strings.TrimSpace(r.metalType(t, name, false))
	}
	return strings.TrimSpace(tree.Declare(t, name, r.baseType, r.pointer))
}

// plain returns the text of a type without its own qualifiers.
func (r *renderer) plain(t *tree.Type) string {
	c := *t
	c.Q &^= tree.QConst | tree.QRestrict
	if t.Kind != tree.TArray {
		c.Space = tree.Private
	}
	return r.typeText(&c, "")
}

func (r *renderer) baseType(t *tree.Type) string {
	return ownQuals(t).Words() + baseName(t)
}

// ownQuals returns the qualifiers of an object of type t in C++, but for restrict; constants are const there.
func ownQuals(t *tree.Type) tree.Qual {
	q := t.Q &^ tree.QRestrict
	if t.Space == tree.Constant {
		q |= tree.QConst
	}
	return q
}

// baseName returns the name of a type that has no name of another type in it.
func baseName(t *tree.Type) string {
	switch {
	case t.IsVoid():
		return "void"
	case t.Kind == tree.TScalar:
		return "cc_" + t.Base.String()
	case t.Kind == tree.TVector:
		return "cc_" + t.Base.String() + strconv.Itoa(t.N)
	case t.Kind == tree.TRecord:
		return t.Rec.CName
	case t.Kind == tree.TEvent:
		return "cc_event"
	}
	return "cc_unknown"
}

func (r *renderer) pointer(t *tree.Type) string {
	s := strings.TrimSpace("* " + ownQuals(t).Words())
	if t.Q&tree.QRestrict != 0 {
		s += " __restrict"
	}
	return s
}

// Target is a language that a Unit can be rendered in. SPIRV is that of package spirv.
type Target uint8

// The targets of Render.
const (
	OpenCL Target = iota
	Host
	CUDA
	HIP
	Metal
	SPIRV
)

// String returns the name of the target in lower case.
func (t Target) String() string {
	names := [...]string{OpenCL: "opencl", Host: "host", CUDA: "cuda", HIP: "hip", Metal: "metal", SPIRV: "spirv"}
	if int(t) < len(names) {
		return names[t]
	}
	return "target(" + strconv.Itoa(int(t)) + ")"
}
