package cuda

// The options of NVRTC.

import (
	"fmt"
	"slices"
	"strings"

	"github.com/concord-compute/concord/runtime/driver"
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

// allowed lists options of OpenCL that have no effect here: they permit or request something that
// NVRTC does anyway.
var allowed = []string{"-cl-finite-math-only", "-cl-no-signed-zeros", "-cl-single-precision-constant",
	"-cl-strict-aliasing", "-cl-kernel-arg-info",
	"-cl-fp32-correctly-rounded-divide-sqrt", "-cl-uniform-work-group-size", "-O", "-O1", "-O2", "-O3"}

// own lists the options of NVRTC that a program may use. Those that end in = take a value.
var own = []string{"--use_fast_math", "-use_fast_math", "--generate-line-info", "-lineinfo", "--device-debug", "-G",
	"--extra-device-vectorization", "--restrict", "--disable-warnings", "-w",
	"--maxrregcount=", "-maxrregcount=", "--fmad=", "-fmad=", "--ftz=", "-ftz=", "--prec-div=", "-prec-div=",
	"--prec-sqrt=", "-prec-sqrt="}

// options translates the options of a program: options of OpenCL to those of NVRTC; options of
// NVRTC stay.
func options(list []string) (out []string, err error) {
	for _, o := range list {
		switch {
		case o == "-cl-fast-relaxed-math", o == "-ffast-math", o == "--use_fast_math", o == "-use_fast_math":
			out = append(append(out, relaxed...), "--ftz=true")
		case o == "-cl-unsafe-math-optimizations", o == "-funsafe-math-optimizations":
			out = append(out, relaxed...)
		case o == "-cl-mad-enable", o == "-ffp-contract=fast":
			out = append(out, "--fmad=true")
		case o == "-cl-denorms-are-zero":
			out = append(out, "--ftz=true")
		case o == "-cl-opt-disable", o == "-O0":
			out = append(out, "--ptxas-options=-O0")
		case slices.Contains(allowed, o), strings.HasPrefix(o, "-cl-std="), strings.HasPrefix(o, "-W") &&
			!strings.Contains(o, ","):
			// Nothing to do.
		case slices.ContainsFunc(own, func(name string) bool { return isOption(o, name) }):
			out = append(out, o)
		default:
			return nil, fmt.Errorf("option %q: %w", o, driver.ErrInvalidArgument)
		}
	}
	return out, nil
}

// isOption reports whether o is the option of that name, which ends in = if the
// option takes a value.
func isOption(o, name string) bool {
	if strings.HasSuffix(name, "=") {
		return strings.HasPrefix(o, name) && len(o) > len(name)
	}
	return o == name
}

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
