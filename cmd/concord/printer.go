package main

// Standard output, which may be full, closed, or a pipe whose reader has ended.

import (
	"context"
	"io"
	"os"

	"golang.org/x/term"
)

// printer is standard output for all commands. They do not check the errors of their many writes:
// the first error ends the work, and the command has failed. Later writes are dropped.
type printer struct {
	w   io.Writer
	err error
	end context.CancelFunc // ends the work
}

// Write writes, and never returns an error.
func (p *printer) Write(b []byte) (int, error) {
	if p.err == nil {
		if _, p.err = p.w.Write(b); p.err != nil && p.end != nil {
			p.end()
		}
	}
	return len(b), nil
}

// fileOf returns the file behind a writer, or nil if there is none.
func fileOf(w io.Writer) *os.File {
	if p, ok := w.(*printer); ok {
		w = p.w
	}
	f, _ := w.(*os.File)
	return f
}

// isTerminal reports whether w is a terminal.
func isTerminal(w io.Writer) bool {
	f := fileOf(w)
	return f != nil && term.IsTerminal(int(f.Fd()))
}
