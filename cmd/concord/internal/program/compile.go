package program

// concord compile: a portable program through the real compiler of a target.

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/concord-compute/concord/cmd/concord/internal/app"
	"github.com/concord-compute/concord/cmd/concord/internal/ui"
	"github.com/concord-compute/concord/rocm"
	"github.com/concord-compute/concord/runtime"
	"github.com/concord-compute/concord/runtime/driver"
	"github.com/concord-compute/concord/source"
)

// compiled is the document of compile.
type compiled struct {
	Target  string           `json:"target"`
	File    string           `json:"file"`
	Kernels []compiledKernel `json:"kernels"`
	MS      float64          `json:"ms"`
	Cached  bool             `json:"cached"`
	Log     string           `json:"log,omitempty"`

	info *runtime.Info // of the device for which it was compiled, if there is one
}

// compiledKernel is one entry point. Values that the compiler does not report are null.
type compiledKernel struct {
	Name       string          `json:"name"`
	Params     []compiledParam `json:"params"`
	Registers  *int64          `json:"registers"`
	LocalBytes *int64          `json:"local_bytes"`
	SpillBytes *int64          `json:"spill_bytes"`
	MaxGroup   int             `json:"max_group,omitempty"`

	subgroup, required int // items of a subgroup, and of the group that the kernel requires; 0: unknown, none
}

type compiledParam struct {
	Name  string `json:"name"`
	Type  string `json:"type"`
	Space string `json:"space"`
}

// Compile returns the command compile.
func Compile(a *app.App) *cobra.Command {
	var target string
	var program programFlags
	cmd := &cobra.Command{
		Use:   "compile --target T FILE",
		Short: "Compile a portable program for a target and describe its kernels",
		Long: `Compile builds FILE, a program in OpenCL C, with the real compiler of a target and
keeps the result in the kernel cache. Targets: host (the C++ compiler of this
machine); a device of this machine, such as opencl:0; and an architecture whose devices
need not be present, if the vendor's compiler is: all that it knows, with NVRTC 11.8
sm_35 to sm_90, with hipRTC 5.2 gfx600 to gfx1036. For Vulkan, which needs no compiler, it
says what a device has: vk1.3, vk1.3-fp64 and others. The error for an unknown one lists them.
Programs built for an architecture are not kept. hipcc:gfx90a uses hipcc, the compiler of a ROCm
installation, instead of hipRTC.

FILE may also be a text in the language of a vendor, x.cu, x.hip or x.metal, whose kernels are
declared or defined in OpenCL C in x.cl: "kernel void saxpy(float a, global float *x);". A kernel
NAME is called NAME or cc_kernel_NAME there, and has the parameters that concord translate --help
describes; in CUDA and HIP it is extern "C" __global__. Its parameters are not compared with those
in x.cl, by which launches are checked.

A question mark stands for a value that the compiler does not report.`,
		Example: `  concord compile --target host saxpy.cl
  concord compile --target sm_90 saxpy.cl
  concord compile --target hipcc:gfx90a saxpy.cl
  concord compile --target vk1.3-fp64 saxpy.cl
  concord compile --target opencl:0 -D N=1000 --json saxpy.cl`,
		Args: cobra.ExactArgs(1),
	}
	cmd.Flags().StringVar(&target, "target", "", "`target`: host, a device such as opencl:0, or an architecture such as "+
		"sm_90 or gfx90a")
	_ = cmd.MarkFlagRequired("target") // the flag exists
	program.add(cmd)
	return a.RunnableJSON(cmd, func(ctx context.Context, args []string) error {
		c, err := compile(ctx, a, target, &program, args[0])
		if err != nil {
			return err
		}
		return a.Show(c, func() { writeCompiled(a, c) })
	})
}

// vendors are the backends whose compilers need no device, by the first letters of
// the architectures that they know.
var vendors = []struct{ prefix, backend string }{{"sm_", "cuda"}, {"gfx", "rocm"}, {"vk", "vulkan"}}

func compile(ctx context.Context, a *app.App, target string, program *programFlags, file string) (*compiled, error) {
	name := strings.ToLower(target)
	if arch, ok := strings.CutPrefix(name, "hipcc:"); ok { // instead of hipRTC
		return compileBy(ctx, target, program, file, rocm.TargetFeatures(arch),
			func(unit *source.Unit) (driver.Compiled, error) { return rocm.CompileWithHipcc(ctx, unit, arch) })
	}
	if err := app.CheckDevice(name); err != nil {
		return nil, err
	}
	for _, v := range vendors {
		if strings.HasPrefix(name, v.prefix) {
			return compileFor(ctx, a, v.backend, name, program, file)
		}
	}
	backend, _, _ := strings.Cut(name, ":")
	switch {
	case name == "host":
		return compileOn(ctx, a, "cpu:0", target, program, file)
	case name == "auto", backend == "hip", slices.Contains(driver.BackendNames(), backend),
		strings.HasPrefix(backend, "sim-"):
		return compileOn(ctx, a, name, target, program, file)
	}
	return nil, app.Usagef("--target %s: not host, a device such as opencl:0, or an architecture such as sm_90 or gfx90a",
		target)
}

// compileFor compiles for an architecture, of which no device need be present.
func compileFor(ctx context.Context, a *app.App, backend, target string, program *programFlags,
	file string) (*compiled, error) {
	s, err := a.Open(app.Exactly)
	if err != nil {
		return nil, err
	}
	cfg := s.Config()
	i := slices.IndexFunc(driver.Backends(), func(b driver.Backend) bool { return b.Name() == backend })
	if i < 0 {
		return nil, fmt.Errorf("--target %s: backend %s: %w", target, backend, runtime.ErrNoDevice)
	}
	b := driver.Backends()[i]
	cross, ok := b.(driver.CrossCompiler)
	if !ok {
		return nil, fmt.Errorf("--target %s: %s: %w", target, b.Probe(ctx, &cfg).Reason, runtime.ErrUnsupported)
	}
	return compileBy(ctx, target, program, file, cross.TargetFeatures(target),
		func(unit *source.Unit) (driver.Compiled, error) {
			return cross.CompileFor(ctx, &cfg, target, unit, nil)
		})
}

// compileBy compiles for a target with these features, by a vendor's compiler.
func compileBy(ctx context.Context, target string, program *programFlags, file string, features source.Features,
	build func(*source.Unit) (driver.Compiled, error)) (*compiled, error) {
	unit, err := program.parse(ctx, file, &features)
	if err != nil {
		return nil, err
	}
	start := time.Now()
	built, err := build(unit)
	if err != nil {
		return nil, fmt.Errorf("--target %s: %w", target, err)
	}
	c := &compiled{Target: target, File: file, Kernels: []compiledKernel{}, MS: ui.Milliseconds(time.Since(start)),
		Log: built.Log}
	for i, decl := range unit.Kernels() {
		c.Kernels = append(c.Kernels, describeKernel(built.Kernels[i], decl))
	}
	return c, nil
}

// compileOn compiles on a device of this machine.
func compileOn(ctx context.Context, a *app.App, device, target string, program *programFlags,
	file string) (*compiled, error) {
	s, err := a.Open(app.Exactly)
	if err != nil {
		return nil, err
	}
	dev, err := s.Open(ctx, device)
	if err != nil {
		return nil, fmt.Errorf("--target %s: %w", target, err)
	}
	unit, err := program.parse(ctx, file, dev.Features())
	if err != nil {
		return nil, err
	}
	start := time.Now()
	prog, err := dev.Program(ctx, unit, runtime.ProgramOptions{Implementation: runtime.Portable})
	if err != nil {
		return nil, err
	}
	built, info := prog.Built(), dev.Info()
	c := &compiled{info: &info, Target: target, File: file, Kernels: []compiledKernel{},
		MS:     ui.Milliseconds(time.Since(start)),
		Cached: built.From != "compiled", Log: built.Log}
	for _, decl := range unit.Kernels() {
		k, err := prog.Kernel(decl.Name)
		if err != nil {
			return nil, err
		}
		c.Kernels = append(c.Kernels, describeKernel(k.Info(), decl))
	}
	return c, nil
}

func describeKernel(info runtime.KernelInfo, decl source.Kernel) compiledKernel {
	k := compiledKernel{Name: decl.Name, Params: []compiledParam{}, MaxGroup: info.MaxGroup,
		subgroup: info.GroupMultiple, required: decl.ReqdLocal[0] * decl.ReqdLocal[1] * decl.ReqdLocal[2]}
	if info.Registers > 0 {
		k.Registers, k.SpillBytes = new(int64(info.Registers)), new(info.SpillBytes)
	}
	k.LocalBytes = new(max(info.LocalBytes, int64(decl.LocalBytes)))
	for _, p := range decl.Params {
		k.Params = append(k.Params, compiledParam{p.Name, p.Decl, p.Space.String()})
	}
	return k
}

func writeCompiled(a *app.App, c *compiled) {
	from := "compiled"
	if c.Cached {
		from = "from the cache"
	}
	a.Printf("%s for %s: %s in %s\n", c.File, c.Target, from, ui.DurationText(ui.Duration(c.MS)))
	for _, k := range c.Kernels {
		a.Printf("\n%s  (registers %s, spilled %s, local memory %s, largest group %s)\n", a.Paint(ui.Bold, k.Name),
			orUnknown(k.Registers), orUnknown(k.SpillBytes), orUnknown(k.LocalBytes), ui.CountText(k.MaxGroup))
		t := &ui.Table{}
		for _, p := range k.Params {
			t.Add(p.Name, p.Type)
		}
		t.Write(a.Stdout, "  ")
	}
	if log := strings.TrimSpace(c.Log); log != "" {
		fmt.Fprintf(a.Stderr, "%s\n", log)
	}
}

func orUnknown(n *int64) string {
	if n == nil {
		return "?"
	}
	return fmt.Sprint(*n)
}
