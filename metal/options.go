package metal

// The options of Metal's compiler, in the form of its command line. The shim turns them into
// MTLCompileOptions.

import (
	"regexp"

	"github.com/concord-compute/concord/internal/cgo"
)

// flags returns the fixed options, which name the GPU family to build for. Fast math is off, so
// that every operation rounds once and the precise functions are used.
func flags(target string) []string { return []string{"--target=" + target} }

var fast = []string{"-ffast-math"}

// options translates the options of a program. Some that permit something are ignored, since it is not done.
var options = cgo.Dialect{
	Instead: map[string][]string{
		"-cl-fast-relaxed-math":         fast,
		"-cl-unsafe-math-optimizations": fast,
		"-ffast-math":                   fast,
		"-funsafe-math-optimizations":   fast,
	},
	Own: regexp.MustCompile(`^-std=metal[1-9]\.[0-9]$`),
	Ignored: regexp.MustCompile(`^(-cl-(mad-enable|denorms-are-zero|finite-math-only|no-signed-zeros|opt-disable|` +
		`single-precision-constant|strict-aliasing|kernel-arg-info|fp32-correctly-rounded-divide-sqrt|` +
		`uniform-work-group-size|std=.*)|-O[0123]?|-w|-W[^,]*)$`),
}.Translate
