package render_test

import (
	"os"
	"os/exec"
	goruntime "runtime"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// floatStride is how far apart the floats are that TestFloatFunctions tries. MATH_FULL makes it 1.
const floatStride = "509"

// The mathematical functions of float are within OpenCL's limits, and their results do not depend on
// whether the compiler vectorized them. With the options that let it rearrange operations they are
// still within the limits.
func TestFloatFunctions(t *testing.T) {
	text, err := os.ReadFile("testdata/float_test.cc")
	require.NoError(t, err)
	stride := floatStride
	if os.Getenv("MATH_FULL") != "" {
		stride = "1"
	}
	exact := []string{"-O3", "-march=native", "-fno-math-errno", "-fno-trapping-math"}
	relaxed := append([]string{"-DCC_RELAXED", "-fassociative-math", "-freciprocal-math", "-fno-signed-zeros", "-ffp-contract=fast"}, exact...)
	eachCompiler(t, func(t *testing.T, cxx string) {
		everyFunction(t, cxx, string(text), stride, exact)
		everyFunction(t, cxx, string(text), "40009", relaxed)
	})
}

// everyFunction tries all functions, as many at once as there are processors.
func everyFunction(t *testing.T, cxx, text, stride string, flags []string) {
	bin, out, err := compilePrelude(t, cxx, text, flags...)
	require.NoError(t, err, "%s", head(out))
	out, err = exec.Command(bin).Output()
	require.NoError(t, err)
	names := make(chan string)
	var w sync.WaitGroup
	for range goruntime.NumCPU() {
		w.Go(func() {
			for name := range names {
				out, err := exec.Command(bin, stride, name).CombinedOutput()
				assert.NoError(t, err, "%s %s", flags, out)
				t.Logf("%s", out)
			}
		})
	}
	for name := range strings.FieldsSeq(string(out)) {
		names <- name
	}
	close(names)
	w.Wait()
}
