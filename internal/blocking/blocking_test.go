package blocking

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func never(t *testing.T) func(int) {
	return func(v int) { assert.Fail(t, "dropped", "%d", v) }
}

func TestCallReturnsTheResult(t *testing.T) {
	broken := errors.New("broken")
	cancelled, cancel := context.WithCancel(t.Context())
	defer cancel()
	for _, ctx := range []context.Context{context.Background(), cancelled} {
		v, err := Call(ctx, func() (int, error) { return 7, nil }, never(t))
		require.NoError(t, err)
		require.Equal(t, 7, v)
		_, err = Call(ctx, func() (int, error) { return 7, broken }, never(t))
		require.ErrorIs(t, err, broken)
	}
}

func TestCallOfADoneContextDoesNothing(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := Call(ctx, func() (int, error) { t.Error("called"); return 7, nil }, never(t))
	require.ErrorIs(t, err, context.Canceled)
}

func TestCallDropsWhatComesLate(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	slow, dropped := make(chan struct{}), make(chan int)
	_, err := Call(ctx, func() (int, error) { cancel(); <-slow; return 7, nil }, func(v int) { dropped <- v })
	require.ErrorIs(t, err, context.Canceled, "it returned while f still ran")
	close(slow)
	require.Equal(t, 7, <-dropped)
}

// Wait runs f even if the context is done already, since f has something to release.
func TestWait(t *testing.T) {
	v, err := Wait(context.Background(), func() int { return 7 })
	require.NoError(t, err)
	require.Equal(t, 7, v)
	ctx, cancel := context.WithCancel(t.Context())
	v, err = Wait(ctx, func() int { return 7 })
	require.NoError(t, err)
	require.Equal(t, 7, v)
	cancel()
	slow, ended := make(chan struct{}), make(chan struct{})
	_, err = Wait(ctx, func() int { <-slow; close(ended); return 7 })
	require.ErrorIs(t, err, context.Canceled)
	close(slow)
	<-ended
}
