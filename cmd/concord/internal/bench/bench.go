// Package bench measures rates of devices beside their own limits, and compares them with those of earlier runs.
package bench

// concord bench: rates of devices, beside the limits that were measured in the same run.

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/concord-compute/concord/cmd/concord/internal/app"
	"github.com/concord-compute/concord/cmd/concord/internal/devices"
	"github.com/concord-compute/concord/cmd/concord/internal/files"
	"github.com/concord-compute/concord/cmd/concord/internal/ui"
	"github.com/concord-compute/concord/runtime"
	"github.com/concord-compute/concord/runtime/profile"
	"github.com/concord-compute/concord/runtime/roof"
)

// benchResult is one rate or time. Unknown values are null.
type benchResult struct {
	Suite  string     `json:"suite"`
	Name   string     `json:"name"`
	Device string     `json:"device"`
	Median app.Number `json:"median"`
	Spread app.Number `json:"spread"` // from the 10th to the 90th percentile
	Unit   string     `json:"unit"`
	Limit  app.Number `json:"limit"`
	Ratio  app.Number `json:"ratio"` // of the median to the limit
	Reason string     `json:"reason,omitempty"`

	// The kernel's implementation as the launches' records name it, such as "avx512"; "" where no
	// kernel ran.
	Implementation string `json:"implementation,omitempty"`

	// Values of one call of a kernel, and the roofs' limit for it; 0 otherwise. For the report.
	flops, bytes, ns, roof float64

	fast float64 // the percentile at which nine of ten samples are slower
}

// gflops is the rate of a kernel.
func (r *benchResult) gflops() float64 { return r.flops / r.ns }

// suite is a part of bench.
type suite struct {
	name, doc string
	run       func(b *bencher, ctx context.Context) error
}

// suites are in the order in which they run.
var suites = []suite{
	{"launch", "host time to queue a launch, and to launch and wait", (*bencher).launch},
	{"copy", "between host and device; limit: copying within host memory", (*bencher).copies},
	{"saxpy", "memory rate; limit: the best of a copy and of loops by hand", (*bencher).saxpy},
	{"memory", "what else memory bounds; limit: the same", (*bencher).memory},
	{"gemm", "matrix products; limit: multiply-adds in registers, or memory", (*bencher).gemm},
	{"l2", "squared distances; limit: the same", (*bencher).l2},
	{"conv2d", "convolutions; limit: the same", (*bencher).conv2d},
}

func suiteNames() []string {
	names := make([]string, len(suites))
	for i, s := range suites {
		names[i] = s.name
	}
	return names
}

// knownSuites checks the arguments.
func knownSuites(_ *cobra.Command, args []string) error {
	for _, name := range args {
		if !slices.Contains(suiteNames(), name) {
			return fmt.Errorf("no suite %q: there are %s", name, strings.Join(suiteNames(), ", "))
		}
	}
	return nil
}

// chosen returns the suites of those names, or all: each once, in their own order.
func chosen(names []string) []suite {
	return slices.DeleteFunc(slices.Clone(suites), func(s suite) bool {
		return len(names) > 0 && !slices.Contains(names, s.name)
	})
}

// Command returns the command bench.
func Command(a *app.App) *cobra.Command {
	var names []string
	var report, baseline, compare, against string
	var rounds int
	var newRoof bool
	var list strings.Builder
	for _, s := range suites {
		fmt.Fprintf(&list, "\n  %-8s %s", s.name, s.doc)
	}
	cmd := &cobra.Command{
		Use:   "bench [SUITE]...",
		Short: "Measure rates of devices beside their own limits",
		Long: `Bench measures medians of repeated runs; the spread is from the 10th to the 90th percentile.
Limits are measured once on the same device and kept beside the kernel cache; --new-roof measures
them again. Suites, all if none is named:
` + list.String() + `

--baseline measures the suites in several rounds, one after the other in each round, and writes what was
measured, with the identity of the devices, to a file. On the CPU the sizes are smaller than otherwise, such
as products of 128 and 512 rows, and a result gets 15 ms of a round: many short rounds meet more of a machine's
quiet moments than few long ones. On cpu:0 all suites take about a minute, launch and saxpy seconds.
--compare measures again what such a file has, on
the same devices, and fails if something has become slower by more than the noise: the differences
between runs that are put together at random from the rounds of one measurement, of that in the file and
of this one. --against measures this program and another version of it in turn, round by round, which
finds more on a machine that does other work at the same time. What seems slower is measured up to
three times more before it counts.

concord bench train measures the training of networks, which is none of the suites.`,
		Example: `  concord bench --device cpu:0
  concord bench gemm conv2d --json
  concord bench --device cpu:0 --device opencl:0 --report report.html
  concord bench launch saxpy --device cpu:0 --baseline before.json
  concord bench --compare before.json
  concord bench launch gemm --device cpu:0 --against ./concord-before`,
		Args:      knownSuites,
		ValidArgs: suiteNames(),
	}
	cmd.Flags().StringArrayVar(&names, "device", nil, "`device` to measure (repeat); all when absent")
	cmd.Flags().StringVar(&report, "report", "", "also write a page with rooflines and tables to this HTML `file`")
	cmd.Flags().BoolVar(&newRoof, "new-roof", false, "measure the devices' limits again, although they are known")
	cmd.Flags().StringVar(&baseline, "baseline", "", "measure in rounds and write a baseline for --compare to this `file`")
	cmd.Flags().StringVar(&compare, "compare", "", "measure what this baseline `file` has, and fail if it became slower")
	cmd.Flags().StringVar(&against, "against", "", "measure another version of this `program` and this one in turn, and "+
		"fail if this one is slower")
	cmd.Flags().IntVar(&rounds, "rounds", usualRounds, fmt.Sprintf("`number` of rounds of --baseline, --compare and "+
		"--against, at least %d", fewestRounds))
	cmd.MarkFlagsMutuallyExclusive("baseline", "compare", "against", "report")
	cmd.AddCommand(trainCommand(a))
	return a.RunnableJSON(cmd, func(ctx context.Context, args []string) error {
		a.Untuned()
		if baseline != "" || compare != "" || against != "" {
			if rounds < fewestRounds && !(baseline != "" && rounds == 1 && isRound()) {
				return app.Usagef("--rounds must be at least %d, not %d", fewestRounds, rounds)
			}
			g := &comparison{a: a, devices: names, suites: chosen(args), rounds: rounds, newRoof: newRoof}
			switch {
			case baseline != "":
				return g.record(ctx, baseline)
			case compare != "":
				return g.compare(ctx, compare)
			}
			return g.againstProgram(ctx, against)
		}
		if cmd.Flags().Changed("rounds") {
			return app.Usagef("--rounds is for --baseline, --compare and --against")
		}
		if err := a.Claim(files.Page, report); err != nil {
			return fmt.Errorf("--report %w", err)
		}
		s, err := a.Open(app.Exactly)
		if err != nil {
			return err
		}
		targets, err := devices.Targets(ctx, s, names)
		if err != nil {
			return err
		}
		targets = slices.DeleteFunc(targets, func(t devices.Target) bool { return t.Device == "" })
		measured, err := bench(ctx, a, s, targets, args, newRoof)
		if err != nil {
			return err
		}
		err = finishBench(a, measured)
		if report != "" { // if this fails, the results have been printed
			command := repeatBench(args, names, report)
			if saveErr := a.Save(ctx, report, func(w io.Writer) error {
				return writeReport(w, measured, command)
			}); saveErr != nil {
				return fmt.Errorf("--report %s: %w", report, files.WithoutPath(saveErr))
			}
		}
		return err
	})
}

// repeatBench returns the command line that repeats the measurement.
func repeatBench(args, devices []string, report string) string {
	line := append([]string{"concord", "bench"}, args...)
	for _, d := range devices {
		line = append(line, "--device", d)
	}
	return strings.Join(append(line, "--report", report), " ")
}

func bench(ctx context.Context, a *app.App, s *runtime.Session, targets []devices.Target, only []string,
	newRoof bool) ([]benched, error) {
	run := chosen(only)
	bar := a.Progress(len(targets) * len(run))
	defer bar.End()
	var all []benched
	for i, t := range targets {
		dev, err := s.Open(ctx, t.Device)
		if err != nil {
			return nil, err
		}
		again := newRoof && !slices.ContainsFunc(targets[:i], func(o devices.Target) bool { return o.Device == t.Device })
		b := &bencher{dev: dev, target: t, newRoof: again, sizes: sizesFor(dev.Info())}
		for _, suite := range run {
			bar.Doing(t.Label + " " + suite.name)
			b.suite = suite.name
			err := suite.run(b, ctx)
			if ctx.Err() != nil {
				return nil, ctx.Err()
			}
			b.missed(err)
			bar.Step()
		}
		all = append(all, benched{t.Label, dev.Info().Name, b.roof, b.results})
		dev.Close()
	}
	return all, nil
}

func finishBench(a *app.App, devices []benched) error {
	results := []benchResult{}
	for _, d := range devices {
		results = append(results, d.Results...)
	}
	if len(results) == 0 {
		return fmt.Errorf("nothing was measured: %w", runtime.ErrNoDevice)
	}
	failed := slices.ContainsFunc(results, func(r benchResult) bool { return r.Unit == benchFailed })
	return a.Verdict(map[string]any{"results": results}, func() { writeBench(a, results) }, !failed)
}

func writeBench(a *app.App, results []benchResult) {
	t := ui.NewTable("DEVICE", "SUITE", "NAME", "MEDIAN", "SPREAD", "UNIT", "LIMIT", "RATIO", "IMPLEMENTATION")
	for _, r := range results {
		if r.Reason != "" {
			t.Add(r.Device, r.Suite, r.Name, ui.OneLine(r.Reason))
			continue
		}
		t.Add(r.Device, r.Suite, r.Name, digits3(r.Median), digits3(r.Spread), r.Unit, digits3(r.Limit), digits3(r.Ratio),
			cmp.Or(r.Implementation, "-"))
	}
	t.Write(a.Stdout, "")
}

func digits3(n app.Number) string {
	if f := float64(n); !math.IsNaN(f) {
		return fmt.Sprintf("%.3g", f)
	}
	return "-"
}

// bencher measures one device.
type bencher struct {
	dev     *runtime.Device
	target  devices.Target
	sizes   benchSizes
	suite   string
	results []benchResult
	time    time.Duration // of sampling for one result; 0 means sampleTime
	fewest  int           // samples; 0 means fewestSamples
	newRoof bool          // the device's roof is measured even if one was kept
	roof    *profile.Roof // nil until a suite needs it
}

// limits returns the device's roof.
func (b *bencher) limits(ctx context.Context) (r profile.Roof, err error) {
	if b.roof != nil {
		return *b.roof, nil
	}
	if b.newRoof {
		r, err = roof.Measure(ctx, b.dev)
	} else {
		r, err = roof.Of(ctx, b.dev)
	}
	if err == nil {
		b.roof = &r
	}
	return r, err
}

// rateOrUnknown returns a rate of a roof.
func rateOrUnknown(rate float64) app.Number {
	if rate > 0 {
		return app.Number(rate)
	}
	return app.Null
}

// perLaunch is the only unit in which less is better.
const perLaunch = "µs"

// benchFailed and benchAbsent replace the unit of a missing result.
const (
	benchFailed = "failed"
	benchAbsent = "not here"
)

// missed notes that a suite did not complete.
func (b *bencher) missed(err error) {
	if err == nil {
		return
	}
	unit := benchFailed
	if app.NotHere(err) {
		unit = benchAbsent
	}
	b.results = append(b.results, benchResult{Suite: b.suite, Name: b.suite, Device: b.target.Label,
		Median: app.Null, Spread: app.Null, Limit: app.Null, Ratio: app.Null, Unit: unit, Reason: err.Error()})
}

// note adds a result.
func (b *bencher) note(name, unit string, m measured, limit app.Number) {
	fast := m.high
	if unit == perLaunch {
		fast = m.low
	}
	b.results = append(b.results, benchResult{Suite: b.suite, Name: name, Device: b.target.Label, Unit: unit, fast: fast,
		Median: app.Number(m.median), Spread: app.Number(m.spread), Limit: limit, Ratio: app.Number(m.median) / limit,
		Implementation: m.implementation})
}

// measured sums up samples.
type measured struct {
	median, spread float64
	low, high      float64 // the 10th and the 90th percentile
	implementation string  // of the kernel, if one was measured
}

// Limits of sampling: a minimum number, then until the time is over or a maximum number.
const (
	fewestSamples = 7
	mostSamples   = 201
	sampleTime    = 400 * time.Millisecond
)

// measure takes samples. The first one is dropped, since it includes one-time costs.
func (b *bencher) measure(ctx context.Context, sample func() (float64, error)) (measured, error) {
	var all []float64
	start := time.Now()
	for n := 0; n <= cmp.Or(b.fewest, fewestSamples) ||
		(n <= mostSamples && time.Since(start) < cmp.Or(b.time, sampleTime)); n++ {
		if err := ctx.Err(); err != nil {
			return measured{}, err
		}
		v, err := sample()
		if err != nil {
			return measured{}, err
		}
		if n > 0 {
			all = append(all, v)
		}
	}
	return summed(all), nil
}

// summed sums up samples, of which there is at least one, and sorts them.
func summed(all []float64) measured {
	slices.Sort(all)
	at := func(share float64) float64 { return all[int(share*float64(len(all)-1)+0.5)] }
	return measured{median: at(0.5), spread: at(0.9) - at(0.1), low: at(0.1), high: at(0.9)}
}

// errNoTime says that a device does not report the time of a kernel.
var errNoTime = errors.New("the device measured no time")

// rate turns work and the device's time into a rate per nanosecond: giga per second.
func rate(work float64, rec runtime.Execution) (float64, error) {
	if rec.DeviceTimeNs <= 0 {
		return 0, errNoTime
	}
	return work / float64(rec.DeviceTimeNs), nil
}
