// Package stress runs the stress set of the front end (internal/verify/stress) on every device of the machine, through
// package runtime.
package stress

import (
	"errors"
	"testing"

	"github.com/concord-compute/concord/internal/verify/stress"
	"github.com/concord-compute/concord/runtime"
	_ "github.com/concord-compute/concord/runtime/all"
	"github.com/concord-compute/concord/runtime/driver"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestStress: every device that runs portable programs computes the expected results. A device
// without double precision skips the programs that need it.
func TestStress(t *testing.T) {
	programs, err := stress.Load()
	require.NoError(t, err)
	require.NotEmpty(t, programs)
	eachDevice(t, func(t *testing.T, d *runtime.Device) {
		for _, p := range programs {
			t.Run(p.Name, func(t *testing.T) {
				skip, err := p.Check(t.Context(), d)
				require.NoError(t, err)
				if skip != "" {
					t.Skip(skip)
				}
			})
		}
	})
}

// eachDevice runs f as a subtest for every device that runs portable programs, of simulated ones the first of
// each backend.
func eachDevice(t *testing.T, f func(t *testing.T, d *runtime.Device)) {
	s, err := runtime.New(runtime.Config{Fallback: runtime.Require})
	require.NoError(t, err)
	defer s.Close()
	probes, err := s.Discover(t.Context())
	require.NoError(t, err)
	ran := map[string]bool{}
	for _, p := range probes {
		for _, info := range p.Devices {
			if info.ID == "cpu:reference" || info.NativeIndex > 0 && info.Simulated {
				continue
			}
			t.Run(info.ID, func(t *testing.T) {
				d, err := s.Open(t.Context(), info.ID)
				require.NoError(t, err)
				defer d.Close()
				c, ok := d.Driver().(driver.Compiler)
				if !ok {
					t.Skip("runs no portable programs")
				}
				if _, err := c.Identity(t.Context()); errors.Is(err, runtime.ErrUnsupported) {
					t.Skip(err)
				}
				ran[p.Backend] = true
				f(t, d)
			})
		}
	}
	for _, backend := range s.Config().Required {
		assert.True(t, ran[backend], "CONCORD_REQUIRE names %s", backend)
	}
}
