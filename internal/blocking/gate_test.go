package blocking

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestFirstCallsPassOneAtATime(t *testing.T) {
	var g Gate
	var inside, calls atomic.Int64
	var wg sync.WaitGroup
	for i := range 64 {
		wg.Go(func() {
			leave, err := g.Enter(t.Context(), i%4, time.Minute) // of four kinds
			if !assert.NoError(t, err) {
				return
			}
			if calls.Add(1); inside.Add(1) > 1 {
				assert.NotEmpty(t, g.known(), "together only when some are past")
			}
			time.Sleep(time.Millisecond)
			inside.Add(-1)
			leave(true)
		})
	}
	wg.Wait()
	assert.EqualValues(t, 64, calls.Load())
	assert.Len(t, g.known(), 4)
}

func (g *Gate) known() []any {
	g.mu.Lock()
	defer g.mu.Unlock()
	var keys []any
	for key := range g.past {
		keys = append(keys, key)
	}
	return keys
}

func TestFailedFirstCallLeavesTheNextAlone(t *testing.T) {
	var g Gate
	var inside atomic.Int64
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			leave, err := g.Enter(t.Context(), "open", time.Minute)
			if assert.NoError(t, err) {
				assert.EqualValues(t, 1, inside.Add(1), "none has succeeded")
				time.Sleep(time.Millisecond)
				inside.Add(-1)
				leave(false)
			}
		})
	}
	wg.Wait()
}

func TestLaterCallsDoNotWait(t *testing.T) {
	var g Gate
	leave, err := g.Enter(t.Context(), "list", time.Minute)
	require.NoError(t, err)
	leave(true)
	hung, err := g.Enter(t.Context(), "open", time.Minute)
	require.NoError(t, err)
	defer hung(false)
	for range 2 {
		leave, err = g.Enter(t.Context(), "list", 0)
		require.NoError(t, err, "its first call is over, whatever call has the gate")
		leave(true)
	}
}

func TestCallBehindOneThatHangs(t *testing.T) {
	var g Gate
	hung, err := g.Enter(t.Context(), "list", time.Minute)
	require.NoError(t, err)
	start := time.Now()
	_, err = g.Enter(t.Context(), "list", 20*time.Millisecond)
	require.ErrorIs(t, err, ErrHeld)
	_, err = g.Enter(t.Context(), "open", 20*time.Millisecond)
	require.ErrorIs(t, err, ErrHeld, "of another kind, too")
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	_, err = g.Enter(ctx, "list", time.Hour)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.Less(t, time.Since(start), 30*time.Second)
	hung(true)
	leave, err := g.Enter(t.Context(), "list", 0)
	require.NoError(t, err, "it came back")
	leave(true)
}

// Patience is with one call, not with how many there are before.
func TestCallsBehindManyGetTheirTurn(t *testing.T) {
	var g Gate
	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() {
			leave, err := g.Enter(t.Context(), "open", 5*time.Second)
			if assert.NoError(t, err) {
				time.Sleep(5 * time.Millisecond)
				leave(false)
			}
		})
	}
	wg.Wait()
}
