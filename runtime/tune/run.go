package tune

// The calls by which programs tune.

import (
	"context"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"time"

	"github.com/concord-compute/concord/runtime"
	"github.com/concord-compute/concord/runtime/choice"
	"github.com/concord-compute/concord/runtime/config"
	"github.com/concord-compute/concord/runtime/driver"
	"github.com/concord-compute/concord/runtime/roof"
)

// Options say what is tuned, and for how long.
type Options struct {
	// Command is required. It returns a command whose process calls [Serve] for the device. The tuner starts it, and
	// again after each candidate that it did not survive.
	Command func() *exec.Cmd

	// Only has names of subjects, or words that they begin with. Nil: all, but for portable texts of kernels of which the
	// device has implementations of its own.
	Only  []string
	Sizes []string      // names of points; nil: all
	Time  time.Duration // of the whole; 0 means 5 minutes. The device's roof is measured before, if it is not known
	// Patience is how long a candidate may take for one size; 0 means 30 s. One that takes longer is stopped. It is no
	// longer than the subject's share of Time, or 10 s if that is less.
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
	Share     time.Duration // of the subject under way, about
}

// Run looks for values of the device's choices with which it computes faster than with the defaults, and returns them
// as a table. Nothing changes on the device: see [runtime.Device.KeepTuned] and [Lock]. The defaults and each candidate
// are measured in turn in a child process, after the candidate's results were judged: random rows of those with much
// work, and more of them at the end. A candidate that computes something else, does not end, crashes or loses the
// device costs its process: the table says so, and the search goes on.
//
// Run blocks for as long as Options.Time says. Each subject gets a share of that, and those after it get what it does
// not use. Where the share is short, candidates are tried with sizes that take less time, and only the best values with
// all of them, none of which may take 5 % longer then. Subjects that there was no time for, or not enough, are in
// Table.Left.
//
// The search of a subject begins with what is in use. Values that were kept for other sizes, or for other subjects that
// read the same choices, stay unless none of these takes 5 % longer with the new ones. Of choices that several subjects
// read, the values of the subject that was tuned first stay. The subject costs has one trial, whose values are in the
// table also where they are the defaults: they were measured.
//
// If ctx ends, the table has what was found until then, and what is in use for the subject under way, and the error is
// that of ctx. Otherwise an error is that of a name, of a device without choices, or of a command that does not start;
// a subject of which even the defaults fail is a trial with the reason.
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
	set, kept := dev.Choices().InUse()
	t := &tuner{opt: opt, state: dev.Choices(), start: time.Now(), roof: limit, now: set.Of, kept: kept,
		children: &children{command: opt.Command}, values: map[string]int{}}
	defer t.children.stop()
	timed, stop := context.WithTimeout(ctx, opt.Time)
	defer stop()
	var left []string
	for i := range list {
		sum := 0.0
		for j := range list[i:] {
			sum += opt.weight(&list[i+j])
		}
		t.number, t.subjects = i+1, len(list)
		t.share = time.Duration(float64(opt.Time-time.Since(t.start)) * opt.weight(&list[i]) / sum)
		// A part of its share is for the last trial.
		if timed.Err() != nil || !t.tune(timed, &list[i], choices, time.Now().Add(t.share*4/5)) {
			left = append(left, list[i].Name)
		}
	}
	table := dev.Choices().New(t.values)
	table.Trials, table.Left = t.trials, left
	return table, ctx.Err()
}

// weight returns a subject's part of the time, beside those of others.
func (o *Options) weight(s *Subject) float64 {
	if s.Seldom && len(o.Only) == 0 {
		return 1
	}
	return 3
}

// choose returns the subjects and points that the options name, those where programs spend their time first.
func (o *Options) choose(list []Subject, natives bool) ([]Subject, error) {
	var names, words, sizes []string
	for _, s := range list {
		first, _, _ := strings.Cut(s.Name, " ")
		names, words = append(names, s.Name), append(words, first)
	}
	begins := func(name, with string) bool { return name == with || strings.HasPrefix(name, with+" ") }
	for _, n := range o.Only {
		if slices.ContainsFunc(names, func(s string) bool { return begins(s, n) }) {
			continue
		}
		meant := config.NearestOf(n, slices.Concat(words, names))
		if meant != "" {
			meant = fmt.Sprintf(" (%s?)", meant)
		}
		return nil, fmt.Errorf("tune: no subject %q%s: %w", n, meant, runtime.ErrInvalidArgument)
	}
	list = slices.DeleteFunc(list, func(s Subject) bool {
		if len(o.Only) == 0 { // a device with implementations of its own uses the portable text for odd launches only
			return natives && s.Points[0].Portable
		}
		return !slices.ContainsFunc(o.Only, func(n string) bool { return begins(s.Name, n) })
	})
	slices.SortStableFunc(list, func(a, b Subject) int {
		if a.Seldom == b.Seldom {
			return 0
		} else if b.Seldom {
			return -1
		}
		return 1
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
