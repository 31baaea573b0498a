// Package conformance has the rules that every device keeps, as rows that a program or a test checks one by one.
//
// # Basics
//
// [Rows] lists the rows, and [Row.Check] checks one on a device. Each row opens the device, checks one rule, closes
// everything that it opened, and then fails unless all memory was freed. Buffers are taken from the middle of larger
// ones whose ends are filled with a pattern, so that a stray write is found.
//
// A row tells its outcome to a [T], which *testing.T is. The tests of a backend use package tests/conformance, which
// runs all rows as subtests.
//
// # Exceptions
//
// A row is skipped if the device's [runtime.Info] shows that it cannot run: the device has too little memory, or the
// backend has no other device. If a call returns ErrUnsupported and Info does not say why, the row fails unless it
// is listed in [Exceptions], as has a row that is known to fail. [Known] has the lists of this module's backends.
//
// # Caveats
//
// On a broken driver a row may end the process, or never return from a call of the driver. A program that has to go on
// then checks rows in another process. Otherwise a row ends soon after T's context, and gives its device up.
package conformance

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/concord-compute/concord/runtime"
)

// T receives the outcome of a row: it has passed if none of Errorf, Fatalf and Skipf was called. *testing.T is one.
// Rows call Errorf from several goroutines at once, and the others from the goroutine of Check. If a T has a method
// Helper, as *testing.T has, it finds out itself which line called it; for others, messages begin with that line.
type T interface {
	// Context is done when the row has to end. Rows pass it to every call that waits.
	Context() context.Context
	// Errorf says that the row has failed. The row goes on.
	Errorf(format string, args ...any)
	// Fatalf says that the row has failed. It does not return: it calls runtime.Goexit, or panics.
	Fatalf(format string, args ...any)
	// Skipf says why the row does not apply to the device. It does not return, like Fatalf.
	Skipf(format string, args ...any)
}

// Row is one rule, and its check.
type Row struct {
	Name     string // a group and a name: "kinds/prefetch"
	Portable bool   // it runs portable programs
	check    func(t *row, d *device)
}

var rows = slices.Concat(infoChecks, memoryChecks, kindChecks, managedChecks, streamChecks, kernelChecks,
	graphChecks, acrossChecks, errorChecks, limitChecks, lifetimeChecks)

// Rows returns all rows, in the order in which a backend's author meets them: the plainest first.
func Rows() []Row { return slices.Clone(rows) }

// Check opens a device and checks the row on it, and tells t the outcome. open opens the device under test, or calls
// t.Skipf if the machine does not have it, and t.Fatalf if it does not open. Check closes the device. Rows copy to and
// from cpu:0, so that the program has to import package cpu. Rows can be checked one after the other, and not at once.
func (r Row) Check(t T, open func(T) *runtime.Device, except Exceptions) {
	w := newRow(t, r.Name, except)
	d := &device{Device: open(t)}
	w.devices = append(w.devices, d.Device)
	defer w.end()
	if r.Portable {
		d.needPortable(w)
	}
	r.check(w, d)
	d.end(w)
	switch {
	case w.unsupported != "":
		t.Errorf("the row is listed as unsupported (%s), and was not skipped", w.unsupported)
	case w.failing != "" && w.failed.Load():
		w.known()
	case w.failing != "":
		t.Errorf("the row is listed as failing (%s), and passed", w.failing)
	}
}

// Exceptions lists the rows that a device does not pass, each with the reason. A row is named as
// in Row.Name: "kinds/prefetch". The zero value lists none.
//
// A row in which a call returns ErrUnsupported fails unless it is listed. A listed row that passes fails as well, so
// that exceptions are removed when they are no longer needed.
type Exceptions struct {
	// Unsupported has the rows that are skipped because the device returns ErrUnsupported.
	// "kernel/compiler" includes every row that runs a portable program.
	Unsupported map[string]string
	// Failing has the rows that are known to fail. They run, and they count as skipped, with their failures as the
	// reason. A row that ends the process or never returns is for go test -skip instead.
	Failing map[string]string
}

// Validate returns an error for each mistake in the lists: a name that is not a row, an empty reason, a row in both.
func (e Exceptions) Validate() error {
	var names []string
	for _, r := range rows {
		names = append(names, r.Name)
	}
	var errs []error
	wrong := func(format string, args ...any) {
		errs = append(errs, fmt.Errorf("conformance: "+format+": %w", append(args, runtime.ErrInvalidArgument)...))
	}
	for _, list := range []map[string]string{e.Unsupported, e.Failing} {
		for name, reason := range list {
			if !slices.Contains(names, name) {
				wrong("there is no row %q; the rows are %s", name, strings.Join(names, ", "))
			}
			if reason == "" {
				wrong("the exception of row %s has no reason", name)
			}
		}
	}
	for name := range e.Unsupported {
		if e.Failing[name] != "" {
			wrong("row %s is listed both as unsupported and as failing", name)
		}
	}
	return errors.Join(errs...)
}
