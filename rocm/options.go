package rocm

// The options of hipRTC, which is clang.

import (
	"regexp"
	"slices"

	"github.com/concord-compute/concord/internal/cgo"
)

// fixed lists the options of every build. Kernels rely on two's complement and on pointers of any
// type. Each operation has to round once, so that a kernel computes the same results as on other
// devices. Division and square root are rounded correctly by default.
var fixed = []string{"-std=c++17", "-O3", "-ffp-contract=off", "-fwrapv", "-fno-strict-aliasing"}

// flags returns the fixed options for a target.
func flags(target string) []string { return append([]string{"--offload-arch=" + target}, fixed...) }

// relaxed lists the parts of -ffast-math that do not change the floating-point mode of the device.
var relaxed = []string{"-fassociative-math", "-freciprocal-math", "-fno-signed-zeros", "-fno-trapping-math",
	"-ffp-contract=fast"}

var fast = append(slices.Clone(relaxed), "-ffinite-math-only")

// options translates the options of a program. Of two contradictory options the later one counts.
var options = cgo.Dialect{
	Instead: map[string][]string{
		"-cl-fast-relaxed-math":         fast,
		"-ffast-math":                   fast,
		"-Ofast":                        fast,
		"-cl-unsafe-math-optimizations": relaxed,
		"-funsafe-math-optimizations":   relaxed,
		"-cl-finite-math-only":          {"-ffinite-math-only"},
		"-cl-no-signed-zeros":           {"-fno-signed-zeros"},
		"-cl-mad-enable":                {"-ffp-contract=fast"},
		"-cl-denorms-are-zero":          {"-fgpu-flush-denormals-to-zero"},
		"-cl-opt-disable":               {"-O0"},
	},
	Own: regexp.MustCompile(`^(-O[0123]|-g|-w|-ffp-contract=(off|on|fast)|-f(no-)?wrapv|-fno-strict-aliasing|` +
		`-f(no-)?unroll-loops|-fno-signed-zeros|-ffinite-math-only|-fgpu-flush-denormals-to-zero|-munsafe-fp-atomics|` +
		`-W[^,]*)$`),
	Ignored: regexp.MustCompile(`^-cl-(strict-aliasing|kernel-arg-info|fp32-correctly-rounded-divide-sqrt|` +
		`uniform-work-group-size|std=.*)$`),
}.Translate
