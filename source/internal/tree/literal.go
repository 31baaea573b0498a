package tree

// String literals.

import (
	"strconv"
	"strings"
)

// StringBytes returns the bytes of adjacent string literals, or as its second result what is wrong
// with them.
func StringBytes(text string) (string, string) {
	out := strings.Builder{}
	for len(text) > 0 {
		text = strings.TrimLeft(text, " ")
		if len(text) < 2 || text[0] != '"' {
			return "", "a string literal of another kind than \"...\""
		}
		end := 1
		for end < len(text) && text[end] != '"' {
			if text[end] == '\\' {
				end++
			}
			end++
		}
		if end >= len(text) {
			return "", "a string without its end"
		}
		b, msg := Unescape(text[1:end])
		if msg != "" {
			return "", msg
		}
		out.WriteString(b)
		text = text[end+1:]
	}
	return out.String(), ""
}

// Unescape replaces C's escape sequences, or returns as its second result what is wrong with one.
func Unescape(s string) (string, string) {
	out := strings.Builder{}
	for i := 0; i < len(s); i++ {
		if s[i] != '\\' {
			out.WriteByte(s[i])
			continue
		}
		i++
		if i == len(s) {
			return "", "a backslash at the end"
		}
		if c, ok := simpleEscapes[s[i]]; ok {
			out.WriteByte(c)
			continue
		}
		base, digits, most := 8, "01234567", 3
		start := i
		if s[i] == 'x' {
			base, digits, most, start = 16, "0123456789abcdefABCDEF", 8, i+1
		}
		end := start
		for end < len(s) && end < start+most && strings.IndexByte(digits, s[end]) >= 0 {
			end++
		}
		v, err := strconv.ParseUint(s[start:end], base, 32)
		if err != nil {
			return "", "an unknown escape sequence '\\" + s[i:i+1] + "'"
		}
		out.WriteByte(byte(v))
		i = end - 1
	}
	return out.String(), ""
}

var simpleEscapes = map[byte]byte{
	'n': '\n', 't': '\t', 'r': '\r', 'a': 7, 'b': 8, 'f': 12, 'v': 11, 'e': 27,
	'\\': '\\', '\'': '\'', '"': '"', '?': '?',
}
