package cgo

// Vendor: the description of one vendor for the code that all vendors share.

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	goruntime "runtime"
	"slices"
	"strings"
	"unsafe"

	"github.com/concord-compute/concord/runtime/driver"
	"github.com/concord-compute/concord/source"
)

// Vendor has the parts of a backend that differ from vendor to vendor. Its functions are called
// from any goroutine and touch no driver.
type Vendor struct {
	Name      string        // the backend: "cuda", "sim-cuda"
	Maker     string        // the maker of the devices: "NVIDIA"
	Simulated bool          // the libraries are simulated; this is not asked of the libraries
	Target    source.Target // the language that programs are rendered in

	// Description is the result of the backend's Describe.
	Description driver.Description

	// Table returns the vendor's concord_shim, or nil if it is not in this build; Missing is then
	// the reason. It is called by Probe, Open and compiles, never while the program starts.
	Table   func() unsafe.Pointer
	Missing string

	// Absent returns why the machine cannot have a device of the vendor, without using its
	// libraries, or "". Devices are looked for only if it returns "". Compiling for other machines
	// does not depend on it. May be nil.
	Absent func(cfg *driver.Config) string
	// Libraries returns the candidates for the libraries of the driver and the compiler, best
	// first, each a path or a bare name.
	Libraries func(cfg *driver.Config) (drivers, compilers []string)
	// Compilers are the libraries that the compiler consists of, by their names in driver.Library.
	Compilers []string
	// Remedies are instructions for when something is missing.
	Remedies Remedies

	// Version formats a version number of the driver or the runtime library in its usual form:
	// 12020 is "12.2".
	Version func(n int) string
	// Features returns the features that programs may use on an architecture.
	Features func(arch string) source.Features
	// Describe adds the fields of info that follow from Arch, ComputeMajor and ComputeMinor and
	// that the driver does not report: capability flags, peak rates. May be nil.
	Describe func(info *driver.Info)

	// ConstantAlign returns the alignment, in bytes, that an architecture requires of the addresses
	// of constant arguments. Nil means 1.
	ConstantAlign func(arch string) int

	// Compiler is a compiler in Go. Nil means that the table compiles.
	Compiler *Compiler

	// CompileArch chooses the target for a device of an architecture from those that the compiler
	// knows, or returns an error if none fits. Nil means that the target is the architecture
	// itself.
	CompileArch func(arch string, known []string) (target string, err error)
	// Flags returns the fixed options of the compiler for a target, including the one that names
	// the target.
	Flags func(target string) []string
	// Options translates the options of a program; an unknown one is an error. Nil means that they
	// are passed to the compiler as they are.
	Options func(options []string) ([]string, error)
	// Merge combines the fixed options with the program's, for compilers that refuse an option
	// given twice. Nil means that the program's follow the fixed ones.
	Merge func(flags, options []string) []string
	// BLAS returns the candidates for the library of the vendor's BLAS. Nil means that there is
	// none. BLASName is its name in records: "cublas".
	BLAS     func(cfg *driver.Config) []string
	BLASName string
	// Collectives returns the candidates for the vendor's library of collectives. Nil means that there is none.
	Collectives func(cfg *driver.Config) []string
	// Marks returns the candidates for the library that names parts of a program for the vendor's profilers, best
	// first. Nil means that there is none. Its function MarkBegin takes a name and returns a number of 64 bits,
	// with which MarkEnd ends what began.
	Marks              func() []string
	MarkBegin, MarkEnd string
	// Outdated returns a remedy for a driver that refuses a compiled program with an error code of
	// its own because of the versions of driver and compiler, and "" if they are not the cause. May
	// be nil.
	Outdated func(code, driver, compilerMajor, compilerMinor int) string
	// Report returns the properties of all compiled kernels, in any order, or of none. May be nil.
	Report func(c *Compilation) ([]driver.KernelInfo, error)
}

// Simulation returns the description of a vendor's backend over the libraries of tests/sim: those of driver and
// compiler, of BLAS, and of collectives.
func (v Vendor) Simulation(libraries func(cfg *driver.Config) (drivers, compilers []string),
	blas, collectives func(cfg *driver.Config) []string) Vendor {
	const remedy = "run make sim in the repository, or name the directory of the simulated libraries in CONCORD_SIM_DIR"
	v.Name, v.Simulated, v.Description = "sim-"+v.Name, true, driver.Description{}
	v.Libraries, v.BLAS, v.Collectives, v.Absent, v.Marks = libraries, blas, collectives, nil, nil
	v.Remedies = Remedies{Driver: remedy, Compiler: remedy}
	return v
}

// SimDir is the directory in which make sim builds the simulated libraries, unless Config.SimDir names another.
const SimDir = "build/sim"

// SimFile returns the path of the first of names that exists in the directory of the simulated libraries, else of the
// last. It is never a bare name, which the loader would search for.
func SimFile(cfg *driver.Config, names ...string) (paths []string) {
	for _, name := range names {
		path, err := filepath.Abs(filepath.Join(cmp.Or(cfg.SimDir, SimDir), name))
		if err != nil {
			return nil
		}
		paths = []string{path}
		if _, err := os.Stat(path); err == nil {
			break
		}
	}
	return paths
}

// Homes returns the directories of a vendor's toolkit: those that environment variables name, if absolute, and the
// usual one.
func Homes(usual string, variables ...string) (dirs []string) {
	add := func(dir string) {
		if dir = filepath.Clean(dir); filepath.IsAbs(dir) && !slices.Contains(dirs, dir) {
			dirs = append(dirs, dir)
		}
	}
	for _, name := range variables {
		add(os.Getenv(name))
	}
	add(usual)
	return dirs
}

// Below returns the paths of files in each of some directories.
func Below(dirs []string, files ...string) (paths []string) {
	for _, dir := range dirs {
		for _, file := range files {
			paths = append(paths, filepath.Join(dir, file))
		}
	}
	return paths
}

// NotBuilt returns the reason why the C of a backend is not in this build. how says how to build with it, and systems
// are those for which that is possible, as Go names them.
func NotBuilt(how string, systems ...string) string {
	if !enabled {
		how = "CGO_ENABLED=1, a C compiler and " + how
	}
	if !slices.Contains(systems, goruntime.GOOS) {
		how += " on " + strings.NewReplacer("darwin", "macOS", "linux", "Linux").Replace(strings.Join(systems, " or "))
	}
	return "not in this build: rebuild with " + how
}

// Remedies are short instructions that follow a reason: "install the NVIDIA
// driver".
type Remedies struct {
	Driver   string // no driver library, or one that is too old
	Compiler string // no compiler library
	Devices  string // a driver without devices
	Absent   string // Vendor.Absent returned a reason

	// Probe returns Probe.Remedy for a machine on which no device is found. It may read the
	// environment. Nil means no remedy.
	Probe func(cfg *driver.Config) string
}

// Advice returns Probe.Remedy for a reason: an instruction about permissions if the reason is a
// missing permission, and else the argument otherwise.
func Advice(reason, otherwise string) string {
	if strings.Contains(strings.ToLower(reason), "permission") {
		return "add yourself to the group that owns the device node (ls -l /dev/dri /dev/nvidia* /dev/kfd)"
	}
	return otherwise
}

// WrongHome returns a remark that follows a remedy if the variable that names a toolkit's
// directory names one that does not exist, and else "".
func WrongHome(variable string) string {
	dir := os.Getenv(variable)
	if dir == "" {
		return ""
	}
	if _, err := os.Stat(dir); err == nil {
		return ""
	}
	return fmt.Sprintf(" (%s is set to %s, which does not exist)", variable, dir)
}

// Compilation is a program that was compiled for a target, with functions that call the same
// compiler again.
type Compilation struct {
	Target  string
	Unit    *source.Unit
	Options []string // the options that it was compiled with
	Code    []byte
	Log     string

	// Compile builds the same text with other options, to the vendor's assembly for example.
	Compile func(options []string) (code []byte, log string, err error)
	// Assemble turns the vendor's assembly into code. If the vendor's assembler is not installed
	// the error matches driver.ErrUnsupported.
	Assemble func(text []byte, options []string) (code []byte, log string, err error)
}

// Compiler builds programs in Go, so that no library of a compiler is looked for.
type Compiler struct {
	// Version is part of the keys of caches. It changes with every change after which a unit compiles to other bytes.
	Version string
	// Targets are the architectures that it compiles for.
	Targets []string
	// Build compiles a unit for one of them. What the target cannot express is an error with its place in the text.
	Build func(ctx context.Context, unit *source.Unit, target string, options []string) (code []byte, log string,
		err error)
}
