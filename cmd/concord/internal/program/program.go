// Package program has the commands about kernels: the catalog, and programs in OpenCL C that are translated, compiled,
// judged by their use of a device, and run.
package program

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
	"strings"

	"github.com/spf13/cobra"

	"github.com/concord-compute/concord/cmd/concord/internal/app"
	"github.com/concord-compute/concord/cmd/concord/internal/files"
	"github.com/concord-compute/concord/source"
)

// programFlags are the flags of commands that read a program.
type programFlags struct {
	defines  []string
	includes []string
}

func (p *programFlags) add(cmd *cobra.Command) {
	cmd.Flags().StringArrayVarP(&p.defines, "define", "D", nil, "define a macro: `NAME`, NAME=VALUE or NAME(a)=VALUE "+
		"(repeat)")
	cmd.Flags().StringArrayVarP(&p.includes, "include", "I", nil, "`directory` that #include searches, after the file's "+
		"own (repeat)")
}

// macroHead is what -D defines: a name, or a macro with parameters, NAME(a, b).
var macroHead = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*(\([^()]*\))?$`)

// definitions parses -D. A name alone is defined as 1, as compilers do.
func (p *programFlags) definitions() ([]source.Define, error) {
	var list []source.Define
	for _, text := range p.defines {
		name, value, given := strings.Cut(text, "=")
		if !macroHead.MatchString(name) {
			return nil, app.Usagef("-D %s: %q is not a macro's name", text, name)
		}
		if !given {
			value = "1"
		}
		list = append(list, source.Define{Name: name, Value: value})
	}
	return list, nil
}

// nativeEndings are the endings of sources that are not portable. The prototypes of their kernels, or a
// portable text for other devices, are in a file of the same name that ends in .cl.
var nativeEndings = map[string]source.Target{".cu": source.CUDA, ".hip": source.HIP, ".metal": source.Metal}

// nativeTargets are the languages of backends that take a text that is not portable.
var nativeTargets = map[string]source.Target{"cuda": source.CUDA, "rocm": source.HIP, "metal": source.Metal}

// parse reads and parses a program for a device with those features.
func (p *programFlags) parse(ctx context.Context, file string, features *source.Features) (*source.Unit, error) {
	defines, err := p.definitions()
	if err != nil {
		return nil, err
	}
	text, err := files.Contents(ctx, file, files.MostProgram)
	if err != nil {
		return nil, err
	}
	var native map[source.Target]source.File
	if target, ok := nativeEndings[strings.ToLower(filepath.Ext(file))]; ok {
		native = map[source.Target]source.File{target: {Name: file, Text: string(text)}}
		file = strings.TrimSuffix(file, filepath.Ext(file)) + ".cl"
		if text, err = files.Contents(ctx, file, files.MostProgram); err != nil {
			return nil, fmt.Errorf("the prototypes of the kernels in a %s text (kernel void NAME(...);) are read from a file "+
				"beside it: %w", target, err)
		}
	}
	includes := []fs.FS{files.Directory(filepath.Dir(file))}
	for _, dir := range p.includes {
		info, err := os.Stat(dir)
		if err != nil {
			return nil, fmt.Errorf("-I %s: %w", dir, err)
		}
		if !info.IsDir() {
			return nil, fmt.Errorf("-I %s: not a directory", dir)
		}
		includes = append(includes, files.Directory(dir))
	}
	unit, err := source.ParseContext(ctx, string(text), source.Options{Name: file, Defines: defines, Includes: includes,
		Features: features, Native: native})
	if err != nil {
		return nil, p.nameDirectories(err, file)
	}
	if len(unit.Kernels()) == 0 {
		return nil, fmt.Errorf("%s: no kernel in this file: none of its functions is both marked kernel and defined", file)
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
