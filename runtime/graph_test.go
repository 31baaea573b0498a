package runtime

import (
	"errors"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// onBoth runs a test over a driver with graphs, one without, and one whose graphs
// turn out not to be there.
func onBoth(t *testing.T, test func(t *testing.T, b *nullBackend)) {
	for name, b := range map[string]*nullBackend{
		"driver": {full: true}, "software": {}, "none after all": {full: true, captureErr: fmt.Errorf("old driver: %w", ErrUnsupported)},
	} {
		b.told = true
		t.Run(name, func(t *testing.T) { test(t, b) })
	}
}

// work queues one of everything that a graph may hold.
func work(k *Kernel, x, y *Buffer, a float32) func(s *Stream) error {
	return func(s *Stream) error {
		return errors.Join(s.Fill(x, a), s.Copy(y, x), s.Launch(k, Items(x.Len()), a, x, y, x.Len()))
	}
}

// since returns what streams were told, without the word that says that a driver's
// graph did it.
func since(b *nullBackend) []string {
	var calls []string
	for _, c := range b.heard() {
		switch c {
		case "graph: fill", "graph: copy", "graph: launch":
			c = c[len("graph: "):]
		case "fill", "copy", "launch":
		default:
			continue
		}
		calls = append(calls, c)
	}
	return calls
}

func TestGraph(t *testing.T) {
	onBoth(t, func(t *testing.T, b *nullBackend) {
		_, d := open(t, b, Config{})
		k := kernel(t, d, "axpy")
		x, y := buffer(t, d, F32, 64), buffer(t, d, F32, 64)
		b.heard()
		g, err := d.Stream().Capture(work(k, x, y, 1))
		require.NoError(t, err)
		assert.Empty(t, since(b), "nothing runs yet")
		assert.Zero(t, d.Stats().Launches)
		for range 3 {
			require.NoError(t, g.Launch(d.Stream()))
			assert.Equal(t, []string{"fill", "copy", "launch"}, since(b))
		}
		assert.EqualValues(t, 3, d.Stats().Launches)
		require.NoError(t, g.Update(func(s *Stream) error { return s.Copy(x, y) }))
		require.NoError(t, g.Launch(d.Stream()))
		assert.Equal(t, []string{"copy"}, since(b))
		wrong := errors.New("wrong")
		assert.ErrorIs(t, g.Update(func(s *Stream) error { return errors.Join(s.Fill(x, float32(1)), wrong) }), wrong)
		require.NoError(t, g.Launch(d.Stream()))
		assert.Equal(t, []string{"copy"}, since(b), "a failed update changes nothing")
		require.NoError(t, g.Close())
		require.NoError(t, g.Close(), "twice is nothing")
		assert.ErrorIs(t, g.Launch(d.Stream()), ErrClosed)
		assert.ErrorIs(t, g.Update(work(k, x, y, 1)), ErrClosed)
	})
}

func TestCaptureRefuses(t *testing.T) {
	onBoth(t, func(t *testing.T, b *nullBackend) {
		s, d := open(t, b, Config{})
		other, err := s.Open(t.Context(), "cuda:1")
		require.NoError(t, err)
		k := kernel(t, d, "axpy")
		x, y := buffer(t, d, F32, 64), buffer(t, d, F32, 64)
		u, err := d.AllocKind(Unified, F32, 4)
		require.NoError(t, err)
		e, err := d.Stream().Record()
		require.NoError(t, err)
		inner, err := d.Stream().Capture(work(k, x, y, 1))
		require.NoError(t, err)
		var kept *Stream
		g, err := d.Stream().Capture(func(s *Stream) error {
			kept = s
			assert.ErrorIs(t, s.Read(t.Context(), x, 0, make([]byte, 4)), ErrInvalidArgument)
			assert.ErrorIs(t, s.Write(t.Context(), x, 0, make([]byte, 4)), ErrInvalidArgument)
			assert.ErrorIs(t, s.Write(t.Context(), x, 0, make([]byte, stagedBytes+1)), ErrInvalidArgument)
			assert.ErrorIs(t, s.Sync(t.Context()), ErrInvalidArgument)
			_, err := s.Record()
			assert.ErrorIs(t, err, ErrInvalidArgument)
			_, err = s.Run(t.Context(), k, Items(64), float32(1), x, y, 64)
			assert.ErrorIs(t, err, ErrInvalidArgument)
			_, err = s.Capture(work(k, x, y, 1))
			assert.ErrorIs(t, err, ErrInvalidArgument)
			assert.ErrorIs(t, s.Wait(e), ErrInvalidArgument)
			assert.ErrorIs(t, s.Prefetch(u, true), ErrInvalidArgument)
			assert.ErrorIs(t, inner.Launch(s), ErrInvalidArgument)
			assert.ErrorIs(t, s.Launch(k, Items(64), float32(1), x, y), ErrInvalidArgument, "checked as ever")
			assert.NoError(t, d.Sync(t.Context()), "others may wait")
			return work(k, x, y, 1)(s)
		})
		require.NoError(t, err)
		b.heard()
		require.NoError(t, g.Launch(d.Stream()))
		assert.Equal(t, []string{"fill", "copy", "launch"}, since(b), "what was refused is not in it")
		assert.ErrorIs(t, kept.Fill(x, float32(1)), ErrClosed, "the recording stream ends with the function")
		assert.ErrorIs(t, g.Launch(other.Stream()), ErrInvalidArgument)
		assert.ErrorIs(t, g.Launch(nil), ErrInvalidArgument)
		assert.ErrorIs(t, (*Graph)(nil).Launch(d.Stream()), ErrInvalidArgument)
		assert.ErrorIs(t, new(Graph).Update(work(k, x, y, 1)), ErrInvalidArgument)
		assert.NoError(t, (*Graph)(nil).Close())
		_, err = d.Stream().Capture(nil)
		assert.ErrorIs(t, err, ErrInvalidArgument)
		_, err = (*Stream)(nil).Capture(work(k, x, y, 1))
		assert.ErrorIs(t, err, ErrInvalidArgument)
		assert.NoError(t, d.Stream().Fill(x, float32(1)), "the stream is as it was")
	})
}

func TestCaptureThatFails(t *testing.T) {
	onBoth(t, func(t *testing.T, b *nullBackend) {
		_, d := open(t, b, Config{})
		k := kernel(t, d, "axpy")
		x, y := buffer(t, d, F32, 64), buffer(t, d, F32, 64)
		wrong := errors.New("wrong")
		_, err := d.Stream().Capture(func(s *Stream) error { return errors.Join(work(k, x, y, 1)(s), wrong) })
		assert.ErrorIs(t, err, wrong)
		assert.PanicsWithValue(t, "wrong", func() {
			_, _ = d.Stream().Capture(func(s *Stream) error { _ = work(k, x, y, 1)(s); panic("wrong") })
		})
		if b.full && b.captureErr == nil {
			assert.Contains(t, b.heard(), "drop capture")
		}
		require.NoError(t, x.Close())
		require.NoError(t, y.Close())
		require.NoError(t, k.program.release())
		assert.EqualValues(t, 2, b.frees.Load(), "a dropped recording keeps nothing")
		assert.True(t, k.program.gone.Load())
		assert.Len(t, d.core.streams.open, 1)
		assert.Zero(t, d.core.streams.capturing.Load())
	})
}

// A graph keeps what it uses, and what is in use by its launches outlives it.
func TestGraphKeepsWhatItUses(t *testing.T) {
	onBoth(t, func(t *testing.T, b *nullBackend) {
		b.slow = new(atomic.Bool)
		_, d := open(t, b, Config{})
		k := kernel(t, d, "axpy")
		x, y := buffer(t, d, F32, 64), buffer(t, d, F32, 64)
		g, err := d.Stream().Capture(work(k, x, y, 1))
		require.NoError(t, err)
		require.NoError(t, x.Close())
		require.NoError(t, y.Close())
		require.NoError(t, k.program.release()) // the program's Close
		assert.Zero(t, b.frees.Load())
		assert.False(t, k.program.gone.Load())
		assert.EqualValues(t, 512, d.Stats().Live)
		b.slow.Store(true)
		require.NoError(t, g.Launch(d.Stream()))
		z := buffer(t, d, F32, 64)
		require.NoError(t, g.Update(func(s *Stream) error { return s.Fill(z, float32(1)) }))
		assert.Zero(t, b.frees.Load(), "the launch from before still runs")
		b.slow.Store(false)
		d.Stats()
		assert.EqualValues(t, 2, b.frees.Load())
		assert.True(t, k.program.gone.Load())
		require.NoError(t, g.Close())
		require.NoError(t, z.Close())
		assert.EqualValues(t, 3, b.frees.Load())
	})
}

func TestGraphAfterItsDevice(t *testing.T) {
	onBoth(t, func(t *testing.T, b *nullBackend) {
		_, d := open(t, b, Config{})
		k := kernel(t, d, "axpy")
		x, y := buffer(t, d, F32, 64), buffer(t, d, F32, 64)
		g, err := d.Stream().Capture(work(k, x, y, 1))
		require.NoError(t, err)
		_, err = d.Stream().Capture(func(s *Stream) error {
			require.NoError(t, d.Close())
			return work(k, x, y, 1)(s)
		})
		assert.ErrorIs(t, err, ErrClosed, "closed while it is recorded")
		assert.ErrorIs(t, g.Launch(d.Stream()), ErrClosed)
		assert.ErrorIs(t, g.Update(work(k, x, y, 1)), ErrClosed)
		assert.NoError(t, g.Close())
		assert.EqualValues(t, 2, b.frees.Load())
		if b.full && b.captureErr == nil {
			assert.Contains(t, b.heard(), "close graph")
		}
	})
}

func TestGraphLaunchAllocates(t *testing.T) {
	onBoth(t, func(t *testing.T, b *nullBackend) {
		b.told = false
		_, d := open(t, b, Config{})
		k, s := kernel(t, d, "axpy"), d.Stream()
		x, y := buffer(t, d, F32, 64), buffer(t, d, F32, 64)
		g, err := s.Capture(work(k, x, y, 1))
		require.NoError(t, err)
		require.NoError(t, g.Launch(s))
		got := testing.AllocsPerRun(100, func() {
			if err := g.Launch(s); err != nil {
				t.Fatal(err)
			}
		})
		if b.full && b.captureErr == nil {
			return // the null driver's graph builds names
		}
		assert.Zero(t, got)
	})
}
