// Package token has the types that all packages of the front end share: tokens and their places,
// errors at a place, the features of the device, and the meter that ends work which takes too long.
package token

import "fmt"

// Pos is a place in the text that the user wrote: the file as it was named to
// Parse or in an #include, and the 1-based line and column (in bytes) of the
// character there. Tokens from the expansion of a macro have the place of the macro's use.
type Pos struct {
	File string
	Line int
	Col  int
}

// String returns "file:line:col", the form that editors can jump to.
func (p Pos) String() string { return fmt.Sprintf("%s:%d:%d", p.File, p.Line, p.Col) }

// MaxName is the largest length of a name in bytes. It is limited because a rendering may repeat a
// name often.
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

// Token is one preprocessed token. Text is exactly the text to emit.
type Token struct {
	Kind  Kind
	Text  string
	Pos   Pos
	Space bool // white space stood before it
	BOL   bool // it is the first of its line
}

// Precedence has the precedence of each binary operator, in programs and in #if. Nobody may change it.
var Precedence = map[string]int{
	"||": 1, "&&": 2, "|": 3, "^": 4, "&": 5, "==": 6, "!=": 6, "<": 7, ">": 7, "<=": 7, ">=": 7,
	"<<": 8, ">>": 8, "+": 9, "-": 9, "*": 10, "/": 10, "%": 10,
}
