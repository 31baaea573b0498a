// Writing tokens as text, for OpenCL compilers, which read the portable language but do not have
// the program's includes, and for the tests that compare with cpp.

package preprocess

import (
	"strconv"
	"strings"

	"github.com/concord-compute/concord/source/internal/token"
)

// WriteText writes tokens as a text in which each is on the line of its position, with #line where
// a file begins or lines do not follow each other. Reading it again gives the same tokens at the
// same lines, unless a stray # begins a line, which the parser refuses anyway.
func WriteText(m *token.Meter, tokens []token.Token) string {
	w := textWriter{Meter: m}
	for _, t := range tokens {
		if t.Kind != token.EOF {
			w.write(t)
		}
	}
	if w.open {
		w.b.WriteByte('\n')
	}
	return w.b.String()
}

// textWriter tracks the file and line at which a reader of the written text would be.
type textWriter struct {
	*token.Meter
	b    strings.Builder
	file string
	line int // 0 before the first token
	open bool
	last token.Token // the last token, if the line is open
}

// maxBlank is the largest number of empty lines that are written instead of a #line.
const maxBlank = 4

func (w *textWriter) write(t token.Token) {
	if t.Kind == token.Pragma && w.open {
		w.newline() // a pragma is alone on its line
	}
	w.moveTo(t.Pos)
	if w.open && (t.Space || touching(w.last, t)) {
		w.b.WriteByte(' ')
	}
	w.Wrote(len(t.Text), t.Pos)
	w.b.WriteString(t.Text)
	w.open, w.last = true, t
	if t.Kind == token.Pragma {
		w.newline()
	}
}

func (w *textWriter) newline() {
	w.b.WriteByte('\n')
	w.line++
	w.open = false
}

// moveTo writes line ends or a #line up to the line of pos.
func (w *textWriter) moveTo(pos token.Pos) {
	gap := pos.Line - w.line
	if w.line > 0 && pos.File == w.file && gap >= 0 && gap <= maxBlank {
		for range gap {
			w.newline()
		}
		return
	}
	if w.open {
		w.newline()
	}
	line := "#line " + strconv.Itoa(pos.Line) + " " + quote(pos.File) + "\n"
	w.Wrote(len(line), pos)
	w.b.WriteString(line)
	w.file, w.line = pos.File, pos.Line
}

// touching reports whether two tokens would be read differently if they were written without a
// space between them.
func touching(a, b token.Token) bool {
	text := a.Text + b.Text
	if a.Text == "/" && (b.Text[0] == '/' || b.Text[0] == '*') {
		return true
	}
	kind, n := scan(text)
	return n != len(a.Text) || kind != a.Kind
}
