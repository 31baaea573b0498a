package source

import "fmt"

// Pos is a place in the text that the user wrote: the file as it was named to
// Parse or in an #include, and the 1-based line and column (in bytes) of the
// character there. Tokens that come out of a macro carry the place of the
// macro's use, which is what a person can look at.
type Pos struct {
	File string
	Line int
	Col  int
}

// String returns "file:line:col", the form that editors can jump to.
func (p Pos) String() string { return fmt.Sprintf("%s:%d:%d", p.File, p.Line, p.Col) }

// maxName is how long a name may be, in bytes: a rendering may repeat it often.
const maxName = 4096

// tokenKind is the lexical class of a token.
type tokenKind uint8

const (
	tokEOF     tokenKind = iota
	tokIdent             // identifiers and keywords; the parser tells them apart
	tokInt               // integer literal, suffix included
	tokFloat             // floating literal, suffix included
	tokChar              // character literal, quotes included
	tokString            // string literal, quotes included
	tokPunct             // operator or punctuation, longest match
	tokPragma            // a whole "#pragma ..." line kept for the renderer
	tokNewline           // inside the preprocessor only
)

// token is one preprocessed token. Text is exactly what is to be emitted.
type token struct {
	kind  tokenKind
	text  string
	pos   Pos
	space bool // white space stood before it
	bol   bool // it is the first of its line
}
