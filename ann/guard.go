package ann

// Functions of the program, which may panic, and what runs on several goroutines.

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"sync"
	"sync/atomic"

	"github.com/concord-compute/concord/runtime"
)

// PanicError is the error of a call during which a function of the program, a [Predicate] or a registered
// metric, panicked or ended its goroutine. The index has the vectors that it had before the call, and may be
// used further; what a call of [HNSW.Add] had stored takes memory until [HNSW.Compact]. It unwraps to Value if
// that is an error.
type PanicError struct {
	Function string // "a predicate", or "metric " and its name
	Value    any    // of the panic
}

// Error implements error.
func (e *PanicError) Error() string { return fmt.Sprintf("ann: %s panicked: %v", e.Function, e.Value) }

// Unwrap returns Value if it is an error, or nil.
func (e *PanicError) Unwrap() error {
	err, _ := e.Value.(error)
	return err
}

// guarded is deferred around a function of the program. Its panics go on as those of a [*PanicError], so that
// catch does not hide any other.
func guarded(function string) {
	if v := recover(); v != nil {
		panic(&PanicError{function, v})
	}
}

// catch is deferred where the panic of a function of the program becomes an error.
func catch(err *error) {
	switch v := recover().(type) {
	case nil:
	case *PanicError:
		*err = v
	default:
		panic(v)
	}
}

// attempt sets err to what f returns, and also if a function of the program panics or ends the goroutine.
func attempt(err *error, f func() error) {
	*err = &PanicError{"a function of the program", "it called runtime.Goexit"} // unless f returns
	var got error
	func() {
		defer catch(&got)
		got = f()
	}()
	*err = got
}

// sideBySide runs f, on so many goroutines, or if that is one on the caller's. It returns the first error in
// the order of their numbers.
func sideBySide(n int, f func(t int) error) error {
	errs := make([]error, n)
	run := func(t int) { attempt(&errs[t], func() error { return f(t) }) }
	if n == 1 {
		run(0)
		return errs[0]
	}
	var wait sync.WaitGroup
	for t := range n {
		wait.Go(func() { run(t) })
	}
	wait.Wait()
	return cmp.Or(errs...)
}

// checkContext refuses a nil context, which would panic later with locks held.
func checkContext(ctx context.Context) error {
	if ctx == nil {
		return fmt.Errorf("ann: context is nil: %w", runtime.ErrInvalidArgument)
	}
	return nil
}

// locked locks mu, or mu.RLocker() by the function that tries that, unless ctx is nil or done before: then the lock is
// free again once those have returned that hold it.
func locked(ctx context.Context, mu sync.Locker, try func() bool) error {
	if err := checkContext(ctx); err != nil || try() {
		return err
	}
	if ctx.Done() == nil {
		mu.Lock()
		return nil
	}
	got := make(chan struct{})
	go func() {
		mu.Lock()
		close(got)
	}()
	select {
	case <-got:
		return nil
	case <-ctx.Done():
		go func() {
			<-got
			mu.Unlock()
		}()
		return ctx.Err()
	}
}

// reading is locked for readers, who call mu.RUnlock.
func reading(ctx context.Context, mu *sync.RWMutex) error {
	return locked(ctx, mu.RLocker(), mu.TryRLock)
}

// divided runs f on at most so many goroutines, which divide the numbers below n among them until ctx is done.
func divided(ctx context.Context, threads, n int, f func(next iter.Seq[int]) error) error {
	var at atomic.Int64
	return sideBySide(min(threads, n), func(int) error {
		if err := f(func(yield func(int) bool) {
			for ctx.Err() == nil {
				if i := int(at.Add(1)) - 1; i >= n || !yield(i) {
					return
				}
			}
		}); err != nil {
			return err
		}
		return ctx.Err()
	})
}
