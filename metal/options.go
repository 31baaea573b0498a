package metal

// The options of Metal's compiler, in the form of its command line. The shim turns them into
// MTLCompileOptions.

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/concord-compute/concord/runtime/driver"
)

// flags returns the fixed options, which name the GPU family to build for. Fast math is off, so
// that every operation rounds once and the precise functions are used.
func flags(target string) []string { return []string{"--target=" + target} }

// relaxed lists the options that switch fast math on.
var relaxed = []string{"-cl-fast-relaxed-math", "-cl-unsafe-math-optimizations", "-ffast-math",
	"-funsafe-math-optimizations"}

// allowed lists options of OpenCL that have no effect here: they request something that is done
// anyway, or permit something that is not done.
var allowed = []string{"-cl-mad-enable", "-cl-denorms-are-zero", "-cl-finite-math-only", "-cl-no-signed-zeros",
	"-cl-opt-disable",
	"-cl-single-precision-constant", "-cl-strict-aliasing", "-cl-kernel-arg-info",
	"-cl-fp32-correctly-rounded-divide-sqrt",
	"-cl-uniform-work-group-size", "-O", "-O0", "-O1", "-O2", "-O3", "-w"}

// standard is the version of Metal's language.
var standard = regexp.MustCompile(`^-std=metal[1-9]\.[0-9]$`)

// options translates the options of a program: options of OpenCL to those of Metal; options of
// Metal stay.
func options(list []string) (out []string, err error) {
	for _, o := range list {
		switch {
		case slices.Contains(relaxed, o):
			out = append(out, "-ffast-math")
		case standard.MatchString(o):
			out = append(out, o)
		case slices.Contains(allowed, o), strings.HasPrefix(o, "-cl-std="), strings.HasPrefix(o, "-W") &&
			!strings.Contains(o, ","):
			// Nothing to do.
		default:
			return nil, fmt.Errorf("option %q: %w", o, driver.ErrInvalidArgument)
		}
	}
	return out, nil
}
