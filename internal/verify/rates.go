package verify

// The step that measures rates.

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/concord-compute/concord/internal/verify/rates"
	"github.com/concord-compute/concord/runtime"
)

// stepRates measures each rate and then, with what is left of the time, asks a profiler why the slowest are slow.
func stepRates(ctx context.Context, e *Env, dev *runtime.Device) error {
	opt := rates.Options{Quick: e.Quick, Doing: e.doing}
	for _, name := range rates.Names(dev, opt) {
		if e.wanted(name) {
			opt.Only = append(opt.Only, name)
		}
	}
	if len(opt.Only) == 0 {
		return nil
	}
	var slow []rates.Rate
	opt.Each = func(r rates.Rate) {
		e.out.put(record{Rate: &r})
		if r.Slow() && r.Reason == "" {
			slow = append(slow, r)
		}
	}
	if err := rates.Measure(ctx, dev, opt); err != nil {
		return err
	}
	if dev.Info().Backend == "cuda" && !dev.Info().Simulated {
		e.bounds(ctx, slow)
	}
	return nil
}

// bounds tells what limits the kernels of slow rates, by NVIDIA's profiler, where it works.
func (e *Env) bounds(ctx context.Context, slow []rates.Rate) {
	for _, r := range slow {
		if ctx.Err() != nil {
			return
		}
		e.doing("the profiler, of " + r.Name)
		line, err := json.Marshal(job{Step: onceStep, Device: e.Device, Seconds: 60, Quick: e.Quick, What: r.Name, Times: 2})
		if err != nil {
			return
		}
		bound, err := rates.Bound(ctx, append(e.tools.Self, "--job", string(line)))
		if err != nil {
			e.fact("the profiler", "%v", err)
			return // it will not work for the others either
		}
		r.Bound = bound
		e.out.put(record{Rate: &r}) // takes the place of the one before
	}
}

// onceStep is no step of the plan: what a profiler is put around.
const onceStep = "once"

// once does the work of one rate.
func once(ctx context.Context, e *Env, dev *runtime.Device) error {
	if err := rates.Once(ctx, dev, e.job.What, e.job.Times); err != nil {
		return fmt.Errorf("%s: %w", e.job.What, err)
	}
	return nil
}
