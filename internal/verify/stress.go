package verify

// The step of programs that compile but could compute something else.

import (
	"context"
	"errors"

	"github.com/concord-compute/concord/internal/verify/stress"
	"github.com/concord-compute/concord/runtime"
	"github.com/concord-compute/concord/runtime/driver"
)

// stepStress runs each program, or says that the device compiles none.
func stepStress(ctx context.Context, e *Env) error {
	dev, err := e.open(ctx)
	if err != nil {
		return err
	}
	if c, ok := dev.Driver().(driver.Compiler); !ok {
		return skipf("the device compiles no programs")
	} else if _, err := c.Identity(ctx); errors.Is(err, runtime.ErrUnsupported) {
		return skipf("there is no compiler on this machine: %v", err)
	}
	programs, err := stress.Load()
	if err != nil {
		return err
	}
	for _, p := range programs {
		if err := e.check(ctx, p.Name, func(ctx context.Context) error { return either(p.Check(ctx, dev)) }); err != nil {
			return err
		}
	}
	return dev.Close()
}
