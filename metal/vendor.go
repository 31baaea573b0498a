package metal

// The parts of the backend that are specific to Apple: GPU families, options, versions.
// internal/cgo has the rest, which all vendors share.

import (
	"fmt"
	"math"
	goruntime "runtime"
	"strconv"
	"strings"
	"unsafe"

	"github.com/concord-compute/concord/internal/cgo"
	"github.com/concord-compute/concord/runtime/driver"
	"github.com/concord-compute/concord/source"
)

// onMac reports whether a build with the shim links Apple's framework, and not the simulated one.
const onMac = goruntime.GOOS == "darwin"

func none() unsafe.Pointer { return nil }

// vendor describes the backend over Apple's framework.
func vendor() cgo.Vendor {
	v := cgo.Vendor{
		Name: "metal", Maker: "Apple", Target: source.Metal,
		Description: driver.Description{Title: "Metal", Preference: 2},
		Table:       table, Missing: missing,
		Libraries: func(*driver.Config) (drivers, compilers []string) { return nil, nil }, // linked
		Remedies: cgo.Remedies{
			Devices: "does this machine, or virtual machine, have a GPU that supports Metal, and may this session use it?",
			Probe:   func(*driver.Config) string { return "Metal exists on macOS only" },
		},
		Version:  version,
		Features: features, Describe: describe, ConstantAlign: constantAlign,
		Flags: flags, Options: options,
		BLAS: func(*driver.Config) []string { return nil }, BLASName: "mps",
	}
	if !onMac && missing == "" {
		v.Table, v.Missing = none, "Metal runs on macOS (this build has the simulated one: sim-metal)"
	}
	return v
}

// simulated describes the backend over the framework of tests/sim/metal.
func simulated() cgo.Vendor {
	v := vendor()
	v.Description = driver.Description{}
	v.Name, v.Simulated, v.Table, v.Missing = "sim-metal", true, table, missing
	if onMac || missing != "" {
		v.Table, v.Missing = none, "not in this build: simulated Metal is built on Linux (make test-metal)"
	}
	v.Remedies = cgo.Remedies{Devices: "does a fault hide the simulated devices?"}
	return v
}

// version formats the version of the system's kernel: 230500 is "23.5.0".
func version(n int) string { return fmt.Sprintf("%d.%d.%d", n/10000, n/100%100, n%100) }

// family returns the number of an Apple GPU family: 7 for "apple7". It is 0 for other GPUs.
func family(arch string) int {
	digits, _ := strings.CutPrefix(arch, "apple")
	n, err := strconv.Atoi(digits)
	if err != nil {
		return 0
	}
	return n
}

// features returns the features that portable programs may use on a family of GPUs. Metal has no
// double, and no 64-bit atomic operations that return the old value. SIMD groups can shuffle from
// family 6 on, and on the AMD and Intel GPUs of Macs.
func features(arch string) source.Features {
	return source.Features{FP16: true, FastFMA: true, Subgroups: family(arch) >= 6 || arch == "mac2"}
}

// describe sets the flags that follow from the family; fields for which Apple documents nothing
// stay unset.
func describe(info *driver.Info) {
	info.SupportsFP16 = true
	info.MaxItems = math.MaxUint32 // a position in the grid is a uint
}

// constantAlign returns the alignment of offsets of constant buffers in bytes (Metal feature set
// tables, minimum constant buffer offset alignment): 4 on Apple's GPUs, 256 on other GPUs of Macs.
func constantAlign(arch string) int {
	if family(arch) > 0 {
		return 4
	}
	return 256
}
