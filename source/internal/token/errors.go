// Errors of the front end: mistakes in a program's text with their places.

package token

import (
	"fmt"
	"strings"
)

// MaxErrors is the number of mistakes after which the front end gives up. People rarely read more,
// and later mistakes are often consequences of the first.
const MaxErrors = 20

// Error is one mistake in the text of a program.
type Error struct {
	Pos       Pos
	Construct string // the construct that is wrong: "#include", "macro MAX", "swizzle"; programs can compare it
	Msg       string // the message
}

// Error returns "file:line:col: message".
func (e *Error) Error() string { return e.Pos.String() + ": " + e.Msg }

// ErrorList is every mistake found in a program, in the order of discovery.
// It is never empty when returned as an error.
type ErrorList []*Error

// Error returns the mistakes one to a line, as compilers print them.
func (l ErrorList) Error() string {
	if len(l) == 0 {
		return "no errors"
	}
	lines := make([]string, len(l))
	for i, e := range l {
		lines[i] = e.Error()
	}
	return strings.Join(lines, "\n")
}

// Unwrap lets errors.As find the first *Error of the list.
func (l ErrorList) Unwrap() []error {
	errs := make([]error, len(l))
	for i, e := range l {
		errs[i] = e
	}
	return errs
}

// Add records a mistake and reports whether the list has room for more; on false the caller should
// stop. A mistake with the same place and text as an earlier one is dropped.
func (l *ErrorList) Add(pos Pos, construct, format string, args ...any) bool {
	if len(*l) >= MaxErrors {
		return false
	}
	e := &Error{Pos: pos, Construct: Clip(construct), Msg: Clip(fmt.Sprintf(format, args...))}
	if n := len(*l); n > 0 && *(*l)[n-1] == *e {
		return true
	}
	*l = append(*l, e)
	return len(*l) < MaxErrors
}

// Clip shortens a message that quotes too much of the program: a token may be megabytes long.
func Clip(s string) string {
	const most = 400
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "") + "..."
}

// Err returns the list as an error, or nil if it is empty.
func (l ErrorList) Err() error {
	if len(l) == 0 {
		return nil
	}
	return l
}
