package verify

// The step that measures rates.

import (
	"context"
	"fmt"

	"github.com/concord-compute/concord/internal/verify/rates"
)

// stepRates measures each rate and then, with what is left of the time, asks a profiler why the slowest are slow.
func stepRates(ctx context.Context, e *Env) error {
	dev, err := e.open(ctx)
	if err != nil {
		return err
	}
	opt := rates.Options{Quick: e.Quick, Doing: e.doing}
	for _, name := range rates.Names(dev, opt) {
		if e.wanted(name) {
			opt.Only = append(opt.Only, name)
		}
	}
	if len(opt.Only) == 0 {
		return dev.Close()
	}
	opt.Each = func(r rates.Rate) {
		e.out.put(record{Rate: &r})
	}
	if err := rates.Measure(ctx, dev, opt); err != nil {
		return err
	}
	return dev.Close()
}

// onceStep is no step of the plan: what a profiler is put around.
const onceStep = "once"

// once does the work of one rate.
func (e *Env) once(ctx context.Context) error {
	dev, err := e.open(ctx)
	if err != nil {
		return err
	}
	if err := rates.Once(ctx, dev, e.job.What, e.job.Times); err != nil {
		return fmt.Errorf("%s: %w", e.job.What, err)
	}
	return dev.Close()
}
