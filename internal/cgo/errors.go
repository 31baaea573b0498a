//go:build cgo && unix

package cgo

// What an entry of the table says when it fails, and which of runtime/driver's
// errors that is.

import (
	"errors"

	"github.com/concord-compute/concord/runtime/driver"
)

// status is a CS_* of csrc/shim.h.
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

// errFailed is what the driver refused for a reason that has no class of its own.
// It is an ErrLaunch, the sentinel for what a driver refuses.
var errFailed error = unclassed{}

type unclassed struct{}

func (unclassed) Error() string { return "driver call failed" }

func (unclassed) Unwrap() error { return driver.ErrLaunch }

// errIdle is a loss while nothing ran: no launch is to blame.
var errIdle = errors.New("driver call failed")

// sentinels has the error of each class.
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
	statusRefused:     refused{},
}

// refused is a launch that the driver did not take: both a failed launch and an
// argument that was wrong.
type refused struct{}

func (refused) Error() string   { return "launch refused" }
func (refused) Unwrap() []error { return []error{driver.ErrLaunch, driver.ErrInvalidArgument} }

// failure is what an entry that failed brought back.
type failure struct {
	status status
	code   int
	text   string // the vendor's name and words
}

// sentinel returns the error of the failure's class.
func (f *failure) sentinel() error {
	if f.status < 0 || int(f.status) >= len(sentinels) {
		return errFailed
	}
	return sentinels[f.status]
}

// ran returns the error of work that failed while it ran: whatever the class, it
// is a failed launch or a finer word for it.
func (f *failure) ran() error {
	switch f.status {
	case statusTimeout, statusNoMemory:
		return f.sentinel()
	}
	return driver.ErrLaunch
}

// error says which operation failed. device is empty when none was chosen yet.
func (f *failure) error(backend, device, op string) error {
	return f.as(backend, device, op, f.sentinel())
}

func (f *failure) as(backend, device, op string, is error) error {
	return &driver.OpError{Backend: backend, Device: device, Op: op, Code: f.code, Detail: f.text, Err: is}
}
