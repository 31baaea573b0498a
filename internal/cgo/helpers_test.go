//go:build cgo && unix

package cgo

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/concord-compute/concord/runtime/driver"
	"github.com/concord-compute/concord/source"
	"github.com/concord-compute/concord/tests/sim/null"
)

var ctx = context.Background()

// vendor returns a vendor with the null table. Its target is OpenCL C, which every unit can be
// rendered to.
func vendor() Vendor {
	return Vendor{
		Name: "null", Maker: "Nobody", Simulated: true, Target: source.OpenCL,
		Table:   null.Table,
		Missing: "not in this build",
		Libraries: func(*driver.Config) (drivers, compilers []string) {
			return []string{"libnull.so"}, []string{"libnullc.so"}
		},
		Compilers:   []string{"nullc", "nullbuiltins"},
		Remedies:    Remedies{Driver: "install nothing", Compiler: "install no compiler", Devices: "plug nothing in"},
		BLAS:        func(*driver.Config) []string { return []string{"libnullblas.so"} },
		BLASName:    "nullblas",
		Collectives: func(*driver.Config) []string { return []string{"libnullccl.so"} },
		Version:     func(n int) string { return fmt.Sprintf("%d.%d", n/1000, n%1000/10) },
		Features:    func(string) source.Features { return source.Portable },
		Flags:       func(target string) []string { return []string{"--target=" + target} },
	}
}

// reset resets the null vendor, and checks at the end of the test that all objects were released.
func reset(t testing.TB) {
	t.Helper()
	null.Reset()
	require.Empty(t, null.Live(), "left over from an earlier test")
	t.Cleanup(func() {
		null.Reset()
		assert.Empty(t, null.Live(), "objects that were not released")
	})
}

func openNull(t testing.TB, v Vendor) *device {
	t.Helper()
	reset(t)
	d, err := NewBackend(v).Open(ctx, 0, nil)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, d.Close()) })
	return d.(*device)
}

func newStream(t testing.TB, d *device) *stream {
	t.Helper()
	s, err := d.NewStream()
	require.NoError(t, err)
	t.Cleanup(func() { _ = s.Close() })
	return s.(*stream)
}

func parse(t testing.TB, text string) *source.Unit {
	t.Helper()
	unit, err := source.Parse(text, source.Options{Name: "p.cl"})
	require.NoError(t, err)
	return unit
}

const saxpyText = `
kernel void saxpy(float a, global const float *x, global float *y, local float *tile) { y[get_global_id(0)] += a * x[get_global_id(0)]; }
kernel void relu(global float *y) { y[get_global_id(0)] = fmax(y[get_global_id(0)], 0.0f); }`

func load(t testing.TB, d *device, text string) driver.Module {
	t.Helper()
	unit := parse(t, text)
	bin, err := d.Compile(ctx, unit, nil)
	require.NoError(t, err)
	m, err := d.Load(ctx, unit, bin)
	require.NoError(t, err)
	t.Cleanup(func() { _ = m.Close() })
	return m
}

func kernelOf(t testing.TB, m driver.Module, name string) driver.Kernel {
	t.Helper()
	k, err := m.Kernel(name)
	require.NoError(t, err)
	return k
}

func alloc(t testing.TB, d *device, n int64, kind driver.MemoryKind) driver.Memory {
	t.Helper()
	m, err := d.Alloc(n, kind)
	require.NoError(t, err)
	t.Cleanup(func() { _ = d.Free(m) })
	return m
}

// launchOf returns a launch of saxpy with four arguments.
func launchOf(k driver.Kernel, x, y driver.Memory) *driver.Launch {
	return &driver.Launch{Kernel: k, Dim: 1, Global: [3]int{256}, Local: [3]int{64}, Data: []byte{0, 0, 0x80, 0x3f},
		Args: []driver.Arg{{Kind: driver.ArgValue, Size: 4}, {Kind: driver.ArgMemory, Memory: x},
			{Kind: driver.ArgMemory, Memory: y}, {Kind: driver.ArgLocal, Size: 256}}}
}

func opErr(t testing.TB, err error) *driver.OpError {
	t.Helper()
	var op *driver.OpError
	require.True(t, errors.As(err, &op), "%T: %v", err, err)
	return op
}

// nothing is the Table function of a vendor whose shim is not in the build.
func nothing() unsafe.Pointer { return nil }
