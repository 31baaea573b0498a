package conformance

// Info: the fields that driver.Info makes mandatory.

import (
	"slices"
	"strings"

	"github.com/concord-compute/concord/runtime/driver"
)

var infoChecks = []Row{
	{"info/mandatory", false, checkInfo},
}

func checkInfo(t *row, d *device) {
	info := d.Driver().Info()
	backend, rest, _ := strings.Cut(info.ID, ":")
	expect(t, backend != "" && rest != "", "ID is %q, not the backend, a colon and the device", info.ID)
	equal(t, backend, info.Backend, "ID begins with Backend")
	equal(t, strings.ToLower(backend), backend, "a backend's name is lower case")
	expect(t, info.NativeIndex >= 0, "NativeIndex is %d", info.NativeIndex)
	expect(t, info.Name != "", "Name is empty")
	kinds := []driver.Kind{driver.Discrete, driver.Integrated, driver.Virtual, driver.CPU, driver.Accelerator}
	expect(t, slices.Contains(kinds, info.Kind), "Kind is %q, none of %v", info.Kind, kinds)
	expect(t, info.BaseAlign > 0, "BaseAlign is %d", info.BaseAlign)
	if _, ok := d.Driver().(driver.Compiler); ok {
		expect(t, info.MaxGroupSize > 0, "MaxGroupSize is %d", info.MaxGroupSize)
		expect(t, info.LocalMemory > 0, "LocalMemory is %d", info.LocalMemory)
	}
	again := d.Driver().Info()
	info.FreeMemory, again.FreeMemory = 0, 0
	equal(t, info, again, "Info is the same at every call, except for FreeMemory")
}
