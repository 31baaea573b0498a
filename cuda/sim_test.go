package cuda

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/concord-compute/concord/runtime/driver"
	"github.com/concord-compute/concord/tests/sim"
)

// open opens a simulated device, or skips where the libraries are not built.
func open(t *testing.T) driver.Device {
	t.Helper()
	if table() == nil {
		t.Skip(missing)
	}
	dir := os.Getenv("CONCORD_SIM_DIR")
	if dir == "" {
		dir = filepath.Join("..", simDir)
	}
	if _, err := os.Stat(filepath.Join(dir, "libcuda.so.1")); err != nil {
		t.Skipf("no simulated libraries: %v; make sim builds them", err)
	}
	d, err := registered(t, "sim-cuda").Open(context.Background(), 0, &driver.Config{SimDir: dir})
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, d.Close()) })
	return d
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
	assert.Equal(t, 32, info.WarpSize)
	assert.GreaterOrEqual(t, info.SharedPerBlockOptIn, info.SharedPerBlock)
}

// Local memory beyond what needs no opt-in.
func TestSimulatedLaunch(t *testing.T) {
	d := open(t)
	sim.Launch(t, d, d.Info().SharedPerBlock)
}

// An address that is not there ends the context; the device that is opened next
// works.
func TestSimulatedLoss(t *testing.T) {
	d := open(t)
	m := sim.Load(t, d, `kernel void astray(global float *x) { x[(size_t)1 << 36] = 1; }`)
	k, err := m.Kernel("astray")
	require.NoError(t, err)
	s, err := d.NewStream()
	require.NoError(t, err)
	other, err := d.NewStream()
	require.NoError(t, err)
	mem, err := d.Alloc(64, driver.OnDevice)
	require.NoError(t, err)
	ctx := context.Background()
	require.NoError(t, s.Launch(&driver.Launch{Kernel: k, Dim: 1, Global: [3]int{1, 1, 1}, Local: [3]int{1, 1, 1},
		Args: []driver.Arg{{Kind: driver.ArgMemory, Memory: mem}}}))
	err = s.Sync(ctx)
	assert.ErrorIs(t, err, driver.ErrDeviceLost)
	assert.ErrorContains(t, err, "astray", "the launch is named")
	assert.ErrorContains(t, err, "CUDA_ERROR_ILLEGAL_ADDRESS", "in the driver's words")
	assert.ErrorIs(t, other.Upload(ctx, mem, make([]byte, 64)), driver.ErrDeviceLost, "every stream of the device")
	_, err = d.Alloc(64, driver.OnDevice)
	assert.ErrorIs(t, err, driver.ErrDeviceLost)
	_, _, _, _ = s.Close(), other.Close(), m.Close(), d.Free(mem) // what they say is no news
	require.NoError(t, d.Close())

	next := open(t)
	mem, err = next.Alloc(64, driver.OnDevice)
	require.NoError(t, err)
	require.NoError(t, next.Free(mem))
}
