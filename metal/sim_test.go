package metal

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/concord-compute/concord/runtime/driver"
	"github.com/concord-compute/concord/source"
)

// open opens the simulated device with unified memory, or skips where this build has
// none.
func open(t *testing.T) driver.Device { return openAt(t, 0) }

func openAt(t *testing.T, ordinal int) driver.Device {
	t.Helper()
	if onMac || missing != "" {
		t.Skip("no simulated Metal: make test-metal builds it")
	}
	d, err := registered(t, "sim-metal").Open(context.Background(), ordinal, nil)
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
	info := open(t).Info()
	assert.Equal(t, "sim-metal:0", info.ID)
	assert.True(t, info.Simulated)
	assert.False(t, info.IsGPU(), "never reported as real")
	assert.Regexp(t, `^apple\d+$`, info.Arch)
	assert.Equal(t, features(info.Arch), info.Features)
	assert.True(t, info.UnifiedMemory)
	assert.Positive(t, info.TotalMemory)
	assert.Positive(t, info.MaxThreadsPerBlock)
	assert.Positive(t, info.SharedPerBlock)
}

// A kernel with every kind of argument, and all local memory that there is.
func TestSimulatedLaunch(t *testing.T) {
	d := open(t)
	m := load(t, d, `kernel void mirror(global float *x, local float *a, int scale, local char *pad, float more) {
		size_t i = get_local_id(0);
		a[i] = x[get_global_id(0)];
		pad[i] = (char)i;
		barrier(CLK_LOCAL_MEM_FENCE);
		x[get_global_id(0)] = a[get_local_size(0) - 1 - pad[i]] * scale + more;
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
	data := binary.LittleEndian.AppendUint32(binary.LittleEndian.AppendUint64(nil, 3), math.Float32bits(0.5))
	launch := driver.Launch{Kernel: k, Dim: 1, Global: [3]int{n, 1, 1}, Local: [3]int{group, 1, 1}, Data: data, Args: []driver.Arg{
		{Kind: driver.ArgMemory, Memory: mem},
		{Kind: driver.ArgLocal, Size: 4 * group},
		{Kind: driver.ArgValue, Offset: 0, Size: 4},
		{Kind: driver.ArgLocal, Size: int(d.Info().SharedPerBlock) - 4*group},
		{Kind: driver.ArgValue, Offset: 8, Size: 4},
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

// What Metal would stop the program for, or read wrongly, is refused, and the stream
// goes on.
func TestSimulatedConstant(t *testing.T) {
	for ordinal, align := range []int64{4, 256} { // Apple's GPUs, others
		d := openAt(t, ordinal)
		m := load(t, d, `kernel void pick(constant float *from, global float *to) { to[0] = from[0]; }`)
		k, err := m.Kernel("pick")
		require.NoError(t, err)
		s, err := d.NewStream()
		require.NoError(t, err)
		mem, err := d.Alloc(1024, driver.OnDevice)
		require.NoError(t, err)
		host := make([]byte, 1024)
		for i := range 256 {
			binary.LittleEndian.PutUint32(host[4*i:], uint32(i))
		}
		ctx := context.Background()
		require.NoError(t, s.Upload(ctx, mem, host))
		to := driver.Memory{Handle: mem.Handle, Size: 4}
		launch := func(offset, size int64) error {
			from := driver.Memory{Handle: mem.Handle, Offset: offset, Size: size}
			return s.Launch(&driver.Launch{Kernel: k, Dim: 1, Global: [3]int{1, 1, 1}, Local: [3]int{1, 1, 1},
				Args: []driver.Arg{{Kind: driver.ArgMemory, Memory: from}, {Kind: driver.ArgMemory, Memory: to}}})
		}
		err = launch(align/2, 4)
		require.ErrorIs(t, err, driver.ErrInvalidArgument)
		assert.ErrorContains(t, err, fmt.Sprintf("multiple of %d bytes: it is %d", align, align/2))
		require.NoError(t, launch(3*256, 4))
		require.NoError(t, s.Download(ctx, host[:4], to))
		assert.EqualValues(t, 3*64, binary.LittleEndian.Uint32(host))
		require.NoError(t, s.Close())
		require.NoError(t, m.Close())
		require.NoError(t, d.Free(mem))
	}
}

// A view of nothing may begin where its buffer ends.
func TestSimulatedNothing(t *testing.T) {
	d := open(t)
	m := load(t, d, `kernel void touch(global float *none, global float *to) { to[0] = 7; }`)
	defer m.Close()
	k, err := m.Kernel("touch")
	require.NoError(t, err)
	s, err := d.NewStream()
	require.NoError(t, err)
	defer s.Close()
	mem, err := d.Alloc(4096, driver.OnDevice)
	require.NoError(t, err)
	defer d.Free(mem)
	end := driver.Memory{Handle: mem.Handle, Offset: mem.Size}
	require.NoError(t, s.Launch(&driver.Launch{Kernel: k, Dim: 1, Global: [3]int{1, 1, 1}, Local: [3]int{1, 1, 1},
		Args: []driver.Arg{{Kind: driver.ArgMemory, Memory: end}, {Kind: driver.ArgMemory, Memory: mem}}}))
	host := make([]byte, 4)
	require.NoError(t, s.Download(context.Background(), host, driver.Memory{Handle: mem.Handle, Size: 4}))
	assert.Equal(t, float32(7), math.Float32frombits(binary.LittleEndian.Uint32(host)))
}

// Values that are not as long as the kernel's parameters are refused: each in a place
// of its own, and in one struct where there are too many for that.
func TestSimulatedValueSizes(t *testing.T) {
	d := open(t)
	s, err := d.NewStream()
	require.NoError(t, err)
	defer s.Close()
	mem, err := d.Alloc(4, driver.OnDevice)
	require.NoError(t, err)
	defer d.Free(mem)
	for _, count := range []int{1, 40} {
		var params, sum strings.Builder
		launch := driver.Launch{Dim: 1, Global: [3]int{1, 1, 1}, Local: [3]int{1, 1, 1}, Data: make([]byte, 8*count),
			Args: []driver.Arg{{Kind: driver.ArgMemory, Memory: mem}}}
		for i := range count {
			fmt.Fprintf(&params, ", int v%d", i)
			fmt.Fprintf(&sum, " + v%d", i)
			binary.LittleEndian.PutUint32(launch.Data[8*i:], uint32(i+1))
			launch.Args = append(launch.Args, driver.Arg{Kind: driver.ArgValue, Offset: 8 * i, Size: 4})
		}
		m := load(t, d, "kernel void add(global int *to"+params.String()+") { to[0] = 0"+sum.String()+"; }")
		launch.Kernel, err = m.Kernel("add")
		require.NoError(t, err)
		host := make([]byte, 4)
		launch.Args[count].Size = 8
		assert.ErrorIs(t, s.Launch(&launch), driver.ErrInvalidArgument, "%d values", count)
		launch.Args[count].Size = 4
		require.NoError(t, s.Launch(&launch))
		require.NoError(t, s.Download(context.Background(), host, mem))
		assert.EqualValues(t, count*(count+1)/2, binary.LittleEndian.Uint32(host))
		require.NoError(t, m.Close())
	}
}
