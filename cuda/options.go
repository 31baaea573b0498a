package cuda

// The options of NVRTC.

import (
	"regexp"
	"slices"
	"strings"

	"github.com/concord-compute/concord/internal/cgo"
)

// flags returns the options of every build. Each operation has to round once, so that a kernel
// computes the same results as on other devices.
func flags(target string) []string {
	return []string{"--gpu-architecture=" + target, "--std=c++17",
		"--fmad=false", "--prec-div=true", "--prec-sqrt=true", "--ftz=false"}
}

// relaxed lists the parts of --use_fast_math. The option itself would have no effect, because NVRTC
// gives priority to flags, which set each part.
var relaxed = []string{"--fmad=true", "--prec-div=false", "--prec-sqrt=false"}

var fast = append(slices.Clone(relaxed), "--ftz=true")

// options translates the options of a program.
var options = cgo.Dialect{
	Instead: map[string][]string{
		"-cl-fast-relaxed-math":         fast,
		"-ffast-math":                   fast,
		"--use_fast_math":               fast,
		"-use_fast_math":                fast,
		"-cl-unsafe-math-optimizations": relaxed,
		"-funsafe-math-optimizations":   relaxed,
		"-cl-mad-enable":                {"--fmad=true"},
		"-ffp-contract=fast":            {"--fmad=true"},
		"-cl-denorms-are-zero":          {"--ftz=true"},
		"-cl-opt-disable":               {"--ptxas-options=-O0"},
		"-O0":                           {"--ptxas-options=-O0"},
	},
	Own: regexp.MustCompile(`^(--generate-line-info|-lineinfo|--device-debug|-G|--extra-device-vectorization|--restrict|` +
		`--disable-warnings|-w|--?(maxrregcount|fmad|ftz|prec-div|prec-sqrt)=.+)$`),
	Ignored: regexp.MustCompile(`^(-cl-(finite-math-only|no-signed-zeros|single-precision-constant|strict-aliasing|` +
		`kernel-arg-info|fp32-correctly-rounded-divide-sqrt|uniform-work-group-size|std=.*)|-O[123]?|-W[^,]*)$`),
}.Translate

// merge replaces fixed options by the program's and adds the rest: NVRTC refuses an option given
// twice.
func merge(fixed, list []string) []string {
	out := slices.Clone(fixed)
	for _, o := range list {
		key, _, _ := strings.Cut(strings.TrimLeft(o, "-"), "=")
		same := func(other string) bool {
			k, _, _ := strings.Cut(strings.TrimLeft(other, "-"), "=")
			return k == key
		}
		if i := slices.IndexFunc(out, same); i >= 0 && (key != "ptxas-options" || out[i] == o) {
			out[i] = o
			continue
		}
		out = append(out, o)
	}
	return out
}
