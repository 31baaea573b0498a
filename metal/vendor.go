package metal

// What Apple adds to the Go half that all vendors share (internal/cgo): families,
// options, versions.

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

// onMac tells which framework a build with the shim has: Apple's, or the simulated
// one.
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
			Devices: "has this machine, or virtual machine, a GPU that Metal runs on, and may this session use it?",
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

// version writes that of the system's kernel, 230500, as "23.5.0".
func version(n int) string { return fmt.Sprintf("%d.%d.%d", n/10000, n/100%100, n%100) }

// family reads the number of an Apple family: 7 of "apple7". It is 0 for others.
func family(arch string) int {
	digits, _ := strings.CutPrefix(arch, "apple")
	n, err := strconv.Atoi(digits)
	if err != nil {
		return 0
	}
	return n
}

// features are those that portable programs may use on a family of GPUs. Metal has
// no double, and no atomic operations on 64 bits that return what was there. SIMD
// groups shuffle from family 6 on and on Macs' other GPUs.
func features(arch string) source.Features {
	return source.Features{FP16: true, FastFMA: true, Subgroups: family(arch) >= 6 || arch == "mac2"}
}

// describe sets the flags of a family; what Apple does not document stays unset.
func describe(info *driver.Info) {
	info.SupportsFP16 = true
	info.MaxItems = math.MaxUint32 // a position in the grid is a uint
}

// constantAlign is 256 on Macs' GPUs that are not Apple's (Metal feature set tables,
// minimum constant buffer offset alignment), 4 on Apple's.
func constantAlign(arch string) int {
	if family(arch) > 0 {
		return 4
	}
	return 256
}
