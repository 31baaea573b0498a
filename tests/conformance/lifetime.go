package conformance

// Lifetimes: Close in any order, twice, with work under way.

import (
	"slices"
	"testing"

	"github.com/concord-compute/concord/runtime"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var lifetimeChecks = []check{
	{"lifetime/closed", false, checkClosed},
	{"lifetime/work under way", true, checkCloseUnderWay},
	{"lifetime/any order", true, checkAnyOrder},
	{"lifetime/foreign", true, checkForeign},
}

func checkClosed(t *testing.T, d *device) {
	b, err := d.Alloc(runtime.F32, 4)
	require.NoError(t, err)
	require.NoError(t, b.Close())
	require.NoError(t, b.Close(), "twice is nothing")
	assert.ErrorIs(t, runtime.Read(t.Context(), b, make([]float32, 4)), runtime.ErrClosed)
	assert.ErrorIs(t, runtime.Fill(d.Stream(), b, float32(1)), runtime.ErrClosed)
	_, err = b.Slice(0, 1)
	assert.ErrorIs(t, err, runtime.ErrClosed)
}

// checkCloseUnderWay closes buffers while kernels that use them are queued: the
// memory may not be freed before they are done. If it were, the next buffer would
// get it, and the kernel would write over what another stream has put there.
func checkCloseUnderWay(t *testing.T, d *device) {
	k := d.kernel(t, spinText, "spin")
	s := d.Stream()
	other, err := d.NewStream()
	require.NoError(t, err)
	for range 20 {
		b, err := d.Alloc(runtime.U32, 1024)
		require.NoError(t, err)
		require.NoError(t, s.Launch(k, runtime.Items(1024), b, uint32(2000)))
		require.NoError(t, b.Close())
		c, err := d.Alloc(runtime.U32, 1024)
		require.NoError(t, err)
		require.NoError(t, runtime.Fill(other, c, uint32(7)))
		require.NoError(t, other.Sync(t.Context()))
		require.NoError(t, s.Sync(t.Context()))
		require.Equal(t, slices.Repeat([]uint32{7}, 1024), read[uint32](t, c))
		require.NoError(t, c.Close())
	}
	require.NoError(t, other.Close())
}

func checkAnyOrder(t *testing.T, d *device) {
	p := d.program(t, saxpyText)
	k, err := p.Kernel("saxpy")
	require.NoError(t, err)
	s, err := d.NewStream()
	require.NoError(t, err)
	x, err := runtime.Upload(t.Context(), d.Device, []float32{1, 2})
	require.NoError(t, err)
	e, err := s.Record()
	require.NoError(t, err)
	require.NoError(t, s.Launch(k, runtime.Items(2), float32(1), x, x, uint32(2)))
	require.NoError(t, p.Close())
	require.NoError(t, p.Close())
	assert.ErrorIs(t, s.Launch(k, runtime.Items(2), float32(1), x, x, uint32(2)), runtime.ErrClosed, "its program is closed")
	require.NoError(t, s.Close())
	require.NoError(t, e.Close(), "an event after its stream")
	assert.Equal(t, []float32{2, 4}, read[float32](t, x))
	require.NoError(t, x.Close())
}

// checkForeign takes a second session's device: the same hardware, but nothing of
// one may be used with the other.
func checkForeign(t *testing.T, d *device) {
	s, err := runtime.New(runtime.Config{Fallback: runtime.Require})
	require.NoError(t, err)
	other, err := s.Open(t.Context(), d.String())
	if notHere(err) {
		require.NoError(t, s.Close())
		t.Skipf("no second session of %s: %v", d, err)
	}
	require.NoError(t, err)
	b, err := runtime.Upload(t.Context(), other, []float32{1})
	require.NoError(t, err)
	mine := upload(t, d, []float32{1})
	k := d.kernel(t, saxpyText, "saxpy")
	assert.ErrorIs(t, d.Stream().Launch(k, runtime.Items(1), float32(1), b, mine, uint32(1)), runtime.ErrInvalidArgument)
	assert.ErrorIs(t, d.Stream().Copy(mine, b), runtime.ErrInvalidArgument)
	assert.ErrorIs(t, other.Stream().Launch(k, runtime.Items(1), float32(1), mine, mine, uint32(1)), runtime.ErrInvalidArgument)
	e, err := other.Stream().Record()
	require.NoError(t, err)
	assert.ErrorIs(t, d.Stream().Wait(e), runtime.ErrInvalidArgument)
	require.NoError(t, e.Close())
	require.NoError(t, s.Close())
	assert.NoError(t, b.Close(), "after its device")
	assert.Equal(t, []float32{1}, read[float32](t, mine))
}
