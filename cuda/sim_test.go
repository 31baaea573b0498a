package cuda

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/concord-compute/concord/runtime/driver"
	"github.com/concord-compute/concord/source"
	"github.com/concord-compute/concord/tests/sim"
)

// open opens a simulated device, or skips the test if the libraries are not built.
func open(t *testing.T) driver.Device {
	t.Helper()
	if table() == nil {
		sim.Absent(t, "sim-cuda", missing)
	}
	return sim.Open(t, "sim-cuda", 0, &driver.Config{SimDir: sim.Dir(t, "..", "sim-cuda", "libcuda.so.1")})
}

func TestSimulatedInfo(t *testing.T) {
	d := open(t)
	info := d.Info()
	assert.Equal(t, "sim-cuda:0", info.ID)
	assert.True(t, info.Simulated)
	assert.False(t, info.IsGPU(), "never reported as real")
	assert.Regexp(t, `^sm_\d+$`, info.Arch)
	assert.Equal(t, info.ComputeMajor >= 8, info.SupportsBF16)
	assert.Equal(t, info.ComputeMajor >= 7, info.HasTensorCores)
	assert.Equal(t, features(info.Arch), info.Features)
	assert.Equal(t, 32, info.SubgroupSize)
	assert.GreaterOrEqual(t, info.LocalMemoryOptIn, info.LocalMemory)
	assert.EqualValues(t, 40<<20, info.L2Cache)
	assert.Equal(t, []int{5120, 1215}, []int{info.MemoryBusBits, info.MemoryClockMHz})
	assert.False(t, info.CachesKnown, "the driver tells one level")
}

// Local memory of a size that needs an opt-in.
func TestSimulatedLaunch(t *testing.T) {
	d := open(t)
	sim.Launch(t, d, d.Info().LocalMemory)
}

// An invalid address destroys the context; the device works after it is opened again.
func TestSimulatedLoss(t *testing.T) {
	sim.Lose(t, open(t), "CUDA_ERROR_ILLEGAL_ADDRESS")
	next := open(t)
	mem, err := next.Alloc(64, driver.OnDevice)
	require.NoError(t, err)
	require.NoError(t, next.Free(mem))
}

// A kernel in the device's own language.
func TestSimulatedNative(t *testing.T) { sim.Native(t, open(t), source.CUDA) }
