package bench

// concord bench --baseline: what was measured, in rounds, and its file.

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"time"

	"github.com/concord-compute/concord/cmd/concord/internal/app"
	"github.com/concord-compute/concord/cmd/concord/internal/devices"
	"github.com/concord-compute/concord/cmd/concord/internal/files"
	"github.com/concord-compute/concord/cmd/concord/internal/ui"
	"github.com/concord-compute/concord/runtime"
)

// baselineVersion is part of every baseline, and changes with its format and with what is measured.
const baselineVersion = 1

// baseline is what was measured of devices, in a file.
type baseline struct {
	Version int              `json:"version"`
	Date    time.Time        `json:"date"`
	Program string           `json:"program"`
	Devices []deviceBaseline `json:"devices"`
}

// deviceBaseline is one device, in one way of running kernels, with what was measured.
type deviceBaseline struct {
	Device string   `json:"device"` // its label: "cpu:0 (compiled)"
	Is     identity `json:"identity"`
	Series []series `json:"series"`
}

// identity is what has to be the same for a comparison to mean something.
type identity struct {
	Name   string `json:"name"`
	Arch   string `json:"arch,omitempty"`
	Driver string `json:"driver,omitempty"`
	UUID   string `json:"uuid,omitempty"`
	Units  int    `json:"units,omitempty"`
}

func identityOf(i runtime.Info) identity {
	return identity{i.Name, i.Arch, i.DriverVersion, i.UUID, i.ComputeUnits}
}

// series has one value for each round: the rate, or the time, that nine of ten samples do not reach.
type series struct {
	Suite          string    `json:"suite"`
	Name           string    `json:"name"`
	Unit           string    `json:"unit"`
	Implementation string    `json:"implementation,omitempty"`
	Rounds         []float64 `json:"rounds"`
}

// costs are the rounds as something of which less is better.
func (s *series) costs() []float64 {
	costs := slices.Clone(s.Rounds)
	if s.Unit != perLaunch {
		for i, v := range costs {
			costs[i] = 1 / v
		}
	}
	return costs
}

// typical is the usual value in the series' own unit.
func (s *series) typical() float64 {
	if s.Unit == perLaunch {
		return usual(s.costs())
	}
	return 1 / usual(s.costs())
}

// comparison is one call of bench with --baseline or --compare.
type comparison struct {
	a       *app.App
	devices []string
	suites  []suite
	rounds  int
	newRoof bool
	time    time.Duration // of sampling for one result; 0 means roundTime
}

// What else a machine does changes within seconds, so that many short rounds meet more of its quiet
// moments than few long ones.
const (
	usualRounds  = 40
	roundTime    = 15 * time.Millisecond // of sampling for one result
	roundSamples = 3                     // at least
)

// roundSizes are sizes of which many rounds take seconds.
func roundSizes(info runtime.Info) benchSizes {
	if info.IsGPU() {
		return sizesFor(info)
	}
	return benchSizes{copyBytes: 8 << 20, saxpyN: 1 << 21, gemmN: []int{128, 512},
		l2: [][2]int{{1, 1 << 15}, {16, 1 << 13}, {256, 2048}}, convImages: 1}
}

// roundVariable marks a process that measures one round for --against, of which no baseline can be made
// alone. It is not one of the CONCORD_ variables, which belong to the user.
const roundVariable = "_CONCORD_BENCH_ROUND"

func isRound() bool { return os.Getenv(roundVariable) != "" }

// record measures, and writes a baseline.
func (g *comparison) record(ctx context.Context, path string) error {
	if err := g.a.Claim(files.Document, path); err != nil {
		return fmt.Errorf("--baseline %w", err)
	}
	measured, err := g.run(ctx, nil)
	if err != nil {
		return err
	}
	text, err := json.MarshalIndent(measured, "", "  ")
	if err != nil {
		return err
	}
	if err := g.a.Save(ctx, path, func(w io.Writer) error {
		_, err := w.Write(append(text, '\n'))
		return err
	}); err != nil {
		return fmt.Errorf("--baseline %s: %w", path, files.WithoutPath(err))
	}
	return g.a.Show(measured, func() {
		t := ui.NewTable("DEVICE", "SUITE", "NAME", "USUAL", "UNIT", "NOISE", "IMPLEMENTATION")
		for _, d := range measured.Devices {
			for _, s := range d.Series {
				if len(s.Rounds) < fewestRounds {
					continue // for the program that collects rounds
				}
				said := percent(compareCosts(s.costs(), s.costs()).noise)
				t.Add(d.Device, s.Suite, s.Name, digits3(app.Number(s.typical())), s.Unit, said, cmp.Or(s.Implementation, "-"))
			}
		}
		t.Write(g.a.Stdout, "")
	})
}

// percent returns a text such as "4.2 %".
func percent(share float64) string { return fmt.Sprintf("%.1f %%", 100*share) }

// readBaseline reads and checks a file that has at least so many rounds of each result.
func readBaseline(ctx context.Context, path string, least int) (*baseline, error) {
	text, err := files.Contents(ctx, path, files.MostBaseline)
	if err != nil {
		return nil, err
	}
	var f baseline
	if err := json.Unmarshal(text, &f); err != nil {
		return nil, fmt.Errorf("not a baseline: %w: %w", err, runtime.ErrFormat)
	}
	if f.Version != baselineVersion {
		return nil, fmt.Errorf("a baseline of version %d, and this program reads version %d: %w", f.Version, baselineVersion,
			runtime.ErrFormat)
	}
	for _, d := range f.Devices {
		for _, s := range d.Series {
			if bad := slices.ContainsFunc(s.Rounds, func(v float64) bool { return !(v > 0) || math.IsInf(v, 0) }); bad ||
				len(s.Rounds) < least {
				return nil, fmt.Errorf("%s: %s %s: a baseline has %d or more positive values for each result: %w", d.Device,
					s.Suite, s.Name, least, runtime.ErrFormat)
			}
		}
	}
	if len(f.Devices) == 0 {
		return nil, fmt.Errorf("a baseline without a device: %w", runtime.ErrFormat)
	}
	return &f, nil
}

// device returns the device of that label, or nil.
func (f *baseline) device(label string) *deviceBaseline {
	if i := slices.IndexFunc(f.Devices, func(d deviceBaseline) bool { return d.Device == label }); i >= 0 {
		return &f.Devices[i]
	}
	return nil
}

// find returns the series of the same result, or nil.
func (d *deviceBaseline) find(s *series) *series {
	if d == nil {
		return nil
	}
	same := func(o series) bool { return o.Suite == s.Suite && o.Name == s.Name && o.Unit == s.Unit }
	i := slices.IndexFunc(d.Series, same)
	if i < 0 {
		return nil
	}
	return &d.Series[i]
}

// add appends the rounds of another run of the same devices.
func (f *baseline) add(more *baseline) {
	for _, d := range more.Devices {
		for i := range d.Series {
			if s := f.device(d.Device).find(&d.Series[i]); s != nil {
				s.Rounds = append(s.Rounds, d.Series[i].Rounds...)
			}
		}
	}
}

// run measures the suites in rounds. With a baseline it measures only what that has, and returns an error
// where a device is another one.
func (g *comparison) run(ctx context.Context, before *baseline) (*baseline, error) {
	s := g.a.Session
	if s == nil {
		var err error
		if s, err = g.a.Open(app.Exactly); err != nil {
			return nil, err
		}
	}
	targets, err := devices.Targets(ctx, s, g.devices)
	if err != nil {
		return nil, err
	}
	targets = slices.DeleteFunc(targets, func(t devices.Target) bool {
		return t.Device == "" || before != nil && before.device(t.Label) == nil
	})
	if len(targets) == 0 {
		return nil, fmt.Errorf("nothing to measure: %w", runtime.ErrNoDevice)
	}
	out := &baseline{Version: baselineVersion, Date: time.Now().UTC().Round(time.Second), Program: app.Version()}
	var benches []*bencher
	for _, t := range targets {
		dev, err := s.Open(ctx, t.Device)
		if err != nil {
			return nil, err
		}
		defer dev.Close()
		is := identityOf(dev.Info())
		if before != nil {
			if was := before.device(t.Label).Is; was != is {
				return nil, fmt.Errorf("%s is not the device of the baseline: %+v, then %+v: %w", t.Label, is, was,
					runtime.ErrInvalidArgument)
			}
		}
		b := &bencher{dev: dev, target: t, time: cmp.Or(g.time, roundTime), fewest: roundSamples, newRoof: g.newRoof,
			sizes: roundSizes(dev.Info())}
		benches = append(benches, b)
		out.Devices = append(out.Devices, deviceBaseline{Device: t.Label, Is: is, Series: []series{}})
	}
	bar := g.a.Progress(g.rounds * len(benches))
	defer bar.End()
	for round := range g.rounds {
		for i, b := range benches {
			bar.Doing(fmt.Sprintf("%s, round %d of %d", b.target.Label, round+1, g.rounds))
			if err := g.round(ctx, b, &out.Devices[i]); err != nil {
				return nil, err
			}
			bar.Step()
		}
	}
	for i := range out.Devices { // what failed in some round only would be compared with less
		out.Devices[i].Series = slices.DeleteFunc(out.Devices[i].Series, func(s series) bool {
			return len(s.Rounds) < g.rounds
		})
	}
	return out, nil
}

// round measures each suite once and adds one value to each series.
func (g *comparison) round(ctx context.Context, b *bencher, d *deviceBaseline) error {
	for _, suite := range g.suites {
		b.suite, b.results = suite.name, nil
		err := suite.run(b, ctx)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil && !app.NotHere(err) && !errors.Is(err, errNoTime) {
			return fmt.Errorf("%s: %s: %w", b.target.Label, suite.name, err)
		}
		for _, r := range b.results {
			if !(r.fast > 0) || math.IsInf(r.fast, 0) {
				continue
			}
			one := series{Suite: r.Suite, Name: r.Name, Unit: r.Unit, Implementation: r.Implementation}
			s := d.find(&one)
			if s == nil {
				d.Series = append(d.Series, one)
				s = &d.Series[len(d.Series)-1]
			}
			s.Rounds = append(s.Rounds, r.fast)
		}
	}
	return nil
}
