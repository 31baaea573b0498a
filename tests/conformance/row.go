package conformance

// The outcome of a row: it passes, fails or is skipped, depending on the lists.

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
)

// Exceptions lists the rows that a device does not pass, each with the reason. A row is named as
// go test prints it: "kinds/prefetch". The zero value lists none.
//
// Run checks the lists. A row in which a call returns ErrUnsupported fails unless it is listed. A
// listed row that passes fails as well, so that exceptions are removed when they are no longer
// needed. A name that is not a row, and an empty reason, are failures, too.
type Exceptions struct {
	// Unsupported has the rows that are skipped because the device returns ErrUnsupported.
	// "kernel/compiler" includes every row that runs a portable program.
	Unsupported map[string]string
	// Failing has the rows that are known to fail. They run, their failures are logged, and
	// they count as skipped. A row that ends the process or never returns is for go test
	// -skip instead.
	Failing map[string]string
}

// check fails the test for each mistake in the lists.
func (e Exceptions) check(t *testing.T) {
	t.Helper()
	var names []string
	for _, c := range checks {
		names = append(names, c.name)
	}
	for _, list := range []map[string]string{e.Unsupported, e.Failing} {
		for name, reason := range list {
			if !slices.Contains(names, name) {
				t.Errorf("there is no row %q; the rows are %s", name, strings.Join(names, ", "))
			}
			if reason == "" {
				t.Errorf("the exception of row %s has no reason", name)
			}
		}
	}
	for name := range e.Unsupported {
		if e.Failing[name] != "" {
			t.Errorf("row %s is listed both as unsupported and as failing", name)
		}
	}
}

// row is a check in progress. It has those methods of its test that do not affect the outcome; the
// methods below decide, by the lists, whether the test fails or is skipped.
type row struct {
	undecided
	test        *testing.T
	unsupported string // why it is listed as unsupported, or ""
	failing     string // why it is listed as failing, or ""
	noCompiler  string // why compilerRow is listed as unsupported, or ""
	failed      atomic.Bool
	skipped     bool // set if a method of row has skipped it
}

type undecided interface {
	Context() context.Context
	Helper()
	Name() string
}

// Errorf marks the row as failed and goes on.
func (t *row) Errorf(format string, args ...any) {
	t.Helper()
	t.failed.Store(true)
	if t.failing != "" {
		t.test.Logf(format, args...)
		return
	}
	t.test.Errorf(format, args...)
}

// Fatalf marks the row as failed and ends it.
func (t *row) Fatalf(format string, args ...any) {
	t.Helper()
	t.Errorf(format, args...)
	if t.failing != "" {
		t.skip("known to fail: %s", t.failing)
	}
	t.test.FailNow()
}

// refused skips a row because a call returned ErrUnsupported. The row has to be listed.
func (t *row) refused(format string, args ...any) {
	t.Helper()
	why := fmt.Sprintf(format, args...)
	if t.unsupported == "" {
		t.test.Fatalf("%s; nothing in Info says so, and the row is not in Exceptions.Unsupported", why)
	}
	t.skip("%s; listed: %s", why, t.unsupported)
}

// skip ends a row as skipped, because of the device's Info or because of a list.
func (t *row) skip(format string, args ...any) {
	t.Helper()
	t.skipped = true
	t.test.Skipf(format, args...)
}

// presence records whether the device was present for some rows, and missing for some.
type presence struct{ here, missing bool }

// run opens the device and carries out a check.
func (t *row) run(c check, open OpenFunc, p *presence) {
	defer func() {
		p.missing = p.missing || t.test.Skipped() && !t.skipped // by open
		if p.here && p.missing {
			t.test.Errorf("the device was present for one row and missing for another")
		}
	}()
	d := &device{Device: open(t.test)}
	p.here = true
	defer func() {
		if t.failed.Load() && t.failing != "" {
			_ = d.Close() // a failed row may leave objects behind, which is no further failure
		}
	}()
	if c.portable {
		d.needPortable(t)
	}
	c.check(t, d)
	d.end(t)
	switch {
	case t.unsupported != "":
		t.test.Errorf("the row is listed as unsupported (%s), and was not skipped", t.unsupported)
	case t.failing != "" && t.failed.Load():
		t.skip("known to fail: %s", t.failing)
	case t.failing != "":
		t.test.Errorf("the row is listed as failing (%s), and passed", t.failing)
	}
}
