// The expressions of #if and #elif: integer arithmetic in 64 bits, signed or
// not, as C99 6.10.1 has it.

package preprocess

import (
	"errors"

	"github.com/concord-compute/concord/source/internal/token"
	"github.com/concord-compute/concord/source/internal/tree"
)

// zero is the value of whatever has none. All values are of kind Long or ULong.
var zero = tree.IntValue(tree.Long, 0)

func truth(b bool) tree.Value {
	if b {
		return tree.IntValue(tree.Long, 1)
	}
	return zero
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
	v := zero
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
	return !v.IsZero() && !e.failed
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
func (e *condParser) comma(eval bool) tree.Value {
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

func (e *condParser) ternary(eval bool) tree.Value {
	defer e.leave()
	if !e.enter() {
		return zero
	}
	c := e.binary(1, eval)
	if !e.accept("?") {
		return c
	}
	a := e.comma(eval && !c.IsZero())
	e.expect(":")
	b := e.ternary(eval && c.IsZero())
	v, other := a, b
	if c.IsZero() {
		v, other = b, a
	}
	return v.Convert(common(v, other))
}

// common returns the type in which operators compute with a and b.
func common(a, b tree.Value) *tree.Type { return tree.Usual(tree.Scalar(a.Kind), tree.Scalar(b.Kind)) }

// binary parses operators of at least the precedence lowest.
func (e *condParser) binary(lowest int, eval bool) tree.Value {
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
			counts = eval && !a.IsZero()
		case "||":
			counts = eval && a.IsZero()
		}
		b := e.binary(prec+1, counts)
		if (op == "/" || op == "%") && b.IsZero() {
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
func apply(op string, a, b tree.Value) tree.Value {
	switch op {
	case "||":
		return truth(!a.IsZero() || !b.IsZero())
	case "&&":
		return truth(!a.IsZero() && !b.IsZero())
	case "==", "!=", "<", ">", "<=", ">=":
		return truth(tree.Relation(op, a.Convert(common(a, b)), b.Convert(common(a, b))))
	case "<<", ">>":
		return shift(a, b, op == ">>")
	}
	return tree.Arithmetic(op, a.Convert(common(a, b)), b.Convert(common(a, b)))
}

// shift returns a value of the type of its left operand. A negative count shifts in the other
// direction, and one beyond the width shifts everything out, as with cpp.
func shift(a, b tree.Value, right bool) tree.Value {
	n := b.Bits
	if b.Negative() {
		n, right = -n, !right
	}
	switch {
	case !right:
		a.Bits <<= n
	case a.Kind == tree.ULong:
		a.Bits >>= n
	default:
		a.Bits = uint64(a.Int() >> n)
	}
	return a
}

func (e *condParser) unary(eval bool) tree.Value {
	defer e.leave()
	if !e.enter() {
		return zero
	}
	switch {
	case e.accept("+"):
		return e.unary(eval)
	case e.accept("-"):
		v := e.unary(eval)
		v.Bits = -v.Bits
		return v
	case e.accept("~"):
		v := e.unary(eval)
		v.Bits = ^v.Bits
		return v
	case e.accept("!"):
		return truth(e.unary(eval).IsZero())
	case e.accept("("):
		v := e.comma(eval)
		e.expect(")")
		return v
	}
	return e.primary()
}

func (e *condParser) primary() tree.Value {
	t, v := e.t, zero
	var err error
	switch t.Kind {
	case token.Ident:
		if t.Text == "defined" {
			return e.defined()
		}
		v = truth(t.Text == "true") // every other name that is not a macro is 0
	case token.Int:
		v, err = parseInt(t.Text)
	case token.Char:
		var n int64
		n, err = charValue(t.Text)
		v = tree.IntValue(tree.Long, n)
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
func (e *condParser) defined() tree.Value {
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
		return zero
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
