package ui

// Standard output, which may be full, closed, or a pipe whose reader has ended.

import (
	"context"
	"io"
	"os"

	"golang.org/x/term"
)

// Printer is standard output for all commands. They do not check the errors of their many writes:
// the first error ends the work, and the command has failed. Later writes are dropped.
type Printer struct {
	W   io.Writer
	Err error
	End context.CancelFunc // ends the work
}

// Write writes, and never returns an error.
func (p *Printer) Write(b []byte) (int, error) {
	if p.Err == nil {
		if _, p.Err = p.W.Write(b); p.Err != nil && p.End != nil {
			p.End()
		}
	}
	return len(b), nil
}

// FileOf returns the file behind a writer, or nil if there is none.
func FileOf(w io.Writer) *os.File {
	if p, ok := w.(*Printer); ok {
		w = p.W
	}
	f, _ := w.(*os.File)
	return f
}

// IsTerminal reports whether w is a terminal.
func IsTerminal(w io.Writer) bool {
	f := FileOf(w)
	return f != nil && term.IsTerminal(int(f.Fd()))
}
