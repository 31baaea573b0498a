//go:build cgo && linux

package cluster

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/concord-compute/concord/runtime"
	"github.com/concord-compute/concord/runtime/profile"
	"github.com/concord-compute/concord/tests/sim"
	"github.com/concord-compute/concord/tests/sim/control"
)

// TestSimulated counts what a vendor's library has left when a group is closed, and what passes the host while its
// members compute: nothing.
func TestSimulated(t *testing.T) {
	dir := sim.Dir(t, filepath.Join("..", ".."), "sim-cuda", "libcuda.so.1")
	session, err := runtime.New(runtime.Config{SimDir: dir})
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, session.Close()) })
	var devs []*runtime.Device
	for _, name := range []string{"sim-cuda:0", "sim-cuda:1"} {
		dev, err := session.Open(t.Context(), name)
		if err != nil {
			t.Skip(err)
		}
		devs = append(devs, dev)
	}
	library, err := control.Open(filepath.Join(dir, "libcuda.so.1"))
	require.NoError(t, err)
	reduce := func(m *Member) error { return queued(deadline(t), m, 100_000) }
	var events, streams []int64 // that are left
	for i := range 8 {
		by := algorithms[1+i%3]
		g, err := Options{Algorithm: by}.Of(devs...)
		require.NoError(t, err)
		assert.Equal(t, make([]error, 2), do([]*Group{g}, reduce))
		recording := new(profile.Recording)
		stop := session.Observe(recording)
		assert.Equal(t, make([]error, 2), do([]*Group{g}, reduce))
		for _, m := range g.Members() {
			require.NoError(t, m.Stream().Sync(t.Context()))
		}
		stop()
		copies := 0
		told, _ := recording.Events()
		for _, e := range told {
			if e.Kind == profile.Copy {
				copies++
				assert.Contains(t, []string{"device to device", "sim-cuda:0 to device", "sim-cuda:1 to device"}, e.Name)
			}
		}
		assert.Positive(t, copies)
		assert.Zero(t, g.Stats().Host)
		require.NoError(t, g.Close())
		for _, dev := range devs {
			assert.Zero(t, dev.Stats().LiveBuffers)
		}
		events, streams = append(events, library.Count("events")), append(streams, library.Count("streams"))
	}
	// What the devices keep for themselves comes with their first work, and an event may be kept more in one round than
	// in another; parcels would leave several in each.
	assert.Equal(t, streams[3], streams[7])
	assert.Less(t, events[7]-events[3], int64(5))
}
