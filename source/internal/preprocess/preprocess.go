// Package preprocess turns the text of a program into the tokens that the parser reads. All macros
// and includes are expanded, and each token has its position in the text that the user wrote.
//
// Expansion follows C99 and, where C99 leaves a choice, GNU cpp, whose algorithm it uses: a stack
// of replacement lists, macros that are off while their list is on the stack, and padding that
// records white space (see expand.go). The tests compare the two. It deliberately differs from cpp
// in the following:
//
//   - nothing of the machine gets in: includes come from Options.Includes only,
//     and __DATE__ and __TIME__ do not exist;
//   - the predefined macros are OpenCL C's, as the target device defines them;
//   - #pragma unroll has its macros expanded, as the OpenCL compilers do, for
//     the macro is gone by the time the target's compiler reads the pragma;
//   - true is 1 in #if, as clang has it for OpenCL C.
package preprocess

import (
	"fmt"
	"io/fs"
	"strings"

	"github.com/concord-compute/concord/source/internal/token"
)

// Limits on time and memory for any input, far above those of real programs. They are needed
// because a few lines of macros can expand to exponentially many tokens.
const (
	maxIncludeDepth = 64
	maxIncludes     = 10000    // files entered, repeats included
	maxFileBytes    = 16 << 20 // one text
	maxBytes        = 64 << 20 // of text read, and the same again of text produced
	maxTokens       = 1 << 20  // of the result
	maxSteps        = 2 << 20  // tokens read or substituted in all
	maxNesting      = 1000     // calls inside arguments, parentheses in #if
)

// Result is a preprocessed program.
type Result struct {
	Tokens   []token.Token  // ends with EOF
	Files    []File         // what was included, in order of first use
	warnings []*token.Error // redefinitions, #warning and other mistakes that are not errors
}

// Options are the inputs of preprocessing besides the text.
type Options struct {
	Name     string // name of the text in positions
	Defines  []Define
	Includes []fs.FS // some may be nil
	Features token.Features
}

// Expand preprocesses a text. The error, if any, is an ErrorList. If the meter ends the work,
// Expand panics, and the caller's deferred token.Settle turns the panic into an error.
func Expand(m *token.Meter, text string, opt Options) (*Result, error) {
	p := &preprocessor{
		Meter:    m,
		includes: opt.Includes,
		macros:   map[string]*macro{},
		read:     map[fileKey]*File{},
		once:     map[fileKey]bool{},
	}
	p.predefine(opt.Features)
	p.defines(opt.Defines)
	if len(text) > maxFileBytes {
		p.errorf(token.Pos{File: opt.Name, Line: 1, Col: 1}, "program", "program is larger than %d bytes", maxFileBytes)
	} else {
		p.enterFile(opt.Name, text, fileKey{fsys: mainFile, path: opt.Name})
		p.run()
	}
	if err := p.errs.Err(); err != nil {
		return nil, err
	}
	return &Result{Tokens: p.out, Files: p.files, warnings: p.warnings}, nil
}

// preprocessor is the state of one run.
type preprocessor struct {
	*token.Meter
	includes []fs.FS
	inputs   []*input // the text being read, and the ones that included it
	entered  int
	read     map[fileKey]*File
	once     map[fileKey]bool
	files    []File

	macros      map[string]*macro
	lists       []list   // replacement lists being read, innermost last
	peeked      *ppToken // a token that was put back
	noExpand    int      // above zero, names are not looked up
	parsingArgs int      // 1: looking for the "(" of a call; 2: inside its arguments
	nesting     int      // arguments being expanded inside each other
	counter     int      // __COUNTER__

	out       []token.Token
	outBytes  int
	readBytes int
	charged   int
	stopped   bool // a limit was hit, or there are enough errors
	errs      token.ErrorList
	warnings  token.ErrorList
}

// errorf records a mistake.
func (p *preprocessor) errorf(pos token.Pos, construct, format string, args ...any) {
	if !p.errs.Add(pos, construct, format, args...) {
		p.stopped = true
	}
}

// warnf records a warning; warnings beyond MaxErrors are dropped.
func (p *preprocessor) warnf(pos token.Pos, construct, format string, args ...any) {
	p.warnings.Add(pos, construct, format, args...)
}

// charge counts work done for the token at pos. Every loop over tokens calls it and ends when
// p.stopped is set.
func (p *preprocessor) charge(pos token.Pos, steps, bytes int) {
	p.Step()
	p.charged += steps
	p.outBytes += bytes
	if p.charged > maxSteps || p.outBytes > maxBytes {
		p.limit(pos, "program expands to too much text (%d steps and %d bytes are allowed)", maxSteps, maxBytes)
	}
}

// limit ends the run with an error.
func (p *preprocessor) limit(pos token.Pos, format string, args ...any) {
	if !p.stopped {
		p.errorf(pos, "limit", format, args...)
	}
	p.stopped = true
}

// run expands the whole text into p.out.
func (p *preprocessor) run() {
	var space spacing
	for {
		t := p.get()
		if t.Kind == tokPadding {
			space.add(t)
			continue
		}
		t.Space = space.take(t)
		if t.Kind == token.Ident && t.Text == "_Pragma" {
			p.pragmaOperator(t)
			continue
		}
		p.emit(t.Token)
		if t.Kind == token.EOF {
			return
		}
	}
}

// emit appends a token to the result. It refuses tokens that are valid during preprocessing but not
// in a program.
func (p *preprocessor) emit(t token.Token) {
	switch t.Kind {
	case token.Punct:
		t.Text = digraph(t.Text)
	case token.Int, token.Float:
		if !validNumber(t.Kind, t.Text) {
			p.errorf(t.Pos, "number", "%s is not a number", t.Text)
		}
	case token.String, token.Char:
		if t.Text[0] == 'L' {
			p.errorf(t.Pos, "wide literal", "wide literal %s: OpenCL C has none", t.Text)
		} else if t.Text == "''" {
			p.errorf(t.Pos, "character constant", "empty character constant")
		}
	case tokOther:
		p.stray(t)
	}
	t.BOL = true
	if n := len(p.out); n > 0 {
		last := p.out[n-1]
		t.BOL = last.Pos.Line != t.Pos.Line || last.Pos.File != t.Pos.File || last.Kind == token.Pragma
	}
	p.charge(t.Pos, 0, len(t.Text))
	if len(p.out) >= maxTokens {
		p.limit(t.Pos, "program expands to more than %d tokens", maxTokens)
	} else {
		p.out = append(p.out, t)
	}
}

// stray reports a character that begins no token.
func (p *preprocessor) stray(t token.Token) {
	switch t.Text[0] {
	case '"':
		p.errorf(t.Pos, "string", `string is not closed: missing "`)
	case '\'':
		p.errorf(t.Pos, "character constant", "character constant is not closed: missing '")
	default:
		p.errorf(t.Pos, "character", "stray character %+q", t.Text)
	}
}

// spell returns the text of tokens of one line, with one space for any white space between them.
func spell(toks []token.Token) string {
	var b strings.Builder
	for i, t := range toks {
		if t.Space && i > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(t.Text)
	}
	return b.String()
}

// kindOf describes a token for messages.
func kindOf(t token.Token) string {
	switch t.Kind {
	case token.EOF, token.Newline:
		return "the end of the line"
	case token.String:
		return "a string"
	}
	return fmt.Sprintf("%q", t.Text)
}
