package conformance

// Copies from one device to another: the same one opened twice, another of the
// backend, the CPU.

import (
	"sync"
	"testing"

	"github.com/concord-compute/concord/runtime"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var acrossChecks = []check{
	{"across/itself", false, func(t *testing.T, d *device) { across(t, d, d.Device) }},
	{"across/sessions", false, func(t *testing.T, d *device) { acrossTo(t, d, d.String()) }},
	{"across/neighbour", false, checkNeighbour},
	{"across/cpu", false, func(t *testing.T, d *device) { acrossTo(t, d, "cpu:0") }},
}

// checkNeighbour takes another device of the backend, if there is one.
func checkNeighbour(t *testing.T, d *device) {
	backend, other := d.Info().Backend, ":1"
	switch {
	case d.String() == "cpu:0":
		other = ":reference"
	case d.Info().NativeIndex != 0:
		other = ":0"
	}
	acrossTo(t, d, backend+other)
}

// acrossTo copies to and from a device in a session of its own.
func acrossTo(t *testing.T, d *device, name string) {
	s, err := runtime.New(runtime.Config{Fallback: runtime.Require})
	require.NoError(t, err)
	other, err := s.Open(t.Context(), name)
	if notHere(err) {
		require.NoError(t, s.Close())
		t.Skipf("no %s: %v", name, err)
	}
	require.NoError(t, err)
	across(t, d, other)
	st := other.Stats()
	assert.Zero(t, st.Live+st.Deferred, "bytes left on %s", name)
	require.NoError(t, s.Close())
}

func across(t *testing.T, d *device, other *runtime.Device) {
	far := &device{Device: other}
	for _, n := range []int{1, 1000, 5<<20 + 3} {
		data := bytesOf(n)
		here, there, back := upload(t, d, data), far.alloc(t, runtime.U8, n+7), d.alloc(t, runtime.U8, n)
		require.NoError(t, runtime.Fill(other.Stream(), there, uint8(9)))
		require.NoError(t, runtime.CopyAcross(t.Context(), there, here))
		part, err := there.Slice(0, n)
		require.NoError(t, err)
		require.NoError(t, runtime.CopyAcross(t.Context(), back, part))
		require.Equal(t, data, read[uint8](t, back), "%d bytes there and back", n)
		assert.EqualValues(t, 9, read[uint8](t, there)[n], "no byte more")
		require.NoError(t, part.Close())
	}
	acrossAfterWork(t, d, far)
	acrossRefuses(t, d, far)
	far.close(t)
}

// acrossAfterWork copies what streams are still at work on, on both sides.
func acrossAfterWork(t *testing.T, d, far *device) {
	const n = 1 << 18
	p, err := d.NewStream()
	require.NoError(t, err)
	q, err := far.NewStream()
	require.NoError(t, err)
	src, dst := d.alloc(t, runtime.U32, n), far.alloc(t, runtime.U32, n)
	for i := range uint32(5) {
		for range 4 {
			require.NoError(t, runtime.Fill(q, dst, uint32(77)))
			require.NoError(t, runtime.Fill(p, src, uint32(88)))
		}
		require.NoError(t, runtime.Fill(p, src, i))
		require.NoError(t, runtime.CopyAcross(t.Context(), dst, src))
		for j, got := range read[uint32](t, dst) {
			if got != i {
				t.Fatalf("element %d is %d, not %d: the copy did not wait", j, got, i)
			}
		}
	}
	require.NoError(t, p.Close())
	require.NoError(t, q.Close())
	// And closed while they are copied: the memory is kept until that is over.
	a, err := runtime.Upload(t.Context(), d.Device, bytesOf(n))
	require.NoError(t, err)
	b, err := far.Alloc(runtime.U8, n)
	require.NoError(t, err)
	var wg sync.WaitGroup
	wg.Go(func() {
		if err := runtime.CopyAcross(t.Context(), b, a); err != nil {
			assert.ErrorIs(t, err, runtime.ErrClosed)
		}
	})
	require.NoError(t, a.Close())
	require.NoError(t, b.Close())
	wg.Wait()
}

func acrossRefuses(t *testing.T, d, far *device) {
	src := upload(t, d, []float32{1, 2, 3})
	assert.ErrorIs(t, runtime.CopyAcross(t.Context(), far.alloc(t, runtime.F32, 2), src), runtime.ErrBufferOverflow)
	assert.ErrorIs(t, runtime.CopyAcross(t.Context(), far.alloc(t, runtime.I32, 3), src), runtime.ErrInvalidArgument)
	assert.ErrorIs(t, runtime.CopyAcross(t.Context(), nil, src), runtime.ErrInvalidArgument)
	closed, err := far.Alloc(runtime.F32, 3)
	require.NoError(t, err)
	require.NoError(t, closed.Close())
	assert.ErrorIs(t, runtime.CopyAcross(t.Context(), closed, src), runtime.ErrClosed)
	assert.ErrorIs(t, runtime.CopyAcross(t.Context(), src, closed), runtime.ErrClosed)
}
