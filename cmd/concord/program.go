package main

// From FILE, -D and -I to a parsed program.

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
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

// nativeEndings are the sources that are not portable ones.
var nativeEndings = []string{".cu", ".hip", ".metal"}

// parse reads and parses a program for a device with those features.
func (p *programFlags) parse(file string, features *source.Features) (*source.Unit, error) {
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
	return source.Parse(string(text), source.Options{Name: file, Defines: defines, Includes: includes, Features: features})
}
