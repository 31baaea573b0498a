package main

// Standard output, which may be full, closed, or a pipe whose reader has ended.

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"
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

// settle returns the exit status of a command that ended with status, and prints an error if the
// output changes that status. Nothing is printed for a pipe whose reader has ended: other programs
// also die of SIGPIPE without a message.
func (a *app) settle(status int) int {
	err := a.output.err
	switch {
	case err == nil || status != exitOK && errors.Is(err, syscall.EPIPE):
		return status
	case errors.Is(err, syscall.EPIPE):
		return exitPipe
	}
	fmt.Fprintf(a.stderr, "%s standard output: %v\n", a.paintErr(red, "concord:"), withoutPath(err))
	if status == exitOK {
		return exitFailed
	}
	return status
}

// fileOf returns the file behind a writer, or nil if there is none.
func fileOf(w io.Writer) *os.File {
	if p, ok := w.(*printer); ok {
		w = p.w
	}
	f, _ := w.(*os.File)
	return f
}
