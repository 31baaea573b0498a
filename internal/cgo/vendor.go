package cgo

// What one vendor's package says of itself.

import (
	"fmt"
	"os"
	"strings"
	"unsafe"

	"github.com/concord-compute/concord/runtime/driver"
	"github.com/concord-compute/concord/source"
)

// Vendor is what one vendor adds to the Go side that all of them share. Its
// functions are called from any goroutine and touch no driver.
type Vendor struct {
	Name      string        // the backend: "cuda", "sim-cuda"
	Maker     string        // of its devices: "NVIDIA"
	Simulated bool          // whatever the libraries say of themselves
	Target    source.Target // what programs are rendered to

	// Description is what the backend says of itself.
	Description driver.Description

	// Table returns the vendor's concord_shim, or nil if it is not in this build;
	// Missing is then the reason. It is called when somebody asks for devices,
	// never while the program starts.
	Table   func() unsafe.Pointer
	Missing string

	// Absent says why the machine can have no device of the vendor, from signs that
	// need none of its libraries, or "". Devices are looked for only if it does;
	// compiling for others is not asked. May be nil.
	Absent func(cfg *driver.Config) string
	// Libraries are the candidates for the driver and the compiler, best first,
	// each a path or a bare name.
	Libraries func(cfg *driver.Config) (drivers, compilers []string)
	// Remedies are what to do when something is not there.
	Remedies Remedies

	// Version writes a version number of the driver or the runtime library as
	// people do: 12020 is "12.2".
	Version func(n int) string
	// Features are what programs may use on an architecture.
	Features func(arch string) source.Features
	// Describe adds what follows from Arch, ComputeMajor and ComputeMinor to what
	// the driver told: the capability flags, peak rates. May be nil.
	Describe func(info *driver.Info)

	// ConstantAlign is what addresses of memory that a kernel takes as constant have
	// to be a multiple of on an architecture. With nil any will do.
	ConstantAlign func(arch string) int

	// CompileArch returns the target to compile for on a device of an
	// architecture, of those that the compiler knows. An error says that there is
	// none. With nil the architecture itself has to be known.
	CompileArch func(arch string, known []string) (target string, err error)
	// Flags are the fixed options of the compiler for a target, the one that names
	// the target included.
	Flags func(target string) []string
	// Options translates the options of a program; one that is not understood is
	// an error. With nil they are passed on.
	Options func(options []string) ([]string, error)
	// Merge puts both together, for compilers that take no option twice. With nil
	// the program's follow the fixed ones.
	Merge func(flags, options []string) []string
	// BLAS are the candidates for the vendor's BLAS, which BLASName names in records:
	// "cublas". With nil it is not looked for.
	BLAS     func(cfg *driver.Config) []string
	BLASName string
	// Outdated says what to do when the driver refuses a compiled program with that
	// code of its own, given both versions; "" if they have nothing to do with it.
	// May be nil.
	Outdated func(code, driver, compilerMajor, compilerMinor int) string
	// Report finds out what the compiler made of kernels, in any order. May be nil.
	Report func(c *Compilation) ([]driver.KernelInfo, error)
}

// Remedies are short instructions that follow a reason: "install the NVIDIA
// driver".
type Remedies struct {
	Driver   string // no driver library, or one that is too old
	Compiler string // no compiler library
	Devices  string // a driver without devices
	Absent   string // Vendor.Absent said something

	// Probe returns Probe.Remedy where no device is found. It may look at the
	// environment. With nil there is none.
	Probe func(cfg *driver.Config) string
}

// Advice returns Probe.Remedy for a reason: otherwise, unless a permission is missing.
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

// Compilation is a program that was compiled for a target, and the compiler that
// did it.
type Compilation struct {
	Target  string
	Unit    *source.Unit
	Text    string   // the unit as rendered
	Options []string // those that it was compiled with
	Code    []byte
	Log     string

	// Compile builds Text with other options, to the vendor's assembly for example.
	Compile func(options []string) (code []byte, log string, err error)
	// Assemble turns the vendor's assembly into code. Where the vendor's assembler
	// is not here the error matches driver.ErrUnsupported.
	Assemble func(text []byte, options []string) (code []byte, log string, err error)
}
