package rocm

// Building with hipcc, the other compiler for HIP C++, which runs in a separate process and uses
// the headers of ROCm.

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/concord-compute/concord/internal/file"
	"github.com/concord-compute/concord/runtime/driver"
	"github.com/concord-compute/concord/source"
)

// hipccFlags are the options of every build besides those of hipRTC. hipRTC has HIP's
// functions built in, hipcc takes them from their header.
var hipccFlags = []string{"--genco", "--no-gpu-bundle-output", "-include", "hip/hip_runtime.h"}

// CompileWithHipcc builds a unit with hipcc for an architecture, such as "gfx90a", and returns the
// code object and the properties of the unit's kernels. The unit is best parsed with TargetFeatures
// of that architecture. It blocks for a second or more; when ctx is done hipcc is killed.
//
// A malformed name of an architecture is ErrInvalidArgument, a missing hipcc is ErrNoCompiler, and
// a program that does not build is a *BuildError with the log.
func CompileWithHipcc(ctx context.Context, unit *source.Unit, arch string) (driver.Compiled, error) {
	text, err := unit.RenderContext(ctx, source.HIP)
	if err != nil {
		return driver.Compiled{}, hipccError("", err)
	}
	bin, err := buildWithHipcc(ctx, text, arch)
	if err != nil {
		return driver.Compiled{}, err
	}
	told, err := codeObject(bin.Code)
	if err != nil {
		return driver.Compiled{}, hipccError("", err)
	}
	out := driver.Compiled{Binary: bin}
	for _, k := range unit.Kernels() {
		i := slices.IndexFunc(told, func(info driver.KernelInfo) bool { return info.Name == k.Name })
		if i < 0 {
			return driver.Compiled{}, hipccError("", fmt.Errorf("the code object has no kernel %s: %w", k.Name,
				driver.ErrFormat))
		}
		out.Kernels = append(out.Kernels, told[i])
	}
	return out, nil
}

// TargetFeatures returns the features that kernels for an architecture may use. It needs no
// compiler.
func TargetFeatures(arch string) source.Features { return features(arch) }

// buildWithHipcc compiles HIP C++ to a code object. hipcc gets only PATH and HOME of the
// environment, and a private directory for temporary files.
func buildWithHipcc(ctx context.Context, text, arch string) (driver.Binary, error) {
	if text == "" {
		return driver.Binary{}, hipccError("", fmt.Errorf("no source: %w", driver.ErrInvalidArgument))
	}
	if !plausible(arch) {
		return driver.Binary{}, hipccError("", fmt.Errorf("architecture %q: %w", arch, driver.ErrInvalidArgument))
	}
	path, err := findHipcc()
	if err != nil {
		return driver.Binary{}, hipccError("install hipcc (package hipcc, or ROCm) and HIP's headers (libamdhip64-dev)",
			fmt.Errorf("%w: %w", err, driver.ErrNoCompiler))
	}
	dir, err := file.TempDir("concord-hipcc-") // which other users cannot replace
	if err != nil {
		return driver.Binary{}, hipccError("", err)
	}
	defer os.RemoveAll(dir)
	if err := os.WriteFile(filepath.Join(dir, "program.hip"), []byte(text), 0o600); err != nil {
		return driver.Binary{}, hipccError("", err)
	}
	log, err := runHipcc(ctx, path, dir, arch)
	switch {
	case ctx.Err() != nil:
		return driver.Binary{}, hipccError("", context.Cause(ctx))
	case errors.As(err, new(*exec.ExitError)):
		return driver.Binary{}, &driver.BuildError{Source: "program.hip", Target: arch, Log: log}
	case err != nil:
		return driver.Binary{}, hipccError("", err)
	}
	code, err := os.ReadFile(filepath.Join(dir, "program.co"))
	if err != nil {
		return driver.Binary{}, hipccError("hipcc wrote nothing", err)
	}
	return driver.Binary{Code: code, Log: log}, nil
}

func hipccError(detail string, err error) error {
	return &driver.OpError{Backend: "rocm", Op: "hipcc", Detail: detail, Err: err}
}

// plausible reports whether an architecture is of the form gfx90a:sramecc+:xnack-. The check is
// needed because the name becomes an argument of a command.
func plausible(arch string) bool {
	base, settings, _ := strings.Cut(arch, ":")
	if major, _, _ := generation(base); major == 0 {
		return false
	}
	return strings.Trim(settings, "abcdefghijklmnopqrstuvwxyz:+-") == ""
}

// findHipcc looks for hipcc in PATH and in the directories of ROCm.
func findHipcc() (string, error) {
	path, err := exec.LookPath("hipcc")
	for _, dir := range toolkits() {
		if err == nil {
			break
		}
		if found, e := exec.LookPath(filepath.Join(dir, "bin", "hipcc")); e == nil {
			path, err = found, nil
		}
	}
	if err != nil {
		return "", err
	}
	return filepath.Abs(path)
}

// runHipcc compiles dir/program.hip to dir/program.co.
func runHipcc(ctx context.Context, path, dir, arch string) (log string, err error) {
	args := append(append([]string{}, hipccFlags...), flags(arch)...)
	cmd := exec.CommandContext(ctx, path, append(args, "-o", "program.co", "program.hip")...)
	cmd.Dir = dir
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + os.Getenv("HOME"), "TMPDIR=" + dir}
	cmd.WaitDelay = 5 * time.Second // its child processes may keep the pipe open
	out, err := cmd.CombinedOutput()
	return string(out), err
}
