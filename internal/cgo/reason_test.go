//go:build cgo && unix

package cgo

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/concord-compute/concord/runtime/driver"
	"github.com/concord-compute/concord/tests/sim/null"
)

func TestSought(t *testing.T) {
	const gone = ": not found: cannot open shared object file: No such file or directory"
	names := []string{"libcuda.so.1", "libcuda.so", "/w/libcuda.so.1"}
	for want, tried := range map[string][]string{
		"none of libcuda.so.1, libcuda.so, /w/libcuda.so.1 was found": {names[0] + gone, names[1] + gone, names[2] + gone,
			"libnvrtc.so: found"},
		"libcuda.so: of no use: it has no cuInit; none of libcuda.so.1, /w/libcuda.so.1 was found": {
			names[0] + ": not found: Error loading shared library libcuda.so.1: No such file or directory", names[1] +
				": of no use: it has no cuInit", names[2] + gone},
		"libcuda.so.1: not found: libdep.so.2: cannot open shared object file; " +
			"none of libcuda.so, /w/libcuda.so.1 was found": {
			names[0] + ": not found: libdep.so.2: cannot open shared object file", names[1] + gone, names[2] + gone},
	} {
		assert.Equal(t, want, sought(names, tried))
	}
	assert.Equal(t, "libcuda.so was not found", sought(names[1:2], nil))
	assert.Equal(t, "the library cannot be used", sought(names[1:2], []string{"libcuda.so: found"}))
}

// If the machine cannot have a device of a vendor, a probe opens none of its libraries, and
// compiling still works.
func TestAbsent(t *testing.T) {
	reset(t)
	v := vendor()
	v.Absent = func(*driver.Config) string { return "/dev/null0 does not exist" }
	v.Remedies.Absent = "plug one in"
	b := NewBackend(v)
	p := b.Probe(ctx, nil)
	assert.Equal(t, driver.Unavailable, p.State)
	assert.Equal(t, "no Nobody GPU: /dev/null0 does not exist; plug one in", p.Reason)
	assert.Equal(t, []string{"/dev/null0 does not exist: no library was opened"}, p.Tried)
	_, err := b.Open(ctx, 0, nil)
	require.ErrorIs(t, err, driver.ErrNoDevice)
	assert.ErrorContains(t, err, p.Reason)
	assert.Zero(t, null.Calls("lib_open"))
	_, err = b.(driver.CrossCompiler).CompileFor(ctx, nil, "null_1", parse(t, saxpyText), nil)
	require.NoError(t, err)
	assert.NotZero(t, null.Calls("lib_open"))
}

// If the driver refuses a program because the driver is too old, the error contains the remedy.
func TestOutdated(t *testing.T) {
	v := vendor()
	v.Outdated = func(code, drv, major, minor int) string {
		assert.Equal(t, []int{1000 + int(statusFormat), 12020, 11, 8}, []int{code, drv, major, minor})
		return "update it"
	}
	d := openNull(t, v)
	unit := parse(t, saxpyText)
	bin, err := d.Compile(ctx, unit, nil)
	require.NoError(t, err)
	null.Fail("module_load", 0, int(statusFormat))
	_, err = d.Load(ctx, unit, bin)
	require.ErrorIs(t, err, driver.ErrFormat)
	assert.ErrorContains(t, err, "NULL_ERROR_8; update it")
}
