package programs

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"

	_ "github.com/concord-compute/concord/runtime/all"
	"github.com/concord-compute/concord/runtime/config"
	"github.com/concord-compute/concord/runtime/driver"
	"github.com/concord-compute/concord/source"
)

// vendors is the directory in which OpenCL drivers are registered.
const vendors = "/etc/OpenCL/vendors"

// Targets lists the implementations that are known. root is the repository's.
func Targets(root string) []*Target {
	sim := "CONCORD_SIM_DIR=" + simulated(root)
	clang := "clang++"
	if _, err := exec.LookPath("clang++-15"); err == nil {
		clang = "clang++-15"
	}
	computes := []source.Define{{Name: "COMPUTED", Value: "1"}}
	icd := func(name string) string { return "OCL_ICD_VENDORS=" + filepath.Join(vendors, name) }
	return []*Target{
		{Name: "cpu", Backend: "cpu", Device: "cpu:0", Base: true, Turns: 4},
		{Name: "pocl", Backend: "opencl", Device: "opencl:0", Env: []string{icd("pocl.icd")}, Defines: computes,
			Foreign: true, Turns: 1},
		{Name: "cpu-clang", Backend: "cpu", Device: "cpu:0", Env: []string{"CXX=" + clang}, Turns: 3},
		{Name: "cpu-fibers", Backend: "cpu", Device: "cpu:0",
			Defines: append(computes, source.Define{Name: "CONCORD_HOST_FIBERS", Value: "1"}), Turns: 3},
		// Mesa's driver (22.3) miscompiles stores of long3 after loops whose number of rounds
		// differs between items.
		{Name: "rusticl", Backend: "opencl", Device: "opencl:0", Env: []string{icd("rusticl.icd"), "RUSTICL_ENABLE=llvmpipe"},
			Defines: computes, Foreign: true, Named: true, Turns: 1},
		// It computes sinpi as the sine of a product, and similar functions likewise. Since it
		// interprets programs and generates no code, comparing with it is several times cheaper
		// than with other targets, so most programs are compared with it.
		{Name: "oclgrind", Backend: "opencl", Device: "opencl:0",
			Env:     []string{"OCL_ICD_VENDORS=" + filepath.Join(root, "build", "oclgrind.icd"), "OCLGRIND_DATA_RACES=1"},
			Defines: append(computes, source.Define{Name: "OCLGRIND", Value: "1"}), Most: most, Foreign: true, Rough: true,
			Base: true, Turns: 1},
		{Name: "sim-cuda", Backend: "sim-cuda", Device: "sim-cuda:0", Env: []string{sim}, Turns: 2},
		{Name: "sim-rocm", Backend: "sim-rocm", Device: "sim-rocm:0", Env: []string{sim}, Turns: 2},
		{Name: "nvrtc", Backend: "cuda", Cross: "sm_80", Turns: 1},
		{Name: "hiprtc", Backend: "rocm", Cross: "gfx90a", Turns: 1},
	}
}

func simulated(root string) string {
	if dir := os.Getenv("CONCORD_SIM_DIR"); dir != "" {
		return dir
	}
	return filepath.Join(root, "build", "sim")
}

// Absent returns the reason why a target cannot be used on this machine, or "". It runs a program
// on the target to find out.
func Absent(t *Target, root string) string {
	if t.Name == "oclgrind" {
		const library = "/usr/lib/oclgrind/liboclgrind-rt-icd.so"
		if !exists(library) {
			return library + " is not there"
		}
		file := filepath.Join(root, "build", "oclgrind.icd")
		if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o777),
			os.WriteFile(file, []byte(library+"\n"), 0o666)); err != nil {
			return err.Error()
		}
	}
	if t.Name == "pocl" && !exists(vendors, "pocl.icd") || t.Name == "rusticl" && !exists(vendors, "rusticl.icd") {
		return t.Name + ".icd is not in " + vendors
	}
	if t.Backend == "sim-cuda" && !exists(simulated(root), "libcuda.so.1") || t.Backend == "sim-rocm" &&
		!exists(simulated(root), "libcuda.so.1") {
		return "no simulated libraries; make sim builds them"
	}
	p, err := start(t)
	if err != nil {
		return err.Error()
	}
	defer p.close()
	a := Arg{Name: "x", Buffer: true, Data: make([]byte, 4), Out: true, kind: kInt}
	res, err := p.run(&request{"kernel void k0(global int *x) { x[0] = 1; }",
		[]Launch{{Kernel: "k0", Items: [3]int{1, 1, 1}, Args: []Arg{a}}}})
	if err != nil {
		return err.Error()
	}
	return res.Err
}

// compiler returns the function of a target without a device, which only compiles the program.
func (t *Target) compiler() func(*request) (Result, error) {
	ctx := context.Background()
	cfg, err := config.ParseEnv(os.Environ())
	i := slices.IndexFunc(driver.Backends(), func(b driver.Backend) bool { return b.Name() == t.Backend })
	var cross driver.CrossCompiler
	if i >= 0 {
		cross, _ = driver.Backends()[i].(driver.CrossCompiler)
	}
	if cross == nil {
		err = errors.Join(err, fmt.Errorf("%s is not in this build", t.Backend))
	}
	return func(r *request) (Result, error) {
		if err != nil {
			return Result{}, err
		}
		features := cross.TargetFeatures(t.Cross)
		unit, err := source.Parse(r.Text, source.Options{Name: "program.cl", Features: &features, Defines: t.Defines})
		if err != nil {
			return Result{}, fmt.Errorf("parse: %w", err)
		}
		if _, err := cross.CompileFor(ctx, &cfg, t.Cross, unit, nil); err != nil {
			return Result{}, fmt.Errorf("build: %w", err)
		}
		return Result{Outputs: make([][][]byte, len(r.Launches))}, nil
	}
}
