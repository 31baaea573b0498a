package verify

// The step of programs that compile but could compute something else.

import (
	"context"

	"github.com/concord-compute/concord/internal/verify/stress"
	"github.com/concord-compute/concord/runtime"
)

// stepStress runs each program, or says that the device compiles none.
func stepStress(ctx context.Context, e *Env, dev *runtime.Device) error {
	if err := compiles(ctx, dev); err != nil {
		return err
	}
	programs, err := stress.Load()
	if err != nil {
		return err
	}
	for _, p := range programs {
		e.check(ctx, p.Name, func(ctx context.Context) error { return either(p.Check(ctx, dev)) })
	}
	return nil
}
