package rocm

// The options of hipRTC, which is clang.

import (
	"fmt"
	"slices"
	"strings"

	"github.com/concord-compute/concord/runtime/driver"
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

// allowed lists options of OpenCL that have no effect here: they permit or request something that
// hipRTC does anyway.
var allowed = []string{"-cl-strict-aliasing", "-cl-kernel-arg-info", "-cl-fp32-correctly-rounded-divide-sqrt",
	"-cl-uniform-work-group-size"}

// own lists the options of hipRTC that a program may use.
var own = []string{"-O0", "-O1", "-O2", "-O3", "-g", "-w", "-ffp-contract=off", "-ffp-contract=on",
	"-ffp-contract=fast",
	"-fwrapv", "-fno-wrapv", "-fno-strict-aliasing", "-funroll-loops", "-fno-unroll-loops", "-fno-signed-zeros",
	"-ffinite-math-only",
	"-fgpu-flush-denormals-to-zero", "-munsafe-fp-atomics"}

// options translates the options of a program: options of OpenCL to those of hipRTC; options of
// hipRTC stay. Of two contradictory options the later one counts.
func options(list []string) (out []string, err error) {
	for _, o := range list {
		switch {
		case o == "-cl-fast-relaxed-math", o == "-ffast-math", o == "-Ofast":
			out = append(append(out, relaxed...), "-ffinite-math-only")
		case o == "-cl-unsafe-math-optimizations", o == "-funsafe-math-optimizations":
			out = append(out, relaxed...)
		case o == "-cl-finite-math-only":
			out = append(out, "-ffinite-math-only")
		case o == "-cl-no-signed-zeros":
			out = append(out, "-fno-signed-zeros")
		case o == "-cl-mad-enable":
			out = append(out, "-ffp-contract=fast")
		case o == "-cl-denorms-are-zero":
			out = append(out, "-fgpu-flush-denormals-to-zero")
		case o == "-cl-opt-disable":
			out = append(out, "-O0")
		case slices.Contains(allowed, o), strings.HasPrefix(o, "-cl-std="):
			// Nothing to do.
		case slices.Contains(own, o), strings.HasPrefix(o, "-W") && !strings.Contains(o, ","):
			out = append(out, o)
		default:
			return nil, fmt.Errorf("option %q: %w", o, driver.ErrInvalidArgument)
		}
	}
	return out, nil
}
