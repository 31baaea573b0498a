package program

// concord translate: a portable program in another language.

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/concord-compute/concord/cmd/concord/internal/app"
	"github.com/concord-compute/concord/source"
)

// renderTarget is a value of --to.
type renderTarget struct {
	name     string
	target   source.Target
	features source.Features // of its devices, as far as it can be said without one
}

var everyFeature = source.Features{FP64: true, FP16: true, Int64Atomic: true}

var everyGPUFeature = source.Features{FP64: true, FP16: true, Int64Atomic: true, FastFMA: true, Subgroups: true}

var renderTargets = []renderTarget{
	{"cuda", source.CUDA, everyGPUFeature},
	{"hip", source.HIP, everyGPUFeature},
	{"metal", source.Metal, source.MetalFeatures},
	{"spirv", source.SPIRV, source.Features{FP64: true, FP16: true, Int64Atomic: true, Subgroups: true}},
	{"opencl", source.OpenCL, everyFeature},
	{"host", source.Host, source.Portable},
}

// Translate returns the command translate.
func Translate(a *app.App) *cobra.Command {
	var to string
	var program programFlags
	cmd := &cobra.Command{
		Use:   "translate --to cuda|hip|metal|spirv|opencl|host FILE",
		Short: "Print a portable program rendered for a target",
		Long: `Translate prints FILE, a program in OpenCL C, as the compiler of a target gets it:
OpenCL devices the text itself, Vulkan a module of SPIR-V, the others C++ with a
prelude. A construct that cannot be rendered is an error with file, line, column and
its name: for Metal double, 64-bit atomics, goto and printf, for SPIR-V printf, labels
of a switch inside of other statements, and a goto into a block.

In CUDA and HIP the kernel NAME is cc_kernel_NAME. Its parameters are the portable ones
in their order, but for a pointer to local memory, which is an unsigned int: its offset
in bytes in the dynamic shared memory of the launch, a multiple of 128. To build them by
hand with the flags that Concord gives NVRTC and hipRTC:
  nvcc -std=c++17 -fmad=false -arch=sm_90 -cubin saxpy.cu
  hipcc -std=c++17 -O3 -include hip/hip_runtime.h -ffp-contract=off -fwrapv \
      -fno-strict-aliasing --offload-arch=gfx90a --genco saxpy.hip -o saxpy.co

In Metal the kernel is cc_kernel_NAME too. Pointers to global and constant memory and
values are [[buffer(i)]], counted together in order; pointers to local memory are
[[threadgroup(j)]]; with more than 31 buffers all values are one struct behind the
pointers. To build it on a Mac:
  xcrun metal -std=metal3.0 -fno-fast-math saxpy.metal -o saxpy.metallib

SPIR-V is a module for Vulkan 1.3 in binary form, which needs no compiler. The kernel is
cc_kernel_NAME there, too; its arguments are push constants, as the documentation of
source.EntryPrefix says. To read or check it:
  concord translate --to spirv saxpy.cl | spirv-dis
  concord translate --to spirv saxpy.cl | spirv-val --target-env vulkan1.3`,
		Example: `  concord translate --to cuda saxpy.cl > saxpy.cu
  concord translate --to hip saxpy.cl > saxpy.hip
  concord translate --to opencl -D N=1000 saxpy.cl > plain.cl`,
		Args: cobra.ExactArgs(1),
	}
	cmd.Flags().StringVar(&to, "to", "", "target `language`: cuda, hip, metal, spirv, opencl or host")
	_ = cmd.MarkFlagRequired("to") // the flag exists
	program.add(cmd)
	return a.Runnable(cmd, func(ctx context.Context, args []string) error {
		i := slices.IndexFunc(renderTargets, func(t renderTarget) bool { return t.name == strings.ToLower(to) })
		if i < 0 {
			return app.Usagef("--to %s: not one of cuda, hip, metal, spirv, opencl, host", to)
		}
		unit, err := program.parse(ctx, args[0], &renderTargets[i].features)
		if err != nil {
			return err
		}
		text, err := render(ctx, unit, renderTargets[i].target)
		if err != nil {
			return err
		}
		_, err = io.WriteString(a.Stdout, text)
		return err
	})
}

// render returns a text that stands for itself. An OpenCL compiler gets the
// definitions as options, which a file has not.
func render(ctx context.Context, unit *source.Unit, target source.Target) (string, error) {
	text, err := unit.RenderContext(ctx, target)
	if err != nil {
		return "", err
	}
	if target != source.SPIRV && !strings.HasSuffix(text, "\n") {
		text += "\n"
	}
	var defines strings.Builder
	if target == source.OpenCL && !unit.Expanded() { // else it is preprocessed
		for _, d := range unit.Defines() {
			fmt.Fprintf(&defines, "#define %s %s\n", d.Name, d.Value)
		}
	}
	return defines.String() + text, nil
}
