package source

// Literals: their types and values.

import (
	"math"
	"strconv"
	"strings"

	"github.com/concord-compute/concord/source/internal/token"
)

// literal types a number or character.
func (p *parser) literal(t *token.Token, tok int) *expr {
	e := &expr{op: opLit, text: t.Text, tok: tok}
	msg := ""
	switch t.Kind {
	case token.Int:
		e.typ, e.val, msg = intLiteral(t.Text)
	case token.Float:
		e.typ, e.val, msg = p.floatLiteral(t)
	case token.Char:
		e.typ, e.val, msg = charLiteral(t.Text)
	}
	if msg != "" {
		p.errorf(t.Pos, "literal", "%s", msg)
		e.typ = unknownType
	}
	return p.node(e)
}

// intLiteral gives an integer the first type that holds it, as C99 says with a
// 64-bit long.
func intLiteral(text string) (*ctype, constant, string) {
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
		return nil, constant{}, "'" + text + "' is not an integer that fits into 64 bits"
	}
	c := constant{ok: true, i: int64(v)}
	switch {
	case !unsigned && !long && v <= math.MaxInt32:
		return intType, c, ""
	case !long && v <= math.MaxUint32 && (unsigned || base != 10):
		return uintType, c, ""
	case !unsigned && v <= math.MaxInt64:
		return longType, c, ""
	}
	return ulongType, c, ""
}

// floatLiteral types a floating literal: without a suffix it is double where
// the device has double, and float elsewhere.
func (p *parser) floatLiteral(t *token.Token) (*ctype, constant, string) {
	body, typ := t.Text, doubleType
	hex := len(body) > 1 && (body[1] == 'x' || body[1] == 'X')
	switch body[len(body)-1] {
	case 'f', 'F':
		if !hex || strings.ContainsAny(body, "pP") {
			body, typ = body[:len(body)-1], floatType
		}
	case 'h', 'H':
		body, typ = body[:len(body)-1], halfType
		if !p.feats.FP16 {
			return nil, constant{}, "a half literal needs the feature cl_khr_fp16, which the device does not have"
		}
	case 'l', 'L':
		return nil, constant{}, "long double is not part of OpenCL C"
	}
	if typ == doubleType && !p.feats.FP64 {
		typ = floatType
	}
	bits := 64
	if typ != doubleType {
		bits = 32
	}
	v, err := strconv.ParseFloat(body, bits)
	if err != nil && !math.IsInf(v, 0) || strings.Contains(body, "_") {
		return nil, constant{}, "'" + t.Text + "' is not a number"
	}
	return typ, constant{ok: true, float: true, f: v}, ""
}

// charLiteral gives a character its int value; char is signed.
func charLiteral(text string) (*ctype, constant, string) {
	if len(text) < 3 || text[0] != '\'' || text[len(text)-1] != '\'' {
		return nil, constant{}, text + " is not a character"
	}
	b, msg := unescape(text[1 : len(text)-1])
	if msg != "" || len(b) == 0 || len(b) > 4 {
		return nil, constant{}, text + " is not a character"
	}
	v := int64(int8(b[0]))
	for _, c := range b[1:] {
		v = v<<8 | int64(c)
	}
	return intType, constant{ok: true, i: int64(int32(v))}, ""
}
