//go:build cgo && unix

package cgo

// Closing objects while their device may be closed at the same time.

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/concord-compute/concord/runtime/driver"
	"github.com/concord-compute/concord/tests/sim/null"
)

// The device holds an object until it is released. Otherwise the device's Close could end before
// the object is released.
func TestClosedBeforeForgotten(t *testing.T) {
	d := openNull(t, vendor())
	s := newStream(t, d)
	require.NoError(t, s.BeginCapture())
	g, err := s.EndCapture(nil)
	require.NoError(t, err)
	for kind, o := range map[string]interface{ Close() error }{"module": load(t, d, saxpyText), "graph": g} {
		d.mu.Lock() // blocks forget
		closed := make(chan error)
		go func() { closed <- o.Close() }()
		assert.Eventually(t, func() bool { return null.Live()[kind] == 0 }, 5*time.Second, time.Millisecond, kind)
		assert.Contains(t, d.objects, o, kind)
		d.mu.Unlock()
		require.NoError(t, <-closed)
		d.mu.Lock()
		assert.NotContains(t, d.objects, o, kind)
		d.mu.Unlock()
	}
}

// Memory that the driver failed to free in stream order can be freed later.
func TestFreeHereFails(t *testing.T) {
	d := openNull(t, vendor())
	s := newStream(t, d)
	var memory [3]driver.Memory
	for i := range memory {
		m, err := s.AllocHere(64)
		require.NoError(t, err)
		memory[i] = m
		null.Fail("free_on", 0, int(statusFailed))
		require.ErrorIs(t, s.FreeHere(m), driver.ErrLaunch)
	}
	assert.Equal(t, 3, null.Live()["memory"])
	require.NoError(t, s.FreeHere(memory[0]), "once more")
	require.NoError(t, d.Free(memory[1]))
	assert.Equal(t, 1, null.Live()["memory"])
	require.NoError(t, d.Close())
	assert.Zero(t, null.Live()["memory"], "with the device")
}

// An error that a call has returned is known without another call into C.
func TestKnownErr(t *testing.T) {
	d := openNull(t, vendor())
	s, x := newStream(t, d), alloc(t, d, 64, driver.OnDevice)
	relu := &driver.Launch{Kernel: kernelOf(t, load(t, d, saxpyText), "relu"), Dim: 1, Global: [3]int{1}, Local: [3]int{1}}
	null.Break(int(statusLaunch))
	require.NoError(t, s.Launch(relu))
	before := null.Calls("stream_query")
	assert.NoError(t, s.KnownErr())
	assert.Equal(t, before, null.Calls("stream_query"))
	err := s.Copy(x, x)
	require.ErrorIs(t, err, driver.ErrLaunch, "the driver tells the next call")
	assert.Same(t, err, s.KnownErr())
	assert.Same(t, err, s.Err())
}
