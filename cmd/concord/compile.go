package main

// concord compile: a portable program through the real compiler of a target.

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

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
}

// compiledKernel is one entry point. What the compiler does not tell is null.
type compiledKernel struct {
	Name       string          `json:"name"`
	Params     []compiledParam `json:"params"`
	Registers  *int64          `json:"registers"`
	LocalBytes *int64          `json:"local_bytes"`
	SpillBytes *int64          `json:"spill_bytes"`
	MaxGroup   int             `json:"max_group,omitempty"`
}

type compiledParam struct {
	Name  string `json:"name"`
	Type  string `json:"type"`
	Space string `json:"space"`
}

func (a *app) compileCommand() *cobra.Command {
	var target string
	var program programFlags
	cmd := &cobra.Command{
		Use:   "compile --target T FILE",
		Short: "Compile a portable program for a target and describe its kernels",
		Long: `Compile builds FILE, a program in OpenCL C, with the real compiler of a target and
keeps the result in the kernel cache. Targets: host (the C++ compiler of this
machine), and a device that is here, such as opencl:0.`,
		Example: `  concord compile --target host saxpy.cl
  concord compile --target opencl:0 -D T=float --json gemm.cl`,
		Args: cobra.ExactArgs(1),
	}
	cmd.Flags().StringVar(&target, "target", "", "`target`: host, or a device such as opencl:0")
	_ = cmd.MarkFlagRequired("target") // the flag exists
	program.add(cmd)
	a.jsonFlag(cmd)
	cmd.RunE = a.do(func(ctx context.Context, args []string) error {
		device, err := compileDevice(target)
		if err != nil {
			return err
		}
		c, err := a.compile(ctx, device, target, &program, args[0])
		if err != nil {
			return err
		}
		if a.json {
			return a.print(c)
		}
		a.writeCompiled(c)
		return nil
	})
	return cmd
}

// architecture matches names of GPU architectures.
var architecture = regexp.MustCompile(`^(sm|compute)_[0-9]+[a-z]?$|^gfx[0-9a-f]+$`)

// compileDevice returns the device that compiles for a target.
func compileDevice(target string) (string, error) {
	name := strings.ToLower(target)
	backend, _, _ := strings.Cut(name, ":")
	switch {
	case name == "host":
		return "cpu:0", nil
	case architecture.MatchString(name):
		return "", fmt.Errorf("--target %s: compiling for an architecture without its device is not available in this version: %w",
			target, runtime.ErrUnsupported)
	case name == "auto", backend == "hip", slices.Contains(driver.BackendNames, backend), strings.HasPrefix(backend, "sim-"):
		return name, nil
	}
	return "", usagef("--target %s: not host, a device such as opencl:0, or an architecture such as sm_90 or gfx90a", target)
}

func (a *app) compile(ctx context.Context, device, target string, program *programFlags, file string) (*compiled, error) {
	s, err := a.open(exactly)
	if err != nil {
		return nil, err
	}
	dev, err := s.Open(ctx, device)
	if err != nil {
		return nil, fmt.Errorf("--target %s: %w", target, err)
	}
	unit, err := program.parse(file, dev.Features())
	if err != nil {
		return nil, err
	}
	start := time.Now()
	prog, err := dev.Program(ctx, unit, runtime.ProgramOptions{Implementation: runtime.Portable})
	if err != nil {
		return nil, err
	}
	built := prog.Built()
	c := &compiled{Target: target, File: file, Kernels: []compiledKernel{}, MS: milliseconds(time.Since(start)),
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
	k := compiledKernel{Name: decl.Name, Params: []compiledParam{}, MaxGroup: info.MaxGroup}
	if info.Registers > 0 {
		n := int64(info.Registers)
		k.Registers = &n
	}
	local := max(info.LocalBytes, int64(decl.LocalBytes))
	k.LocalBytes = &local
	for _, p := range decl.Params {
		k.Params = append(k.Params, compiledParam{p.Name, p.Decl, p.Space.String()})
	}
	return k
}

func (a *app) writeCompiled(c *compiled) {
	from := "compiled"
	if c.Cached {
		from = "from the cache"
	}
	fmt.Fprintf(a.stdout, "%s for %s: %s in %s\n", c.File, c.Target, from, ms(duration(c.MS)))
	for _, k := range c.Kernels {
		fmt.Fprintf(a.stdout, "\n%s  (registers %s, local memory %s, largest group %s)\n", a.paint(bold, k.Name),
			told64(k.Registers), told64(k.LocalBytes), count(k.MaxGroup))
		t := &table{}
		for _, p := range k.Params {
			t.add(p.Name, p.Type)
		}
		t.write(a.stdout, "  ")
	}
	if log := strings.TrimSpace(c.Log); log != "" {
		fmt.Fprintf(a.stderr, "%s\n", log)
	}
}

func told64(n *int64) string {
	if n == nil {
		return "?"
	}
	return fmt.Sprint(*n)
}
