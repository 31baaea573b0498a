package programs

import (
	"fmt"
	"strings"
)

// Program is a program in a form that can be reduced: a list of parts, whose statements and
// expressions are trees.
type Program struct {
	Seed       uint64
	Double     bool // double is used
	Half       bool // half is used
	LongAtomic bool // atomics of 64 bits are used
	// Hard programs use functions that oclgrind (21.10) computes wrongly: mad_sat of 64 bits, and
	// conversions of NaN, which give 0 with _sat.
	Hard     bool
	Launches []Launch
	parts    []*part
}

// part is a declaration or a function at the top of a program.
type part struct {
	name, head string
	body       *block // nil for a declaration
	kernel     bool
	dropped    bool
}

// Launch is one launch of a kernel.
type Launch struct {
	Kernel       string
	Items, Group [3]int // a group of zeros lets the runtime choose
	Args         []Arg
}

// Arg is an argument of a launch: a buffer with its initial contents, a value, or a number of bytes
// of local memory.
type Arg struct {
	Name   string
	Buffer bool
	Local  int
	Data   []byte
	Out    bool // the buffer is compared, element by element
	kind   kind
	ulps   []int // how far two results may be apart, per element, repeated for all elements; nil means exact
}

// block is a list of statements.
type block struct{ list []*stmt }

// stmt is a statement: in its form $0 to $9 are expressions and @0 to @9 blocks.
type stmt struct {
	form    string
	args    []*expr
	blocks  []*block
	fixed   bool // other statements need it
	dropped bool
	hoisted bool // the statement is replaced by its blocks
}

// expr is an expression of exactly its type: $0 to $9 are its operands.
type expr struct {
	t    typ
	form string
	args []*expr
}

// Text returns the source text.
func (p *Program) Text() string {
	var b strings.Builder
	for _, part := range p.parts {
		if part.dropped {
			continue
		}
		b.WriteString(part.head)
		if part.body != nil {
			b.WriteString(" {\n")
			part.body.write(&b, 1)
			b.WriteString("}")
		}
		b.WriteString("\n")
	}
	return b.String()
}

func (l *block) write(b *strings.Builder, depth int) {
	for _, s := range l.list {
		if !s.dropped {
			s.write(b, depth)
		}
	}
}

func (s *stmt) write(b *strings.Builder, depth int) {
	indent := strings.Repeat("  ", depth)
	if s.hoisted {
		for _, inner := range s.blocks {
			b.WriteString(indent + "{\n")
			inner.write(b, depth+1)
			b.WriteString(indent + "}\n")
		}
		return
	}
	b.WriteString(indent)
	walk(s.form, func(text string) { b.WriteString(strings.ReplaceAll(text, "\n", "\n"+indent)) },
		func(sigil byte, n int) {
			if sigil == '$' {
				s.args[n].write(b)
				return
			}
			b.WriteString("\n")
			s.blocks[n].write(b, depth+1)
			b.WriteString(indent)
		})
	b.WriteString("\n")
}

func (e *expr) write(b *strings.Builder) {
	walk(e.form, func(text string) { b.WriteString(text) }, func(_ byte, n int) { e.args[n].write(b) })
}

func (e *expr) String() string {
	var b strings.Builder
	e.write(&b)
	return b.String()
}

// walk calls text and hole for the pieces of a form, in order.
func walk(form string, text func(string), hole func(sigil byte, n int)) {
	for {
		i := strings.IndexAny(form, "$@")
		if i < 0 {
			text(form)
			return
		}
		text(form[:i])
		hole(form[i], int(form[i+1]-'0'))
		form = form[i+2:]
	}
}

// counts returns the numbers of kernels and statements, for the report.
func (p *Program) counts() (kernels, lines int) {
	for _, part := range p.parts {
		if !part.dropped && part.kernel {
			kernels++
		}
	}
	return kernels, strings.Count(p.Text(), "\n")
}

// Describe returns the program with its seed and its launches, as a text that compiles.
func (p *Program) Describe() string {
	var b strings.Builder
	fmt.Fprintf(&b, "// seed %d\n", p.Seed)
	for _, l := range p.Launches {
		fmt.Fprintf(&b, "// launch %s items %v group %v\n", l.Kernel, l.Items, l.Group)
		for _, a := range l.Args {
			switch {
			case a.Local > 0:
				fmt.Fprintf(&b, "//   %s: %d bytes of local memory\n", a.Name, a.Local)
			case !a.Buffer:
				fmt.Fprintf(&b, "//   %s = %x\n", a.Name, a.Data)
			case a.Out:
				fmt.Fprintf(&b, "//   %s: %d bytes, compared\n", a.Name, len(a.Data))
			default:
				fmt.Fprintf(&b, "//   %s: %x\n", a.Name, a.Data)
			}
		}
	}
	return b.String() + p.Text()
}
