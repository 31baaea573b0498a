package main

// The files that a call writes.

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"

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
	replace := func() (struct{}, error) {
		return struct{}{}, file.Replace(path, func(w io.Writer) error { return write(stoppable{ctx, w}) })
	}
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() { // a pipe that nobody reads would be waited for
		_, err := wait(ctx, replace)
		return err
	}
	_, err := replace()
	return err
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

// claim prepares to write files of a kind. It gives standard output to the one that names it ("-" does), if
// there is one: text then goes to standard error. A file in a missing directory, one that cannot be written,
// and one that the kind does not replace, is an error.
func (a *app) claim(what kind, paths ...string) error {
	for _, name := range paths {
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
			if err := what.mayReplace(name); err != nil {
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
