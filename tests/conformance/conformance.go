// Package conformance is the suite that every backend passes, one of Concord's own or one of
// another module. It runs the rows of [github.com/concord-compute/concord/runtime/conformance] as tests. It imports
// only the standard library and Concord's own packages and their dependencies.
//
// # The test of a backend
//
// A backend that registers itself as "hostdev" is tested by one file in its own module:
//
//	package hostdev_test
//
//	import (
//		"testing"
//
//		_ "github.com/concord-compute/concord/cpu" // across/cpu copies from and to cpu:0
//		"github.com/concord-compute/concord/runtime"
//		"github.com/concord-compute/concord/tests/conformance"
//
//		_ "example.org/hostdev"
//	)
//
//	func TestConformance(t *testing.T) {
//		open := func(t *testing.T) *runtime.Device { return conformance.Open(t, "hostdev:0") }
//		conformance.Run(t, open, conformance.Exceptions{
//			Unsupported: map[string]string{"kinds/prefetch": "the hardware has no unified memory"},
//			Failing:     map[string]string{"stream/times": "hostdev 1.2 returns the time of the host"},
//		})
//	}
//
// Begin with empty Exceptions. Each failure names its row, such as TestConformance/kinds/prefetch.
// Implement the feature that the row tests, or list the row with the reason why the backend does
// not have it. A backend that does not compile programs lists "kernel/compiler" alone, which
// includes every row that needs a program.
//
// If the device is missing all rows are skipped. With CONCORD_REQUIRE=hostdev in the environment
// they fail, so that tests on a machine that should have the device cannot pass without it.
//
// # The rows
//
// Each row opens the device, checks one rule, closes everything that it opened, and then fails
// unless all memory was freed. Buffers are taken from the middle of larger ones whose ends are
// filled with a pattern, so that a stray write is found.
//
// Without being listed, a row is skipped only if the device's [driver.Info] shows that it cannot
// run: the device has too little memory, or the backend has no other device. If a call returns
// ErrUnsupported and Info does not say why, the row has to be listed. A row that fails has to be
// listed, too; see [Exceptions].
package conformance

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/concord-compute/concord/runtime"
	"github.com/concord-compute/concord/runtime/config"
	rows "github.com/concord-compute/concord/runtime/conformance"
	"github.com/concord-compute/concord/runtime/driver"
)

// OpenFunc opens the device under test, for one row. It skips the test if the machine does not have
// the device, and fails it for any other reason. The suite fails if the device is present for some
// rows and missing for others. The suite closes the device.
type OpenFunc func(t *testing.T) *runtime.Device

// Exceptions lists the rows that a device does not pass, each with the reason. Run checks the lists.
type Exceptions = rows.Exceptions

// Run runs the whole suite, each row as a subtest. It fails t for every row that neither passes
// nor is listed in except, and for every row that is listed and passes.
func Run(t *testing.T, open OpenFunc, except Exceptions) {
	t.Helper()
	if err := except.Validate(); err != nil {
		t.Error(err)
	}
	here, missing := false, false
	for _, r := range rows.Rows() {
		t.Run(r.Name, func(t *testing.T) {
			r.Check(t, func(rows.T) *runtime.Device {
				defer func() {
					missing = missing || t.Skipped()
					if here && missing {
						t.Errorf("the device was present for one row and missing for another")
					}
				}()
				d := open(t)
				here = true
				return d
			}, except)
		})
	}
}

// Open opens a device of the default configuration by name. It skips the test
// with the reason if the machine does not have the device, unless CONCORD_REQUIRE names its
// backend. It fails the test if CONCORD_REQUIRE names a backend that this program does not have.
func Open(t *testing.T, name string) *runtime.Device {
	t.Helper()
	s, err := runtime.New(runtime.Config{Fallback: runtime.Require})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("closing the session of %s: %v", name, err)
		}
	})
	return OpenIn(t, s, name)
}

// OpenIn opens a device like Open, in a session that the caller made and closes.
func OpenIn(t *testing.T, s *runtime.Session, name string) *runtime.Device {
	t.Helper()
	backend, _, _ := strings.Cut(name, ":")
	required, err := config.Requires(s.Config(), backend)
	if err != nil {
		t.Fatal(err)
	}
	d, err := s.Open(t.Context(), name)
	absent := errors.Is(err, runtime.ErrNoDevice) || driver.IsSimulated(backend) &&
		errors.Is(err, runtime.ErrUnknownBackend)
	if absent && strings.HasSuffix(name, ":0") && available(t, s, backend) {
		t.Fatalf("%s is available, but its first device does not open as %s (is that the Info.ID, and is Info.Backend "+
			"%s?): %v",
			backend, name, backend, err)
	}
	if absent && !required {
		t.Skipf("this machine has no %s: %v", name, err)
	}
	if err != nil {
		t.Fatalf("opening %s: %v", name, err)
	}
	return d
}

// available reports whether a backend says that it can be used.
func available(t *testing.T, s *runtime.Session, backend string) bool {
	probes, err := s.Discover(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return slices.ContainsFunc(probes, func(p runtime.Probe) bool {
		return p.Backend == backend && p.State == driver.Available
	})
}
