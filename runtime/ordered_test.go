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
	require.NoError(t, s.Fill(x, float32(1)))
	require.NoError(t, x.Close())
	assert.Equal(t, []string{"alloc here", "fill", "free here"}, b.heard(), "given back while the work is queued")
	assert.Zero(t, d.Stats().Live+d.Stats().Deferred)

	x, err = s.Alloc(F32, 10)
	require.NoError(t, err)
	require.NoError(t, other.Fill(x, float32(1)))
	require.NoError(t, other.Fill(x, float32(1)))
	require.NoError(t, s.Fill(x, float32(1)))
	require.NoError(t, other.Fill(x, float32(1)))
	assert.Equal(t, []string{"alloc here", "wait", "fill", "fill", "fill", "fill"}, b.heard(),
		"another stream waits for it once")
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
	for _, n := range []int{-1, -2} {
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
		require.NoError(t, d.Stream().Fill(x, float32(1)))
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

// Memory that the driver does not take back in the stream's order waits on.
func TestFreeHereFails(t *testing.T) {
	b := &nullBackend{full: true, told: true, freeHereErr: ErrLaunch}
	_, d := open(t, b, Config{})
	x, err := d.Stream().Alloc(F32, 10)
	require.NoError(t, err)
	require.NoError(t, x.Close())
	assert.EqualValues(t, 40, d.Stats().Deferred)
	b.freeHereErr = nil
	b.heard()
	assert.Zero(t, d.Stats().Deferred)
	assert.Equal(t, []string{"free here"}, b.heard())
	b.freeHereErr = ErrLaunch
	x, err = d.Stream().Alloc(F32, 10)
	require.NoError(t, err)
	require.NoError(t, x.Close())
	assert.Zero(t, b.frees.Load(), "its stream still runs")
	require.NoError(t, d.Close())
	assert.EqualValues(t, 1, b.frees.Load(), "with the device")
}

// While a driver records nothing is freed, not even when memory is out.
func TestOutOfMemoryWhileRecording(t *testing.T) {
	b := &nullBackend{full: true, told: true, slow: new(atomic.Bool)}
	_, d := open(t, b, Config{})
	other, err := d.NewStream()
	require.NoError(t, err)
	x, err := d.Stream().Alloc(F32, 10)
	require.NoError(t, err)
	require.NoError(t, other.Fill(x, float32(1)))
	b.slow.Store(true)
	require.NoError(t, x.Close())
	b.allocHereErr = ErrOutOfMemory
	d.core.streams.capturing.Add(1)
	b.heard()
	_, err = d.Stream().Alloc(F32, 10)
	assert.ErrorIs(t, err, ErrOutOfMemory)
	assert.Empty(t, b.heard())
	d.core.streams.capturing.Add(-1)
	_, err = d.Stream().Alloc(F32, 10)
	assert.ErrorIs(t, err, ErrOutOfMemory)
	assert.Zero(t, d.Stats().Deferred)
	b.slow.Store(false)
}

// knownStream is a stream whose Err asks the driver.
type knownStream struct {
	nullStream
	asked int
}

func (s *knownStream) KnownErr() error { return s.err }
func (s *knownStream) Err() error      { s.asked++; return s.nullStream.Err() }

// A launch does not look for failures of other work; a call of Err does.
func TestKnownFailure(t *testing.T) {
	b := &nullBackend{}
	_, d := open(t, b, Config{})
	drv := &knownStream{nullStream: nullStream{b: b}}
	s := d.core.streams.register(&Stream{core: d.core, drv: drv})
	x := buffer(t, d, F32, 1)
	k := kernel(t, d, "axpy")
	require.NoError(t, s.Launch(k, Items(1), float32(1), x, x, 1))
	assert.Zero(t, drv.asked)
	require.NoError(t, s.Err())
	assert.Equal(t, 1, drv.asked)
	drv.err = ErrLaunch
	assert.ErrorIs(t, s.Launch(k, Items(1), float32(1), x, x, 1), ErrLaunch)
	assert.EqualValues(t, 1, b.launches.Load(), "a stream that has failed is given nothing")
}
