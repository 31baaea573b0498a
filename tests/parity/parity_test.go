// Package parity runs the kernel catalog on every device of the machine against
// the reference.
package parity

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/concord-compute/concord/kernels"
	"github.com/concord-compute/concord/runtime"
	_ "github.com/concord-compute/concord/runtime/all"
	"github.com/concord-compute/concord/runtime/driver"
	"github.com/concord-compute/concord/runtime/parity"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestWholeCatalog: every kernel of the catalog passes on every device of the machine, and every
// skipped case has a reason. A backend that CONCORD_REQUIRE names has to have a device. It runs
// family by family and prints a line for each, since on a busy machine the compiles take long. With
// -short it has a fifth of the programs of each kernel: most of the time is that of compilers.
func TestWholeCatalog(t *testing.T) {
	s, err := runtime.New(runtime.Config{Fallback: runtime.Require})
	require.NoError(t, err)
	defer s.Close()
	probes, err := s.Discover(t.Context())
	require.NoError(t, err)
	for _, p := range probes {
		if len(p.Devices) == 0 { // the reason says whether it is not in the build or has no device
			t.Run(p.Backend, func(t *testing.T) {
				require.NotContains(t, s.Config().Required, p.Backend, p.Reason)
				t.Skip(p.Reason)
			})
		}
	}
	passed := map[string]int{}
	for _, f := range kernels.Families() {
		t.Run(f.ID, func(t *testing.T) {
			start := time.Now()
			programs := map[string][]string{} // of each kernel
			results, err := parity.Run(t.Context(), parity.Options{Session: s, Kernels: []string{f.ID},
				Keep: func(c *kernels.Case) bool {
					p := fmt.Sprint(c.Defines)
					i := slices.Index(programs[c.Kernel], p)
					if i < 0 {
						i, programs[c.Kernel] = len(programs[c.Kernel]), append(programs[c.Kernel], p)
					}
					return !testing.Short() || i%5 == 0
				}})
			require.NoError(t, err)
			for device, n := range check(t, results) {
				passed[device] += n
			}
			fmt.Printf("parity: %s: %d verdicts in %.1f s\n", f.ID, len(results), time.Since(start).Seconds())
		})
	}
	assert.Positive(t, passed["cpu:0"])
	for _, backend := range s.Config().Required {
		n := 0
		for device := range passed {
			if strings.HasPrefix(device, backend+":") {
				n += passed[device]
			}
		}
		assert.Positive(t, n, "CONCORD_REQUIRE names %s", backend)
	}
	d, err := s.Open(t.Context(), "cpu:0")
	require.NoError(t, err)
	_, err = d.Driver().(driver.Compiler).Identity(t.Context())
	if !errors.Is(err, runtime.ErrUnsupported) {
		assert.NoError(t, err)
		assert.Positive(t, passed["cpu:0 (compiled)"], "there is a host compiler")
	}
}

// smallVariable names a device for TestSmall, a simulator.
const smallVariable = "PARITY_SMALL"

// TestSmall runs every kernel of the catalog at sizes that are small enough for a simulator, on the
// device that PARITY_SMALL names. It builds one program at a time, because two builds at once crash
// oclgrind.
func TestSmall(t *testing.T) {
	device := os.Getenv(smallVariable)
	if device == "" {
		t.Skip(smallVariable + " names no device")
	}
	s, err := runtime.New(runtime.Config{Fallback: runtime.Require})
	require.NoError(t, err)
	defer s.Close()
	passed := map[string]bool{}
	for _, f := range kernels.Families() {
		var programs []string
		seen := map[string]bool{}
		for _, c := range kernels.Cases(f.ID) {
			if p := fmt.Sprint(c.Defines); small(&c) && !seen[p] {
				seen[p], programs = true, append(programs, p)
			}
		}
		t.Run(f.ID, func(t *testing.T) {
			var results []parity.Result
			for _, p := range programs {
				r, err := parity.Run(t.Context(), parity.Options{
					Session: s, Devices: []string{device}, Kernels: []string{f.ID},
					Keep: func(c *kernels.Case) bool { return small(c) && fmt.Sprint(c.Defines) == p },
				})
				require.NoError(t, err)
				results = append(results, r...)
			}
			check(t, results)
			for _, r := range results {
				passed[r.Kernel] = passed[r.Kernel] || r.Verdict == parity.Pass
			}
			for _, k := range f.Kernels {
				assert.True(t, passed[f.ID+"/"+k], "no small case of %s passed", k)
			}
		})
	}
}

// small reports whether a case has few items and little data.
func small(c *kernels.Case) bool {
	u, err := kernels.Unit(c.Family, nil, c.Defines...)
	if err != nil {
		return false
	}
	n, _, err := kernels.Geometry(u, c.Kernel, c.Sizes...)
	for _, a := range c.Args {
		if a.Len > 2048 {
			return false
		}
	}
	return err == nil && n[0]*n[1]*n[2] <= 2048
}

// check fails the test for every result that failed, logs the rest, and returns how
// many passed on each device.
func check(t *testing.T, results []parity.Result) (passed map[string]int) {
	t.Helper()
	counts, reasons := map[string]map[string]int{}, map[string]int{}
	for _, r := range results {
		if counts[r.Device] == nil {
			counts[r.Device] = map[string]int{}
		}
		counts[r.Device][r.Verdict]++
		switch r.Verdict {
		case parity.Skip:
			assert.NotEmpty(t, r.Reason, "%+v", r)
			reasons[r.Device+": "+r.Reason]++
		case parity.Fail:
			t.Errorf("%s: %s %s %s: %s", r.Device, r.Kernel, r.DType, r.Shape, r.Reason)
		}
	}
	for device, c := range counts {
		t.Logf("%s: %d pass, %d skip, %d fail", device, c[parity.Pass], c[parity.Skip], c[parity.Fail])
	}
	for reason, n := range reasons {
		t.Logf("%d skipped on %s", n, reason)
	}
	passed = map[string]int{}
	for device, c := range counts {
		passed[device] = c[parity.Pass]
	}
	return passed
}
