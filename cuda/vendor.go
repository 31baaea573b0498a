package cuda

// The parts of the backend that are specific to NVIDIA: names of libraries, options, versions.
// internal/cgo has the rest, which all vendors share.

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/concord-compute/concord/internal/cgo"
	"github.com/concord-compute/concord/runtime/driver"
	"github.com/concord-compute/concord/source"
)

// vendor describes the backend over real libraries.
func vendor() cgo.Vendor {
	return cgo.Vendor{
		Name: "cuda", Maker: "NVIDIA", Target: source.CUDA,
		Description: driver.Description{Title: "CUDA", Preference: 4},
		Table:       table, Missing: missing,
		Libraries: libraries, Compilers: []string{"nvrtc", "nvrtc-builtins"},
		Remedies: cgo.Remedies{
			Driver: "install NVIDIA's driver (in a container, start it with access to the GPU), or name its library in " +
				"CONCORD_CUDA_LIBRARY",
			Compiler: "install NVRTC (package libnvrtc11.2, cuda-nvrtc-12-x or nvidia-cuda-nvrtc), or name its library in " +
				"CONCORD_NVRTC_LIBRARY",
			Devices: "is the GPU another vendor's, does CUDA_VISIBLE_DEVICES hide it, is it used exclusively by another " +
				"process, " +
				"is the driver's module loaded?",
			Probe: advice,
		},
		Version:  version,
		Features: features, Describe: describe,
		CompileArch: compileArch,
		Flags:       flags, Options: options, Merge: merge,
		BLAS: blas, BLASName: "cublas", Collectives: collectives,
		Marks: marks, MarkBegin: "nvtxRangeStartA", MarkEnd: "nvtxRangeEnd",
		Outdated: outdated, Report: report,
	}
}

// advice returns the remedy for a machine on which no device is found.
func advice(*driver.Config) string {
	return "install the NVIDIA driver (it brings libcuda); is the GPU of another vendor, hidden by " +
		"CUDA_VISIBLE_DEVICES, used exclusively " +
		"by another process, or the kernel module not loaded?" + cgo.WrongHome("CUDA_HOME")
}

// simulated describes the backend over the libraries of tests/sim.
func simulated() cgo.Vendor { return vendor().Simulation(simLibraries, simBLAS, simCollectives) }

// version writes 12020 as "12.2".
func version(n int) string { return fmt.Sprintf("%d.%d", n/1000, n%1000/10) }

// outdated returns a remedy for CUDA_ERROR_NO_BINARY_FOR_GPU, CUDA_ERROR_INVALID_PTX and
// CUDA_ERROR_UNSUPPORTED_PTX_VERSION if NVRTC is newer than the driver: the driver cannot read
// newer PTX. Machine code works mostly across versions.
func outdated(code, driver, major, minor int) string {
	if code != 209 && code != 218 && code != 222 || driver >= 1000*major+10*minor {
		return ""
	}
	return fmt.Sprintf("the driver is for CUDA %s and NVRTC is %d.%d: update the driver, or use an older NVRTC "+
		"(CONCORD_NVRTC_LIBRARY names one)",
		version(driver), major, minor)
}

// drivers are the names of the driver's library: for the loader's search, in WSL's directory, and
// where container hosts mount it.
var drivers = []string{"libcuda.so.1", "libcuda.so", "/usr/lib/wsl/lib/libcuda.so.1",
	"/usr/local/nvidia/lib64/libcuda.so.1"}

// compilers are the names of NVRTC's library. Up to 11.2 the name contains the version; from 11.3
// to 11.8 it is that of 11.2.
var compilers = []string{"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so.11.2", "libnvrtc.so.11.1", "libnvrtc.so.11.0",
	"libnvrtc.so"}

// toolkits returns the directories of installed toolkits.
func toolkits() []string { return cgo.Homes("/usr/local/cuda", "CUDA_HOME", "CUDA_PATH") }

// wheels returns the files of a library that Python's packages have installed: for the active environment and for the
// python3 of PATH. The patterns are paths below the directory nvidia.
func wheels(patterns ...string) (files []string) {
	for _, prefix := range pythons() {
		for _, dir := range []string{"site-packages", "dist-packages"} {
			for _, p := range patterns {
				// It fails for bad patterns only.
				found, _ := filepath.Glob(filepath.Join(prefix, "lib*", "python3*", dir, "nvidia", p))
				files = append(files, found...)
			}
		}
	}
	return files
}

// pythons returns the directories that installations of Python may be in. An environment's bin/python3 is a symbolic
// link to another installation's: each link leads to a directory.
func pythons() (prefixes []string) {
	add := func(dir string) {
		if filepath.IsAbs(dir) && !slices.Contains(prefixes, dir) && !strings.ContainsAny(dir, `*?[\`) {
			prefixes = append(prefixes, dir)
		}
	}
	add(os.Getenv("VIRTUAL_ENV"))
	add(os.Getenv("CONDA_PREFIX"))
	path, _ := exec.LookPath("python3") // "" if there is none
	for hops := 0; path != "" && hops < 8; hops++ {
		add(filepath.Dir(filepath.Dir(path)))
		to, err := os.Readlink(path)
		if err != nil {
			break
		}
		if !filepath.IsAbs(to) {
			to = filepath.Join(filepath.Dir(path), to)
		}
		path = to
	}
	add("/usr/local") // where Debian's Python installs packages
	// libraries are not loaded from the working directory
	if home, err := os.UserHomeDir(); err == nil && filepath.IsAbs(home) {
		add(filepath.Join(home, ".local"))
	}
	return prefixes
}

// marks returns the candidates for the library of NVTX, which CUDA has up to version 12.
func marks() []string {
	return slices.Concat([]string{"libnvToolsExt.so.1"}, cgo.Below(toolkits(), "lib64/libnvToolsExt.so.1"),
		wheels("nvtx/lib/libnvToolsExt.so.1"))
}

// blas returns the candidates for cuBLAS: for the loader's search, of toolkits, of Python's packages.
func blas(*driver.Config) []string {
	return slices.Concat([]string{"libcublas.so.13", "libcublas.so.12", "libcublas.so.11"},
		cgo.Below(toolkits(), "lib64/libcublas.so"), wheels("cu1[0-9]/lib/libcublas.so.*", "cublas/lib/libcublas.so.*"))
}

// collectives returns the candidates for NCCL: for the loader's search, of toolkits, of Python's packages.
func collectives(*driver.Config) []string {
	return slices.Concat([]string{"libnccl.so.2"}, cgo.Below(toolkits(), "lib64/libnccl.so.2", "lib/libnccl.so.2"),
		wheels("nccl/lib/libnccl.so.2"))
}

// libraries returns the candidates for the driver and for NVRTC. Of these the shim prefers one that suits the driver.
func libraries(cfg *driver.Config) (drv, rtc []string) {
	drv, rtc = drivers, []string{cfg.NVRTCLibrary}
	if cfg.CUDALibrary != "" {
		drv = []string{cfg.CUDALibrary}
	}
	if cfg.NVRTCLibrary == "" {
		rtc = slices.Concat(compilers,
			cgo.Below(toolkits(), "lib64/libnvrtc.so", "lib/libnvrtc.so", "targets/x86_64-linux/lib/libnvrtc.so"),
			wheels("cu1[0-9]/lib/libnvrtc.so.*", "cuda_nvrtc/lib/libnvrtc.so.*"))
	}
	return drv, rtc
}

// simLibraries returns the simulated libraries. The directory new of make sim has those of CUDA 13.
func simLibraries(cfg *driver.Config) (drv, rtc []string) {
	return cgo.SimFile(cfg, "libcuda.so.1"), cgo.SimFile(cfg, "libnvrtc.so.13", "libnvrtc.so.11.2")
}

func simBLAS(cfg *driver.Config) []string {
	return cgo.SimFile(cfg, "libcublas.so.13", "libcublas.so.12")
}

func simCollectives(cfg *driver.Config) []string { return cgo.SimFile(cfg, "libnccl.so.2") }

// capability returns the number in the name of an architecture: 90 for "sm_90", "sm_90a" and
// "compute_90".
func capability(arch string) (int, bool) {
	_, digits, found := strings.Cut(arch, "_")
	n, err := strconv.Atoi(strings.TrimRight(digits, "abcdefghijklmnopqrstuvwxyz"))
	return n, found && err == nil
}

// compileArch chooses the target for a device: its machine code if NVRTC knows the architecture,
// else the newest PTX that NVRTC supports and the device can run, which the driver compiles to
// machine code.
func compileArch(arch string, known []string) (string, error) {
	if slices.Contains(known, arch) {
		return arch, nil
	}
	want, ok := capability(arch)
	best := 0
	for _, k := range known {
		if n, ok := capability(k); ok && n < want {
			best = max(best, n)
		}
	}
	if !ok || best == 0 {
		return "", fmt.Errorf("NVRTC cannot compile for %s (it knows %s): an older one can (CONCORD_NVRTC_LIBRARY names one)",
			arch, strings.Join(known, ", "))
	}
	return fmt.Sprintf("compute_%d", best), nil
}
