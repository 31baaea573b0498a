package tests

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"

	_ "github.com/concord-compute/concord/runtime/all"
	"github.com/concord-compute/concord/runtime/driver"
)

// TestReservedNames: the reserved description of a backend, for programs that do not import it, is
// the one that the backend itself returns, whether or not its C is in this build.
func TestReservedNames(t *testing.T) {
	described := map[string]driver.Description{}
	var order []string
	for _, b := range driver.Backends() {
		described[b.Name()] = driver.Describe(b)
		order = append(order, b.Name())
	}
	assert.Equal(t, slices.Concat(driver.BackendNames(), []string{"sim-cuda", "sim-metal", "sim-rocm"}), order)
	for name, d := range driver.Reserved() {
		if slices.Contains(driver.BackendNames(), name) {
			assert.Equal(t, d, described[name], name)
		} else {
			assert.NotContains(t, described, name, "it is only a fake")
		}
	}
}
