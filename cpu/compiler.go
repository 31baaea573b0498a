package cpu

// Portable programs through the host's C++ compiler: the part that does not
// depend on the system. toolchain.go runs the compiler, shim.go the program.

import (
	"context"
	"errors"
	"fmt"
	goruntime "runtime"
	"slices"
	"strings"

	"github.com/concord-compute/concord/runtime/driver"
	"github.com/concord-compute/concord/source"
)

// installHint tells the user how to get a compiler.
const installHint = "install one (apt-get install g++, dnf install gcc-c++, apk add g++, xcode-select --install) or " +
	"name one in CXX"

// errReference is the error of Compile on the reference device.
var errReference = fmt.Errorf("cpu:reference runs only the float64 implementations of catalog kernels; "+
	"cpu:0 runs portable programs: %w", driver.ErrUnsupported)

// Identity implements driver.Compiler.
func (d *device) Identity(ctx context.Context) ([]string, error) {
	c, err := d.toolchain(ctx)
	if err != nil {
		return nil, d.opError("compile", err)
	}
	return append([]string{"host", cpuFeatures(), fmt.Sprintf("abi %d", hostABI), c.path, c.version},
		append(c.flags(true), c.flags(false)...)...), nil
}

// Target implements driver.Targeter: the parts of Identity that do not need the compiler.
func (d *device) Target() []string {
	return append([]string{"host", targetFeatures(), fmt.Sprintf("abi %d", hostABI), archFlag()}, hostFlags...)
}

// Compile implements driver.Compiler.
func (d *device) Compile(ctx context.Context, u *source.Unit, options []string) (driver.Binary, error) {
	c, extra, err := d.prepare(ctx, u.Name(), options)
	if err != nil {
		return driver.Binary{}, err
	}
	text, err := u.RenderContext(ctx, source.Host)
	if err != nil {
		return driver.Binary{}, d.notRendered(ctx, u, err)
	}
	object, log, err := c.build(ctx, text, u.Loops(), extra)
	if err != nil {
		return driver.Binary{}, d.notBuilt(ctx, u, log, err)
	}
	return driver.Binary{Code: programs.Seal(object), Log: log}, nil
}

// prepare finds the compiler and translates the options.
func (d *device) prepare(ctx context.Context, name string, options []string) (*toolchain, []string, error) {
	c, err := d.toolchain(ctx)
	if err != nil {
		return nil, nil, d.opError("compile "+name, err)
	}
	extra, err := hostOptions(options)
	if err != nil {
		return nil, nil, d.opError("compile "+name, err)
	}
	return c, extra, nil
}

// notRendered is the error of a unit that was not rendered.
func (d *device) notRendered(ctx context.Context, u *source.Unit, err error) error {
	if ctx.Err() != nil {
		return d.opError("compile "+u.Name(), context.Cause(ctx))
	}
	return &driver.BuildError{Source: u.Name(), Target: "host", Log: err.Error(), Err: err}
}

// notBuilt is the error of a unit that the compiler did not build.
func (d *device) notBuilt(ctx context.Context, u *source.Unit, log string, err error) error {
	switch {
	case ctx.Err() != nil:
		return d.opError("compile "+u.Name(), context.Cause(ctx))
	case errors.Is(err, errBuild) && !starved(log):
		return &driver.BuildError{Source: u.Name(), Target: "host", Log: log}
	case errors.Is(err, errBuild):
		err = errStarved
	}
	// The next attempt may succeed. The error does not match ErrCompile, so that nothing caches it.
	return &driver.OpError{Backend: "cpu", Device: d.id, Op: "compile " + u.Name(),
		Detail: strings.TrimSpace(log[:min(len(log), maxDetail)]), Err: err}
}

// maxDetail is the largest number of bytes of a compiler's output that an error contains.
const maxDetail = 2000

// errStarved is the error of a compiler that ended because memory or disk space was missing.
var errStarved = errors.New("the compiler was killed or ran out of memory or disk")

// starvation has messages of compilers, linkers and compiler drivers that report a lack of
// memory or disk space, which is not the program's fault.
var starvation = []string{
	"Killed signal", "signal 9 [Killed]", "command: Killed", "out of memory", "virtual memory exhausted",
	"Cannot allocate memory", "Resource temporarily unavailable", "No space left on device",
}

// starved reports whether a log has one of the messages in starvation.
func starved(log string) bool {
	return slices.ContainsFunc(starvation, func(words string) bool { return strings.Contains(log, words) })
}

// errBuild is the error of a program that the compiler rejected; the log has the reasons.
var errBuild = errors.New("the compiler refused the program")

// Load implements driver.Compiler.
func (d *device) Load(_ context.Context, u *source.Unit, bin driver.Binary) (driver.Module, error) {
	if d.reference {
		return nil, d.opError("load "+u.Name(), errReference)
	}
	object, err := unseal(bin.Code)
	if err != nil {
		return nil, d.opError("load "+u.Name(), err)
	}
	m, err := d.load(u, object)
	if err != nil {
		return nil, d.opError("load "+u.Name(), err)
	}
	return m, nil
}

// hostFlags are the options of every build. Kernels rely on two's complement and on access to
// memory through pointers of any type. Without contraction each operation rounds once, so that a
// kernel has the same results as on other devices.
var hostFlags = []string{
	"-std=c++17", "-O3", "-shared", "-fPIC", "-pipe",
	"-fwrapv", "-fno-finite-loops", "-fno-strict-aliasing", "-ffp-contract=off", "-fno-math-errno", "-fno-trapping-math",
	"-fno-exceptions", "-fno-rtti", "-fno-asynchronous-unwind-tables", "-fvisibility=hidden", "-fno-threadsafe-statics",
	"-fdiagnostics-color=never", "-fmessage-length=0", "-Wno-psabi",
}

// archFlag makes the compiler use every instruction of this processor.
func archFlag() string {
	switch goruntime.GOARCH {
	case "amd64", "386":
		return "-march=native"
	case "arm64", "arm":
		return "-mcpu=native"
	}
	return ""
}

// relaxed has the parts of -ffast-math that are used. The option itself would link an object that
// makes the thread that loads the program flush denormals to zero from then on.
var relaxed = []string{"-fassociative-math", "-freciprocal-math", "-fno-signed-zeros", "-ffp-contract=fast",
	relaxedDefine}

// relaxedDefine tells the prelude that the signs of zeros may be lost.
const relaxedDefine = "-DCC_RELAXED"

// hostOptions translates the options of a program: those of OpenCL that have an effect on the host,
// and those of the host compiler.
func hostOptions(options []string) ([]string, error) {
	var out []string
	for _, o := range options {
		switch {
		case o == "-cl-fast-relaxed-math", o == "-ffast-math", o == "-Ofast":
			out = append(append(out, relaxed...), "-ffinite-math-only")
		case o == "-cl-unsafe-math-optimizations", o == "-funsafe-math-optimizations":
			out = append(out, relaxed...)
		case o == "-cl-finite-math-only":
			out = append(out, "-ffinite-math-only")
		case o == "-cl-mad-enable":
			out = append(out, "-ffp-contract=fast", relaxedDefine)
		case o == "-cl-no-signed-zeros":
			out = append(out, "-fno-signed-zeros", relaxedDefine)
		case o == "-fno-signed-zeros", o == "-ffp-contract=fast":
			out = append(out, o, relaxedDefine)
		case o == "-cl-opt-disable":
			out = append(out, "-O0")
		case strings.HasPrefix(o, "-cl-"):
			// The option allows something that every build allows, or has no effect on the host.
		case strings.HasPrefix(o, "-Wl,"), strings.HasPrefix(o, "-Wp,"), strings.HasPrefix(o, "-Wa,"):
			return nil, fmt.Errorf("option %q: %w", o, driver.ErrInvalidArgument)
		case len(o) > 1 && o[0] == '-' && strings.IndexByte("fmOgW", o[1]) >= 0:
			out = append(out, o)
		default:
			return nil, fmt.Errorf("option %q: %w", o, driver.ErrInvalidArgument)
		}
	}
	return out, nil
}
