//go:build cgo && unix

package cgo

// The status of a failed entry of the table, and the error of runtime/driver for it.

import (
	"errors"

	"github.com/concord-compute/concord/runtime/driver"
)

// status is one of the constants CS_* of csrc/shim.h.
type status int32

const (
	statusOK status = iota
	statusFailed
	statusInvalid
	statusNoDevice
	statusUnsupported
	statusNoMemory
	statusTooLarge
	statusCompile
	statusFormat
	statusNotFound
	statusLaunch
	statusTimeout
	statusLost
	statusRefused // not of shim.h: CS_INVALID from a launch
)

// errFailed is the error for a call that the driver refused for a reason without a sentinel of its
// own. It matches ErrLaunch.
var errFailed error = unclassed{}

type unclassed struct{}

func (unclassed) Error() string { return "driver call failed" }

func (unclassed) Unwrap() error { return driver.ErrLaunch }

// errCompiler is the error for a compiler that failed itself, as opposed to one that refuses a program. It matches
// ErrLaunch, so that it is not remembered as a verdict on the program.
var errCompiler error = failedCompiler{}

type failedCompiler struct{ unclassed }

func (failedCompiler) Error() string { return "the compiler failed" }

// errIdle is the error for a device that was lost while no work was queued, so that no launch can
// be named as the cause.
var errIdle = errors.New("driver call failed")

// sentinels has the error for each status.
var sentinels = [...]error{
	statusOK:          errFailed, // no entry fails with it
	statusFailed:      errFailed,
	statusInvalid:     driver.ErrInvalidArgument,
	statusNoDevice:    driver.ErrNoDevice,
	statusUnsupported: driver.ErrUnsupported,
	statusNoMemory:    driver.ErrOutOfMemory,
	statusTooLarge:    driver.ErrTooLarge,
	statusCompile:     driver.ErrCompile,
	statusFormat:      driver.ErrFormat,
	statusNotFound:    driver.ErrNoKernel,
	statusLaunch:      driver.ErrLaunch,
	statusTimeout:     driver.ErrTimeout,
	statusLost:        driver.ErrDeviceLost,
	statusRefused:     ErrRefused,
}

// ErrRefused is the error for a launch that the driver did not accept. It matches both ErrLaunch and
// ErrInvalidArgument.
var ErrRefused error = refused{}

type refused struct{}

func (refused) Error() string   { return "launch refused" }
func (refused) Unwrap() []error { return []error{driver.ErrLaunch, driver.ErrInvalidArgument} }

// failure holds the results of an entry that failed.
type failure struct {
	status status
	code   int
	text   string // the vendor's name of the error, and its message
}

// sentinel returns the error for the failure's status.
func (f *failure) sentinel() error {
	if f.status < 0 || int(f.status) >= len(sentinels) {
		return errFailed
	}
	return sentinels[f.status]
}

// ran returns the error for work that failed while it ran: ErrLaunch, or a more specific error.
func (f *failure) ran() error {
	switch f.status {
	case statusTimeout, statusNoMemory:
		return f.sentinel()
	}
	return driver.ErrLaunch
}

// error returns an OpError for an operation. device is empty if none was chosen yet.
func (f *failure) error(backend, device, op string) error {
	return f.as(backend, device, op, f.sentinel())
}

func (f *failure) as(backend, device, op string, is error) error {
	return &driver.OpError{Backend: backend, Device: device, Op: op, Code: f.code, Detail: f.text, Err: is}
}
