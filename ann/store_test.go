package ann

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/concord-compute/concord/runtime/driver"
)

// unseen returns a store that expects the host to see the memory of a device, which it does not.
func unseen(t *testing.T) *store {
	e, err := newEngine(open(t, "opencl:0"), 4, L2Squared, FP32)
	require.NoError(t, err)
	require.False(t, e.host)
	e.host = true
	s := newStore(e)
	t.Cleanup(func() { assert.NoError(t, s.close()) })
	return s
}

// TestUnseenRows finds that rows whose memory the host cannot see are an error, which leaves a store as it was.
func TestUnseenRows(t *testing.T) {
	ctx, s := t.Context(), unseen(t)
	base, err := s.larger(ctx, 0, 10)
	assert.ErrorIs(t, err, driver.ErrNoHostMemory)
	assert.Nil(t, base)
	assert.ErrorIs(t, s.reserve(ctx, 0, 10), driver.ErrNoHostMemory)
	_, err = s.load(ctx, &image{saved: saved{Rows: 2}, vectors: make([]byte, s.size(2))}, nil)
	assert.ErrorIs(t, err, driver.ErrNoHostMemory)
	assert.Nil(t, s.base)
	assert.False(t, s.streams)
	assert.Zero(t, s.onDevice())
}
