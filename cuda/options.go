package cuda

// The options of NVRTC.

import (
	"fmt"
	"slices"
	"strings"

	"github.com/concord-compute/concord/runtime/driver"
)

// flags are the options of every build. One rounding per operation is what makes a
// kernel compute here what it does elsewhere.
func flags(target string) []string {
	return []string{"--gpu-architecture=" + target, "--std=c++17",
		"--fmad=false", "--prec-div=true", "--prec-sqrt=true", "--ftz=false"}
}

// relaxed is --use_fast_math in parts: with the option itself NVRTC would keep what
// the flags say of each part.
var relaxed = []string{"--fmad=true", "--prec-div=false", "--prec-sqrt=false"}

// allowed are options of OpenCL that ask for nothing, or for what is done anyway.
var allowed = []string{"-cl-finite-math-only", "-cl-no-signed-zeros", "-cl-single-precision-constant", "-cl-strict-aliasing", "-cl-kernel-arg-info",
	"-cl-fp32-correctly-rounded-divide-sqrt", "-cl-uniform-work-group-size", "-O", "-O1", "-O2", "-O3"}

// own are options of NVRTC that a program may give. Those that end in = go on.
var own = []string{"--use_fast_math", "-use_fast_math", "--generate-line-info", "-lineinfo", "--device-debug", "-G",
	"--extra-device-vectorization", "--restrict", "--disable-warnings", "-w",
	"--maxrregcount=", "-maxrregcount=", "--fmad=", "-fmad=", "--ftz=", "-ftz=", "--prec-div=", "-prec-div=", "--prec-sqrt=", "-prec-sqrt="}

// options translates the options of a program: those of OpenCL that mean something
// here, and NVRTC's own.
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
		case slices.Contains(allowed, o), strings.HasPrefix(o, "-cl-std="), strings.HasPrefix(o, "-W") && !strings.Contains(o, ","):
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

// merge puts the options of a program over the fixed ones: NVRTC takes none twice.
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
