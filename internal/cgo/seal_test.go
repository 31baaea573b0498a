//go:build cgo && unix

package cgo

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/concord-compute/concord/runtime/driver"
)

func TestSeal(t *testing.T) {
	sealed := seal([]byte("code"))
	code, err := unseal(sealed)
	require.NoError(t, err)
	assert.Equal(t, "code", string(code))
	for n := range len(sealed) {
		_, err := unseal(sealed[:n])
		require.ErrorIs(t, err, driver.ErrCorrupt, "cut to %d bytes", n)
	}
	for i := range sealed {
		damaged := append([]byte(nil), sealed...)
		damaged[i] ^= 1
		_, err := unseal(damaged)
		require.ErrorIs(t, err, driver.ErrCorrupt, "byte %d", i)
	}
	_, err = unseal([]byte("something else altogether, and quite long at that......"))
	assert.ErrorIs(t, err, driver.ErrFormat)
	_, err = unseal(seal(nil))
	assert.ErrorIs(t, err, driver.ErrCorrupt, "no code is no program")
}

func TestSentinels(t *testing.T) {
	for s, want := range map[status]error{
		statusInvalid: driver.ErrInvalidArgument, statusNoDevice: driver.ErrNoDevice, statusUnsupported: driver.ErrUnsupported,
		statusNoMemory: driver.ErrOutOfMemory, statusTooLarge: driver.ErrTooLarge, statusCompile: driver.ErrCompile,
		statusFormat: driver.ErrFormat, statusNotFound: driver.ErrNoKernel, statusLaunch: driver.ErrLaunch,
		statusTimeout: driver.ErrTimeout, statusLost: driver.ErrDeviceLost, statusRefused: driver.ErrLaunch,
		statusFailed: errFailed, 99: errFailed, -1: errFailed,
	} {
		assert.ErrorIs(t, (&failure{status: s}).sentinel(), want, "status %d", s)
	}
	err := (&failure{status: statusNoMemory, code: 2}).error("cuda", "cuda:0", "alloc 8.0 GiB")
	assert.EqualError(t, err, "cuda:0: alloc 8.0 GiB: out of device memory (code 2)")
}
