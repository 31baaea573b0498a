package conformance_test

import (
	"errors"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/concord-compute/concord/runtime"
	_ "github.com/concord-compute/concord/runtime/all"
	rows "github.com/concord-compute/concord/runtime/conformance"
	"github.com/concord-compute/concord/runtime/driver"
	"github.com/concord-compute/concord/tests/conformance"
	"github.com/stretchr/testify/require"
)

// TestEveryDevice runs the suite on every device of every backend in the build,
// and demands the backends that CONCORD_REQUIRE names.
func TestEveryDevice(t *testing.T) {
	s, err := runtime.New(runtime.Config{Fallback: runtime.Require})
	require.NoError(t, err)
	probes, err := s.Discover(t.Context())
	require.NoError(t, err)
	for _, p := range probes {
		if len(p.Devices) == 0 {
			t.Run(p.Backend, func(t *testing.T) {
				if slices.Contains(s.Config().Required, p.Backend) {
					t.Fatalf("CONCORD_REQUIRE names it: %s", p.Reason)
				}
				t.Skip(p.Reason)
			})
		}
		for _, info := range p.Devices {
			t.Run(info.ID, func(t *testing.T) { run(t, s, info.ID) })
		}
	}
	for _, name := range s.Config().Required { // simulated ones, which are not listed
		if !slices.ContainsFunc(probes, func(p runtime.Probe) bool { return p.Backend == name }) {
			t.Run(name, func(t *testing.T) { run(t, s, name) })
		}
	}
	require.NoError(t, s.Close())
}

func run(t *testing.T, s *runtime.Session, name string) {
	conformance.Run(t, func(t *testing.T) *runtime.Device { return conformance.Open(t, name) }, exceptions(t, s, name))
}

// exceptions lists what a device does not have or does wrong, as far as its Info does not say so.
func exceptions(t *testing.T, s *runtime.Session, name string) conformance.Exceptions {
	d, err := s.Open(t.Context(), name)
	if err != nil {
		return conformance.Exceptions{} // the first row says so
	}
	defer d.Close()
	e := rows.Known(d.Info())
	if why := missingCompiler(t, s, d); why != "" {
		e.Unsupported["kernel/compiler"] = why
	}
	return e
}

// hostPrograms reports whether cpu:0 can compile programs in this build, if there is a C++
// compiler.
var hostPrograms bool

// missingCompiler returns why a device may be without a compiler on this machine, or "". The test
// looks for the host's compiler itself, so that a backend that fails to find an installed one
// fails.
func missingCompiler(t *testing.T, s *runtime.Session, d *runtime.Device) string {
	switch d.String() {
	case "cpu:reference":
		return "the reference is the catalog's alone"
	case "cpu:0":
		installed := slices.ContainsFunc([]string{os.Getenv("CXX"), "c++", "g++", "clang++"}, func(name string) bool {
			words := strings.Fields(name)
			if len(words) == 0 {
				return false
			}
			_, err := exec.LookPath(words[0])
			return err == nil
		})
		if !hostPrograms || !installed {
			return "the build is without cgo, or no C++ compiler is installed"
		}
		return ""
	}
	c, ok := d.Driver().(driver.Compiler)
	if !ok || slices.Contains(s.Config().Required, d.Info().Backend) {
		return ""
	}
	if _, err := c.Identity(t.Context()); errors.Is(err, runtime.ErrUnsupported) {
		return "not installed on this machine: " + err.Error()
	}
	return ""
}
