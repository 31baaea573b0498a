package managed

import (
	"errors"
	"testing"

	"github.com/concord-compute/concord/runtime"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

type closeFunc func() error

func (f closeFunc) Close() error { return f() }

func TestBatch(t *testing.T) {
	null := &nullBackend{told: true}
	_, d := open(t, null, runtime.Config{})
	b, ctx := NewBatch(d), t.Context()
	first, second := errors.New("first"), errors.New("second")
	var order []int
	note := func(i int, err error) closeFunc {
		return func() error { order = append(order, i); return err }
	}
	require.NoError(t, b.Add(note(0, first)))
	x, err := b.Alloc(runtime.F32, 10)
	require.NoError(t, err)
	require.NoError(t, b.Add(note(1, nil)))
	y, err := b.AddHost(ctx, make([]byte, 80), 10, runtime.F64)
	require.NoError(t, err)
	assert.Equal(t, runtime.F64, y.Type())
	assert.Contains(t, null.heard(), "upload")
	require.NoError(t, b.Add(note(2, second)))
	assert.Equal(t, 5, b.Len())
	assert.EqualValues(t, 120, d.Stats().Live, "counted when added")

	for _, n := range []int{9, 11} {
		_, err = b.AddHost(ctx, make([]byte, 80), n, runtime.F64)
		assert.ErrorIs(t, err, runtime.ErrDimension)
	}
	_, err = b.AddHost(ctx, nil, -1, runtime.F64)
	assert.ErrorIs(t, err, runtime.ErrInvalidArgument)
	null.transferErr = func() error { return first }
	_, err = b.AddHost(ctx, make([]byte, 80), 10, runtime.F64)
	assert.ErrorIs(t, err, first)
	null.transferErr = nil
	_, err = b.Alloc(runtime.F32, -1)
	assert.ErrorIs(t, err, runtime.ErrInvalidArgument)
	assert.Equal(t, 5, b.Len(), "what failed is not in it")
	assert.EqualValues(t, 120, d.Stats().Live)

	err = b.Close()
	assert.ErrorIs(t, err, first)
	assert.ErrorIs(t, err, second)
	assert.Equal(t, []int{2, 1, 0}, order)
	assert.Zero(t, d.Stats().Live)
	assert.ErrorIs(t, d.Stream().Fill(x, float32(1)), runtime.ErrClosed)
	require.NoError(t, b.Close())
	assert.ErrorIs(t, b.Add(x), runtime.ErrClosed)
	_, err = b.Alloc(runtime.F32, 10)
	assert.ErrorIs(t, err, runtime.ErrClosed)
	_, err = b.AddHost(ctx, make([]byte, 80), 10, runtime.F64)
	assert.ErrorIs(t, err, runtime.ErrClosed)
	assert.Zero(t, d.Stats().Live, "what came too late is gone as well")
	require.NoError(t, d.Close())
	_, err = NewBatch(d).AddHost(ctx, make([]byte, 80), 10, runtime.F64)
	assert.ErrorIs(t, err, runtime.ErrClosed)
}
