// The lexer of the portable language: it splits one text into C99 preprocessing tokens and records
// the position of each in the text as the user wrote it, also across line continuations.

package preprocess

import (
	"cmp"
	"strings"
	"unicode/utf8"

	"github.com/concord-compute/concord/source/internal/token"
)

// Kinds of tokens that exist only inside the preprocessor.
const (
	tokOther   = token.Newline + 1 + iota // a character or a lone quote that begins no token
	tokPadding                            // see padding in expand.go
	tokHeader                             // <name> or "name" after #include, unescaped
)

// lexer splits one text into tokens. Comments become white space; every line ends with a Newline
// token (also the last one, if it has any token), and EOF is returned again and again.
type lexer struct {
	text      string // without line continuations, with "\n" as the only line end
	splices   []int  // offsets in text where a continuation was removed
	i         int    // next byte
	file      string
	line      int  // line at i in the original text, from 1
	lineStart int  // offset of that line's first byte
	delta     int  // what #line adds to line
	bol       bool // no token of this line was read yet
	report    func(pos token.Pos, construct, msg string)
}

// newLexer returns a lexer that calls report for mistakes in the text.
func newLexer(file, text string, report func(token.Pos, string, string)) *lexer {
	l := &lexer{file: file, line: 1, bol: true, report: report}
	l.text, l.splices = splice(strings.TrimPrefix(text, "\ufeff"))
	return l
}

// splice removes line continuations, also those with blanks between the backslash and the line's
// end, as GNU and clang do, and turns "\r\n" and "\r" into "\n". It also returns the offsets in the
// result at which a line was joined to the one before.
func splice(text string) (string, []int) {
	if !strings.ContainsAny(text, "\\\r") {
		return text, nil
	}
	var b strings.Builder
	var at []int
	b.Grow(len(text))
	for i := 0; i < len(text); i++ {
		switch c := text[i]; c {
		case '\r':
			b.WriteByte('\n')
			i += lineEnd(text[i:]) - 1
		case '\\':
			j := i + 1
			for j < len(text) && isBlank(text[j]) {
				j++
			}
			if n := lineEnd(text[j:]); n > 0 {
				i = j + n - 1
				at = append(at, b.Len())
			} else { // skip the blanks, so that they are scanned once and the work stays linear
				b.WriteString(text[i:j])
				i = j - 1
			}
		default:
			b.WriteByte(c)
		}
	}
	return b.String(), at
}

// lineEnd returns the length of the line end at the beginning of text, or 0.
func lineEnd(text string) int {
	switch {
	case strings.HasPrefix(text, "\r\n"):
		return 2
	case text != "" && (text[0] == '\n' || text[0] == '\r'):
		return 1
	}
	return 0
}

func isBlank(c byte) bool { return c == ' ' || c == '\t' || c == '\v' || c == '\f' }
func isDigit(c byte) bool { return '0' <= c && c <= '9' }

// isLetter also returns true for '$', which the targets' compilers allow in names.
func isLetter(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || c == '_' || c == '$'
}

// pos returns the position of the byte at l.i.
func (l *lexer) pos() token.Pos {
	for len(l.splices) > 0 && l.splices[0] <= l.i {
		l.line++
		l.lineStart = l.splices[0]
		l.splices = l.splices[1:]
	}
	// A preprocessor's output may have "# 0 "<built-in>"", which would be line 0.
	return token.Pos{File: l.file, Line: max(1, l.line+l.delta), Col: l.i - l.lineStart + 1}
}

// newline moves past the "\n" at l.i.
func (l *lexer) newline() {
	l.pos()
	l.i++
	l.line++
	l.lineStart = l.i
}

// blanks moves past white space and comments up to a token or the line's end
// and reports whether there were any.
func (l *lexer) blanks() bool {
	start := l.i
	for l.i < len(l.text) {
		switch c := l.text[l.i]; {
		case isBlank(c):
			l.i++
		case c == '/' && strings.HasPrefix(l.text[l.i:], "//"):
			if n := strings.IndexByte(l.text[l.i:], '\n'); n >= 0 {
				l.i += n
			} else {
				l.i = len(l.text)
			}
		case c == '/' && strings.HasPrefix(l.text[l.i:], "/*"):
			l.comment()
		default:
			return l.i > start
		}
	}
	return l.i > start
}

// comment moves past the block comment at l.i.
func (l *lexer) comment() {
	pos := l.pos()
	end := len(l.text)
	if n := strings.Index(l.text[l.i+2:], "*/"); n >= 0 {
		end = l.i + 2 + n + 2
	} else {
		l.report(pos, "comment", "comment is not closed")
	}
	for {
		n := strings.IndexByte(l.text[l.i:end], '\n')
		if n < 0 {
			break
		}
		l.i += n
		l.newline()
	}
	l.i = end
}

// next returns the next token of the text.
func (l *lexer) next() token.Token {
	t := token.Token{Space: l.blanks(), BOL: l.bol, Pos: l.pos()}
	if l.i >= len(l.text) {
		if !l.bol { // the last line needs no line end
			l.bol = true
			t.Kind = token.Newline
		}
		return t
	}
	if l.text[l.i] == '\n' {
		l.newline()
		l.bol = true
		t.Kind = token.Newline
		return t
	}
	l.bol = false
	var n int
	t.Kind, n = scan(l.text[l.i:])
	t.Text = l.text[l.i : l.i+n]
	l.i += n
	return t
}

// scan returns the kind and length of the first token of s. s is not empty and begins with neither
// white space nor a comment.
func scan(s string) (token.Kind, int) {
	c := s[0]
	switch {
	case c == 'L' && len(s) > 1 && (s[1] == '"' || s[1] == '\''):
		if kind, n := scanQuoted(s[1:]); kind != tokOther {
			return kind, n + 1
		}
		return token.Ident, 1
	case isLetter(c):
		n := 1
		for n < len(s) && (isLetter(s[n]) || isDigit(s[n])) {
			n++
		}
		return token.Ident, n
	case isDigit(c), c == '.' && len(s) > 1 && isDigit(s[1]):
		return scanNumber(s)
	case c == '"', c == '\'':
		return scanQuoted(s)
	}
	if n := scanPunct(s); n > 0 {
		return token.Punct, n
	}
	_, n := utf8.DecodeRuneInString(s)
	return tokOther, n
}

// scanNumber reads a C99 pp-number. Not every pp-number is a valid literal; that is checked only
// for those that remain after preprocessing.
func scanNumber(s string) (token.Kind, int) {
	hex := len(s) > 1 && s[0] == '0' && (s[1] == 'x' || s[1] == 'X')
	kind := token.Int
	n := 0
	for n < len(s) {
		c := s[n]
		switch {
		case c == '.', !hex && (c == 'e' || c == 'E'), hex && (c == 'p' || c == 'P'):
			kind = token.Float
		case !isDigit(c) && !isLetter(c):
			return kind, n
		}
		n++
		if strings.IndexByte("eEpP", c) >= 0 && n < len(s) && (s[n] == '+' || s[n] == '-') {
			n++
		}
	}
	return kind, n
}

// scanQuoted reads a string or a character constant. If it is not closed on its line, the rest of
// the line is a tokOther, so that skipped text and #error may contain apostrophes.
func scanQuoted(s string) (token.Kind, int) {
	quote := s[0]
	for n := 1; n < len(s); n++ {
		switch s[n] {
		case quote:
			if quote == '"' {
				return token.String, n + 1
			}
			return token.Char, n + 1
		case '\\':
			if n+1 < len(s) && s[n+1] != '\n' {
				n++
			}
		case '\n':
			return tokOther, n
		}
	}
	return tokOther, len(s)
}

// scanPunct returns the length of the longest operator at the beginning of s.
func scanPunct(s string) int {
	if len(s) >= 3 {
		switch s[:3] {
		case "...", "<<=", ">>=":
			return 3
		case "%:%":
			if len(s) >= 4 && s[3] == ':' {
				return 4
			}
		}
	}
	if len(s) >= 2 {
		switch s[:2] {
		case "->", "++", "--", "<<", ">>", "<=", ">=", "==", "!=", "&&", "||", "##",
			"+=", "-=", "*=", "/=", "%=", "&=", "|=", "^=",
			"<:", ":>", "<%", "%>", "%:":
			return 2
		}
	}
	if strings.IndexByte("[](){}.&*+-~!/%<>^|?:;=,#", s[0]) >= 0 {
		return 1
	}
	return 0
}

var digraphs = map[string]string{"<:": "[", ":>": "]", "<%": "{", "%>": "}", "%:": "#", "%:%:": "##"}

// digraph returns the usual spelling of an operator: "[" for "<:".
func digraph(s string) string { return cmp.Or(digraphs[s], s) }

// header reads <name> or "name" if it is next on the line. There are no escapes: a backslash is
// part of the name.
func (l *lexer) header() (token.Token, bool) {
	l.blanks()
	t := token.Token{Kind: tokHeader, Pos: l.pos()}
	if l.i >= len(l.text) {
		return t, false
	}
	closing := l.text[l.i]
	if closing == '<' {
		closing = '>'
	} else if closing != '"' {
		return t, false
	}
	rest := l.text[l.i:]
	if n := strings.IndexByte(rest, '\n'); n >= 0 {
		rest = rest[:n]
	}
	n := strings.IndexByte(rest[1:], closing)
	if n < 0 {
		return t, false
	}
	t.Text = rest[:n+2]
	l.i += n + 2
	return t, true
}
