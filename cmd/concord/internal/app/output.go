package app

// The files that a call writes.

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/concord-compute/concord/cmd/concord/internal/files"
	"github.com/concord-compute/concord/cmd/concord/internal/ui"
	"github.com/concord-compute/concord/internal/file"
)

// Save replaces the contents of a file by the output of write, as file.Replace does; once ctx is
// done the file stays unchanged. A path that names standard output means that of the command, if it
// was claimed: the descriptor itself then belongs to standard error, since vendors' libraries write
// to it.
func (a *App) Save(ctx context.Context, path string, write func(io.Writer) error) error {
	if files.IsStdout(path) {
		return write(stoppable{ctx, a.Output})
	}
	replace := func() (struct{}, error) {
		return struct{}{}, file.Replace(path, func(w io.Writer) error { return write(stoppable{ctx, w}) })
	}
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() { // a pipe that nobody reads would be waited for
		_, err := files.Wait(ctx, replace)
		return err
	}
	_, err := replace()
	return err
}

// getsOutput reports whether a path names the regular file that standard output goes to.
func (a *App) getsOutput(path string) bool {
	out := ui.FileOf(a.Output)
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

// Claim prepares to write files of a kind. It gives standard output to the one that names it ("-" does), if
// there is one: text then goes to standard error. A file in a missing directory, one that cannot be written,
// and one that the kind does not replace, is an error.
func (a *App) Claim(what files.Kind, paths ...string) error {
	for _, name := range paths {
		switch {
		case !files.IsStdout(name) && a.getsOutput(name):
			return Usagef("%s: standard output goes to this file, too", name)
		case !files.IsStdout(name):
			if name == "" {
				continue
			}
			// The error should come before the work, not after it.
			if _, err := os.Stat(filepath.Dir(name)); err != nil {
				return fmt.Errorf("%s: %w", name, files.WithoutPath(err))
			}
			if err := what.MayReplace(name); err != nil {
				return err
			}
			if info, err := os.Stat(name); err == nil && !info.Mode().IsRegular() {
				continue // it is written to directly
			}
			out, err := file.Create(name)
			if err != nil {
				return err
			}
			if err := out.Close(); err != nil {
				return err
			}
		case a.JSON:
			return Usagef("%s: with --json standard output is for the document", name)
		case a.Stdout != a.Output:
			return Usagef("%s: standard output takes one file", name)
		default:
			a.Stdout = &ui.Printer{W: a.Stderr}
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
