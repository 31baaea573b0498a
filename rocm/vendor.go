package rocm

// The parts of the backend that are specific to AMD: names of libraries, versions, targets.
// internal/cgo has the rest, which all vendors share.

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/concord-compute/concord/internal/cgo"
	"github.com/concord-compute/concord/runtime/driver"
	"github.com/concord-compute/concord/source"
)

// vendor describes the backend over real libraries.
func vendor() cgo.Vendor {
	return cgo.Vendor{
		Name: "rocm", Maker: "AMD", Target: source.HIP,
		Description: driver.Description{Title: "ROCm", Aliases: []string{"hip"}, Preference: 3},
		Table:       table, Missing: missing,
		Absent: absent, Libraries: libraries, Compilers: []string{"hiprtc", "comgr"},
		Remedies: cgo.Remedies{
			Driver: "install AMD's driver and HIP (package libamdhip64-5 or hip-runtime-amd; in a container, start it with " +
				"/dev/kfd and " +
				"/dev/dri), or name its library in CONCORD_HIP_LIBRARY",
			Compiler: "install hipRTC (package libamdhip64-5 or hip-runtime-amd) with comgr (libamd-comgr2 or comgr)",
			Devices: "is the GPU another vendor's, does HIP_VISIBLE_DEVICES or " +
				"ROCR_VISIBLE_DEVICES hide it, may this user open " +
				"/dev/kfd (group render), is the module amdgpu loaded?",
			Absent: "is there an AMD GPU, and the module amdgpu loaded (in a container, start it with /dev/kfd and /dev/dri)? " +
				"HIP is opened " +
				"all the same if CONCORD_HIP_LIBRARY names it",
			Probe: advice,
		},
		Version:  version,
		Features: features, Describe: describe,
		CompileArch: compileArch,
		Flags:       flags, Options: options,
		BLAS: blas, BLASName: "rocblas", Collectives: collectives,
		Marks: marks, MarkBegin: "roctxRangeStartA", MarkEnd: "roctxRangeStop",
		Report: report,
	}
}

// advice returns the remedy for a machine on which no device is found.
func advice(cfg *driver.Config) string {
	if absent(cfg) != "" {
		return "there is no AMD GPU, or its driver is not loaded (module amdgpu); a container has to be started with " +
			"/dev/kfd and /dev/dri"
	}
	return "install the ROCm runtime (it brings libamdhip64); is the GPU hidden by ROCR_VISIBLE_DEVICES or " +
		"HIP_VISIBLE_DEVICES?" +
		cgo.WrongHome("ROCM_PATH")
}

// simulated describes the backend over the library of tests/sim.
func simulated() cgo.Vendor {
	v := vendor().Simulation(simLibraries, simBLAS, simCollectives)
	v.Report = nil // the simulated code objects are not those of AMD
	return v
}

// kfd is the device node of AMD's compute driver.
const kfd = "/dev/kfd"

// absent keeps HIP from being loaded on machines without an AMD GPU, since its LLVM conflicts with
// others in the same process (see the package documentation).
func absent(cfg *driver.Config) string {
	if cfg.HIPLibrary != "" {
		return ""
	}
	if _, err := os.Stat(kfd); err != nil {
		return kfd + " does not exist"
	}
	return ""
}

// version formats HIP's version number: 50221153 is "5.2.21153".
func version(n int) string {
	return fmt.Sprintf("%d.%d.%d", n/10_000_000, n/100_000%100, n%100_000)
}

// versions are the names of HIP's libraries by version, newest first.
var versions = []string{".so.7", ".so.6", ".so.5", ".so"}

// toolkits returns the directories of ROCm.
func toolkits() []string { return cgo.Homes("/opt/rocm", "ROCM_PATH", "HIP_PATH") }

// libraries returns the candidates for HIP, and for hipRTC if HIP does not contain it.
func libraries(cfg *driver.Config) (drv, rtc []string) {
	if cfg.HIPLibrary != "" {
		for _, v := range versions {
			rtc = append(rtc, filepath.Join(filepath.Dir(cfg.HIPLibrary), "libhiprtc"+v))
		}
		return []string{cfg.HIPLibrary}, rtc
	}
	for _, v := range versions {
		drv, rtc = append(drv, "libamdhip64"+v), append(rtc, "libhiprtc"+v)
	}
	return append(drv, cgo.Below(toolkits(), "lib/libamdhip64.so")...),
		append(rtc, cgo.Below(toolkits(), "lib/libhiprtc.so")...)
}

// simLibraries returns the simulated HIP, which contains the simulated hipRTC, too.
func simLibraries(cfg *driver.Config) (drv, rtc []string) {
	return cgo.SimFile(cfg, "libamdhip64.so.5"), nil
}

func simBLAS(cfg *driver.Config) []string { return cgo.SimFile(cfg, "librocblas.so.4") }

// marks returns the candidates for the library of rocTX: that of rocprofiler-sdk in ROCm 7 and 6, and that of
// roctracer.
func marks() []string {
	return append([]string{"librocprofiler-sdk-roctx.so.1", "librocprofiler-sdk-roctx.so.0", "libroctx64.so.4"},
		cgo.Below(toolkits(), "lib/librocprofiler-sdk-roctx.so", "lib/libroctx64.so")...)
}

// blas returns the candidates for rocBLAS, of ROCm 7 to 5.
func blas(*driver.Config) []string {
	return append([]string{"librocblas.so.5", "librocblas.so.4", "librocblas.so.0"},
		cgo.Below(toolkits(), "lib/librocblas.so")...)
}

// collectives returns the candidates for RCCL.
func collectives(*driver.Config) []string {
	return append([]string{"librccl.so.1"}, cgo.Below(toolkits(), "lib/librccl.so.1", "lib/librccl.so")...)
}

func simCollectives(cfg *driver.Config) []string { return cgo.SimFile(cfg, "librccl.so.1") }

// compileArch returns the full name of the device's architecture, such as "gfx90a:sramecc+:xnack-",
// as the target: AMD has no portable intermediate code that could run on other architectures.
func compileArch(arch string, known []string) (string, error) {
	if base, _, _ := strings.Cut(arch, ":"); slices.Contains(known, base) {
		return arch, nil
	}
	return "", fmt.Errorf("hipRTC cannot compile for %q (it knows %s); install a newer ROCm: %w",
		arch, strings.Join(known, " "), driver.ErrUnsupported)
}
