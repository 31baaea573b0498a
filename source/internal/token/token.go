// Package token has what every room of the front end works with: tokens and their places, the
// mistakes that are found there, what the device can do, and the meter that ends work which
// takes too long.
package token

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

// MaxName is how long a name may be, in bytes: a rendering may repeat it often.
const MaxName = 4096

// Kind is the lexical class of a token.
type Kind uint8

// The kinds of tokens.
const (
	EOF     Kind = iota
	Ident        // identifiers and keywords; the parser tells them apart
	Int          // integer literal, suffix included
	Float        // floating literal, suffix included
	Char         // character literal, quotes included
	String       // string literal, quotes included
	Punct        // operator or punctuation, longest match
	Pragma       // a whole "#pragma ..." line kept for the renderer
	Newline      // inside the preprocessor only
)

// Token is one preprocessed token. Text is exactly what is to be emitted.
type Token struct {
	Kind  Kind
	Text  string
	Pos   Pos
	Space bool // white space stood before it
	BOL   bool // it is the first of its line
}
