package spirv_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/concord-compute/concord/source"
)

// refused are the stress programs with what SPIR-V does not have, and the construct that the error names.
var refused = map[string]string{"gotoswitch": "a label of a switch", "strings": "printf"}

// run is one "// run:" line of a stress program with the "// want:" lines below it.
type run struct {
	kernel, global, local string
	args, want            []string
}

// readRuns reads the lines of a stress program that say what to run.
func readRuns(text string) (runs []run) {
	for _, line := range strings.Split(text, "\n") {
		if rest, ok := strings.CutPrefix(line, "// run: "); ok {
			r := run{local: "1"}
			for _, f := range strings.Fields(rest) {
				key, value, _ := strings.Cut(f, "=")
				switch key {
				case "kernel":
					r.kernel = value
				case "global":
					r.global = value
				case "local":
					r.local = value
				case "args":
					for _, part := range strings.Split(value, ",") {
						if strings.Contains(part, ":") || len(r.args) == 0 {
							r.args = append(r.args, part)
						} else {
							r.args[len(r.args)-1] += "," + part
						}
					}
				}
			}
			runs = append(runs, r)
		}
		if rest, ok := strings.CutPrefix(line, "// want: "); ok {
			r := &runs[len(runs)-1]
			r.want = append(r.want, strings.TrimSpace(rest))
		}
	}
	return runs
}

// eachStress calls do for every stress program that can be expressed, with its module.
func eachStress(t *testing.T, do func(t *testing.T, name, text string, m *source.Module)) {
	files, err := filepath.Glob("../../../internal/verify/stress/programs/*.cl")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".cl")
		t.Run(name, func(t *testing.T) {
			text, err := os.ReadFile(file)
			require.NoError(t, err)
			u, err := source.Parse(string(text), source.Options{Name: file, Features: &source.Portable})
			require.NoError(t, err)
			m, err := u.Module(context.Background())
			if construct := refused[name]; construct != "" {
				var list source.ErrorList
				require.True(t, errors.As(err, &list), "%v", err)
				assert.ErrorIs(t, err, source.ErrUnsupported)
				assert.Contains(t, list.Error(), construct)
				assert.Positive(t, list[0].Pos.Line)
				return
			}
			require.NoError(t, err)
			do(t, name, string(text), m)
		})
	}
}

// TestStress runs the stress programs on a Vulkan device and compares with what OpenCL devices print.
func TestStress(t *testing.T) {
	driver := vulkanDriver(t)
	eachStress(t, func(t *testing.T, name, text string, m *source.Module) {
		if !validate(t, name, m) {
			return
		}
		for _, r := range readRuns(text) {
			got, err := execute(t, driver, m, r.kernel, r.global, r.local, r.args...)
			require.NoError(t, err, "kernel %s", r.kernel)
			assert.Equal(t, r.want, got, "kernel %s", r.kernel)
		}
	})
}

// TestStressValid: spirv-val accepts the modules of all stress programs.
func TestStressValid(t *testing.T) {
	validator(t)
	eachStress(t, func(t *testing.T, name, _ string, m *source.Module) { validate(t, name, m) })
}
