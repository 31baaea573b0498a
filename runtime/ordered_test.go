package runtime

import (
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestStreamAlloc(t *testing.T) {
	b := &nullBackend{full: true, told: true, slow: new(atomic.Bool)}
	_, d := open(t, b, Config{})
	s, err := d.NewStream()
	require.NoError(t, err)
	other, err := d.NewStream()
	require.NoError(t, err)
	b.heard()
	b.slow.Store(true)
	x, err := s.Alloc(F32, 10)
	require.NoError(t, err)
	assert.EqualValues(t, 40, d.Stats().Live)
	require.NoError(t, Fill(s, x, float32(1)))
	require.NoError(t, x.Close())
	assert.Equal(t, []string{"alloc here", "fill", "free here"}, b.heard(), "given back while the work is queued")
	assert.Zero(t, d.Stats().Live+d.Stats().Deferred)

	x, err = s.Alloc(F32, 10)
	require.NoError(t, err)
	require.NoError(t, Fill(other, x, float32(1)))
	require.NoError(t, Fill(other, x, float32(1)))
	require.NoError(t, Fill(s, x, float32(1)))
	require.NoError(t, Fill(other, x, float32(1)))
	assert.Equal(t, []string{"alloc here", "wait", "fill", "fill", "fill", "fill"}, b.heard(), "another stream waits for it once")
	require.NoError(t, x.Close())
	assert.EqualValues(t, 40, d.Stats().Deferred, "the other stream still uses it")
	b.slow.Store(false)
	assert.Zero(t, d.Stats().Deferred)
	assert.Equal(t, []string{"free here"}, b.heard())

	x, err = s.Alloc(F32, 10)
	require.NoError(t, err)
	y, err := other.Alloc(F32, 10)
	require.NoError(t, err)
	require.NoError(t, s.Close())
	b.heard()
	require.NoError(t, x.Close())
	assert.EqualValues(t, 1, b.frees.Load(), "its stream is gone")
	assert.Empty(t, b.heard())
	_, err = s.Alloc(F32, 10)
	assert.ErrorIs(t, err, ErrClosed)
	for _, n := range []int{0, -1} {
		_, err = other.Alloc(F32, n)
		assert.ErrorIs(t, err, ErrInvalidArgument)
	}
	_, err = other.Alloc(F32, 1<<62)
	assert.ErrorIs(t, err, ErrTooLarge)
	_, err = other.Alloc(F32, 1<<38)
	assert.ErrorIs(t, err, ErrTooLarge)
	_, err = (*Stream)(nil).Alloc(F32, 1)
	assert.ErrorIs(t, err, ErrInvalidArgument)
	_, err = other.Capture(func(s *Stream) error { _, err := s.Alloc(F32, 1); return err })
	assert.ErrorIs(t, err, ErrInvalidArgument)
	require.NoError(t, d.Close())
	assert.EqualValues(t, 2, b.frees.Load(), "with the device")
	require.NoError(t, y.Close())
}

func TestStreamAllocWithout(t *testing.T) {
	for _, b := range []*nullBackend{{}, {full: true, allocHereErr: fmt.Errorf("old driver: %w", ErrUnsupported)}} {
		_, d := open(t, b, Config{})
		x, err := d.Stream().Alloc(F32, 10)
		require.NoError(t, err)
		require.NoError(t, Fill(d.Stream(), x, float32(1)))
		require.NoError(t, x.Close())
		assert.EqualValues(t, 1, b.allocs.Load())
		assert.EqualValues(t, 1, b.frees.Load())
	}
	failing := &nullBackend{full: true, allocHereErr: ErrOutOfMemory}
	_, d := open(t, failing, Config{})
	_, err := d.Stream().Alloc(F32, 10)
	assert.ErrorIs(t, err, ErrOutOfMemory)
	assert.Zero(t, failing.allocs.Load(), "no room is no room")
	assert.Zero(t, d.Stats().Live)
}
