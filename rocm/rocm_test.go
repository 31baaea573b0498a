package rocm

import (
	"context"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/concord-compute/concord/runtime/driver"
)

func TestRegistered(t *testing.T) {
	i := slices.IndexFunc(driver.Backends(), func(b driver.Backend) bool { return b.Name() == "rocm" })
	require.GreaterOrEqual(t, i, 0, "the package registers its backend")
	assert.Equal(t, driver.Probe{Backend: "rocm", State: state, Reason: reason}, driver.Backends()[i].Probe(context.Background(), nil))
}
