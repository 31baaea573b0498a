package program

import (
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/concord-compute/concord/cmd/concord/internal/app"
	"github.com/concord-compute/concord/cmd/concord/internal/apptest"
	"github.com/concord-compute/concord/kernels"
	"github.com/concord-compute/concord/runtime"
	"github.com/concord-compute/concord/runtime/parity"
	"github.com/concord-compute/concord/runtime/validate"
	"github.com/concord-compute/concord/source"
)

// plant registers the family planted, x[i] = i, whose implementation on cpu:0 stores another number where at is.
func plant(at int) {
	kernels.Register(kernels.Family{
		ID: "planted", Doc: "numbers", Kernels: []string{"planted"},
		Source: fstest.MapFS{"planted.cl": {Data: []byte("kernel void planted(global int *x) {\n" +
			"  size_t i = get_global_id(0);\n  x[i] = i;\n}\n")}},
		Reference: func(c *kernels.Call) error {
			for i := range c.I32(0) {
				c.I32(0)[i] = int32(i)
			}
			return nil
		},
		Bound: func(*kernels.Call) (func(int, [][]float64, []float64) []float64, bool) { return nil, true },
		Native: func(*source.Unit, string) kernels.Func {
			return func(c *kernels.Call) error {
				for i := range c.I32(0) {
					c.I32(0)[i] = int32(i)
				}
				c.I32(0)[at] = -1
				return nil
			}
		},
		Cases: func(*kernels.Family) []kernels.Case { return nil },
	})
}

// The file of a difference is repeated with the same verdict.
func TestRunRepeat(t *testing.T) {
	plant(7)
	s, err := runtime.New(runtime.Config{Validate: -1})
	require.NoError(t, err)
	defer s.Close()
	var found []validate.Difference
	v, err := validate.Start(s, validate.Options{Dir: t.TempDir(), Report: func(d validate.Difference) {
		found = append(found, d)
	}})
	require.NoError(t, err)
	d, err := s.Open(t.Context(), "cpu:0")
	require.NoError(t, err)
	defer d.Close()
	k, p, err := parity.Kernel(t.Context(), d, "planted", "planted", runtime.ProgramOptions{})
	require.NoError(t, err)
	defer p.Close()
	x, err := runtime.Alloc[int32](d, 32)
	require.NoError(t, err)
	defer x.Close()
	require.NoError(t, d.Stream().Launch(k, runtime.Items(32), x))
	require.NoError(t, v.Close())
	require.Len(t, found, 1)

	file := found[0].File
	status, stdout, stderr := apptest.Run("run", "--repeat", file)
	assert.Equal(t, app.ExitFailed, status, stderr)
	assert.Contains(t, stdout, "planted on cpu:0")
	assert.Contains(t, stdout, "the first element 7")
	status, stdout, stderr = apptest.Run("run", "--repeat", "--json", file)
	assert.Equal(t, app.ExitFailed, status, stderr)
	doc := apptest.Document(t, stdout)
	assert.Equal(t, "wrong", doc["verdict"])
	assert.EqualValues(t, 7, doc["first"])
	assert.EqualValues(t, -1, doc["got"])
	assert.Equal(t, "cpu:0 (go)", doc["found_on"])
	assert.Equal(t, "go", doc["implementation"])
	status, stdout, stderr = apptest.Run("run", "--repeat", "--device", "cpu:reference", file)
	assert.Equal(t, app.ExitOK, status, stderr)
	assert.Contains(t, stdout, "equal to the float64 reference")
	assert.Contains(t, stdout, "Wrong when the file was written, on cpu:0 (go). Now, on cpu:reference (reference):\n"+
		"planted on cpu:reference (reference) over 32")

	for _, args := range [][]string{{"--global", "1", file}, {"--device", "no such", file}, {"--timeout", "-1s", file},
		{}} {
		status, _, stderr = apptest.Run(append([]string{"run", "--repeat"}, args...)...)
		assert.Equal(t, app.ExitUsage, status, "%v: %s", args, stderr)
	}
	status, _, stderr = apptest.Run("run", "--repeat", apptest.TextFile(t, "x.zip", "text"))
	assert.Equal(t, app.ExitFailed, status)
	assert.Contains(t, stderr, "not a file of a launch")
	status, _, stderr = apptest.Run("run", apptest.TextFile(t, "x.cl", "kernel void k() {}"))
	assert.Equal(t, app.ExitUsage, status)
	assert.Contains(t, stderr, "--global is required")
}
