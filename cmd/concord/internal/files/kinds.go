package files

// What is in files that commands write.

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/concord-compute/concord/ann"
	"github.com/concord-compute/concord/internal/file"
	"github.com/concord-compute/concord/internal/safetensors"
	"github.com/concord-compute/concord/nn"
	"github.com/concord-compute/concord/runtime"
)

// stdoutNames are the names of standard output.
var stdoutNames = []string{"/dev/stdout", "/dev/fd/1", "/proc/self/fd/1", "/proc/thread-self/fd/1"}

// IsStdout reports whether a path is a name of standard output, or a link to one. Links are
// followed one by one, since the last one leads to the present file of descriptor 1.
func IsStdout(path string) bool {
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

// SameFile reports whether two paths name one regular file, which could not be replaced twice.
// Several results may go to a device or a pipe.
func SameFile(a, b string) bool {
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

// Kind is what a command writes to a file. A regular file that has something else is not replaced: most likely
// another name was meant.
type Kind struct {
	name string
	is   func(path string) (bool, error)
}

// The kinds of files.
var (
	Array    = begins("array of NumPy", "\x93NUMPY")
	GGUF     = begins("file of GGUF", "GGUF")
	Page     = begins("page", "<!DOCTYPE html>")
	Picture  = begins("picture", "\x89PNG", "<?xml", "<svg")
	Bundle   = begins("bundle of kernels", "CNCRDbnd")
	Document = begins("document of JSON", "{")
	Index    = Kind{"index of vectors", func(path string) (bool, error) {
		_, err := ann.LoadInfo(path)
		return !errors.Is(err, runtime.ErrFormat), nil // a damaged one can be made again
	}}
	Safetensors = Kind{"file of safetensors", func(path string) (bool, error) {
		f, err := safetensors.Open(path)
		switch {
		case err == nil:
			return true, f.Close()
		case errors.Is(err, runtime.ErrFormat):
			return false, nil
		case errors.Is(err, runtime.ErrCorrupt): // which may be made again
			return true, nil
		}
		return false, err
	}}
	Checkpoint = Kind{"checkpoint of train", func(path string) (bool, error) {
		_, err := nn.LoadHistory(path)
		return !errors.Is(err, runtime.ErrFormat) && !errors.Is(err, nn.ErrData), nil
	}}
)

// begins returns the kind of files that begin with one of some texts.
func begins(name string, texts ...string) Kind {
	return Kind{name, func(path string) (bool, error) {
		f, err := os.Open(path)
		if err != nil {
			return false, err
		}
		defer f.Close()
		start := make([]byte, 16)
		n, err := io.ReadFull(f, start)
		if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) {
			return false, err
		}
		return slices.ContainsFunc(texts, func(text string) bool { return strings.HasPrefix(string(start[:n]), text) }), nil
	}}
}

// MayReplace returns an error that matches fs.ErrExist if a path names a regular file that is neither empty nor
// of the kind.
func (k Kind) MayReplace(path string) error {
	info, err := os.Stat(path)
	if err != nil || !info.Mode().IsRegular() || info.Size() == 0 {
		return nil // what cannot be written is found then
	}
	if is, err := k.is(path); is || err != nil {
		return err
	}
	return fmt.Errorf("%s is no %s, so that it is not replaced: %w", path, k.name, fs.ErrExist)
}
