package main

// From FILE, -D and -I to a parsed program.

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/concord-compute/concord/runtime"
	"github.com/concord-compute/concord/source"
)

// programFlags are the flags of commands that read a program.
type programFlags struct {
	defines  []string
	includes []string
}

func (p *programFlags) add(cmd *cobra.Command) {
	cmd.Flags().StringArrayVarP(&p.defines, "define", "D", nil, "define a macro: `NAME` or NAME=VALUE (repeat)")
	cmd.Flags().StringArrayVarP(&p.includes, "include", "I", nil, "`directory` that #include searches, after the file's own (repeat)")
}

var identifier = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// definitions parses -D. A name alone is defined as 1, as compilers do.
func (p *programFlags) definitions() ([]source.Define, error) {
	var list []source.Define
	for _, text := range p.defines {
		name, value, given := strings.Cut(text, "=")
		if !identifier.MatchString(name) {
			return nil, usagef("-D %s: %q is not a macro's name", text, name)
		}
		if !given {
			value = "1"
		}
		list = append(list, source.Define{Name: name, Value: value})
	}
	return list, nil
}

// nativeEndings are the endings of sources that are not portable.
var nativeEndings = []string{".cu", ".hip", ".metal"}

// parse reads and parses a program for a device with those features.
func (p *programFlags) parse(ctx context.Context, file string, features *source.Features) (*source.Unit, error) {
	defines, err := p.definitions()
	if err != nil {
		return nil, err
	}
	if ext := strings.ToLower(filepath.Ext(file)); slices.Contains(nativeEndings, ext) {
		return nil, fmt.Errorf("%s: native %s sources are not available in this version: %w", file, ext, runtime.ErrUnsupported)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	includes := []fs.FS{os.DirFS(filepath.Dir(file))}
	for _, dir := range p.includes {
		info, err := os.Stat(dir)
		if err != nil {
			return nil, fmt.Errorf("-I %s: %w", dir, err)
		}
		if !info.IsDir() {
			return nil, fmt.Errorf("-I %s: not a directory", dir)
		}
		includes = append(includes, os.DirFS(dir))
	}
	unit, err := source.ParseContext(ctx, string(text), source.Options{Name: file, Defines: defines, Includes: includes, Features: features})
	if err != nil {
		return nil, p.nameDirectories(err, file)
	}
	if len(unit.Kernels()) == 0 {
		return nil, fmt.Errorf("%s: no kernel in this file: none of its functions is marked kernel", file)
	}
	return unit, nil
}

// nameDirectories adds to an error the directories that were searched for an include.
func (p *programFlags) nameDirectories(err error, file string) error {
	list, ok := errors.AsType[source.ErrorList](err)
	if !ok {
		return err
	}
	dirs := []string{filepath.Dir(file)}
	for _, dir := range p.includes {
		if !slices.Contains(dirs, dir) {
			dirs = append(dirs, dir)
		}
	}
	where := "not found in " + strings.Join(dirs, ", ") + " (-I adds a directory)"
	for _, e := range list {
		e.Msg = strings.Replace(e.Msg, "not found in the given file systems", where, 1)
	}
	return err
}

// withoutPath is the cause of an error that would name a temporary file.
func withoutPath(err error) error {
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		return e.Err
	}
	if e, ok := errors.AsType[*os.LinkError](err); ok {
		return e.Err
	}
	return err
}

// checkDevice refuses an index that no device can have.
func checkDevice(name string) error {
	name = strings.ToLower(strings.TrimSpace(name))
	backend, index, found := strings.Cut(name, ":")
	if !found {
		if n, err := strconv.Atoi(name); err == nil && n < 0 {
			return usagef("device %s: a merged index counts from 0", name)
		}
		return nil
	}
	if _, err := strconv.ParseUint(index, 10, 31); err != nil && name != "cpu:reference" {
		return usagef("device %s: %q is not an index: write %s:0", name, index, backend)
	}
	return nil
}
