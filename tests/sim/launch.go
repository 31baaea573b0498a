package sim

import (
	"context"
	"encoding/binary"
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/concord-compute/concord/runtime/driver"
	"github.com/concord-compute/concord/source"
)

// Load builds a program for a device.
func Load(t *testing.T, d driver.Device, text string, options ...string) driver.Module {
	t.Helper()
	m, err := TryLoad(t, d, text, options...)
	require.NoError(t, err)
	return m
}

// TryLoad is Load for a program that may not build.
func TryLoad(t *testing.T, d driver.Device, text string, options ...string) (driver.Module, error) {
	t.Helper()
	features := d.Info().Features
	u, err := source.Parse(text, source.Options{Features: &features})
	require.NoError(t, err)
	c := d.(driver.Compiler)
	bin, err := c.Compile(context.Background(), u, options)
	if err != nil {
		return nil, err
	}
	return c.Load(context.Background(), u, bin)
}

// Single returns a launch of one item of a kernel, still without arguments, a stream for it, and
// memory of that many bytes. They are released at the end of the test.
func Single(t *testing.T, d driver.Device, bytes int64, kernel, text string,
	options ...string) (*driver.Launch, driver.Stream, driver.Memory) {
	t.Helper()
	m := Load(t, d, text, options...)
	t.Cleanup(func() { assert.NoError(t, m.Close()) })
	k, err := m.Kernel(kernel)
	require.NoError(t, err)
	s, err := d.NewStream()
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, s.Close()) })
	mem, err := d.Alloc(bytes, driver.OnDevice)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, d.Free(mem)) })
	return &driver.Launch{Kernel: k, Dim: 1, Global: [3]int{1, 1, 1}, Local: [3]int{1, 1, 1}}, s, mem
}

const mirrorText = `
#ifdef cl_khr_fp64
typedef double real;
#else
typedef float real;
#endif
kernel void mirror(global float *x, local float *a, int scale, local char *pad, real more) {
	size_t i = get_local_id(0);
	a[i] = x[get_global_id(0)];
	pad[i] = (char)i;
	barrier(CLK_LOCAL_MEM_FENCE);
	x[get_global_id(0)] = a[get_local_size(0) - 1 - pad[i]] * scale + (float)more;
}`

// counting returns memory with the numbers 0 to n-1 as floats, and their bytes. The caller frees it.
func counting(t *testing.T, d driver.Device, s driver.Stream, n int) (mem driver.Memory, host []byte) {
	t.Helper()
	mem, err := d.Alloc(int64(4*n), driver.OnDevice)
	require.NoError(t, err)
	host = make([]byte, 4*n)
	for i := range n {
		binary.LittleEndian.PutUint32(host[4*i:], math.Float32bits(float32(i)))
	}
	require.NoError(t, s.Upload(context.Background(), mem, host))
	return mem, host
}

// Launch runs a kernel with every kind of argument. Its first block of local memory takes 260
// bytes, so that the next one has to be aligned; pad is the size of that one in bytes, as large as
// the device allows.
func Launch(t *testing.T, d driver.Device, pad int64) {
	t.Helper()
	m := Load(t, d, mirrorText)
	defer m.Close()
	k, err := m.Kernel("mirror")
	require.NoError(t, err)
	_, err = m.Kernel("no_such_kernel")
	assert.ErrorIs(t, err, driver.ErrNoKernel)
	s, err := d.NewStream()
	require.NoError(t, err)
	defer s.Close()

	const n, group = 256, 64
	mem, host := counting(t, d, s, n)
	defer d.Free(mem)
	ctx := context.Background()
	data := binary.LittleEndian.AppendUint64(nil, 3)
	if d.Info().Features.FP64 {
		data = binary.LittleEndian.AppendUint64(data, math.Float64bits(0.5))
	} else {
		data = binary.LittleEndian.AppendUint32(data, math.Float32bits(0.5))
	}
	launch := driver.Launch{Kernel: k, Dim: 1, Global: [3]int{n, 1, 1}, Local: [3]int{group, 1, 1}, Data: data,
		Args: []driver.Arg{
			{Kind: driver.ArgMemory, Memory: mem},
			{Kind: driver.ArgLocal, Size: 4*group + 4},
			{Kind: driver.ArgValue, Offset: 0, Size: 4},
			{Kind: driver.ArgLocal, Size: int(pad)},
			{Kind: driver.ArgValue, Offset: 8, Size: len(data) - 8},
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
	launch.Args[3].Size = int(max(d.Info().LocalMemory, d.Info().LocalMemoryOptIn))
	assert.Error(t, s.Launch(&launch), "more local memory than there is")
}

// Lose runs a kernel that writes to an invalid address, which destroys the device's context, and
// checks that every later call reports that. The error has to name the launch, and to contain the
// driver's name for it (word).
func Lose(t *testing.T, d driver.Device, word string) {
	t.Helper()
	m := Load(t, d, `kernel void astray(global float *x) { x[(size_t)1 << 36] = 1; }`)
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
	assert.ErrorContains(t, err, "astray")
	assert.ErrorContains(t, err, word)
	assert.ErrorIs(t, other.Upload(ctx, mem, make([]byte, 64)), driver.ErrDeviceLost, "every stream of the device")
	_, err = d.Alloc(64, driver.OnDevice)
	assert.ErrorIs(t, err, driver.ErrDeviceLost)
	_, _, _, _ = s.Close(), other.Close(), m.Close(), d.Free(mem) // their errors have been checked
	require.NoError(t, d.Close())
}
