// Package parity runs the kernel catalog on every device of the machine against
// the reference.
package parity

import (
	"testing"

	"github.com/concord-compute/concord/runtime"
	_ "github.com/concord-compute/concord/runtime/all"
	"github.com/concord-compute/concord/runtime/parity"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestCatalog demands that every kernel of the catalog passes on every device that
// is here, and that what is skipped says why.
func TestCatalog(t *testing.T) {
	s, err := runtime.New(runtime.Config{Fallback: runtime.Require})
	require.NoError(t, err)
	defer s.Close()
	results, err := parity.Run(t.Context(), parity.Options{Session: s})
	require.NoError(t, err)
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
	assert.Positive(t, counts["cpu:0"][parity.Pass])
}
