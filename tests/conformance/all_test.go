package conformance_test

import (
	"slices"
	"testing"

	"github.com/concord-compute/concord/runtime"
	_ "github.com/concord-compute/concord/runtime/all"
	"github.com/concord-compute/concord/tests/conformance"
	"github.com/stretchr/testify/require"
)

// TestEveryDevice runs the suite on every device of every backend in the build,
// and demands the backends that CONCORD_REQUIRE names.
func TestEveryDevice(t *testing.T) {
	s, err := runtime.New(runtime.Config{})
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
			t.Run(info.ID, func(t *testing.T) {
				conformance.Run(t, func(t *testing.T) *runtime.Device { return conformance.Open(t, info.ID) })
			})
		}
	}
	for _, name := range s.Config().Required { // simulated ones, which are not listed
		if !slices.ContainsFunc(probes, func(p runtime.Probe) bool { return p.Backend == name }) {
			t.Run(name, func(t *testing.T) {
				conformance.Run(t, func(t *testing.T) *runtime.Device { return conformance.Open(t, name) })
			})
		}
	}
	require.NoError(t, s.Close())
}
