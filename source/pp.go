// The preprocessor: it turns the text of a program into the tokens that the
// parser reads, with every macro expanded and every include taken in, and keeps
// the place of each in the text that the user wrote.
//
// Expansion follows C99 and, where C99 leaves a choice, GNU cpp, whose algorithm
// it uses: a stack of replacement lists, a macro that is off while its list is
// on the stack, and padding that remembers white space (see ppexpand.go). The
// tests compare the two. It differs from cpp on purpose in these:
//
//   - nothing of the machine gets in: includes come from Options.Includes only,
//     and __DATE__ and __TIME__ do not exist;
//   - the predefined macros are OpenCL C's, as the target device defines them;
//   - #pragma unroll has its macros expanded, as the OpenCL compilers do, for
//     the macro is gone by the time the target's compiler reads the pragma;
//   - true is 1 in #if, as clang has it for OpenCL C.

package source

import (
	"fmt"
	"io/fs"
	"strings"
)

// Limits that no sensible program comes near. They bound time and memory on any
// input: a few lines of macros can ask for more tokens than there are atoms.
const (
	maxIncludeDepth = 64
	maxIncludes     = 10000    // files entered, repeats included
	maxFileBytes    = 16 << 20 // one text
	maxBytes        = 64 << 20 // of text read, and again of text produced
	maxTokens       = 1 << 20  // of the result
	maxSteps        = 2 << 20  // tokens read or substituted on the way
	maxNesting      = 1000     // calls inside arguments, parentheses in #if
)

// ppResult is a preprocessed program.
type ppResult struct {
	tokens   []token  // ends with tokEOF
	files    []File   // what was included, in order of first use
	warnings []*Error // redefinitions, #warning and other things that are no errors
}

// ppOptions are what a preprocessed program depends on besides its text.
type ppOptions struct {
	Name     string // of the text in positions
	Defines  []Define
	Includes []fs.FS // some may be nil
	Features Features
}

// preprocess expands text. The error, if any, is an ErrorList.
func preprocess(m *meter, text string, opt ppOptions) (*ppResult, error) {
	p := &preprocessor{
		meter:    m,
		includes: opt.Includes,
		macros:   map[string]*macro{},
		read:     map[fileKey]*File{},
		once:     map[fileKey]bool{},
	}
	p.predefine(opt.Features)
	p.defines(opt.Defines)
	if len(text) > maxFileBytes {
		p.errorf(Pos{opt.Name, 1, 1}, "program", "program is larger than %d bytes", maxFileBytes)
	} else {
		p.enterFile(opt.Name, text, fileKey{fsys: mainFile, path: opt.Name})
		p.run()
	}
	if err := p.errs.err(); err != nil {
		return nil, err
	}
	return &ppResult{tokens: p.out, files: p.files, warnings: p.warnings}, nil
}

// preprocessor is the state of one run.
type preprocessor struct {
	*meter
	includes []fs.FS
	inputs   []*input // the text being read, and the ones that included it
	entered  int
	read     map[fileKey]*File
	once     map[fileKey]bool
	files    []File

	macros      map[string]*macro
	lists       []list   // replacement lists being read, innermost last
	peeked      *ppToken // put back into the text
	noExpand    int      // above zero, names are not looked up
	parsingArgs int      // 1: looking for the "(" of a call; 2: inside its arguments
	nesting     int      // arguments being expanded inside each other
	counter     int      // __COUNTER__

	out       []token
	outBytes  int
	readBytes int
	charged   int
	stopped   bool // a limit was hit, or there are enough errors
	errs      ErrorList
	warnings  ErrorList
}

// errorf records a mistake.
func (p *preprocessor) errorf(pos Pos, construct, format string, args ...any) {
	if !p.errs.add(pos, construct, format, args...) {
		p.stopped = true
	}
}

// warnf records what compilers warn of; beyond maxErrors it is dropped.
func (p *preprocessor) warnf(pos Pos, construct, format string, args ...any) {
	p.warnings.add(pos, construct, format, args...)
}

// charge counts work done for the token at pos. Everything that loops over
// tokens calls it, and everything that loops ends once p.stopped.
func (p *preprocessor) charge(pos Pos, steps, bytes int) {
	p.step()
	p.charged += steps
	p.outBytes += bytes
	if p.charged > maxSteps || p.outBytes > maxBytes {
		p.limit(pos, "program expands to too much text (%d steps and %d bytes are allowed)", maxSteps, maxBytes)
	}
}

// limit ends the run with an error.
func (p *preprocessor) limit(pos Pos, format string, args ...any) {
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
		if t.kind == tokPadding {
			space.add(t)
			continue
		}
		t.space = space.take(t)
		if t.kind == tokIdent && t.text == "_Pragma" {
			p.pragmaOperator(t)
			continue
		}
		p.emit(t.token)
		if t.kind == tokEOF {
			return
		}
	}
}

// emit appends a token to the result. What the phases before may carry around
// but no program may contain is refused here.
func (p *preprocessor) emit(t token) {
	switch t.kind {
	case tokPunct:
		t.text = digraph(t.text)
	case tokInt, tokFloat:
		if !validNumber(t.kind, t.text) {
			p.errorf(t.pos, "number", "%s is not a number", t.text)
		}
	case tokString, tokChar:
		if t.text[0] == 'L' {
			p.errorf(t.pos, "wide literal", "wide literal %s: OpenCL C has none", t.text)
		} else if t.text == "''" {
			p.errorf(t.pos, "character constant", "empty character constant")
		}
	case tokOther:
		p.stray(t)
	}
	t.bol = true
	if n := len(p.out); n > 0 {
		last := p.out[n-1]
		t.bol = last.pos.Line != t.pos.Line || last.pos.File != t.pos.File || last.kind == tokPragma
	}
	p.charge(t.pos, 0, len(t.text))
	if len(p.out) >= maxTokens {
		p.limit(t.pos, "program expands to more than %d tokens", maxTokens)
	} else {
		p.out = append(p.out, t)
	}
}

// stray reports a character that begins no token.
func (p *preprocessor) stray(t token) {
	switch t.text[0] {
	case '"':
		p.errorf(t.pos, "string", `string is not closed: missing "`)
	case '\'':
		p.errorf(t.pos, "character constant", "character constant is not closed: missing '")
	default:
		p.errorf(t.pos, "character", "stray character %+q", t.text)
	}
}

// spell writes tokens of one line as they stood, with one space for any white
// space between them.
func spell(toks []token) string {
	var b strings.Builder
	for i, t := range toks {
		if t.space && i > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(t.text)
	}
	return b.String()
}

// kindOf names what a token is, for messages.
func kindOf(t token) string {
	switch t.kind {
	case tokEOF, tokNewline:
		return "the end of the line"
	case tokString:
		return "a string"
	}
	return fmt.Sprintf("%q", t.text)
}
