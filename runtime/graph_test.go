package runtime

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// onBoth runs a test over a driver with graphs, one without, and one whose graphs
// turn out not to be there.
func onBoth(t *testing.T, test func(t *testing.T, b *nullBackend)) {
	for name, b := range map[string]*nullBackend{
		"driver": {full: true}, "software": {}, "none after all": {
			full: true, captureErr: fmt.Errorf("old driver: %w", ErrUnsupported)},
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
			b.recordErr = func() error { return wrong }
			_, err := d.Stream().Capture(work(k, x, y, 1))
			assert.ErrorIs(t, err, wrong, "of the driver")
			assert.Contains(t, b.heard(), "drop capture")
			b.recordErr = nil
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

// A graph is captured again only for bindings that differ from those of the launch before.
func TestGraphBindings(t *testing.T) {
	onBoth(t, func(t *testing.T, b *nullBackend) {
		_, d := open(t, b, Config{})
		k, s := kernel(t, d, "axpy"), d.Stream()
		x, y, z := buffer(t, d, F32, 64), buffer(t, d, F32, 64), buffer(t, d, F32, 64)
		a := NewParam(float32(1))
		g, err := s.Capture(func(s *Stream) error { return s.Launch(k, Items(64), a, x, y, 64) })
		require.NoError(t, err)
		b.heard()
		launch := func(updated bool, bindings ...Binding) {
			t.Helper()
			require.NoError(t, g.Launch(s, bindings...))
			assert.Equal(t, updated && b.full && b.captureErr == nil, slices.Contains(b.heard(), "update"))
		}
		launch(false)
		for range 2 {
			launch(true, WithBuffer(y, z))
			launch(false, WithBuffer(y, z))
			launch(true, WithBuffer(y, z), WithValue(a, float32(2)))
			launch(true)
			launch(false)
		}
		assert.ErrorIs(t, g.Launch(s, WithBuffer(z, y)), ErrInvalidArgument)
		err = g.Launch(s, WithBuffer(y, buffer(t, d, F64, 64)))
		assert.ErrorIs(t, err, ErrInvalidArgument)
		assert.ErrorContains(t, err, "the same type and length")
		for says, args := range map[string][]any{
			"argument 3 (int n): takes a int32, not a Param of f32": {a, x, y, a},
			"argument 1 (global const float * x): takes no Param":   {a, a, y, 64},
		} {
			err := s.Launch(k, Items(64), args...)
			assert.ErrorIs(t, err, ErrInvalidArgument)
			assert.ErrorContains(t, err, says)
		}
		launch(false)
		if !b.full {
			require.NoError(t, g.Launch(s, WithBuffer(y, z), WithValue(a, float32(2))))
			assert.Equal(t, z.Memory(), b.last.Args[2].Memory)
			assert.Equal(t, math.Float32bits(2), le32(b.last.Data[b.last.Args[0].Offset:]))
			assert.Zero(t, testing.AllocsPerRun(100, func() {
				for _, to := range []*Buffer{y, z} {
					if err := g.Launch(s, WithBuffer(y, to), WithValue(a, float32(to.mem.Handle))); err != nil {
						t.Fatal(err)
					}
				}
			}))
		}
		require.NoError(t, x.Close())
		require.NoError(t, y.Close())
		require.NoError(t, g.Launch(s, WithBuffer(y, z)), "what was recorded may be closed")
		require.NoError(t, z.Close())
		assert.ErrorIs(t, g.Launch(s, WithBuffer(y, z)), ErrClosed)
		require.NoError(t, g.Launch(s))
		require.NoError(t, g.Close())
		assert.EqualValues(t, 3, b.frees.Load())
	})
}

// Bindings are checked as the calls that they change are, and views without elements are used by none.
func TestGraphBindingsOfViews(t *testing.T) {
	onBoth(t, func(t *testing.T, b *nullBackend) {
		_, d := open(t, b, Config{})
		k, s := kernel(t, d, "axpy"), d.Stream()
		view := func(b *Buffer, from, n int) *Buffer {
			v, err := b.Slice(from, n)
			require.NoError(t, err)
			return v
		}
		x, y := buffer(t, d, F32, 64), buffer(t, d, F32, 128)
		g, err := s.Capture(func(s *Stream) error { return s.Copy(view(y, 0, 64), x) })
		require.NoError(t, err)
		assert.ErrorIs(t, g.Launch(s, WithBuffer(x, view(y, 16, 64))), ErrInvalidArgument)
		require.NoError(t, g.Launch(s, WithBuffer(x, view(y, 64, 64))))
		require.NoError(t, g.Close())

		part := view(y, 1, 8)
		g, err = s.Capture(func(s *Stream) error {
			if err := s.Launch(k, Items(1), float32(1), view(y, 0, 0), x, 1); err != nil {
				return err
			}
			return s.Fill(part, float32(1))
		})
		require.NoError(t, err)
		require.NoError(t, g.Launch(s, WithBuffer(part, view(y, 64, 8))))
		require.NoError(t, g.Close())
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
