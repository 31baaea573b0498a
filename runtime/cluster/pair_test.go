package cluster

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/concord-compute/concord/runtime"
)

// TestPairs asks all pairs of the devices that are here, each with itself, too, and compares with what a copy counts.
func TestPairs(t *testing.T) {
	var devs []*runtime.Device
	for _, name := range []string{"cpu:0", "cpu:reference", "opencl:0", "sim-cuda:0", "sim-cuda:1", "sim-rocm:0"} {
		if dev, err := runtime.Open(t.Context(), name); err == nil {
			t.Cleanup(func() { assert.NoError(t, dev.Close()) })
			devs = append(devs, dev)
		}
	}
	require.GreaterOrEqual(t, len(devs), 2)
	for i, to := range devs {
		for j, from := range devs {
			p, err := PairOf(to, from)
			require.NoError(t, err)
			assert.Equal(t, i == j, p.Path == OneDevice, p)
			require.NoError(t, p.Measure(t.Context(), 1<<16))
			assert.Positive(t, p.Rate)
			assert.Contains(t, p.String(), to.String()+" from "+from.String()+": "+p.Path.String()+", ")
			if i == j {
				continue
			}
			g, err := Options{}.Of(to, from)
			group(t, g, err)
			assert.Equal(t, make([]error, 2), do([]*Group{g}, func(m *Member) error { return queued(deadline(t), m, 1000) }))
			back, err := PairOf(from, to)
			require.NoError(t, err)
			hosts := p.Path == ThroughHost || back.Path == ThroughHost
			assert.Equal(t, hosts, g.Stats().Host > 0, "%v, %v: %+v", p, back, g.Stats())
			assert.Equal(t, p.Path != ThroughHost || back.Path != ThroughHost, g.Stats().Direct > 0, "%v, %v", p, back)
		}
	}
	p, err := PairOf(devs[0], devs[1])
	require.NoError(t, err)
	assert.ErrorIs(t, p.Measure(t.Context(), 0), runtime.ErrInvalidArgument)
	_, err = PairOf(devs[0], nil)
	assert.ErrorIs(t, err, runtime.ErrInvalidArgument)
	session, err := runtime.New(runtime.Config{})
	require.NoError(t, err)
	closed, err := session.Open(t.Context(), "cpu:0")
	require.NoError(t, err)
	require.NoError(t, closed.Close())
	require.NoError(t, session.Close())
	_, err = PairOf(closed, devs[1])
	assert.ErrorIs(t, err, runtime.ErrClosed)
}
