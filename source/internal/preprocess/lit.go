// Literals: their values in #if, and the check of numbers for the parser.

package preprocess

import (
	"errors"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/concord-compute/concord/source/internal/token"
	"github.com/concord-compute/concord/source/internal/tree"
)

// validNumber reports whether a pp-number is a literal. The parser checks the meaning of its suffix
// and whether the device supports it.
func validNumber(kind token.Kind, s string) bool {
	s = strings.ToLower(s)
	if kind == token.Int {
		_, err := parseInt(s)
		return err == nil
	}
	digits, exp := "0123456789", "e"
	if strings.HasPrefix(s, "0x") {
		s, digits, exp = s[2:], "0123456789abcdef", "p"
	}
	mantissa, rest, scaled := strings.Cut(s, exp)
	if !scaled {
		if exp == "p" {
			return false // 0x1.8 needs its exponent
		}
		rest = strings.TrimLeft(s, digits+".")
		mantissa = s[:len(s)-len(rest)]
	} else {
		rest = strings.TrimPrefix(strings.TrimPrefix(rest, "+"), "-")
		n := len(rest)
		if rest = strings.TrimLeft(rest, "0123456789"); len(rest) == n {
			return false
		}
	}
	switch rest {
	case "", "f", "h", "l":
	default:
		return false
	}
	return strings.Count(mantissa, ".") <= 1 && strings.Trim(mantissa, ".") != "" &&
		strings.Trim(mantissa, digits+".") == ""
}

// parseInt reads an integer literal with its suffix.
func parseInt(text string) (tree.Value, error) {
	s, kind := strings.ToLower(text), tree.Long
	end := len(s)
	for end > 0 && (s[end-1] == 'u' || s[end-1] == 'l') {
		end--
	}
	s, suffix := s[:end], s[end:]
	switch suffix {
	case "u", "ul", "ull", "lu", "llu":
		kind = tree.ULong
	case "", "l", "ll":
	default:
		return zero, errors.New("unknown suffix " + suffix)
	}
	base := 10
	switch {
	case strings.HasPrefix(s, "0x"):
		base, s = 16, s[2:]
	case strings.HasPrefix(s, "0b"):
		base, s = 2, s[2:]
	case strings.HasPrefix(s, "0"):
		base = 8
	}
	u, err := strconv.ParseUint(s, base, 64)
	if errors.Is(err, strconv.ErrRange) {
		return zero, errors.New("it needs more than 64 bits")
	} else if err != nil {
		return zero, errors.New("it has a wrong digit")
	}
	if u > math.MaxInt64 {
		kind = tree.ULong
	}
	return tree.BitsValue(kind, u), nil
}

// charValue returns the value of a character constant in #if. As in other compilers, char is
// signed, and several characters make one int.
func charValue(text string) (int64, error) {
	wide := text[0] == 'L'
	s := text[strings.IndexByte(text, '\'')+1 : len(text)-1]
	var v uint32
	n := 0
	for ; s != ""; n++ {
		c, size := uint32(s[0]), 1
		if s[0] == '\\' {
			c, size = escape(s)
		} else if wide {
			r, w := utf8.DecodeRuneInString(s)
			c, size = uint32(r), w
		}
		s = s[size:]
		if wide {
			v = c
		} else {
			v = v<<8 | c&0xff
		}
	}
	switch {
	case n == 0:
		return 0, errors.New("it is empty")
	case n == 1 && !wide:
		return int64(int8(v)), nil
	}
	return int64(int32(v)), nil
}

// escape reads the escape sequence at the beginning of s.
func escape(s string) (value uint32, size int) {
	if len(s) < 2 {
		return '\\', 1
	}
	if i := strings.IndexByte("abfnrtveE", s[1]); i >= 0 {
		return uint32("\a\b\f\n\r\t\v\x1b\x1b"[i]), 2
	}
	start, end, base := 1, 1, uint32(8)
	switch {
	case s[1] == 'x':
		start, base = 2, 16
		for end = 2; end < len(s) && strings.IndexByte("0123456789abcdefABCDEF", s[end]) >= 0; end++ {
		}
	default:
		for end < len(s) && end < 4 && '0' <= s[end] && s[end] <= '7' {
			end++
		}
	}
	if end == start {
		return uint32(s[1]), 2
	}
	for _, c := range []byte(strings.ToLower(s[start:end])) {
		d := uint32(c - '0')
		if c >= 'a' {
			d = uint32(c-'a') + 10
		}
		value = value*base + d
	}
	return value, end
}
