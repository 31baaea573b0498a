package render_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	goruntime "runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/concord-compute/concord/source"
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
	relaxed := append([]string{"-DCC_RELAXED", "-fassociative-math", "-freciprocal-math", "-fno-signed-zeros",
		"-ffp-contract=fast"}, exact...)
	eachCompiler(t, func(t *testing.T, cxx string) {
		everyFunction(t, cxx, string(text), stride, exact)
		everyFunction(t, cxx, string(text), "40009", relaxed)
	})
}

// Loops that call the functions are vectorized: a kernel of each is one such loop.
func TestFloatFunctionsVectorize(t *testing.T) {
	if goruntime.GOARCH != "amd64" {
		t.Skip("the flags are for amd64")
	}
	one := strings.Fields("acos acosh acospi asin asinh asinpi atan atanh atanpi cbrt cos cosh erf erfc exp exp2 " +
		"exp10 expm1 " +
		"log log2 log10 log1p rsqrt sin sinh sqrt tan tanh native_exp half_sin")
	two := strings.Fields("atan2 atan2pi hypot pow powr")
	var text strings.Builder
	for _, f := range append(one, two...) {
		args := "a[i]"
		if slices.Contains(two, f) {
			args = "a[i], b[i]"
		}
		fmt.Fprintf(&text, "kernel void k_%s(global const float *a, global const float *b, global float *out, uint n) {\n"+
			"  size_t i = get_global_id(0);\n  if (i < n)\n    out[i] = %s(%s);\n}\n", f, f, args)
	}
	u, err := source.Parse(text.String(), source.Options{Name: "functions.cl"})
	require.NoError(t, err)
	rendered, err := u.Render(source.Host)
	require.NoError(t, err)
	src := filepath.Join(t.TempDir(), "functions.cc")
	require.NoError(t, os.WriteFile(src, []byte(rendered), 0o644))
	eachCompiler(t, func(t *testing.T, cxx string) {
		report, says := "-fopt-info-vec", "loop vectorized using 32 byte vectors"
		if strings.Contains(cxx, "clang") {
			report, says = "-Rpass=loop-vectorize", "vectorized loop ("
		}
		for _, arch := range []string{"haswell", "skylake-avx512"} {
			flags := append(slices.Clone(kernelFlags), "-O3", "-march="+arch, "-mprefer-vector-width=256", "-fno-math-errno",
				"-fno-trapping-math",
				"-fPIC", "-S", "-o", os.DevNull, report, src)
			if !strings.Contains(cxx, "clang") {
				flags = append(flags, "-fno-ipa-icf") // native_exp is exp: each has a loop of its own
			}
			out, err := exec.Command(cxx, flags...).CombinedOutput()
			require.NoError(t, err, "%s", head(out))
			assert.GreaterOrEqual(t, strings.Count(string(out), says), len(one)+len(two), arch)
		}
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
