package tune

// The tuner: it asks child processes to measure candidates, and collects what they find.

import (
	"context"
	"fmt"
	"maps"
	"os/exec"
	"slices"
	"strings"
	"time"

	"github.com/concord-compute/concord/runtime"
	"github.com/concord-compute/concord/runtime/choice"
	"github.com/concord-compute/concord/runtime/driver"
	"github.com/concord-compute/concord/runtime/profile"
	"github.com/concord-compute/concord/runtime/roof"
)

// Options say what is tuned, and for how long.
type Options struct {
	// Command is required. It returns a command whose process calls [Serve] for the device. The tuner starts it, and
	// again after each candidate that it did not survive.
	Command func() *exec.Cmd

	Only  []string      // names of subjects, or words that they begin with; nil: all but those that are Subject.Named
	Sizes []string      // names of points; nil: all
	Time  time.Duration // of the whole; 0 means 5 minutes. The device's roof is measured before, if it is not known
	// Patience is how long a candidate may take for one size; 0 means 30 s. One that takes longer is stopped.
	Patience time.Duration

	Progress func(p Progress) // is called after each trial; nil: nobody wants to know
}

// Progress is what a tuner has done so far.
type Progress struct {
	Trial     choice.Trial  // the last one
	Trials    int           // all
	Subject   int           // the number of the subject under way, from 1
	Subjects  int           // of how many
	Elapsed   time.Duration // since the start
	Remaining time.Duration // at most
}

// Run looks for values of the device's choices with which it computes faster than with the defaults, and returns them
// as a table. Nothing changes on the device: see [runtime.Device.KeepTuned]. The defaults and each candidate are
// measured in turn in a child process, after the candidate's results were judged. A candidate that computes something
// else, does not end, crashes or loses the device costs its process: the table says so, and the search goes on.
//
// The subject costs has one trial, whose values are in the table also where they are the defaults: they were measured.
// Values of choices that several subjects read are those of the subject that was tuned first. Run blocks for as long
// as Options.Time says. The search of a subject begins with what is in use. If ctx ends, the table has what was found
// until then, and what is in use for the subject under way, and the error is that of ctx. Otherwise an error is that
// of a name, of a device without choices, or of a command that does not start; a subject of which even the defaults
// fail is a trial with the reason.
func Run(ctx context.Context, dev *runtime.Device, opt Options) (*choice.Table, error) {
	busy.Add(1)
	defer busy.Add(-1)
	choices := dev.Choices().Choices()
	if opt.Command == nil {
		return nil, fmt.Errorf("tune: Options.Command is nil: %w", runtime.ErrInvalidArgument)
	}
	if opt.Time < 0 || opt.Patience < 0 {
		return nil, fmt.Errorf("tune: a time of %v and a patience of %v: %w", opt.Time, opt.Patience,
			runtime.ErrInvalidArgument)
	}
	if opt.Time == 0 {
		opt.Time = 5 * time.Minute
	}
	if opt.Patience == 0 {
		opt.Patience = 30 * time.Second
	}
	all := Subjects(choices)
	if len(all) == 0 {
		return nil, fmt.Errorf("tune: nothing is tuned on %s: %w", dev, runtime.ErrUnsupported)
	}
	_, natives := dev.Driver().(driver.Natives)
	list, err := opt.choose(all, natives)
	if err != nil {
		return nil, err
	}
	limit, err := roof.Of(ctx, dev)
	if err != nil {
		return nil, err
	}
	t := &tuner{opt: opt, state: dev.Choices(), start: time.Now(), roof: limit,
		now: dev.Choices().Of, children: &children{command: opt.Command},
		values: map[string]int{}}
	defer t.children.stop()
	timed, stop := context.WithTimeout(ctx, opt.Time)
	defer stop()
	for i := range list {
		if timed.Err() != nil {
			break
		}
		t.number, t.subjects = i+1, len(list)
		left := opt.Time - time.Since(t.start)
		// A part of its share is for the last trial.
		t.tune(timed, &list[i], choices, time.Now().Add(left/time.Duration(len(list)-i)*4/5))
	}
	table := dev.Choices().New(t.values)
	table.Trials = t.trials
	return table, ctx.Err()
}

// choose returns the subjects and points that the options name.
func (o *Options) choose(list []Subject, natives bool) ([]Subject, error) {
	var names, sizes []string
	for _, s := range list {
		names = append(names, s.Name)
	}
	begins := func(name, with string) bool { return name == with || strings.HasPrefix(name, with+" ") }
	for _, n := range o.Only {
		if !slices.ContainsFunc(names, func(s string) bool { return begins(s, n) }) {
			return nil, fmt.Errorf("tune: no %q among %s: %w", n, strings.Join(names, ", "), runtime.ErrInvalidArgument)
		}
	}
	list = slices.DeleteFunc(list, func(s Subject) bool {
		if len(o.Only) == 0 { // a device with implementations of its own uses the portable text for odd launches only
			return s.Named || natives && s.Points[0].Portable
		}
		return !slices.ContainsFunc(o.Only, func(n string) bool { return begins(s.Name, n) })
	})
	for _, s := range list {
		for _, p := range s.Points {
			if !slices.Contains(sizes, p.Name) {
				sizes = append(sizes, p.Name)
			}
		}
	}
	for _, n := range o.Sizes {
		if !slices.Contains(sizes, n) {
			return nil, fmt.Errorf("tune: no size %q among %s: %w", n, strings.Join(sizes, ", "),
				runtime.ErrInvalidArgument)
		}
	}
	for i := range list {
		list[i].Points = slices.DeleteFunc(slices.Clone(list[i].Points), func(p Point) bool {
			return len(o.Sizes) > 0 && !slices.Contains(o.Sizes, p.Name)
		})
	}
	return slices.DeleteFunc(list, func(s Subject) bool { return len(s.Points) == 0 }), nil
}

// tuner is one Run.
type tuner struct {
	opt              Options
	state            *choice.State
	now              func(c *choice.Choice) int // the values with which a search begins
	start            time.Time
	roof             profile.Roof
	children         *children
	values           map[string]int // those that are better than the defaults
	trials           []choice.Trial
	number, subjects int
}

// tune adds the best values of one subject to those that were found.
func (t *tuner) tune(ctx context.Context, s *Subject, all []*choice.Choice, end time.Time) {
	if s.measured {
		t.costs(ctx, s, all)
		return
	}
	trial := func(values map[string]int, last bool) choice.Trial {
		got := t.trial(ctx, s, values, last)
		if ctx.Err() == nil {
			t.trials = append(t.trials, got)
			t.tell(got)
		}
		return got
	}
	usual := trial(nil, false)
	if usual.Failed != "" {
		return
	}
	free := slices.DeleteFunc(s.choices(all), func(c *choice.Choice) bool {
		_, taken := t.values[c.Name]
		return taken
	})
	from := map[string]int{} // what is in use
	for _, c := range free {
		if v := t.now(c); v != c.Default {
			from[c.Name] = v
		}
	}
	maps.Copy(t.values, search(ctx, free, from, t.most(s, usual.Rates), end, trial))
}

// most returns the score at which the subject is as fast as the device's roof allows; infinite without a roof, or with
// one that the defaults reach: it was measured while the machine was busy.
func (t *tuner) most(s *Subject, usual []choice.Rate) float64 {
	least := make([]choice.Rate, 0, len(usual))
	for _, r := range usual {
		i := slices.IndexFunc(s.Points, func(p Point) bool { return p.Name == r.Name })
		flops := s.Points[i].Flops
		if t.roof.DoubleGFLOPS > 0 && slices.ContainsFunc(s.Points[i].Defines, isDouble) {
			flops *= t.roof.GFLOPS / t.roof.DoubleGFLOPS
		}
		limit, _ := t.roof.Limit(flops, s.Points[i].Bytes)
		if limit <= 0 {
			return infinite
		}
		least = append(least, choice.Rate{Ns: float64(limit.Nanoseconds()) / enough, Default: r.Default})
	}
	if score := choice.Score(least); score > 1 {
		return score
	}
	return infinite
}

func (t *tuner) tell(last choice.Trial) {
	if t.opt.Progress != nil {
		elapsed := time.Since(t.start)
		t.opt.Progress(Progress{Trial: last, Trials: len(t.trials), Subject: t.number, Subjects: t.subjects,
			Elapsed: elapsed, Remaining: max(0, t.opt.Time-elapsed)})
	}
}

// trial has a child measure values; the last one of a subject for longer.
func (t *tuner) trial(ctx context.Context, s *Subject, values map[string]int, last bool) choice.Trial {
	got := choice.Trial{Subject: s.Name, Values: values, Final: last, Version: s.version(t.state.Choices())}
	seconds := 0.1
	if last {
		seconds = 0.5
	}
	var a answer
	if a, got.Failed = t.ask(ctx, s, values, seconds); got.Failed == "" {
		got.Rates = a.Rates
		got.Score, got.Slow = choice.Score(got.Rates), len(got.Rates) < len(s.Points)
	}
	return got
}

// costs has a child measure the costs, and takes the values that follow from them.
func (t *tuner) costs(ctx context.Context, s *Subject, all []*choice.Choice) {
	got := choice.Trial{Subject: s.Name, Final: true, Version: s.version(all)}
	var a answer
	if a, got.Failed = t.ask(ctx, s, nil, 0.2); got.Failed == "" {
		got.Costs, got.Values = a.Costs, planning(a.Costs, s.choices(all))
	}
	if ctx.Err() != nil {
		return
	}
	maps.Copy(t.values, got.Values)
	t.trials = append(t.trials, got)
	t.tell(got)
}

// ask has a child measure a subject, each point for about so many seconds, and returns its answer or why there is none.
func (t *tuner) ask(ctx context.Context, s *Subject, values map[string]int, seconds float64) (answer, string) {
	q := request{Subject: s.Name, For: t.state.TunedFor(), Values: values, Seconds: seconds}
	for _, p := range s.Points {
		q.Points = append(q.Points, p.Name)
	}
	a, failed := t.children.ask(ctx, q, t.opt.Patience)
	const most = 500 // bytes of a reason, which may be the log of a compiler
	if len(failed) > most {
		failed = strings.ToValidUTF8(failed[:most], "") + "…"
	}
	return a, failed
}
