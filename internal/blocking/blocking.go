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
