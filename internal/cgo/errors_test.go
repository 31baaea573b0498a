//go:build cgo && unix

package cgo

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/concord-compute/concord/runtime/driver"
)

func TestSentinels(t *testing.T) {
	for s, want := range map[status]error{
		statusInvalid: driver.ErrInvalidArgument, statusNoDevice: driver.ErrNoDevice,
		statusUnsupported: driver.ErrUnsupported,
		statusNoMemory:    driver.ErrOutOfMemory, statusTooLarge: driver.ErrTooLarge, statusCompile: driver.ErrCompile,
		statusFormat: driver.ErrFormat, statusNotFound: driver.ErrNoKernel, statusLaunch: driver.ErrLaunch,
		statusTimeout: driver.ErrTimeout, statusLost: driver.ErrDeviceLost, statusRefused: driver.ErrLaunch,
		statusFailed: errFailed, 99: errFailed, -1: errFailed,
	} {
		assert.ErrorIs(t, (&failure{status: s}).sentinel(), want, "status %d", s)
	}
	err := (&failure{status: statusNoMemory, code: 2}).error("cuda", "cuda:0", "alloc 8.0 GiB")
	assert.EqualError(t, err, "cuda:0: alloc 8.0 GiB: out of device memory (code 2)")
}
