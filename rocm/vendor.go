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
		BLAS: blas, BLASName: "rocblas",
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
	v := vendor()
	v.Description = driver.Description{}
	v.Name, v.Simulated, v.Absent, v.Libraries, v.Report, v.BLAS, v.Marks = "sim-rocm", true, nil, simLibraries, nil,
		simBLAS, nil
	const remedy = "run make sim in the repository, or name the directory of the simulated libraries in CONCORD_SIM_DIR"
	v.Remedies = cgo.Remedies{Driver: remedy, Compiler: remedy}
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

// toolkits returns the directories of ROCm, first those that environment variables name.
func toolkits() (dirs []string) {
	for _, name := range []string{"ROCM_PATH", "HIP_PATH"} {
		if dir := os.Getenv(name); filepath.IsAbs(dir) {
			dirs = append(dirs, filepath.Clean(dir))
		}
	}
	return append(dirs, "/opt/rocm")
}

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
	for _, dir := range toolkits() {
		if path := filepath.Join(dir, "lib", "libamdhip64.so"); !slices.Contains(drv, path) {
			drv, rtc = append(drv, path), append(rtc, filepath.Join(dir, "lib", "libhiprtc.so"))
		}
	}
	return drv, rtc
}

// simDir is the directory in which make sim builds the simulated libraries.
const simDir = "build/sim"

// simLibraries returns the path of a file, never a bare name, which the loader would search for.
// The file contains the simulated hipRTC, too.
func simLibraries(cfg *driver.Config) (drv, rtc []string) {
	return simFile(cfg, "libamdhip64.so.5"), nil
}

func simBLAS(cfg *driver.Config) []string { return simFile(cfg, "librocblas.so.4") }

func simFile(cfg *driver.Config, name string) []string {
	dir := cfg.SimDir
	if dir == "" {
		dir = simDir
	}
	path, err := filepath.Abs(filepath.Join(dir, name))
	if err != nil {
		return nil
	}
	return []string{path}
}

// marks returns the candidates for the library of rocTX: that of rocprofiler-sdk in ROCm 7 and 6, and that of
// roctracer.
func marks() []string {
	names := []string{"librocprofiler-sdk-roctx.so.1", "librocprofiler-sdk-roctx.so.0", "libroctx64.so.4"}
	for _, dir := range toolkits() {
		names = append(names, filepath.Join(dir, "lib", "librocprofiler-sdk-roctx.so"),
			filepath.Join(dir, "lib", "libroctx64.so"))
	}
	return names
}

// blas returns the candidates for rocBLAS, of ROCm 7 to 5.
func blas(*driver.Config) []string {
	names := []string{"librocblas.so.5", "librocblas.so.4", "librocblas.so.0"}
	for _, dir := range toolkits() {
		names = append(names, filepath.Join(dir, "lib", "librocblas.so"))
	}
	return names
}

// compileArch returns the full name of the device's architecture, such as "gfx90a:sramecc+:xnack-",
// as the target: AMD has no portable intermediate code that could run on other architectures.
func compileArch(arch string, known []string) (string, error) {
	if base, _, _ := strings.Cut(arch, ":"); slices.Contains(known, base) {
		return arch, nil
	}
	return "", fmt.Errorf("hipRTC cannot compile for %q (it knows %s); install a newer ROCm: %w",
		arch, strings.Join(known, " "), driver.ErrUnsupported)
}
