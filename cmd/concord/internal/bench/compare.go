package bench

// concord bench --compare and --against: whether something became slower.

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/concord-compute/concord/cmd/concord/internal/app"
	"github.com/concord-compute/concord/cmd/concord/internal/files"
	"github.com/concord-compute/concord/cmd/concord/internal/ui"
	"github.com/concord-compute/concord/internal/file"
	"github.com/concord-compute/concord/runtime"
)

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

func (g *comparison) compare(ctx context.Context, path string) error {
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
func (g *comparison) report(list []compared) error {
	bad := slices.ContainsFunc(list, func(c compared) bool { return c.Verdict == nowSlower || c.Verdict == notNowHere })
	return g.a.Verdict(map[string]any{"results": list}, func() {
		t := ui.NewTable("DEVICE", "SUITE", "NAME", "BASELINE", "NOW", "UNIT", "TIME", "NOISE", "VERDICT")
		for _, c := range list {
			t.Add(c.Device, c.Suite, c.Name, digits3(c.Baseline), digits3(c.Now), c.Unit, fmt.Sprintf("%+.1f %%", 100*c.Change),
				"±"+percent(float64(c.Noise)), c.Verdict)
		}
		t.Write(g.a.Stdout, "")
	}, !bad)
}

// against measures what the baseline has and judges it.
func (g *comparison) against(ctx context.Context, before *baseline) ([]compared, error) {
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
	return g.confirm(before, now, compareCosts, func(only *comparison) error {
		more, err := only.run(ctx, before)
		if err == nil {
			now.add(more)
		}
		return err
	})
}

// confirm judges, and measures what seems slower up to three times more.
func (g *comparison) confirm(before, now *baseline, compare func(before, now []float64) judged,
	more func(only *comparison) error) ([]compared, error) {
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
// one round of the suites of the comparison that they get.
func (g *comparison) inTurn(before, now func(g *comparison) (*baseline, error)) ([]compared, error) {
	measure := [2]func(g *comparison) (*baseline, error){before, now}
	var sums [2]*baseline
	turns := func(g *comparison) error {
		for turn := range 2 * g.rounds {
			which := (turn + turn/2) % 2 // since the version measured first in a round may have an advantage
			one, err := measure[which](g)
			if err != nil {
				return err
			}
			if sums[which] == nil {
				sums[which] = one
			} else {
				sums[which].add(one)
			}
		}
		return nil
	}
	if err := turns(g); err != nil {
		return nil, err
	}
	for _, d := range sums[0].Devices {
		g.devices = append(g.devices, deviceOf(d.Device))
	}
	return g.confirm(sums[0], sums[1], compareInTurn, turns)
}

// againstProgram compares this program with another one, an earlier version of it, in turn.
func (g *comparison) againstProgram(ctx context.Context, other string) error {
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
	one := func(program string) func(g *comparison) (*baseline, error) {
		return func(g *comparison) (*baseline, error) {
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
func (g *comparison) judge(before, now *baseline, compare func(before, now []float64) judged) []compared {
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
				Now: app.Null, Change: app.Null, Noise: app.Null, Verdict: notNowHere}
			if n := now.device(d.Device).find(s); n != nil && len(n.Rounds) >= fewestRounds && len(s.Rounds) >= fewestRounds {
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

// deviceOf returns the device of a label.
func deviceOf(label string) string { device, _, _ := strings.Cut(label, " "); return device }
