package render_test

import (
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// floatStride is how far apart the floats are that TestFloatFunctions tries. MATH_FULL makes it 1.
const floatStride = "509"

// The mathematical functions of float are within OpenCL's limits, and their results do not depend on
// whether the compiler vectorized them.
func TestFloatFunctions(t *testing.T) {
	text, err := os.ReadFile("testdata/float_test.cc")
	require.NoError(t, err)
	stride := floatStride
	if os.Getenv("MATH_FULL") != "" {
		stride = "1"
	}
	eachCompiler(t, func(t *testing.T, cxx string) {
		bin, out, err := compilePrelude(t, cxx, string(text), "-O3", "-march=native", "-fno-math-errno", "-fno-trapping-math")
		require.NoError(t, err, "%s", head(out))
		out, err = exec.Command(bin).Output()
		require.NoError(t, err)
		names := make(chan string)
		var w sync.WaitGroup
		for range runtime.NumCPU() {
			w.Go(func() {
				for name := range names {
					out, err := exec.Command(bin, stride, name).CombinedOutput()
					assert.NoError(t, err, "%s", out)
					t.Logf("%s", out)
				}
			})
		}
		for name := range strings.FieldsSeq(string(out)) {
			names <- name
		}
		close(names)
		w.Wait()
	})
}
