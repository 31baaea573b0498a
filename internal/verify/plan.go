package verify

// The plan: which steps there are, in which order, and how much time each has.

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Step is one part of the plan.
type Step struct {
	Name   string
	Title  string        // what it shows, in a few words
	Area   string        // the part of the page in which it stands
	Budget time.Duration // of a run of Full; of others in proportion, and besides it what earlier steps have left over
	Least  time.Duration // of a run of any length
	// Quiet says that a long time without a record is no sign of a hang.
	Quiet bool

	run func(ctx context.Context, e *Env) error
}

// Full is the length of a run for which the budgets are.
const Full = 8 * time.Minute

// spare is the part of a run that no step has, for starting processes and writing the report.
const spare = 10 * time.Second

// steps are in the order of their value: what is lost when the time is over is what matters least.
var steps = []Step{
	// What the device is decides how patient the run is with all other steps, so it must come out on a busy machine too.
	{Name: "device", Title: "the device, its driver and libraries", Area: "the machine", Budget: 14 * time.Second,
		Least: 14 * time.Second, run: onDevice(stepDevice)},
	{Name: "first", Title: "five kernels", Area: "kernels", Budget: 20 * time.Second, run: onDevice(stepFirst)},
	{Name: "catalog", Title: "one case of each kernel and type of the catalog", Area: "kernels", Budget: 75 * time.Second,
		run: onDevice(stepCatalog)},
	{Name: "conformance", Title: "the rules that every device meets", Area: "the runtime", Budget: 60 * time.Second,
		run: onDevice(stepConformance)},
	{Name: "golden", Title: "tensors and their gradients beside PyTorch's results", Area: "tensors",
		Budget: 45 * time.Second, run: onDevice(stepGolden)},
	{Name: "training", Title: "two networks learn as on the CPU", Area: "networks", Budget: 25 * time.Second,
		run: onDevice(stepTraining)},
	{Name: "search", Title: "nearest neighbours", Area: "search", Budget: 12 * time.Second, run: onDevice(stepSearch)},
	{Name: "quantized", Title: "products with weights in few bits", Area: "quantization", Budget: 12 * time.Second,
		run: onDevice(stepQuantized)},
	{Name: "rates", Title: "rates, beside the device's limits and PyTorch", Area: "rates", Budget: 110 * time.Second,
		run: onDevice(stepRates)},
	{Name: "parity", Title: "the other cases of the catalog", Area: "kernels", Budget: 25 * time.Second,
		run: onDevice(stepParity)},
	{Name: "stress", Title: "programs that compilers have got wrong", Area: "kernels", Budget: 18 * time.Second,
		run: onDevice(stepStress)},
	{Name: "endurance", Title: "graphs, 100,000 launches, leaks", Area: "the runtime", Budget: 15 * time.Second,
		run: onDevice(stepEndurance)},
	{Name: "sanitizer", Title: "kernels under compute-sanitizer", Area: "kernels", Budget: 30 * time.Second, Quiet: true,
		run: onDevice(stepSanitizer)},
	{Name: "occupancy", Title: "occupancy, as computed and as the driver says", Area: "the runtime",
		Budget: 9 * time.Second, run: onDevice(stepOccupancy)},
}

// Steps returns the plan.
func Steps() []Step { return slices.Clone(steps) }

// choose returns the first step, which describes the device, and those with the given names, in the order of the plan;
// all of them if there is no name.
func choose(names []string) ([]Step, error) {
	if len(names) == 0 {
		return Steps(), nil
	}
	var all []string
	for _, s := range steps {
		all = append(all, s.Name)
	}
	for _, name := range names {
		if !slices.Contains(all, name) {
			return nil, fmt.Errorf("%w: there is no step %q; the steps are %s", ErrUsage, name, strings.Join(all, ", "))
		}
	}
	return slices.DeleteFunc(Steps(), func(s Step) bool {
		return s.Name != steps[0].Name && !slices.Contains(names, s.Name)
	}), nil
}

// clock hands out the time of a run.
type clock struct {
	end   time.Time
	scale float64       // of the budgets
	left  time.Duration // what steps have left over
}

// newClock divides a limit among steps in proportion to their budgets, at most fourfold.
func newClock(now time.Time, limit time.Duration, list []Step) *clock {
	var all time.Duration
	for _, s := range list {
		all += s.Budget
	}
	rest := limit - min(spare, limit/10)
	return &clock{end: now.Add(rest), scale: min(float64(rest)/float64(all), 4)}
}

// least is the time in which a process can do anything at all.
const least = 2 * time.Second

// budget returns the time for a step that begins now, or 0 if too little is left.
func (c *clock) budget(now time.Time, s Step) time.Duration {
	d := max(time.Duration(c.scale*float64(s.Budget))+c.left, least, s.Least)
	left := c.end.Sub(now)
	if left < least {
		return 0
	}
	return min(d, left)
}

// used notes how long a step took of its budget.
func (c *clock) used(budget, took time.Duration) { c.left = max(0, budget-took) }
