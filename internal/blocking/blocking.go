// Package blocking runs calls that a context cannot stop, such as a driver's compiler, and lets
// the first calls into a driver pass one at a time.
package blocking

import "context"

// Call runs f. If ctx can be done, it runs f in another goroutine and stops waiting when ctx is
// done; the result of f then goes to drop, if f did not fail.
func Call[T any](ctx context.Context, f func() (T, error), drop func(T)) (T, error) {
	var none T
	if err := ctx.Err(); err != nil {
		return none, err
	}
	if ctx.Done() == nil {
		return f()
	}
	type result struct {
		v   T
		err error
	}
	done := make(chan result)
	go func() {
		v, err := f()
		select {
		case done <- result{v, err}:
		case <-ctx.Done():
			if err == nil {
				drop(v)
			}
		}
	}()
	select {
	case r := <-done:
		return r.v, r.err
	case <-ctx.Done():
		return none, ctx.Err()
	}
}

// Wait runs f to its end, in another goroutine. If ctx is done first, Wait returns its error, and f goes on.
func Wait[T any](ctx context.Context, f func() T) (T, error) {
	done := make(chan T, 1)
	go func() { done <- f() }()
	select {
	case v := <-done:
		return v, nil
	case <-ctx.Done():
		var none T
		return none, ctx.Err()
	}
}
