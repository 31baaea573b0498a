package metal

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/concord-compute/concord/runtime/driver"
	"github.com/concord-compute/concord/tests/sim"
)

// At least one of the two backends is not in a build, and is listed with the reason.
func TestNotInThisBuild(t *testing.T) {
	absent := 0
	for _, name := range []string{"metal", "sim-metal"} {
		p := sim.Registered(t, name).Probe(context.Background(), &driver.Config{})
		if p.State == driver.Disabled {
			absent++
			sim.NotInThisBuild(t, name, p.Reason)
		}
	}
	assert.GreaterOrEqual(t, absent, 1)
	if table() == nil {
		assert.Equal(t, 2, absent)
		assert.Contains(t, sim.Registered(t, "metal").Probe(context.Background(), nil).Reason, "not in this build: ")
	}
}

func TestVersion(t *testing.T) { assert.Equal(t, "23.5.0", version(230500)) }

func TestFeatures(t *testing.T) {
	for arch, subgroups := range map[string]bool{"apple5": false, "apple6": true, "apple9": true, "apple10": true,
		"mac2": true, "common": false, "": false} {
		f := features(arch)
		assert.Equal(t, subgroups, f.Subgroups, arch)
		assert.False(t, f.FP64 || f.Int64Atomic, arch)
		assert.True(t, f.FP16, arch)
	}
}

func TestOptions(t *testing.T) {
	got, err := options([]string{"-cl-std=CL1.2", "-cl-mad-enable", "-cl-fast-relaxed-math", "-std=metal3.1", "-Wall"})
	require.NoError(t, err)
	assert.Equal(t, []string{"-ffast-math", "-std=metal3.1"}, got)
	for _, o := range []string{"-std=metal", "-std=c++17", "--target=apple9", "-I.", "-Wl,x", ""} {
		_, err := options([]string{o})
		assert.ErrorIs(t, err, driver.ErrInvalidArgument, "%q", o)
	}
}
