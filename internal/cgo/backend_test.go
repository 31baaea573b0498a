//go:build cgo && unix

package cgo

import (
	"context"
	goruntime "runtime"
	"slices"
	"strings"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/concord-compute/concord/runtime/driver"
	"github.com/concord-compute/concord/tests/sim/null"
)

func TestProbe(t *testing.T) {
	reset(t)
	p := NewBackend(vendor()).Probe(ctx, nil)
	assert.Equal(t, driver.Available, p.State, p.Reason)
	assert.Equal(t, "12.2", p.DriverVersion)
	assert.Equal(t, "11.8", p.CompilerVersion)
	assert.Contains(t, strings.Join(p.Tried, "\n"), "libnull.so: opened")
	assert.Contains(t, strings.Join(p.Tried, "\n"), "nullOptional")
	assert.Equal(t, []driver.Library{{Name: "null", Version: "12.2", Path: "/null/libnull.so", Simulated: true},
		{Name: "nullc", Version: "11.8", Path: "/null/libnullc.so"}}, p.Libraries)
	require.Len(t, p.Devices, 2)
	d := p.Devices[1]
	assert.Equal(t, "null:1", d.ID)
	assert.Equal(t, "Nobody", d.Vendor)
	assert.Equal(t, driver.Discrete, d.Kind)
	assert.True(t, d.Simulated)
	assert.False(t, d.IsGPU(), "a simulated device is not a GPU")
	assert.Equal(t, []bool{false, true}, d.PeerAccess)
	assert.Equal(t, []bool{true, true}, p.Devices[0].PeerAccess)
	assert.EqualValues(t, 256, d.BaseAlign)
	assert.True(t, d.Suballocation, "memory is addresses")
	assert.Equal(t, 1500, d.ClockMHz)
	assert.Equal(t, 1000, d.MemoryClockMHz)
	assert.Equal(t, 256, d.MemoryBusBits)
	assert.EqualValues(t, 4<<20, d.L2Cache)
	assert.False(t, d.CachesKnown, "nobody told the other levels")
	assert.InDelta(t, 64, d.MemoryBandwidthGBs, 1e-9, "1 GHz, 256 bits, both edges")
	assert.Equal(t, [3]int{1024, 1024, 64}, d.MaxGroupSizes)
	assert.Equal(t, [3]int{0x7fffffff, 65535, 65535}, d.MaxGroups)
	assert.False(t, d.FreeMemoryKnown, "only an open device can tell")
}

func TestProbeWithout(t *testing.T) {
	probe := func(v Vendor) driver.Probe { return NewBackend(v).Probe(ctx, nil) }
	t.Run("table", func(t *testing.T) {
		v := vendor()
		v.Table = nothing
		p := probe(v)
		assert.Equal(t, driver.Disabled, p.State)
		assert.Equal(t, "not in this build", p.Reason)
		assert.Equal(t, p.Reason, p.Remedy)
		_, err := NewBackend(v).Open(ctx, 0, nil)
		assert.ErrorIs(t, err, driver.ErrNoDevice)
		assert.ErrorContains(t, err, "not in this build")
	})
	t.Run("driver and compiler", func(t *testing.T) {
		reset(t)
		null.Absent(true, true)
		p := probe(vendor())
		assert.Equal(t, driver.Unavailable, p.State)
		assert.Contains(t, p.Reason, "no simulated Nobody driver: libnull.so was not found")
		assert.Contains(t, p.Reason, "install nothing")
		_, err := NewBackend(vendor()).Open(ctx, 0, nil)
		assert.ErrorIs(t, err, driver.ErrNoDevice)
		assert.ErrorContains(t, err, "libnull.so was not found")
	})
	t.Run("driver", func(t *testing.T) {
		reset(t)
		null.Absent(true, false)
		p := probe(vendor())
		assert.Equal(t, driver.Unavailable, p.State)
		assert.Contains(t, p.Reason, "no simulated Nobody driver: libnull.so was not found")
		assert.Equal(t, "11.8", p.CompilerVersion, "there is a compiler nevertheless")
	})
	t.Run("devices", func(t *testing.T) {
		reset(t)
		null.Devices(0)
		p := probe(vendor())
		assert.Equal(t, driver.Unavailable, p.State)
		assert.Equal(t, "the driver has no device; plug nothing in", p.Reason)
		assert.Empty(t, p.Remedy)
		v := vendor()
		v.Remedies.Probe = func(*driver.Config) string { return "buy one" }
		assert.Equal(t, "buy one", probe(v).Remedy)
		assert.Contains(t, Advice("libnull.so: Permission denied", "buy one"), "group that owns the device node")
	})
	t.Run("a driver that starts", func(t *testing.T) {
		reset(t)
		null.Fail("device_count", 0, int(statusNoDevice))
		p := probe(vendor())
		assert.Contains(t, p.Reason, "the driver does not start: NULL_ERROR_3 (code 1003); plug nothing in")
	})
	t.Run("one device", func(t *testing.T) {
		reset(t)
		null.Fail("device_info", 0, int(statusFailed))
		p := probe(vendor())
		assert.Equal(t, driver.Available, p.State)
		require.Len(t, p.Devices, 1)
		assert.Equal(t, "null:1", p.Devices[0].ID, "devices keep the driver's numbers")
	})
	t.Run("time", func(t *testing.T) {
		done, cancel := context.WithCancel(ctx)
		cancel()
		p := NewBackend(vendor()).Probe(done, nil)
		assert.Equal(t, driver.Unavailable, p.State)
		assert.NotEmpty(t, p.Reason)
	})
}

// TestTableLacks leaves entries out of a copy of a complete table.
func TestTableLacks(t *testing.T) {
	const required, entries = 33, 62 // in the order of csrc/shim.h
	whole := unsafe.Slice((*uintptr)(null.Table()), entries)
	lacks := func(without ...int) string {
		partly := slices.Clone(whole)
		for _, i := range without {
			require.NotZero(t, partly[i])
			partly[i] = 0
		}
		defer goruntime.KeepAlive(partly)
		return table(uintptr(unsafe.Pointer(unsafe.SliceData(partly)))).lacks()
	}
	require.Empty(t, lacks())
	names := map[string]bool{}
	for i := range required {
		names[lacks(i)] = true
	}
	assert.Len(t, names, required)
	assert.NotContains(t, names, "")
	single := map[int]string{36: "assemble", 39: "occupancy", 40: "suggest", 41: "stream_wrap", 46: "prefetch",
		59: "libraries"}
	groups := [][]int{{33, 34}, {35, 44, 45}, {37, 38}, {42, 43}, {47, 48, 49, 50, 51}, {52, 53}, {54, 55, 56, 57, 58},
		{60, 61}}
	for i := range single {
		assert.Empty(t, lacks(i), single[i])
	}
	seen := required + len(single)
	for _, g := range groups {
		assert.Empty(t, lacks(g...), g)
		for _, i := range g {
			assert.NotEmpty(t, lacks(i), i)
			seen++
		}
	}
	assert.Equal(t, "graph_launch", lacks(50))
	assert.Equal(t, entries, seen)
}

func TestOpenIndex(t *testing.T) {
	reset(t)
	for _, i := range []int{-1, 2} {
		_, err := NewBackend(vendor()).Open(ctx, i, nil)
		require.ErrorIs(t, err, driver.ErrDeviceIndex)
		assert.ErrorContains(t, err, "2 devices")
	}
}

func TestOpenFails(t *testing.T) {
	for _, entry := range []string{"lib_open", "device_count", "device_info", "device_open"} {
		for s := statusFailed; s <= statusLost; s++ {
			reset(t)
			null.Fail(entry, 0, int(s))
			_, err := NewBackend(vendor()).Open(ctx, 0, nil)
			require.Error(t, err, "%s with %d", entry, s)
			opErr(t, err)
			require.Empty(t, null.Live(), "%s with %d", entry, s)
		}
	}
}

func TestCompileFor(t *testing.T) {
	reset(t)
	b := NewBackend(vendor()).(driver.CrossCompiler)
	list, err := b.Targets(ctx, nil)
	require.NoError(t, err)
	assert.Equal(t, []string{"null_1", "null_2"}, list)
	unit := parse(t, saxpyText)
	c, err := b.CompileFor(ctx, nil, "null_2", unit, []string{"-w"})
	require.NoError(t, err)
	assert.Contains(t, string(c.Code), "saxpy")
	assert.Equal(t, "a warning", c.Log)
	require.Len(t, c.Kernels, 2)
	assert.Equal(t, "relu", c.Kernels[1].Name)

	_, err = b.CompileFor(ctx, nil, "null_3", unit, nil)
	require.ErrorIs(t, err, driver.ErrInvalidArgument)
	assert.ErrorContains(t, err, "null_1, null_2")

	null.Fail("compile", 0, int(statusCompile))
	_, err = b.CompileFor(ctx, nil, "null_1", unit, nil)
	var built *driver.BuildError
	require.ErrorAs(t, err, &built)
	assert.Equal(t, &driver.BuildError{Source: "p.cl", Target: "null_1", Log: "p.cl:3:1: error: asked for"}, built)

	null.Fail("compile", 0, int(statusFailed))
	_, err = b.CompileFor(ctx, nil, "null_1", unit, nil)
	require.ErrorAs(t, err, &built)
	assert.Equal(t, "a warning", built.Log, "the log is there whatever the reason")
	assert.EqualError(t, err, "p.cl: build for null_1: program did not build: a warning: "+
		"null: compile p.cl: NULL_ERROR_1, nullc 11.8 in /null/libnullc.so, nullbuiltins was not found: "+
		"the compiler failed (code 1001)")
	assert.ErrorIs(t, err, driver.ErrLaunch, "the program was not judged")
	null.Fail("compile", 0, int(statusInvalid))
	_, err = b.CompileFor(ctx, nil, "null_1", unit, nil)
	require.ErrorAs(t, err, &built)
	assert.Equal(t, "a warning", built.Log)
	assert.ErrorIs(t, err, driver.ErrInvalidArgument)

	null.Absent(false, true)
	_, err = b.Targets(ctx, nil)
	require.ErrorIs(t, err, driver.ErrNoCompiler)
	assert.ErrorContains(t, err, "install no compiler")
	null.Absent(true, true)
	_, err = b.CompileFor(ctx, nil, "null_1", unit, nil)
	assert.ErrorIs(t, err, driver.ErrNoCompiler)
}

func TestReport(t *testing.T) {
	reset(t)
	v := vendor()
	var list []driver.KernelInfo
	v.Report = func(c *Compilation) ([]driver.KernelInfo, error) {
		code, log, err := c.Assemble(c.Code, nil)
		assert.NoError(t, err)
		assert.Equal(t, c.Code, code)
		assert.Equal(t, "Used 8 registers", log)
		return list, nil
	}
	list = []driver.KernelInfo{{Name: "cc_kernel_relu", Registers: 8}, {Name: "saxpy"}}
	c, err := NewBackend(v).(driver.CrossCompiler).CompileFor(ctx, nil, "null_1", parse(t, saxpyText), nil)
	require.NoError(t, err)
	assert.Equal(t, []driver.KernelInfo{{Name: "saxpy", Implementation: "opencl"},
		{Name: "relu", Implementation: "opencl", Registers: 8}}, c.Kernels)
	list = nil
	c, err = NewBackend(v).(driver.CrossCompiler).CompileFor(ctx, nil, "null_1", parse(t, saxpyText), nil)
	require.NoError(t, err, "nothing is known")
	assert.Len(t, c.Kernels, 2)
	list = []driver.KernelInfo{{Name: "_Z4relu"}, {Name: "saxpy"}}
	_, err = NewBackend(v).(driver.CrossCompiler).CompileFor(ctx, nil, "null_1", parse(t, saxpyText), nil)
	assert.ErrorIs(t, err, driver.ErrNoKernel)
	assert.ErrorContains(t, err, "kernel relu is not in the compiled program")
}

func TestIdentity(t *testing.T) {
	d := openNull(t, vendor())
	id, err := d.Identity(ctx)
	require.NoError(t, err)
	for _, want := range []string{"null_1", "driver 12020", "compiler 11.8", "--target=null_1"} {
		assert.Contains(t, id, want)
	}
	null.Absent(false, true)
	d.lib.compiler = false
	_, err = d.Identity(ctx)
	assert.ErrorIs(t, err, driver.ErrUnsupported)
	_, err = d.Compile(ctx, parse(t, saxpyText), nil)
	assert.ErrorIs(t, err, driver.ErrUnsupported)
}
