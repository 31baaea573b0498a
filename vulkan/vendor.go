package vulkan

// The parts of the backend that are specific to Vulkan: the loader's names, features by the architecture.
// internal/cgo has the rest, which all vendors share.

import (
	"fmt"
	"math"
	goruntime "runtime"
	"slices"
	"strings"

	"github.com/concord-compute/concord/internal/cgo"
	"github.com/concord-compute/concord/runtime/driver"
	"github.com/concord-compute/concord/source"
)

// vendor describes the backend.
func vendor() cgo.Vendor {
	return cgo.Vendor{
		Name: "vulkan", Maker: "Vulkan", Target: source.SPIRV,
		Description: driver.Description{Title: "Vulkan", Portable: true},
		Table:       table, Missing: missing,
		Libraries: func(cfg *driver.Config) (drivers, compilers []string) { return loaders(cfg), nil },
		Remedies: cgo.Remedies{
			Driver:  "install the Vulkan loader (Debian: libvulkan1) and the driver of the GPU (mesa-vulkan-drivers, NVIDIA's)",
			Devices: "install the GPU's Vulkan driver (Debian: mesa-vulkan-drivers); vulkaninfo --summary lists those that work",
			Probe: func(*driver.Config) string {
				return "install the Vulkan loader and the driver of the GPU (Debian: libvulkan1 mesa-vulkan-drivers)"
			},
		},
		Version:  version,
		Features: features, Describe: describe,
		Compiler: &cgo.Compiler{Version: compilerVersion, Targets: targets(), Build: build},
		Options:  options,
	}
}

// loaders returns the candidates for the loader.
func loaders(cfg *driver.Config) []string {
	switch {
	case cfg.VulkanLibrary != "":
		return []string{cfg.VulkanLibrary}
	case goruntime.GOOS == "darwin":
		return []string{"libvulkan.1.dylib", "/usr/local/lib/libvulkan.1.dylib", "/opt/homebrew/lib/libvulkan.1.dylib"}
	}
	return []string{"libvulkan.so.1", "libvulkan.so"}
}

// version formats a version of the API: 4206831 is "1.3.239".
func version(n int) string { return fmt.Sprintf("%d.%d.%d", n>>22, n>>12&0x3ff, n&0xfff) }

// The parts of an architecture, in the order in which csrc/vulkan/device.c writes them: double, half
// arithmetic, 64-bit atomics, sub-groups.
var parts = []string{"fp64", "fp16", "i64", "sg"}

// targets returns every architecture.
func targets() (list []string) {
	for n := range 1 << len(parts) {
		arch := "vk1.3"
		for i, part := range parts {
			if n>>i&1 != 0 {
				arch += "-" + part
			}
		}
		list = append(list, arch)
	}
	return list
}

// features returns the features that programs may use on an architecture.
func features(arch string) source.Features {
	has := strings.Split(arch, "-")
	return source.Features{FP64: slices.Contains(has, "fp64"), FP16: slices.Contains(has, "fp16"),
		Int64Atomic: slices.Contains(has, "i64"), Subgroups: slices.Contains(has, "sg")}
}

func describe(info *driver.Info) {
	info.SupportsFP16 = info.Features.FP16
	info.MaxItems = math.MaxUint32 // positions in the grid have 32 bits
}
