package main

// The files that commands write.

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"github.com/concord-compute/concord/internal/file"
)

// save replaces the contents of a file by the output of write, as file.Replace does; once ctx is
// done the file stays unchanged. A path that names standard output means that of the command, if it
// was claimed: the descriptor itself then belongs to standard error, since vendors' libraries write
// to it.
func (a *app) save(ctx context.Context, path string, write func(io.Writer) error) error {
	if isStdout(path) {
		return write(stoppable{ctx, a.output})
	}
	return file.Replace(path, func(w io.Writer) error { return write(stoppable{ctx, w}) })
}

// stdoutNames are the names of standard output.
var stdoutNames = []string{"/dev/stdout", "/dev/fd/1", "/proc/self/fd/1", "/proc/thread-self/fd/1"}

// isStdout reports whether a path is a name of standard output, or a link to one. Links are
// followed one by one, since the last one leads to the present file of descriptor 1.
func isStdout(path string) bool {
	if path == "-" {
		return true
	}
	for range 40 {
		if slices.Contains(stdoutNames, filepath.ToSlash(filepath.Clean(path))) {
			return true
		}
		target, err := os.Readlink(path)
		if err != nil {
			return false
		}
		if !filepath.IsAbs(target) {
			target = filepath.Join(filepath.Dir(path), target)
		}
		path = target
	}
	return false
}

// getsOutput reports whether a path names the regular file that standard output goes to.
func (a *app) getsOutput(path string) bool {
	out := fileOf(a.output)
	if out == nil {
		return false
	}
	to, err := out.Stat()
	if err != nil || !to.Mode().IsRegular() {
		return false
	}
	info, err := os.Stat(path)
	return err == nil && os.SameFile(info, to)
}

// sameFile reports whether two paths name one regular file, which could not be replaced twice.
// Several results may go to a device or a pipe.
func sameFile(a, b string) bool {
	for _, path := range []string{a, b} {
		if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() {
			return false
		}
	}
	x, err := file.Target(a)
	if err != nil {
		return false // it cannot be written, which is reported later
	}
	y, err := file.Target(b)
	return err == nil && x == y
}

// claim gives standard output to the file that names it ("-" does), if there is one: text then goes
// to standard error. A file in a missing directory is an error.
func (a *app) claim(files ...string) error {
	for _, name := range files {
		switch {
		case !isStdout(name) && a.getsOutput(name):
			return usagef("%s: standard output goes to this file, too", name)
		case !isStdout(name):
			if name == "" {
				continue
			}
			// The error should come before the work, not after it.
			if _, err := os.Stat(filepath.Dir(name)); err != nil {
				return fmt.Errorf("%s: %w", name, withoutPath(err))
			}
		case a.json:
			return usagef("%s: with --json standard output is for the document", name)
		case a.stdout != a.output:
			return usagef("%s: standard output takes one file", name)
		default:
			a.stdout = &printer{w: a.stderr}
		}
	}
	return nil
}

// stoppable is a writer whose errors begin when ctx is done.
type stoppable struct {
	ctx context.Context
	w   io.Writer
}

// stoppablePiece is the number of bytes written between two checks of the context.
const stoppablePiece = 16 << 20

// Write implements io.Writer.
func (s stoppable) Write(b []byte) (n int, err error) {
	for {
		if err := s.ctx.Err(); err != nil {
			return n, err
		}
		m, err := s.w.Write(b[n:min(len(b), n+stoppablePiece)])
		if n += m; err != nil || n == len(b) {
			return n, err
		}
	}
}
