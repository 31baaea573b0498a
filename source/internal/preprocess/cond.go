// The expressions of #if and #elif: integer arithmetic in 64 bits, signed or
// not, as C99 6.10.1 has it.

package preprocess

import (
	"errors"

	"github.com/concord-compute/concord/source/internal/token"
)

// ppValue is a value in #if. The bits of an unsigned one are kept in the signed field.
type ppValue struct {
	n        int64
	unsigned bool
}

func truth(b bool) ppValue {
	if b {
		return ppValue{n: 1}
	}
	return ppValue{}
}

// condition evaluates the operand of a directive, which is #if or #elif.
func (p *preprocessor) condition(directive token.Token, line []token.Token) bool {
	a := make([]ppToken, len(line))
	for i, t := range line {
		a[i].Token = t
	}
	n := len(p.lists)
	p.push(list{toks: a, stop: true})
	e := &condParser{p: p, at: directive.Pos, name: "#" + directive.Text}
	e.next()
	var v ppValue
	if e.t.Kind == token.EOF {
		e.fail("%s without an expression", e.name)
	} else {
		v = e.comma(true)
		if e.t.Kind != token.EOF {
			e.fail("unexpected %s in %s", kindOf(e.t), e.name)
		}
	}
	for !p.stopped && len(p.lists) > n {
		p.pop()
	}
	return v.n != 0 && !e.failed
}

// condParser reads one expression by recursive descent. It expands tokens one by one, because the
// operand of defined must not be expanded.
type condParser struct {
	p      *preprocessor
	t      token.Token // the next token; EOF after a failure
	at     token.Pos   // position of t, or of the last token before the end
	name   string
	depth  int
	failed bool
}

// fail reports the first mistake and ends the parsing of the line.
func (e *condParser) fail(format string, args ...any) {
	if !e.failed && !e.p.stopped {
		e.p.errorf(e.at, e.name, format, args...)
	}
	e.failed = true
	e.t = token.Token{Kind: token.EOF}
}

func (e *condParser) next() {
	if e.failed {
		return
	}
	e.t = e.p.getSolid().Token
	switch e.t.Kind {
	case token.EOF:
		return
	case token.Punct:
		e.t.Text = digraph(e.t.Text)
	}
	e.at = e.t.Pos
}

// accept moves past the operator s if it is next.
func (e *condParser) accept(s string) bool {
	if e.t.Kind == token.Punct && e.t.Text == s {
		e.next()
		return true
	}
	return false
}

func (e *condParser) expect(s string) {
	if !e.accept(s) {
		e.fail("expected %q in %s, not %s", s, e.name, kindOf(e.t))
	}
}

// comma parses an expression. eval, here and in the following methods, says whether its value is
// used: "0 && 1/0" is no error.
func (e *condParser) comma(eval bool) ppValue {
	v := e.ternary(eval)
	for e.accept(",") {
		v = e.ternary(eval)
	}
	return v
}

// enter limits the recursion; the caller ends the level with leave.
func (e *condParser) enter() bool {
	if e.depth++; e.depth > maxNesting {
		e.fail("expression of %s is nested deeper than %d", e.name, maxNesting)
		return false
	}
	return true
}

func (e *condParser) leave() { e.depth-- }

func (e *condParser) ternary(eval bool) ppValue {
	defer e.leave()
	if !e.enter() {
		return ppValue{}
	}
	c := e.binary(1, eval)
	if !e.accept("?") {
		return c
	}
	a := e.comma(eval && c.n != 0)
	e.expect(":")
	b := e.ternary(eval && c.n == 0)
	v := b
	if c.n != 0 {
		v = a
	}
	v.unsigned = a.unsigned || b.unsigned
	return v
}

// binary parses operators of at least the precedence lowest.
func (e *condParser) binary(lowest int, eval bool) ppValue {
	a := e.unary(eval)
	for e.t.Kind == token.Punct {
		op, prec := e.t.Text, token.Precedence[e.t.Text]
		if prec == 0 || prec < lowest {
			break
		}
		e.next()
		counts := eval
		switch op {
		case "&&":
			counts = eval && a.n != 0
		case "||":
			counts = eval && a.n == 0
		}
		b := e.binary(prec+1, counts)
		if (op == "/" || op == "%") && b.n == 0 {
			if counts && !e.failed {
				e.fail("division by zero in %s", e.name)
			}
			continue
		}
		a = apply(op, a, b)
	}
	return a
}

// apply computes a op b; b is not zero if op is a division.
func apply(op string, a, b ppValue) ppValue {
	v := ppValue{unsigned: a.unsigned || b.unsigned}
	switch op {
	case "||":
		return truth(a.n != 0 || b.n != 0)
	case "&&":
		return truth(a.n != 0 && b.n != 0)
	case "==":
		return truth(a.n == b.n)
	case "!=":
		return truth(a.n != b.n)
	case "<":
		return truth(less(a, b))
	case ">":
		return truth(less(b, a))
	case "<=":
		return truth(!less(b, a))
	case ">=":
		return truth(!less(a, b))
	case "<<":
		return shift(a, b, false)
	case ">>":
		return shift(a, b, true)
	case "|":
		v.n = a.n | b.n
	case "^":
		v.n = a.n ^ b.n
	case "&":
		v.n = a.n & b.n
	case "+":
		v.n = a.n + b.n
	case "-":
		v.n = a.n - b.n
	case "*":
		v.n = a.n * b.n
	case "/":
		v.n = divide(a.n, b.n, v.unsigned)
	case "%":
		v.n = a.n - divide(a.n, b.n, v.unsigned)*b.n
	}
	return v
}

func less(a, b ppValue) bool {
	if a.unsigned || b.unsigned {
		return uint64(a.n) < uint64(b.n)
	}
	return a.n < b.n
}

func divide(a, b int64, unsigned bool) int64 {
	if unsigned {
		return int64(uint64(a) / uint64(b))
	}
	return a / b // Go wraps MinInt64 / -1, as cpp does
}

// shift returns a value of the type of its left operand; a negative count shifts in the other
// direction.
func shift(a, b ppValue, right bool) ppValue {
	n := uint64(b.n)
	if !b.unsigned && b.n < 0 {
		n, right = -n, !right
	}
	switch {
	case !right:
		a.n <<= n
	case a.unsigned:
		a.n = int64(uint64(a.n) >> n)
	default:
		a.n >>= n
	}
	return a
}

func (e *condParser) unary(eval bool) ppValue {
	defer e.leave()
	if !e.enter() {
		return ppValue{}
	}
	switch {
	case e.accept("+"):
		return e.unary(eval)
	case e.accept("-"):
		v := e.unary(eval)
		v.n = -v.n
		return v
	case e.accept("~"):
		v := e.unary(eval)
		v.n = ^v.n
		return v
	case e.accept("!"):
		return truth(e.unary(eval).n == 0)
	case e.accept("("):
		v := e.comma(eval)
		e.expect(")")
		return v
	}
	return e.primary()
}

func (e *condParser) primary() ppValue {
	t := e.t
	var v ppValue
	var err error
	switch t.Kind {
	case token.Ident:
		if t.Text == "defined" {
			return e.defined()
		}
		v = truth(t.Text == "true") // every other name that is not a macro is 0
	case token.Int:
		v.n, v.unsigned, err = parseInt(t.Text)
	case token.Char:
		v.n, err = charValue(t.Text)
	case token.Float:
		err = errors.New("floating constant")
	default:
		err = errors.New("expected a value")
	}
	if err != nil {
		e.fail("%s: %v, not %s", e.name, errText(t, err), kindOf(t))
		return v
	}
	e.next()
	return v
}

// errText returns the message for a mistake in a primary expression that begins with t.
func errText(t token.Token, err error) string {
	if t.Kind == token.Int || t.Kind == token.Char || t.Kind == token.Float {
		return "expected an integer (" + err.Error() + ")"
	}
	return err.Error()
}

// defined parses "defined NAME" or "defined(NAME)" without expansion.
func (e *condParser) defined() ppValue {
	e.p.noExpand++
	e.next()
	paren := e.t.Kind == token.Punct && e.t.Text == "("
	if paren {
		e.next()
	}
	name := e.t
	if name.Kind != token.Ident {
		e.p.noExpand--
		e.fail("defined needs the name of a macro, not %s", kindOf(name))
		return ppValue{}
	}
	if paren {
		e.next()
		if e.t.Text != ")" {
			e.fail("expected %q after defined(%s", ")", name.Text)
		}
	}
	e.p.noExpand--
	e.next()
	return truth(e.p.macros[name.Text] != nil)
}
