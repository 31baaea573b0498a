package blocking

import (
	"context"
	"errors"
	"sync"
	"time"
)

// ErrHeld means that the gate did not become free in time, since another call holds it and does not
// return.
var ErrHeld = errors.New("another first call into the driver does not return")

// Gate lets the first calls into a library pass one at a time: many drivers are safe
// for concurrent use only once they are initialized. The zero Gate is ready, and is
// safe for concurrent use.
type Gate struct {
	mu   sync.Mutex
	past map[any]bool // keys with a call that has succeeded
	turn *turn        // the call that holds the gate, or nil
}

// turn is one call that holds the gate.
type turn struct {
	since time.Time
	over  chan struct{} // closed when the gate is free again
}

// Enter begins a call. While no call with an equal key has succeeded, it waits until the gate is
// free and holds it until leave; afterwards calls with that key do not wait. It returns the error
// of ctx, or ErrHeld when another call has held the gate for longer than patience. leave must be
// called once, with whether the call succeeded.
func (g *Gate) Enter(ctx context.Context, key any, patience time.Duration) (leave func(succeeded bool), err error) {
	for {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		g.mu.Lock()
		if g.past[key] {
			g.mu.Unlock()
			return func(bool) {}, nil
		}
		ahead := g.turn
		if ahead == nil {
			mine := &turn{since: time.Now(), over: make(chan struct{})}
			g.turn = mine
			g.mu.Unlock()
			return func(succeeded bool) { g.leave(mine, key, succeeded) }, nil
		}
		g.mu.Unlock()
		if err := ahead.wait(ctx, patience); err != nil {
			return nil, err
		}
	}
}

// wait waits until a turn is over, or has lasted longer than patience.
func (t *turn) wait(ctx context.Context, patience time.Duration) error {
	timer := time.NewTimer(patience - time.Since(t.since))
	defer timer.Stop()
	select {
	case <-t.over:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return ErrHeld
	}
}

func (g *Gate) leave(t *turn, key any, succeeded bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if succeeded {
		if g.past == nil {
			g.past = map[any]bool{}
		}
		g.past[key] = true
	}
	g.turn = nil
	close(t.over)
}
