package verify

// The step that checks the rules that every device meets.

import (
	"context"
	"errors"
	"fmt"
	goruntime "runtime"
	"runtime/debug"
	"strings"
	"sync"

	"github.com/concord-compute/concord/runtime"
	"github.com/concord-compute/concord/runtime/conformance"
	"github.com/concord-compute/concord/runtime/driver"
)

// stepConformance checks every row, each in a session of its own, as the tests do.
func stepConformance(ctx context.Context, e *Env, dev *runtime.Device) error {
	except := exceptions(ctx, dev)
	for _, r := range conformance.Rows() {
		// While a card is open, opening it once more is quick. The rows of errors want it for themselves.
		if strings.HasPrefix(r.Name, "error/") && !e.over(ctx) {
			if err := dev.Close(); err != nil {
				return err
			}
		}
		e.check(ctx, r.Name, func(ctx context.Context) error {
			s, err := runtime.New(runtime.Config{Fallback: runtime.Require})
			if err != nil {
				return err
			}
			err = row(ctx, func(t conformance.T) {
				r.Check(t, func(t conformance.T) *runtime.Device {
					d, err := s.Open(t.Context(), e.Device)
					if err != nil {
						t.Fatalf("%v", err)
					}
					return d
				}, except)
			})
			if ctx.Err() == nil {
				err = errors.Join(err, s.Close())
			}
			return err
		})
	}
	return nil
}

// exceptions lists what the device does not have.
func exceptions(ctx context.Context, dev *runtime.Device) conformance.Exceptions {
	except := conformance.Known(dev.Info())
	if c, ok := dev.Driver().(driver.Compiler); !ok {
		except.Unsupported["kernel/compiler"] = "the device compiles no programs"
	} else if _, err := c.Identity(ctx); errors.Is(err, runtime.ErrUnsupported) {
		except.Unsupported["kernel/compiler"] = "there is no compiler on this machine: " + err.Error()
	}
	return except
}

// outcome is the T of a row.
type outcome struct {
	ctx     context.Context
	mu      sync.Mutex
	failed  []string
	skipped string
}

func (o *outcome) Context() context.Context { return o.ctx }

// Errorf may be called from any goroutine.
func (o *outcome) Errorf(format string, args ...any) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.failed = append(o.failed, fmt.Sprintf(format, args...))
}

func (o *outcome) Fatalf(format string, args ...any) {
	o.Errorf(format, args...)
	goruntime.Goexit()
}

func (o *outcome) Skipf(format string, args ...any) {
	o.skipped = fmt.Sprintf(format, args...)
	goruntime.Goexit()
}

// row calls check in a goroutine, which Fatalf and Skipf end, and returns what it found.
func row(ctx context.Context, check func(conformance.T)) error {
	o := &outcome{ctx: ctx}
	var wg sync.WaitGroup
	wg.Go(func() {
		defer func() {
			if p := recover(); p != nil {
				o.Errorf("panic: %v\n%s", p, debug.Stack())
			}
		}()
		check(o)
	})
	wg.Wait()
	o.mu.Lock()
	defer o.mu.Unlock()
	switch {
	case len(o.failed) > 0:
		text := strings.Join(o.failed, "\n")
		if lost := runtime.ErrDeviceLost; strings.Contains(text, lost.Error()) {
			return fmt.Errorf("%s: %w", text, lost) // every other row would fail, too
		}
		return errors.New(text)
	case o.skipped != "":
		return skip(o.skipped)
	}
	return nil
}
