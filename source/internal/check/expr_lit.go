package check

// Literals: their types and values.

import (
	"math"
	"math/big"
	"strconv"
	"strings"

	"github.com/concord-compute/concord/source/internal/token"
	"github.com/concord-compute/concord/source/internal/tree"
)

// literal types a number or character.
func (p *parser) literal(t *token.Token, tok int) *tree.Expr {
	e := &tree.Expr{Op: tree.OpLit, Text: t.Text, Tok: tok}
	msg := ""
	switch t.Kind {
	case token.Int:
		e.Type, e.Val, msg = intLiteral(t.Text)
	case token.Float:
		e.Type, e.Val, msg = p.floatLiteral(t)
	case token.Char:
		e.Type, e.Val, msg = charLiteral(t.Text)
	}
	if msg != "" {
		p.errorf(t.Pos, "literal", "%s", msg)
		e.Type = tree.UnknownType
	}
	return p.node(e)
}

// intLiteral types an integer literal: by the rules of C99 with a 64-bit long, the first type of a
// list that holds the value.
func intLiteral(text string) (*tree.Type, tree.Value, string) {
	digits := strings.TrimRight(text, "uUlL")
	suffix := strings.ToLower(text[len(digits):])
	unsigned, long := strings.Contains(suffix, "u"), strings.Contains(suffix, "l")
	base := 10
	switch d := strings.ToLower(digits); {
	case strings.HasPrefix(d, "0x"):
		base, digits = 16, digits[2:]
	case strings.HasPrefix(d, "0b"):
		base, digits = 2, digits[2:]
	case len(d) > 1 && d[0] == '0':
		base = 8
	}
	v, err := strconv.ParseUint(digits, base, 64)
	if err != nil || strings.Count(suffix, "u") > 1 || strings.Count(suffix, "l") > 2 {
		return nil, tree.Value{}, "'" + text + "' is not an integer that fits into 64 bits"
	}
	c := func(t *tree.Type) (*tree.Type, tree.Value, string) { return t, tree.BitsValue(t.Base, v), "" }
	switch {
	case !unsigned && !long && v <= math.MaxInt32:
		return c(tree.IntType)
	case !long && v <= math.MaxUint32 && (unsigned || base != 10):
		return c(tree.UIntType)
	case !unsigned && v <= math.MaxInt64:
		return c(tree.LongType)
	}
	return c(tree.ULongType)
}

// floatLiteral types a floating literal: without a suffix it is double where
// the device has double, and float elsewhere.
func (p *parser) floatLiteral(t *token.Token) (*tree.Type, tree.Value, string) {
	body, typ := t.Text, tree.DoubleType
	hex := len(body) > 1 && (body[1] == 'x' || body[1] == 'X')
	switch body[len(body)-1] {
	case 'f', 'F':
		if !hex || strings.ContainsAny(body, "pP") {
			body, typ = body[:len(body)-1], tree.FloatType
		}
	case 'h', 'H':
		body, typ = body[:len(body)-1], tree.HalfType
		if !p.feats.FP16 {
			return nil, tree.Value{}, "a half literal needs the feature cl_khr_fp16, which the device does not have"
		}
	case 'l', 'L':
		return nil, tree.Value{}, "long double is not part of OpenCL C"
	}
	if typ == tree.DoubleType && !p.feats.FP64 {
		typ = tree.FloatType
	}
	bits := 64
	if typ == tree.FloatType {
		bits = 32
	}
	v, err := strconv.ParseFloat(body, bits)
	if err != nil && !math.IsInf(v, 0) || strings.Contains(body, "_") {
		return nil, tree.Value{}, "'" + t.Text + "' is not a number"
	}
	if typ == tree.HalfType {
		v = awayFromTie(v, body)
	}
	return typ, tree.FloatValue(typ.Base, v), ""
}

// awayFromTie returns v, which is text rounded to double, or its neighbour in the direction of the exact value, so
// that rounding it to half does not round a second time. It matters where v is half way between two halves.
func awayFromTie(v float64, text string) float64 {
	if math.Abs(v) >= 65536 || v == 0 || math.Float64bits(v)&(1<<41-1) != 0 { // a tie has few digits
		return v
	}
	exact, ok := new(big.Rat).SetString(text)
	if !ok {
		return v
	}
	return math.Nextafter(v, v+float64(exact.Cmp(new(big.Rat).SetFloat64(v))))
}

// charLiteral types a character literal, an int; char is signed.
func charLiteral(text string) (*tree.Type, tree.Value, string) {
	if len(text) < 3 || text[0] != '\'' || text[len(text)-1] != '\'' {
		return nil, tree.Value{}, text + " is not a character"
	}
	b, msg := tree.Unescape(text[1 : len(text)-1])
	if msg != "" || len(b) == 0 || len(b) > 4 {
		return nil, tree.Value{}, text + " is not a character"
	}
	v := int64(int8(b[0]))
	for _, c := range b[1:] {
		v = v<<8 | int64(c)
	}
	return tree.IntType, tree.IntValue(tree.Int, v), ""
}
