package runtime

import (
	"context"
	"errors"
	"io"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Calls on a device that was abandoned while the driver does not answer return, and do not call it.
func TestAbandon(t *testing.T) {
	b := &nullBackend{full: true, devices: 1, pooled: true}
	s, d := open(t, b, Config{})
	also, err := s.Open(t.Context(), d.String())
	require.NoError(t, err)
	k, x := kernel(t, d, "axpy"), buffer(t, d, F32, 64)
	stream, err := d.NewStream()
	require.NoError(t, err)
	e, err := stream.Record()
	require.NoError(t, err)
	g, err := stream.Capture(work(k, x, buffer(t, d, F32, 64), 1))
	require.NoError(t, err)
	pinned, err := d.AllocKind(Pinned, F32, 8)
	require.NoError(t, err)
	program := &Program{core: k.program}
	hang := make(chan struct{})
	hung := make(chan error, 2)
	var over atomic.Bool
	b.syncing = func(context.Context) {
		if !over.Load() {
			<-hang
		}
	}
	b.closing = func() { assert.True(t, over.Load(), "the driver's stream is closed") }
	go func() { hung <- stream.Sync(context.Background()) }()
	go func() { hung <- Read(context.Background(), x, make([]float32, 1)) }()
	time.Sleep(10 * time.Millisecond)
	b.told = true
	b.heard()

	why := errors.New("it hangs")
	require.NoError(t, d.Abandon(why))
	assert.ErrorIs(t, d.Abandon(why), ErrDeviceLost)
	for what, call := range map[string]func() error{
		"launch":       func() error { return stream.Launch(k, Items(1), float32(1), x, x, 1) },
		"fill":         func() error { return d.Stream().Fill(x, float32(1)) },
		"write":        func() error { return Write(t.Context(), x, []float32{1}) },
		"read":         func() error { return Read(t.Context(), x, []float32{1}) },
		"sync":         func() error { return stream.Sync(t.Context()) },
		"device":       func() error { return also.Sync(t.Context()) },
		"err":          stream.Err,
		"record":       func() error { return stream.RecordIn(new(Event)) },
		"wait":         func() error { return stream.Wait(e) },
		"event":        func() error { return e.Wait(t.Context()) },
		"done":         func() error { _, err := e.Done(); return err },
		"again":        func() error { return stream.RecordIn(e) },
		"graph":        func() error { return g.Launch(stream) },
		"update":       func() error { return g.Update(work(k, x, x, 1)) },
		"record graph": func() error { _, err := stream.Capture(work(k, x, x, 1)); return err },
		"alloc":        func() error { _, err := also.Alloc(F32, 1); return err },
		"here":         func() error { _, err := stream.Alloc(F32, 1); return err },
		"stream":       func() error { _, err := d.NewStream(); return err },
		"slice":        func() error { _, err := x.Slice(0, 1); return err },
		"host":         func() error { _, err := Host[float32](pinned); return err },
		"across":       func() error { return CopyAcross(t.Context(), x, pinned) },
		"trim":         func() error { _, err := d.Memory().Trim(0); return err },
		"kernel":       func() error { _, err := program.Kernel("odd"); return err },
		"program":      func() error { _, err := d.Program(t.Context(), k.program.key.unit); return err },
		"run":          func() error { _, err := also.Run(t.Context(), k, Items(1), float32(1), x, x, 1); return err },
	} {
		err := call()
		assert.ErrorIs(t, err, ErrDeviceLost, what)
		assert.ErrorIs(t, err, why, what)
	}
	held := d.Stats().Memory.Reserved
	for _, c := range []io.Closer{x, e, g, pinned, program, stream, also, d} {
		assert.NoError(t, c.Close(), "%T", c)
	}
	st := d.Stats()
	assert.Positive(t, st.Leaked)
	assert.Equal(t, held, st.Leaked)
	assert.Empty(t, b.heard(), "the driver was not called")
	assert.Zero(t, b.frees.Load())

	over.Store(true)
	anew, err := s.Open(t.Context(), "cuda:0")
	require.NoError(t, err)
	assert.EqualValues(t, 2, b.opened.Load())
	assert.NoError(t, anew.Stream().Fill(buffer(t, anew, F32, 1), float32(1)))
	close(hang)
	for range 2 {
		<-hung
	}
	require.NoError(t, anew.Close())
	assert.ErrorIs(t, anew.Abandon(nil), ErrClosed)
	assert.ErrorIs(t, (*Device)(nil).Abandon(nil), ErrInvalidArgument)
}

// TestAbandonAtOnce watches devices that are abandoned: whoever sees one as lost sees it as abandoned, too, and does
// not call its driver any more.
func TestAbandonAtOnce(t *testing.T) {
	for range 20_000 {
		l, seen := new(life), make(chan bool)
		go func() {
			for l.lost() == nil {
			}
			seen <- l.isAbandoned()
		}()
		require.True(t, l.abandon(ErrDeviceLost))
		require.True(t, <-seen)
		require.ErrorIs(t, l.lost(), ErrDeviceLost)
	}
	l := new(life)
	require.Error(t, l.noticed(ErrDeviceLost))
	require.True(t, l.abandon(errors.New("later")))
	assert.True(t, l.isAbandoned())
	assert.Equal(t, ErrDeviceLost, l.lost(), "the first reason stays")
}
