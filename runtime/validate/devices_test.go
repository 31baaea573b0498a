package validate

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/concord-compute/concord/runtime"
	_ "github.com/concord-compute/concord/runtime/all"
	"github.com/concord-compute/concord/source"
)

// doubling is a kernel that is not of the catalog.
const doubling = `kernel void doubling(global const float *x, global float *y, uint n) {
  uint i = get_global_id(0);
  if (i < n) y[i] = 2.0f * x[i];
}`

// TestDevices: on every device of the build a network has the same bits with and without validation and no difference,
// and a kernel that is not of the catalog is judged wherever there are two devices that compile.
func TestDevices(t *testing.T) {
	s, err := runtime.New(runtime.Config{Validate: -1})
	require.NoError(t, err)
	defer s.Close()
	infos, err := s.Devices(t.Context())
	require.NoError(t, err)
	for _, i := range infos {
		if i.Fake || i.ID == "cpu:reference" {
			continue
		}
		t.Run(i.ID, func(t *testing.T) {
			d, err := s.Open(t.Context(), i.ID)
			require.NoError(t, err)
			defer d.Close()
			before := trained(t, d)
			v, list := started(t, s, Options{})
			assert.Equal(t, before, trained(t, d))
			v.Wait()
			for _, d := range *list {
				assert.Fail(t, d.String())
			}
			stats := v.Stats()
			t.Log(stats)
			assert.Greater(t, stats.Checked, int64(10))
			assert.Zero(t, stats.Failed, stats.Why)
			assert.Equal(t, stats.Launches, stats.Checked+stats.Full+stats.Large+stats.Unjudged, "each launch is counted once")
			require.NoError(t, v.Close())

			u, err := source.Parse(doubling, source.Options{Name: "doubling.cl"})
			require.NoError(t, err)
			p, err := d.Program(t.Context(), u)
			if err != nil {
				t.Skip(err)
			}
			defer p.Close()
			k, err := p.Kernel("doubling")
			require.NoError(t, err)
			x, err := runtime.Upload(t.Context(), d, make([]float32, 64))
			require.NoError(t, err)
			defer x.Close()
			y, err := runtime.Upload(t.Context(), d, make([]float32, 64))
			require.NoError(t, err)
			defer y.Close()
			v, list = started(t, s, Options{})
			require.NoError(t, d.Stream().Launch(k, runtime.Items(64), x, y, uint32(64)))
			v.Wait()
			assert.Empty(t, *list)
			stats = v.Stats()
			t.Log(stats)
			assert.Equal(t, len(infos) > 2 || i.Backend != "cpu", stats.Checked == 1, stats)
		})
	}
}
