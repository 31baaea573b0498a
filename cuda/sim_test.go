package cuda

import (
	"context"
	"encoding/binary"
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/concord-compute/concord/runtime/driver"
	"github.com/concord-compute/concord/source"
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

func load(t *testing.T, d driver.Device, text string) driver.Module {
	t.Helper()
	features := d.Info().Features
	u, err := source.Parse(text, source.Options{Features: &features})
	require.NoError(t, err)
	c := d.(driver.Compiler)
	bin, err := c.Compile(context.Background(), u, nil)
	require.NoError(t, err)
	m, err := c.Load(context.Background(), u, bin)
	require.NoError(t, err)
	return m
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

// A kernel with every kind of argument, and local memory beyond what needs no
// opt-in.
func TestSimulatedLaunch(t *testing.T) {
	d := open(t)
	m := load(t, d, `kernel void mirror(global float *x, local float *a, int scale, local char *pad, double more) {
		size_t i = get_local_id(0);
		a[i] = x[get_global_id(0)];
		pad[i] = (char)i;
		barrier(CLK_LOCAL_MEM_FENCE);
		x[get_global_id(0)] = a[get_local_size(0) - 1 - pad[i]] * scale + (float)more;
	}`)
	defer m.Close()
	k, err := m.Kernel("mirror")
	require.NoError(t, err)
	_, err = m.Kernel("nobody")
	assert.ErrorIs(t, err, driver.ErrNoKernel)
	s, err := d.NewStream()
	require.NoError(t, err)
	defer s.Close()

	const n, group = 256, 64
	mem, err := d.Alloc(4*n, driver.OnDevice)
	require.NoError(t, err)
	defer d.Free(mem)
	host := make([]byte, 4*n)
	for i := range n {
		binary.LittleEndian.PutUint32(host[4*i:], math.Float32bits(float32(i)))
	}
	ctx := context.Background()
	require.NoError(t, s.Upload(ctx, mem, host))
	data := binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint64(nil, 3), math.Float64bits(0.5))
	launch := driver.Launch{Kernel: k, Dim: 1, Global: [3]int{n, 1, 1}, Local: [3]int{group, 1, 1}, Data: data, Args: []driver.Arg{
		{Kind: driver.ArgMemory, Memory: mem},
		{Kind: driver.ArgLocal, Size: 4 * group},
		{Kind: driver.ArgValue, Offset: 0, Size: 4},
		{Kind: driver.ArgLocal, Size: int(d.Info().SharedPerBlock)},
		{Kind: driver.ArgValue, Offset: 8, Size: 8},
	}}
	require.NoError(t, s.Launch(&launch))
	require.NoError(t, s.Download(ctx, host, mem))
	for i := range n {
		want := float32(i/group*group+group-1-i%group)*3 + 0.5
		require.Equal(t, want, math.Float32frombits(binary.LittleEndian.Uint32(host[4*i:])), "item %d", i)
	}
	allocs := testing.AllocsPerRun(100, func() {
		if err := s.Launch(&launch); err != nil {
			t.Error(err)
		}
	})
	assert.True(t, allocs == 0 || instrumented, "%v allocations", allocs)
	require.NoError(t, s.Sync(ctx))
}

// An address that is not there ends the context; the device that is opened next
// works.
func TestSimulatedLoss(t *testing.T) {
	d := open(t)
	m := load(t, d, `kernel void astray(global float *x) { x[(size_t)1 << 36] = 1; }`)
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
