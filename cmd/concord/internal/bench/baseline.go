package bench

// concord bench --baseline and --compare: whether something became slower.

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/concord-compute/concord/cmd/concord/internal/app"
	"github.com/concord-compute/concord/cmd/concord/internal/devices"
	"github.com/concord-compute/concord/cmd/concord/internal/files"
	"github.com/concord-compute/concord/cmd/concord/internal/ui"
	"github.com/concord-compute/concord/internal/file"
	"github.com/concord-compute/concord/runtime"
)

// guardVersion is part of every baseline, and changes with its format and with what is measured.
const guardVersion = 1

// guardFile is a baseline.
type guardFile struct {
	Version int           `json:"version"`
	Date    time.Time     `json:"date"`
	Program string        `json:"program"`
	Devices []guardDevice `json:"devices"`
}

// guardDevice is one device, in one way of running kernels, with what was measured.
type guardDevice struct {
	Device string        `json:"device"` // its label: "cpu:0 (compiled)"
	Is     identity      `json:"identity"`
	Series []guardSeries `json:"series"`
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

// guardSeries has one value for each round: the rate, or the time, that nine of ten samples do not reach.
type guardSeries struct {
	Suite          string    `json:"suite"`
	Name           string    `json:"name"`
	Unit           string    `json:"unit"`
	Implementation string    `json:"implementation,omitempty"`
	Rounds         []float64 `json:"rounds"`
}

// costs are the rounds as something of which less is better.
func (s *guardSeries) costs() []float64 {
	costs := slices.Clone(s.Rounds)
	if s.Unit != perLaunch {
		for i, v := range costs {
			costs[i] = 1 / v
		}
	}
	return costs
}

// typical is the usual value in the series' own unit.
func (s *guardSeries) typical() float64 {
	if s.Unit == perLaunch {
		return usual(s.costs())
	}
	return 1 / usual(s.costs())
}

// guard is one call of bench with --baseline or --compare.
type guard struct {
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

// guardSizes are sizes of which many rounds take seconds.
func guardSizes(info runtime.Info) benchSizes {
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

func (g *guard) baseline(ctx context.Context, path string) error {
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
	if g.a.JSON {
		return g.a.Print(measured)
	}
	t := &ui.Table{}
	t.Add("DEVICE", "SUITE", "NAME", "USUAL", "UNIT", "NOISE", "IMPLEMENTATION")
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
	return nil
}

// percent returns a text such as "4.2 %".
func percent(share float64) string { return fmt.Sprintf("%.1f %%", 100*share) }

// readBaseline reads and checks a file that has at least so many rounds of each result.
func readBaseline(ctx context.Context, path string, least int) (*guardFile, error) {
	text, err := files.Contents(ctx, path, files.MostBaseline)
	if err != nil {
		return nil, err
	}
	var f guardFile
	if err := json.Unmarshal(text, &f); err != nil {
		return nil, fmt.Errorf("not a baseline: %w: %w", err, runtime.ErrFormat)
	}
	if f.Version != guardVersion {
		return nil, fmt.Errorf("a baseline of version %d, and this program reads version %d: %w", f.Version, guardVersion,
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

// compared is the result of a comparison.
type compared struct {
	Device   string     `json:"device"`
	Suite    string     `json:"suite"`
	Name     string     `json:"name"`
	Unit     string     `json:"unit"`
	Baseline app.Number `json:"baseline"`
	Now      app.Number `json:"now"`
	Change   app.Number `json:"change"` // of the time: 0.1 is a tenth slower
	Noise    app.Number `json:"noise"`  // the change that counts
	Verdict  string     `json:"verdict"`
}

// The verdicts.
const (
	asBefore   = "same"
	nowFaster  = "faster"
	nowSlower  = "slower"
	notNowHere = "not measured"
)

func (g *guard) compare(ctx context.Context, path string) error {
	before, err := readBaseline(ctx, path, fewestRounds)
	if err != nil {
		return fmt.Errorf("--compare %s: %w", path, files.WithoutPath(err))
	}
	list, err := g.against(ctx, before)
	if err != nil {
		return fmt.Errorf("--compare %s: %w", path, err)
	}
	return g.report(list)
}

// report prints a comparison. Something that is slower, or was not measured, is a failure.
func (g *guard) report(list []compared) error {
	if g.a.JSON {
		if err := g.a.Print(struct {
			Results []compared `json:"results"`
		}{list}); err != nil {
			return err
		}
	} else {
		t := &ui.Table{}
		t.Add("DEVICE", "SUITE", "NAME", "BASELINE", "NOW", "UNIT", "TIME", "NOISE", "VERDICT")
		for _, c := range list {
			t.Add(c.Device, c.Suite, c.Name, digits3(c.Baseline), digits3(c.Now), c.Unit, fmt.Sprintf("%+.1f %%", 100*c.Change),
				"±"+percent(float64(c.Noise)), c.Verdict)
		}
		t.Write(g.a.Stdout, "")
	}
	if slices.ContainsFunc(list, func(c compared) bool { return c.Verdict == nowSlower || c.Verdict == notNowHere }) {
		return app.Reported(app.ExitFailed)
	}
	return nil
}

// against measures what the baseline has and judges it.
func (g *guard) against(ctx context.Context, before *guardFile) ([]compared, error) {
	if len(g.devices) == 0 {
		for _, d := range before.Devices {
			if device := deviceOf(d.Device); !slices.Contains(g.devices, device) {
				g.devices = append(g.devices, device)
			}
		}
	}
	var has []string // as DEVICE SUITE
	for _, d := range before.Devices {
		for _, s := range d.Series {
			has = append(has, deviceOf(d.Device)+" "+s.Suite)
		}
	}
	g.suites = slices.DeleteFunc(slices.Clone(g.suites), func(u suite) bool {
		return !slices.ContainsFunc(g.devices, func(device string) bool { return slices.Contains(has, device+" "+u.name) })
	})
	if len(g.suites) == 0 {
		slices.Sort(has)
		return nil, fmt.Errorf("nothing to measure: the baseline has %s: %w",
			cmp.Or(strings.Join(slices.Compact(has), ", "), "no results"), runtime.ErrInvalidArgument)
	}
	now, err := g.run(ctx, before)
	if err != nil {
		return nil, err
	}
	return g.confirm(before, now, compareCosts, func(only *guard) error {
		more, err := only.run(ctx, before)
		if err == nil {
			now.add(more)
		}
		return err
	})
}

// confirm judges, and measures what seems slower up to three times more.
func (g *guard) confirm(before, now *guardFile, compare func(before, now []float64) judged,
	more func(only *guard) error) ([]compared, error) {
	list := g.judge(before, now, compare)
	for range 3 {
		suspects := map[string]bool{}
		for _, c := range list {
			if c.Verdict == nowSlower {
				suspects[c.Suite] = true
			}
		}
		if len(suspects) == 0 {
			break
		}
		only := *g
		only.suites = slices.DeleteFunc(slices.Clone(g.suites), func(s suite) bool { return !suspects[s.name] })
		if err := more(&only); err != nil {
			return nil, err
		}
		list = g.judge(before, now, compare)
	}
	return list, nil
}

// inTurn measures one thing and another in turn, each for as many rounds, and judges them. Both measure
// one round of the suites of the guard that they get.
func (g *guard) inTurn(before, now func(g *guard) (*guardFile, error)) ([]compared, error) {
	var was, is *guardFile
	turns := func(g *guard) error {
		for round := range g.rounds {
			first, second := before, now
			if round%2 == 1 { // since the version measured first in a round may have an advantage
				first, second = now, before
			}
			a, err := first(g)
			if err != nil {
				return err
			}
			b, err := second(g)
			if err != nil {
				return err
			}
			if round%2 == 1 {
				a, b = b, a
			}
			if was == nil {
				was, is = a, b
				continue
			}
			was.add(a)
			is.add(b)
		}
		return nil
	}
	if err := turns(g); err != nil {
		return nil, err
	}
	for _, d := range was.Devices {
		g.devices = append(g.devices, deviceOf(d.Device))
	}
	return g.confirm(was, is, compareInTurn, turns)
}

// deviceOf returns the device of a label.
func deviceOf(label string) string { device, _, _ := strings.Cut(label, " "); return device }

// againstProgram compares this program with another one, an earlier version of it, in turn.
func (g *guard) againstProgram(ctx context.Context, other string) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	other, err = exec.LookPath(other)
	if err != nil {
		return fmt.Errorf("--against: %w", err)
	}
	dir, err := file.TempDir("concord-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	bar := g.a.Progress(2 * g.rounds)
	defer bar.End()
	one := func(program string) func(g *guard) (*guardFile, error) {
		return func(g *guard) (*guardFile, error) {
			bar.Doing(program)
			defer bar.Step()
			path := filepath.Join(dir, "round.json")
			args := []string{"bench", "--rounds", "1", "--baseline", path}
			for _, d := range g.devices {
				args = append(args, "--device", d)
			}
			for _, s := range g.suites {
				args = append(args, s.name)
			}
			cmd := exec.CommandContext(ctx, program, args...)
			cmd.Env = append(os.Environ(), roundVariable+"=1")
			if out, err := cmd.CombinedOutput(); err != nil {
				return nil, fmt.Errorf("%s: %w: %s", program, err, strings.TrimSpace(string(out)))
			}
			return readBaseline(ctx, path, 1)
		}
	}
	list, err := g.inTurn(one(other), one(self))
	if err != nil {
		return fmt.Errorf("--against %w", err)
	}
	return g.report(list)
}

// judge compares all series of the baseline that were to be measured.
func (g *guard) judge(before, now *guardFile, compare func(before, now []float64) judged) []compared {
	list := []compared{}
	for _, d := range before.Devices {
		for i := range d.Series {
			s := &d.Series[i]
			if !slices.Contains(g.devices, deviceOf(d.Device)) || !slices.ContainsFunc(g.suites, func(u suite) bool {
				return u.name == s.Suite
			}) {
				continue
			}
			c := compared{Device: d.Device, Suite: s.Suite, Name: s.Name, Unit: s.Unit, Baseline: app.Number(s.typical()),
				Now: app.Unknown, Change: app.Unknown, Noise: app.Unknown, Verdict: notNowHere}
			if n := now.find(d.Device, s); n != nil && len(n.Rounds) >= fewestRounds && len(s.Rounds) >= fewestRounds {
				j := compare(s.costs(), n.costs())
				c.Now, c.Change, c.Noise, c.Verdict = app.Number(n.typical()), app.Number(j.change), app.Number(j.noise), asBefore
				switch {
				case j.slower():
					c.Verdict = nowSlower
				case j.faster():
					c.Verdict = nowFaster
				}
			}
			list = append(list, c)
		}
	}
	return list
}

// find returns the series of the same result, or nil.
func (f *guardFile) find(device string, s *guardSeries) *guardSeries {
	for i := range f.Devices {
		if f.Devices[i].Device != device {
			continue
		}
		for j := range f.Devices[i].Series {
			if o := &f.Devices[i].Series[j]; o.Suite == s.Suite && o.Name == s.Name && o.Unit == s.Unit {
				return o
			}
		}
	}
	return nil
}

// add appends the rounds of another run of the same devices.
func (f *guardFile) add(more *guardFile) {
	for _, d := range more.Devices {
		for i := range d.Series {
			if s := f.find(d.Device, &d.Series[i]); s != nil {
				s.Rounds = append(s.Rounds, d.Series[i].Rounds...)
			}
		}
	}
}

// run measures the suites in rounds. With a baseline it measures only what that has, and returns an error
// where a device is another one.
func (g *guard) run(ctx context.Context, before *guardFile) (*guardFile, error) {
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
		return t.Device == "" || before != nil && !slices.ContainsFunc(before.Devices, func(d guardDevice) bool {
			return d.Device == t.Label
		})
	})
	if len(targets) == 0 {
		return nil, fmt.Errorf("nothing to measure: %w", runtime.ErrNoDevice)
	}
	out := &guardFile{Version: guardVersion, Date: time.Now().UTC().Round(time.Second), Program: app.Version()}
	var benches []*bencher
	for _, t := range targets {
		dev, err := s.Open(ctx, t.Device)
		if err != nil {
			return nil, err
		}
		defer dev.Close()
		is := identityOf(dev.Info())
		if before != nil {
			i := slices.IndexFunc(before.Devices, func(d guardDevice) bool { return d.Device == t.Label })
			if was := before.Devices[i].Is; was != is {
				return nil, fmt.Errorf("%s is not the device of the baseline: %+v, then %+v: %w", t.Label, is, was,
					runtime.ErrInvalidArgument)
			}
		}
		b := &bencher{dev: dev, target: t, time: cmp.Or(g.time, roundTime), fewest: roundSamples, newRoof: g.newRoof,
			sizes: guardSizes(dev.Info())}
		benches = append(benches, b)
		out.Devices = append(out.Devices, guardDevice{Device: t.Label, Is: is, Series: []guardSeries{}})
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
		out.Devices[i].Series = slices.DeleteFunc(out.Devices[i].Series, func(s guardSeries) bool {
			return len(s.Rounds) < g.rounds
		})
	}
	return out, nil
}

// round measures each suite once and adds one value to each series.
func (g *guard) round(ctx context.Context, b *bencher, d *guardDevice) error {
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
			one := guardSeries{Suite: r.Suite, Name: r.Name, Unit: r.Unit, Implementation: r.Implementation}
			f := guardFile{Devices: []guardDevice{*d}}
			s := f.find(d.Device, &one)
			if s == nil {
				d.Series = append(d.Series, one)
				s = &d.Series[len(d.Series)-1]
			}
			s.Rounds = append(s.Rounds, r.fast)
		}
	}
	return nil
}
