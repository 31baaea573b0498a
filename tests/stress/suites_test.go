package stress

// A count of how many kernels of real programs, in directories of files by other people, a device
// compiles.

import (
	"context"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	goruntime "runtime"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/concord-compute/concord/runtime"
	"github.com/concord-compute/concord/runtime/driver"
	"github.com/concord-compute/concord/source"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"
)

// suitesVariable names a directory with OpenCL C files at any depth, and suitesDevice
// the device that has to compile them.
const suitesVariable, suitesDevice = "CONCORD_SUITES", "CONCORD_SUITES_DEVICE"

var (
	comments = regexp.MustCompile(`(?s)/\*.*?\*/|//[^\n]*`)
	missing  = regexp.MustCompile(`\bimage[123]d|\bsampler_t\b|\bdouble\d*\b|cl_khr_fp64`) // images, double
	defined  = regexp.MustCompile(`-D\s*(\w+)(?:=(\S+))?`)
)

// TestSuites compiles every file that clang accepts as OpenCL C 1.2 without other files and that
// has neither images nor double. At least 85 % of them have to compile. Since clang decides which
// files are valid, files that the front end refuses count as failures.
func TestSuites(t *testing.T) {
	dir, id := os.Getenv(suitesVariable), os.Getenv(suitesDevice)
	if dir == "" || id == "" {
		t.Skip("slow: " + suitesVariable + " or " + suitesDevice + " is not set")
	}
	clang := os.Getenv("CLANG")
	if clang == "" {
		clang = "clang"
	}
	d, err := runtime.Open(t.Context(), id)
	require.NoError(t, err)
	defer d.Close()
	compiler, is := d.Driver().(driver.Compiler)
	require.True(t, is, "%s compiles nothing", d.Info().ID)

	var all, other, invalid, tried, parsed, built atomic.Int64
	var g errgroup.Group
	g.SetLimit(goruntime.NumCPU())
	require.NoError(t, filepath.WalkDir(dir, func(file string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || filepath.Ext(file) != ".cl" {
			return err
		}
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		g.Go(func() error {
			all.Add(1)
			short, _ := filepath.Rel(dir, file)
			defines := definitions(string(text))
			switch {
			case missing.Match(comments.ReplaceAll(text, nil)):
				other.Add(1)
				return nil
			case !valid(t.Context(), clang, file, defines):
				invalid.Add(1)
				return nil
			}
			tried.Add(1)
			unit, err := source.Parse(string(text), source.Options{Name: short, Features: d.Features(), Defines: defines,
				Includes: []fs.FS{os.DirFS(filepath.Dir(file))}})
			if err != nil {
				t.Logf("front end: %s: %.300v", short, err)
				return nil
			}
			parsed.Add(1)
			if _, err = compiler.Compile(t.Context(), unit, nil); err != nil {
				t.Logf("%s: %s: %.300v", id, short, err)
				return nil
			}
			built.Add(1)
			return nil
		})
		return nil
	}))
	require.NoError(t, g.Wait())
	rate := float64(built.Load()) / float64(tried.Load())
	t.Logf("%d files: %d with images or double, %d that clang refuses; of the %d others the front end takes %d and %s "+
		"compiles %d: %.1f %%",
		all.Load(), other.Load(), invalid.Load(), tried.Load(), parsed.Load(), id, built.Load(), 100*rate)
	assert.GreaterOrEqual(t, rate, 0.85)
}

// definitions returns the definitions that a file of piglit requests in its heading.
func definitions(text string) (list []source.Define) {
	for line := range strings.Lines(text) {
		if options, is := strings.CutPrefix(line, "build_options:"); is {
			for _, m := range defined.FindAllStringSubmatch(options, -1) {
				list = append(list, source.Define{Name: m[1], Value: m[2]})
			}
		}
	}
	return list
}

// valid reports whether clang accepts a file as OpenCL C 1.2.
func valid(ctx context.Context, clang, file string, defines []source.Define) bool {
	args := []string{"-x", "cl", "-cl-std=CL1.2", "-Xclang", "-finclude-default-header", "-fsyntax-only", "-w", "-I",
		filepath.Dir(file)}
	for _, d := range defines {
		args = append(args, "-D"+d.Name+"="+d.Value)
	}
	return exec.CommandContext(ctx, clang, append(args, file)...).Run() == nil
}
