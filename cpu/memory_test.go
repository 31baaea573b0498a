package cpu

import (
	"math"
	"os"
	goruntime "runtime"
	"runtime/debug"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/concord-compute/concord/runtime/driver"
)

func TestBlocks(t *testing.T) {
	d := openDevice(t)
	for _, n := range []int64{1, 63, 64, 65, 100, 4095, 4096, 4097, 1 << 20, hugeTest + 5} {
		m := allocBytes(t, d, n)
		b, err := d.memory.bytes(m)
		require.NoError(t, err)
		require.Len(t, b, int(n))
		assert.Zero(t, m.Handle%baseAlign, "alignment")
		assert.Equal(t, m.Handle, address(b))
		b[0], b[n-1] = 1, 1 // all of it is accessible
		if n%128 == 0 {
			assert.Zero(t, m.Handle%128)
		}
	}
}

// Many small blocks use few mappings, and are all apart and aligned.
func TestManySmallBlocks(t *testing.T) {
	if goruntime.GOOS != "linux" {
		t.Skip("the mappings of a process are counted on Linux")
	}
	mappings := func() int {
		list, err := os.ReadFile("/proc/self/maps")
		require.NoError(t, err)
		return strings.Count(string(list), "\n")
	}
	d, before := openDevice(t), mappings()
	var all []driver.Memory
	for i := range 20000 {
		m := allocBytes(t, d, 256)
		b, err := d.memory.bytes(m)
		require.NoError(t, err)
		require.Zero(t, b[0])
		require.Zero(t, m.Handle%128)
		b[0], b[255] = byte(i), byte(i)
		all = append(all, m)
	}
	assert.Less(t, mappings()-before, 30000)
	for i, m := range all {
		b, err := d.memory.bytes(m)
		require.NoError(t, err)
		require.Equal(t, [2]byte{byte(i), byte(i)}, [2]byte{b[0], b[255]})
	}
}

func TestHostBytes(t *testing.T) {
	d := openDevice(t)
	for _, kind := range []driver.MemoryKind{driver.OnDevice, driver.Pinned, driver.Unified} {
		m, err := d.Alloc(100, kind)
		require.NoError(t, err)
		all, ok := d.HostBytes(m)
		require.True(t, ok)
		part, ok := d.HostBytes(driver.Memory{Handle: m.Handle, Offset: 10, Size: 5})
		require.True(t, ok)
		assert.Same(t, &all[10], &part[0], "the slice is the buffer's memory and no copy")
		_, ok = d.HostBytes(driver.Memory{Handle: m.Handle, Offset: 96, Size: 5})
		assert.False(t, ok)
		require.NoError(t, d.Free(m))
		_, ok = d.HostBytes(m)
		assert.False(t, ok)
	}
}

const hugeTest = 5 << 20

// touch writes one byte at an address and reports whether that faulted.
func touch(t *testing.T, b []byte) (faulted bool) {
	t.Helper()
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() { faulted = recover() != nil }()
	b[0] = 1
	return false
}

func TestGuardPages(t *testing.T) {
	if goruntime.GOOS == "windows" {
		t.Skip("no guard pages on this system")
	}
	page := os.Getpagesize()
	for _, n := range []int64{1, 64, 100, 4096, 5000} {
		b, err := mapBlock(n)
		require.NoError(t, err)
		skip := len(b.mapping) - page // the offset of the guard page behind the data
		assert.Equal(t, int(roundUp(n, baseAlign)), skip-int(address(b.data)-address(b.mapping)),
			"the block ends at the guard")
		assert.False(t, touch(t, b.mapping[skip-1:]))
		assert.True(t, touch(t, b.mapping[skip:]), "behind")
		assert.True(t, touch(t, b.mapping[page-1:]), "before")
		assert.False(t, touch(t, b.mapping[page:]))
		require.NoError(t, unmapBlock(b))
	}
}

func TestTooLarge(t *testing.T) {
	d := openDevice(t)
	total, available := systemMemory()
	if total == 0 {
		t.Skip("this system does not report the machine's memory")
	}
	for _, n := range []int64{total + 1, math.MaxInt64} {
		_, err := d.Alloc(n, driver.OnDevice)
		require.ErrorIs(t, err, driver.ErrTooLarge)
		assert.NotErrorIs(t, err, driver.ErrOutOfMemory)
	}
	if available > 0 && total > available+1<<30 {
		_, err := d.Alloc(total, driver.OnDevice)
		require.ErrorIs(t, err, driver.ErrOutOfMemory)
		assert.True(t, strings.HasPrefix(err.Error(), "cpu:0: alloc "), err.Error())
	}
}

func TestInfo(t *testing.T) {
	p := backend{}.Probe(background(t), &driver.Config{})
	assert.Equal(t, driver.Available, p.State)
	require.Len(t, p.Devices, 2)
	assert.Equal(t, "cpu:0", p.Devices[0].ID)
	assert.Equal(t, "cpu:reference", p.Devices[1].ID)
	assert.NotEmpty(t, p.Tried)
	for i, info := range p.Devices {
		assert.Equal(t, i, info.NativeIndex)
		assert.Equal(t, driver.CPU, info.Kind)
		assert.Equal(t, goruntime.NumCPU(), info.ComputeUnits)
		assert.NotEmpty(t, info.Name)
		assert.False(t, info.IsGPU())
	}
	_, err := backend{}.Open(background(t), 2, nil)
	require.ErrorIs(t, err, driver.ErrDeviceIndex)
}
