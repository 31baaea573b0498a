package cluster

import (
	"context"
	"errors"
	goruntime "runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/concord-compute/concord/runtime"
)

// TestLeaks counts what is left after collectives that succeed and fail: memory, goroutines, forgotten buffers.
func TestLeaks(t *testing.T) {
	dev := open(t, "cpu:0")
	before := goruntime.NumGoroutine()
	for range 20 {
		g, err := Options{}.Virtual(dev, 4)
		require.NoError(t, err)
		for _, n := range []int{3, 1 << 15, 1 << 19} {
			assert.Equal(t, make([]error, 4), do([]*Group{g}, func(m *Member) error { return sums(deadline(t), m, nil, n) }))
		}
		errs := do([]*Group{g}, func(m *Member) error {
			if m.Rank() == 0 {
				return m.Fail(errors.New("planted"))
			}
			return sums(deadline(t), m, nil, 1<<15)
		})
		agreed(t, errs, 0)
		require.NoError(t, g.Close())
	}
	require.NoError(t, dev.Sync(t.Context()))
	stats := dev.Stats()
	assert.Zero(t, stats.Live)
	assert.Zero(t, stats.LiveBuffers)
	assert.Zero(t, stats.Forgotten)
	assert.Eventually(t, func() bool { return goruntime.NumGoroutine() <= before+1 }, 5*time.Second, 10*time.Millisecond)
}

// TestClose closes a group while a member waits for others.
func TestClose(t *testing.T) {
	g := virtual(t, 2, Options{})
	waits := make(chan error)
	go func() { waits <- sums(context.Background(), g.Members()[0], nil, 10) }()
	go func() {
		b, err := runtime.Alloc[float32](g.Members()[1].Device(), 1)
		if err == nil {
			defer b.Close()
			err = g.Members()[1].Recv(context.Background(), nil, 0, b)
		}
		waits <- err
	}()
	time.Sleep(20 * time.Millisecond)
	require.NoError(t, g.Close())
	assert.ErrorIs(t, <-waits, runtime.ErrClosed)
	assert.ErrorIs(t, <-waits, runtime.ErrClosed)
	require.NoError(t, g.Close())
	assert.ErrorIs(t, g.Members()[0].Barrier(t.Context(), nil), runtime.ErrClosed)
}

// TestOpen opens all or nothing.
func TestOpen(t *testing.T) {
	ctx := t.Context()
	g, err := Open(ctx, "cpu:0", "cpu:reference")
	require.NoError(t, err)
	assert.Equal(t, 2, g.Size())
	assert.Equal(t, "member 1 of 2 (cpu:reference)", g.Members()[1].String())
	require.NoError(t, g.Close())
	g, err = Open(ctx, "cpu:*")
	require.NoError(t, err)
	assert.GreaterOrEqual(t, g.Size(), 1)
	dev := g.Members()[0].Device()
	require.NoError(t, g.Close())
	assert.ErrorIs(t, dev.Enter("after"), runtime.ErrClosed)
	for want, names := range map[error][]string{runtime.ErrDeviceIndex: {"cpu:0", "cpu:7"}, runtime.ErrNoDevice: {"cpu:0",
		"null:*"}, runtime.ErrInvalidArgument: {"cpu:0", "cpu:0"}} {
		_, err = Open(ctx, names...)
		assert.ErrorIs(t, err, want, names)
	}
	_, err = Open(ctx)
	assert.ErrorIs(t, err, runtime.ErrInvalidArgument)
	_, err = Of(nil)
	assert.ErrorIs(t, err, runtime.ErrInvalidArgument)
	dev = open(t, "cpu:0")
	_, err = Virtual(dev, 0)
	assert.ErrorIs(t, err, runtime.ErrInvalidArgument)
	_, err = Options{Timeout: -1}.Of(dev)
	assert.ErrorIs(t, err, runtime.ErrInvalidArgument)
	_, err = Join(ctx, dev, 0, 1, nil)
	assert.ErrorIs(t, err, runtime.ErrInvalidArgument)
}

// TestStreams queues work of a member before and behind collectives, on a stream of its own: the results are those of
// that order, though the host does not wait.
func TestStreams(t *testing.T) {
	const n = 1 << 16
	for _, by := range algorithms[1:] {
		g := virtual(t, 4, Options{Algorithm: by})
		release := make(chan struct{})
		streams := make([]*runtime.Stream, 4)
		for i, m := range g.Members() {
			s, err := m.Device().NewStream()
			require.NoError(t, err)
			defer s.Close()
			streams[i] = s
		}
		misbehave(t, g.Members()[0], streams[0], func() error { <-release; return nil }) // all others are faster
		errs := do([]*Group{g}, func(m *Member) error {
			s := streams[m.Rank()]
			b, err := runtime.Alloc[float32](m.Device(), n)
			if err != nil {
				return err
			}
			defer b.Close()
			for i := range 5 {
				if err = errors.Join(err, s.Fill(b, float32(m.Rank()+i)), m.AllReduce(deadline(t), s, Sum, b, b)); err != nil {
					return err
				}
			}
			if m.Rank() == 0 {
				close(release)
			}
			x := make([]float32, n)
			if err := s.Read(deadline(t), b, 0, bytesOf(x)); err != nil {
				return err
			}
			for _, v := range x {
				if v != 0+1+2+3+4*4 {
					return errors.New("another order")
				}
			}
			return nil
		})
		assert.Equal(t, make([]error, 4), errs)
	}
}

// TestSendThenWrite has a receiver that is slow: it gets what was sent, though the sender's stream writes to the same
// memory right behind.
func TestSendThenWrite(t *testing.T) {
	const n = 1 << 12
	for name, g := range map[string]*Group{"one device": virtual(t, 2, Options{}),
		"two": func() *Group {
			g, err := Of(named(t, "cpu:0", "cpu:0")...)
			return group(t, g, err)
		}()} {
		t.Run(name, func(t *testing.T) {
			release := make(chan struct{})
			misbehave(t, g.Members()[1], g.Members()[1].Stream(), func() error { <-release; return nil })
			time.AfterFunc(50*time.Millisecond, func() { close(release) })
			require.NoError(t, g.Do(deadline(t), func(ctx context.Context, m *Member) error {
				b, err := runtime.Alloc[float32](m.Device(), n)
				if err != nil {
					return err
				}
				defer b.Close()
				if m.Rank() == 0 {
					return errors.Join(m.Stream().Fill(b, float32(1)), m.Send(ctx, nil, 1, b), m.Stream().Fill(b, float32(2)))
				}
				if err := m.Recv(ctx, nil, 0, b); err != nil {
					return err
				}
				x := make([]float32, n)
				if err := m.Stream().Read(ctx, b, 0, bytesOf(x)); err != nil {
					return err
				}
				if x[0] != 1 || x[n-1] != 1 {
					return errors.New("it was written too early")
				}
				return nil
			}))
		})
	}
}
