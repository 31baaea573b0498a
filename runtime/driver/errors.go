package driver

// Every error of the API: sentinels for errors.Is, and two types with the details.

import (
	"errors"
	"fmt"
	"strings"
)

// finer is a sentinel with a parent: errors.Is matches both.
type finer struct {
	text   string
	parent error
}

func (e *finer) Error() string { return e.text }
func (e *finer) Unwrap() error { return e.parent }

// The sentinels. An indented one also matches the one above it that is not indented.
var (
	// ErrInvalidArgument: an argument, shape or state that is wrong whatever the device.
	ErrInvalidArgument = errors.New("invalid argument")
	//   ErrBufferOverflow: a range that extends past the end of its buffer.
	ErrBufferOverflow error = &finer{"range passes the end of the buffer", ErrInvalidArgument}
	//   ErrEventNotRecorded: an event that no stream has recorded.
	ErrEventNotRecorded error = &finer{"event was not recorded", ErrInvalidArgument}
	//   ErrTimingDisabled: an event recorded without timing has no time.
	ErrTimingDisabled error = &finer{"event was recorded without timing", ErrInvalidArgument}
	//   ErrNoHostMemory, ErrNoDeviceMemory: a buffer without that side.
	ErrNoHostMemory   error = &finer{"buffer has no host side", ErrInvalidArgument}
	ErrNoDeviceMemory error = &finer{"buffer has no device side", ErrInvalidArgument}

	// ErrDimension: lengths or shapes that disagree.
	ErrDimension = errors.New("dimensions disagree")

	// ErrNoDevice: there is no such device, or no device is left to try.
	ErrNoDevice = errors.New("no such device")
	//   ErrDeviceIndex: the backend exists, but has no device with that index.
	ErrDeviceIndex error = &finer{"no device with that index", ErrNoDevice}
	//   ErrFakeDevice: a device of CONCORD_FAKE_DEVICES cannot be opened.
	ErrFakeDevice error = &finer{"device is fake", ErrNoDevice}
	//   ErrAllBackendsExhausted: every device of a fallback failed.
	ErrAllBackendsExhausted error = &finer{"no backend is left to try", ErrNoDevice}

	// ErrUnknownBackend: no backend has that name.
	ErrUnknownBackend = errors.New("unknown backend")

	// ErrUnsupported: a known operation that this device or build cannot do.
	ErrUnsupported = errors.New("not supported here")
	//   ErrUnsupportedPrecision: the device lacks arithmetic of that precision.
	ErrUnsupportedPrecision error = &finer{"precision is not supported here", ErrUnsupported}
	//   ErrNoCompiler: the device could run the program, but its compiler is missing.
	ErrNoCompiler error = &finer{"not supported here without a compiler", ErrUnsupported}

	// ErrOutOfMemory: the device does not have that much memory free, as the vendor's API reported.
	ErrOutOfMemory = errors.New("out of device memory")
	// ErrTooLarge: a size that can never fit.
	ErrTooLarge = errors.New("can never fit")
	// ErrBudget: the operation would exceed a limit of the configuration.
	ErrBudget = errors.New("configured limit would be passed")

	// ErrCompile: a program did not build. *BuildError has the log.
	ErrCompile = errors.New("program did not build")
	//   ErrNoKernel: a program without an entry point of that name.
	ErrNoKernel error = &finer{"no such kernel", ErrCompile}

	// ErrLaunch: a kernel launch was refused, or the kernel failed while it ran.
	ErrLaunch = errors.New("kernel failed")
	//   ErrLocalMemory: a group of the launch needs more local memory than the device has for one.
	ErrLocalMemory error = &finer{"not enough local memory", ErrLaunch}
	// ErrTimeout: a watchdog ended the operation.
	ErrTimeout = errors.New("timed out")
	// ErrDeviceLost: the device's whole context is gone; every later call returns this error.
	ErrDeviceLost = errors.New("device lost")
	// ErrClosed: the object was used after its Close.
	ErrClosed = errors.New("already closed")

	// ErrCorrupt: damaged or truncated data.
	ErrCorrupt = errors.New("data is corrupt")
	//   ErrFormat: data that is not of the expected format at all.
	ErrFormat error = &finer{"data is not of this format", ErrCorrupt}

	// ErrNumerical: a number that is not finite where none may be.
	ErrNumerical = errors.New("not a finite number")
)

// OfDevice reports whether an error is one of the device, after which another device may do the work: it is not there,
// cannot do it, has no room, failed or is lost. An index that no device has and a fake device are mistakes of the
// caller.
func OfDevice(err error) bool {
	if errors.Is(err, ErrDeviceIndex) || errors.Is(err, ErrFakeDevice) {
		return false
	}
	for _, is := range []error{ErrNoDevice, ErrUnsupported, ErrOutOfMemory, ErrTooLarge, ErrCompile, ErrLaunch,
		ErrTimeout, ErrDeviceLost} {
		if errors.Is(err, is) {
			return true
		}
	}
	return false
}

// OpError says on which device which operation failed, and why.
type OpError struct {
	Backend string // "cuda"
	Device  string // "cuda:0"; empty when no device was chosen yet
	Op      string // "alloc 8.0 GiB", "launch saxpy"
	Code    int    // the vendor's code; 0 when there is none
	Detail  string // the vendor's name or text for the code, or another detail
	Err     error  // a sentinel, or an error that wraps one
}

// Error returns "cuda:0: alloc 8.0 GiB: out of device memory (code 2)".
func (e *OpError) Error() string {
	var b strings.Builder
	where := e.Device
	if where == "" {
		where = e.Backend
	}
	if where != "" {
		b.WriteString(where + ": ")
	}
	if e.Op != "" {
		b.WriteString(e.Op + ": ")
	}
	if e.Detail != "" {
		b.WriteString(e.Detail + ": ")
	}
	if e.Err != nil {
		b.WriteString(e.Err.Error())
	}
	if e.Code != 0 {
		fmt.Fprintf(&b, " (code %d)", e.Code)
	}
	return b.String()
}

// Unwrap returns the sentinel.
func (e *OpError) Unwrap() error { return e.Err }

// BuildError is a program that did not build for a target. It matches ErrCompile.
type BuildError struct {
	Source string // name of the program
	Target string // the target of the build: "host", "opencl:0", "sm_90"
	Log    string // the compiler's whole output, positions mapped to the portable text
	Err    error  // a cause besides the program itself, or nil
}

// Error returns one line: the program, the target, and the first line of the log that contains
// "error".
func (e *BuildError) Error() string {
	s := fmt.Sprintf("%s: build for %s: %v", e.Source, e.Target, ErrCompile)
	if line := e.firstError(); line != "" {
		s += ": " + line
	}
	if e.Err != nil && e.Err.Error() != e.Log {
		s += ": " + e.Err.Error()
	}
	return s
}

func (e *BuildError) firstError() string {
	first := ""
	for line := range strings.Lines(e.Log) {
		line = strings.TrimSpace(line)
		if strings.Contains(line, "error") {
			return line
		}
		if first == "" {
			first = line
		}
	}
	return first
}

// Unwrap makes errors.Is(err, ErrCompile) true, and reaches the cause.
func (e *BuildError) Unwrap() []error {
	if e.Err == nil {
		return []error{ErrCompile}
	}
	return []error{ErrCompile, e.Err}
}

// FormatBytes formats a size in readable units: "640 B", "8.0 GiB".
func FormatBytes(n int64) string {
	if n < 1024 && n > -1024 {
		return fmt.Sprintf("%d B", n)
	}
	f := float64(n)
	for _, unit := range []string{"KiB", "MiB", "GiB", "TiB", "PiB"} {
		f /= 1024
		if f < 1024 && f > -1024 {
			return fmt.Sprintf("%.1f %s", f, unit)
		}
	}
	return fmt.Sprintf("%.1f EiB", f/1024)
}
