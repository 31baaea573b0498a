package cluster

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/concord-compute/concord/runtime"
)

// TestPairs asks all pairs of the devices that are here, each with itself, too, and compares with what a copy counts.
func TestPairs(t *testing.T) {
	cfg := runtime.Config{}
	if os.Getenv("CONCORD_SIM_DIR") == "" {
		cfg.SimDir = filepath.Join("..", "..", "build", "sim")
	}
	session, err := runtime.New(cfg)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, session.Close()) })
	names := []string{"cpu:0", "cpu:reference", "opencl:0", "sim-cuda:0", "sim-cuda:1", "sim-rocm:0"}
	for _, a := range names {
		for _, b := range names {
			t.Run(a+" from "+b, func(t *testing.T) {
				var devs []*runtime.Device
				for _, name := range []string{a, b} {
					dev, err := session.Open(t.Context(), name)
					if err != nil {
						t.Skip(err)
					}
					defer func() { assert.NoError(t, dev.Close()) }()
					devs = append(devs, dev)
				}
				p, err := PairOf(devs[0], devs[1])
				require.NoError(t, err)
				assert.Equal(t, a == b, p.Path == OneDevice, p)
				if a[:4] == "sim-" && b[:4] == "sim-" && a != b {
					assert.Equal(t, a == "sim-rocm:0" || b == "sim-rocm:0", p.Path == ThroughHost, p)
				}
				require.NoError(t, p.Measure(t.Context(), 1<<16))
				assert.Positive(t, p.Rate)
				assert.Contains(t, p.String(), a+" from "+b+": "+p.Path.String()+", ")
				if a == b {
					return
				}
				g, err := Options{Algorithm: Direct}.Of(devs...)
				group(t, g, err)
				assert.Equal(t, make([]error, 2), do([]*Group{g}, func(m *Member) error { return queued(deadline(t), m, 1000) }))
				back, err := PairOf(devs[1], devs[0])
				require.NoError(t, err)
				assert.Equal(t, p.Path == ThroughHost || back.Path == ThroughHost, g.Stats().Host > 0, "%v, %v", p, back)
				assert.Equal(t, p.Path != ThroughHost || back.Path != ThroughHost, g.Stats().Direct > 0, "%v, %v", p, back)
				require.NoError(t, g.Close())
			})
		}
	}
}

func TestPairRefuses(t *testing.T) {
	cpu := open(t, "cpu:0")
	p, err := PairOf(cpu, open(t, "cpu:reference"))
	require.NoError(t, err)
	assert.ErrorIs(t, p.Measure(t.Context(), 0), runtime.ErrInvalidArgument)
	_, err = PairOf(cpu, nil)
	assert.ErrorIs(t, err, runtime.ErrInvalidArgument)
	session, err := runtime.New(runtime.Config{})
	require.NoError(t, err)
	closed, err := session.Open(t.Context(), "cpu:0")
	require.NoError(t, err)
	require.NoError(t, closed.Close())
	require.NoError(t, session.Close())
	_, err = PairOf(closed, cpu)
	assert.ErrorIs(t, err, runtime.ErrClosed)
}
