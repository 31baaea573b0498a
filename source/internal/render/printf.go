package render

// printf on GPUs. Their own printf supports neither vectors nor OpenCL's length modifiers, and
// takes at most 32 values. So the format is parsed when the program is rendered, every lane becomes
// a value of the type that its conversion needs, and a long format becomes several calls, between
// which other items may print.

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/concord-compute/concord/source/internal/tree"
)

// printfMost is the largest number of values in one call of the GPU's printf.
const printfMost = 32

// printfSpec is a conversion specification: %[flags][width][.precision][vn][length]type.
type printfSpec struct {
	head   string // % with flags, width and precision
	lanes  int    // number of lanes of a vector, 1 for a scalar
	length string // "", "hh", "h", "hl" or "l"
	verb   byte
}

// printfPiece is a text, followed by a value if spec is not nil.
type printfPiece struct {
	text string
	spec *printfSpec
}

// parseFormat splits a format into pieces; ok is false if it is not a valid format of OpenCL.
func parseFormat(f string) (pieces []printfPiece, ok bool) {
	var text strings.Builder
	for len(f) > 0 {
		if f[0] != '%' {
			n := strings.IndexByte(f, '%')
			if n < 0 {
				n = len(f)
			}
			text.WriteString(f[:n])
			f = f[n:]
			continue
		}
		if strings.HasPrefix(f, "%%") {
			text.WriteString("%%")
			f = f[2:]
			continue
		}
		spec, rest, good := parseSpec(f)
		if !good {
			return nil, false
		}
		pieces = append(pieces, printfPiece{text.String(), spec})
		text.Reset()
		f = rest
	}
	return append(pieces, printfPiece{text: text.String()}), true
}

func parseSpec(f string) (s *printfSpec, rest string, ok bool) {
	span := func(from int, set string) int {
		for from < len(f) && strings.IndexByte(set, f[from]) >= 0 {
			from++
		}
		return from
	}
	const digits = "0123456789"
	i := span(span(1, "-+ #0"), digits)
	if i < len(f) && f[i] == '.' {
		i = span(i+1, digits)
	}
	s = &printfSpec{head: f[:i], lanes: 1}
	if i < len(f) && f[i] == 'v' {
		end := span(i+1, digits)
		s.lanes, _ = strconv.Atoi(f[i+1 : end])
		i = end
		if s.lanes != 2 && s.lanes != 3 && s.lanes != 4 && s.lanes != 8 && s.lanes != 16 {
			return nil, "", false
		}
	}
	for _, l := range []string{"hh", "hl", "h", "l"} {
		if strings.HasPrefix(f[i:], l) {
			s.length, i = l, i+len(l)
			break
		}
	}
	if i >= len(f) || strings.IndexByte("diouxXfFeEgGaAcsp", f[i]) < 0 {
		return nil, "", false
	}
	s.verb = f[i]
	return s, f[i+1:], true
}

// value returns the type that a lane of the given kind is cast to, and the conversion for it.
func (s *printfSpec) value(kind tree.Kind) (cast, conversion string) {
	long := s.length == "l" || s.length == "" && (kind == tree.Long || kind == tree.ULong)
	switch {
	case strings.IndexByte("fFeEgGaA", s.verb) >= 0:
		return "(double)(float)", s.head + string(s.verb)
	case s.verb == 's':
		return "(const char *)", s.head + "s"
	case s.verb == 'p':
		return "(const void *)", s.head + "p"
	case s.verb == 'c':
		return "(int)", s.head + "c"
	}
	sign := ""
	if s.verb != 'd' && s.verb != 'i' {
		sign = "unsigned "
	}
	switch {
	case long:
		return "(" + sign + "long long)", s.head + "ll" + string(s.verb)
	case s.length == "h":
		return "(" + sign + "int)(" + sign + "short)", s.head + string(s.verb)
	case s.length == "hh" && sign == "":
		return "(int)(signed char)", s.head + string(s.verb)
	case s.length == "hh":
		return "(unsigned int)(unsigned char)", s.head + string(s.verb)
	}
	return "(" + sign + "int)", s.head + string(s.verb)
}

// printf writes a call of printf.
func (r *renderer) printf(e *tree.Expr) {
	format, _ := tree.StringBytes(e.Args[0].Text)
	pieces, ok := parseFormat(format)
	args := e.Args[1:]
	if ok {
		ok = printfFits(pieces, args)
	}
	r.w(r.d.opening)
	for i, a := range args {
		switch {
		case a.Op == tree.OpString:
			r.w("const char *cc_a", i, " = ", a.Text, "; ")
		default:
			r.w("auto cc_a", i, " = ", a, "; (void)cc_a", i, "; ")
		}
	}
	if !ok {
		r.w(r.d.result, "-1; ", r.d.closing)
		return
	}
	r.w("cc_int cc_r = 0; ")
	call := printfCall{r: r}
	arg := 0
	for _, p := range pieces {
		call.text.WriteString(p.text)
		if p.spec == nil {
			continue
		}
		call.argument(p.spec, args[arg], "cc_a"+strconv.Itoa(arg))
		arg++
	}
	call.flush()
	r.w(r.d.result, "cc_r; ", r.d.closing)
}

// printfFits reports whether every conversion has a matching argument.
func printfFits(pieces []printfPiece, args []*tree.Expr) bool {
	n := 0
	for _, p := range pieces {
		if p.spec == nil {
			continue
		}
		if n >= len(args) {
			return false
		}
		t := args[n].Type
		pointer := t.IsPointer() || t.Kind == tree.TArray
		if pointer != (p.spec.verb == 's' || p.spec.verb == 'p') || !pointer && !t.IsArith() || t.Width() != p.spec.lanes {
			return false
		}
		n++
	}
	return true
}

// printfCall collects one call of the GPU's printf.
type printfCall struct {
	r      *renderer
	text   strings.Builder
	values []string
}

func (c *printfCall) argument(s *printfSpec, a *tree.Expr, name string) {
	cast, conversion := s.value(a.Type.Base)
	if strings.HasPrefix(cast, "(double)") && a.Type.Base != tree.Half {
		cast = "(double)"
	}
	for i := range s.lanes {
		if len(c.values) == printfMost {
			c.flush()
		}
		value := name
		if s.lanes > 1 {
			value = fmt.Sprintf("%s.v[%d]", name, i)
			if i > 0 {
				c.text.WriteByte(',')
			}
		}
		c.text.WriteString(conversion)
		c.values = append(c.values, cast+value)
	}
}

// flush writes the call.
func (c *printfCall) flush() {
	if c.text.Len() == 0 && len(c.values) == 0 {
		return
	}
	c.r.w("cc_r |= cc_printed(printf(", quoteC(c.text.String()))
	for _, v := range c.values {
		c.r.w(", ", v)
	}
	c.r.w(")); ")
	c.text.Reset()
	c.values = nil
}

// quoteC returns bytes as a string literal of C++.
func quoteC(s string) string {
	var b strings.Builder
	b.WriteByte('"')
	for i := range len(s) {
		switch ch := s[i]; {
		case ch == '"' || ch == '\\':
			b.WriteByte('\\')
			b.WriteByte(ch)
		case ch == '\n':
			b.WriteString("\\n")
		case ch < ' ' || ch > '~' || ch == '?':
			fmt.Fprintf(&b, "\\%03o", ch)
		default:
			b.WriteByte(ch)
		}
	}
	b.WriteByte('"')
	return b.String()
}
