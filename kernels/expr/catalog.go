package expr

// Kernels of the catalog that are expressions with names: their families, and how their arguments become those of a
// map's kernel.

import (
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/concord-compute/concord/kernels"
	"github.com/concord-compute/concord/source"
)

// family is a family of the catalog whose kernels are expressions. Package kernels has what judges it.
type family struct {
	id   string
	doc  string // the comment at the beginning of the text
	list []form

	defines []string // the definitions of types
	made    sync.Map // [2]Type -> []*catalogKernel
}

// form is the definition of one kernel: an expression, and the kernel's parameters in their order.
type form struct {
	kernel string
	// define returns the expression of the output for the element type or, of cast, the types; nil if there is no
	// such kernel for them.
	define func(types []Type) *Expr
	params []parameter
	dims   []int // the parameters that are the lengths of dimensions, outermost first
}

// parameter is one parameter of a kernel.
type parameter struct {
	role role
	name string
	slot int       // number of the input or of the parameter of the expression
	typ  int       // number of its element type among the types, of a buffer or a scalar
	wide bool      // a length or stride is a ulong, else a uint
	step []factors // of an operand: its strides, in elements; nil if it is dense
}

// factors are those of a product of sizes: the numbers of parameters, or repeated, which is 0.
type factors []int

// repeated is the stride of an operand with the same elements for all places in a dimension.
var repeated = factors{-1}

// of returns the product of sizes that value returns by the numbers of parameters.
func (p factors) of(value func(param int) int) int {
	n := 1
	for _, i := range p {
		if i < 0 {
			return 0
		}
		n *= value(i)
	}
	return n
}

// role is what a parameter is for.
type role uint8

const (
	reads   role = iota
	writes       // the output
	updates      // an input, and the output
	scalar       // a number of the launch
	size         // a length or a stride
)

// The parameters of forms.
func in(slot int, name string) parameter          { return parameter{role: reads, slot: slot, name: name} }
func row(slot int, name string) parameter         { return in(slot, name).by(repeated, factors{}) }
func out(name string) parameter                   { return parameter{role: writes, name: name} }
func number(name string) parameter                { return parameter{role: scalar, name: name} }
func length(name string) parameter                { return parameter{role: size, name: name, wide: true} }
func short(name string) parameter                 { return parameter{role: size, name: name} }
func (p parameter) of(typ int) parameter          { p.typ = typ; return p }
func (p parameter) by(steps ...factors) parameter { p.step = steps; return p }

// catalogKernel is a kernel for some types: its map, and where the operands of the map are among its arguments.
type catalogKernel struct {
	*form
	m        *Map
	types    []Type
	operands []int // the argument of each input and of the output
	numbers  []int // the argument of each parameter
}

// elem returns the type of the elements of a buffer, or of a scalar.
func (n *catalogKernel) elem(p *parameter) Type { return n.types[p.typ] }

// newCatalogKernel returns the kernel for the types, or nil if there is none for them.
func newCatalogKernel(f *form, list []Type) *catalogKernel {
	e := f.define(list)
	if e == nil {
		return nil
	}
	m := must(New(e))
	n := &catalogKernel{form: f, m: m, types: list, operands: make([]int, len(m.inputs)+1),
		numbers: make([]int, len(m.params))}
	for i, p := range f.params {
		if p.role == reads || p.role == updates {
			n.operands[p.slot] = i
		}
		if p.role == writes || p.role == updates {
			n.operands[len(m.inputs)] = i
		}
		if p.role == scalar {
			n.numbers[p.slot] = i
		}
	}
	return n
}

// layout makes l the positions of the operands for lengths and strides that value returns by the numbers of
// parameters.
func (n *catalogKernel) layout(l *Layout, value func(param int) int) {
	l.shape(len(n.dims), len(n.operands))
	for j, i := range n.dims {
		l.Dims[j] = value(i)
	}
	for k := range n.operands {
		o := &l.Operands[k]
		o.fill(l.Dims)
		for j, step := range n.params[n.operands[k]].step {
			o.Steps[j] = step.of(value)
		}
	}
}

// Defined is a kernel of the catalog that is an expression with a name.
type Defined struct {
	Map *Map
	n   *catalogKernel
}

// DefinedOf returns the definition of a kernel of a program, and whether it is one that an expression defines.
func DefinedOf(u *source.Unit, kernel string) (Defined, bool) {
	f := families[u.Family()]
	if f == nil {
		return Defined{}, false
	}
	list, err := f.of(u.Define)
	if err != nil {
		return Defined{}, false
	}
	for _, n := range list {
		if n.kernel == kernel {
			return Defined{n.m, n}, true
		}
	}
	return Defined{}, false
}

// arrangements has the layouts of launches of [Defined.Arrange].
var arrangements = sync.Pool{New: func() any { return new(Layout) }}

// Arrange makes to a launch of the map's kernel with the arguments of c, a launch of the named one. It reuses the
// memory of to and space, and returns what it has made of space. to is valid as long as c and both of these.
func (d Defined) Arrange(c, to *kernels.Call, space []byte) []byte {
	n := d.n
	to.Unit, to.Kernel, to.Dim, to.Global, to.Local = c.Unit, c.Kernel, c.Dim, c.Global, c.Local
	to.Args, to.Params = to.Args[:0], to.Params[:0]
	take := func(i int) {
		to.Args, to.Params = append(to.Args, c.Args[i]), append(to.Params, c.Params[i])
	}
	for _, i := range n.operands {
		take(i)
	}
	for _, i := range n.numbers {
		take(i)
	}
	if len(n.dims) == 1 && !n.m.Reduces() {
		take(n.dims[0])
		return space
	}
	l := arrangements.Get().(*Layout)
	defer arrangements.Put(l)
	n.layout(l, func(i int) int { return int(c.Int(i)) })
	space = l.appendTo(space[:0])
	to.Args = append(to.Args, kernels.Argument{Bytes: space})
	to.Params = append(to.Params, source.Param{Kind: source.Struct})
	return space
}

// step returns the stride of operand k in a dimension as text, in elements.
func (n *catalogKernel) step(k, j int) string {
	p := factors(n.dims[j+1:])
	if steps := n.params[n.operands[k]].step; steps != nil {
		p = steps[j]
	}
	if slices.Contains(p, -1) {
		return "0"
	}
	text := "1"
	for _, i := range p {
		text += " * (long)" + n.params[i].name
	}
	if text == "1" {
		return text
	}
	return "(" + strings.TrimPrefix(text, "1 * ") + ")"
}

// head writes the head of a named kernel, and gives the operands and parameters the names that a map's kernel has for
// them.
func (t *writer) head(words string) {
	n, m := t.catalog, t.m
	var list []string
	for i := range n.params {
		p := &n.params[i]
		switch p.role {
		case reads:
			list = append(list, fmt.Sprintf("global const %s *%s", n.elem(p).Kind(), p.name))
		case writes, updates:
			list = append(list, fmt.Sprintf("global %s *%s", n.elem(p).Kind(), p.name))
		case scalar:
			list = append(list, fmt.Sprintf("%s %s", scalarOf(n.elem(p)).Kind(), p.name))
		case size:
			typ := "uint "
			if p.wide {
				typ = "ulong "
			}
			list = append(list, typ+p.name)
		}
	}
	fmt.Fprintf(t, "%s%s(%s) {\n", words, n.kernel, strings.Join(list, ", "))
	pointer := func(constant string, elem Type, name string, arg int) {
		cl := fmt.Sprintf("global %s%s *", constant, elem.Kind())
		fmt.Fprintf(t, "  %s%s = (%s)%s;\n", cl, name, cl, n.params[arg].name)
	}
	for k, elem := range m.inputs {
		pointer("const ", elem, fmt.Sprintf("in%d", k), n.operands[k])
	}
	pointer("", m.outputs[0].elem, "out0", n.operands[len(m.inputs)])
	for k, typ := range m.params {
		fmt.Fprintf(t, "  %s p%d = (%[1]s)%[3]s;\n", typ.Kind(), k, n.params[n.numbers[k]].name)
	}
}

// scalarOf returns the type in which a kernel for elements of a type takes its scalar arguments.
func scalarOf(t Type) Type {
	if t.IsFloat() {
		return t.Computed()
	}
	return widened(t)
}

// text returns the program with the family's kernels for some types.
func (f *family) text(list []*catalogKernel) string {
	var maps []*Map
	for _, n := range list {
		maps = append(maps, n.m)
	}
	all := f.doc + preamble(maps...)
	for _, n := range list {
		t := &writer{m: n.m, catalog: n, rank: len(n.dims), operands: len(n.operands)}
		switch {
		case strings.HasSuffix(n.kernel, "_columns"):
			t.columns()
		case n.m.Reduces():
			t.rows()
		case t.rank == 1:
			t.rank = 0
			t.each()
		default:
			t.each()
		}
		all += t.String()
	}
	return all
}
