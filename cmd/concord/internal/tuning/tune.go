// Package tuning has the command tune.
package tuning

// concord tune: measures the choices of a device.

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/concord-compute/concord/cmd/concord/internal/app"
	"github.com/concord-compute/concord/cmd/concord/internal/ui"
	"github.com/concord-compute/concord/runtime"
	"github.com/concord-compute/concord/runtime/choice"
	"github.com/concord-compute/concord/runtime/driver"
	"github.com/concord-compute/concord/runtime/tune"
)

// tuneFlags are those of concord tune.
type tuneFlags struct {
	device  string
	sizes   []string
	minutes float64
	try     bool
	child   bool
}

// Command returns the command tune.
func Command(a *app.App) *cobra.Command {
	var f tuneFlags
	cmd := &cobra.Command{
		Use:   "tune [SUBJECT]...",
		Short: "Measure which blocks and thresholds are the fastest on a device",
		Long: `Tune looks for values of a device's choices (sizes of blocks, thresholds between methods) with
which it computes faster than with the defaults, and keeps them for this machine. SUBJECT is an operation,
such as gemm or "gemm f32"; without one all are tuned, but for portable texts of kernels that the device has
implementations of, and those in which programs spend most of their time come first, with more of the time.
Each gets a share of --minutes, and those after it what it does not use. Where that is short, candidates are
tried with the sizes that take the least time, and only the best values with all. Operations that there was
no time for, or not enough, are named at the end, with the command that goes on with them.

The subject costs is no search: it measures what a launch, a copy, an element and an operation take, by
which package tensor decides what a plan stores and fuses there, and keeps that. explain shows it.

Candidates are launched in a process apart, their results are judged by the float64 reference, and they
are timed in turn with the defaults. The search begins with what is in use. A candidate that computes
wrongly, crashes or hangs is named, and the others go on. What was kept for other sizes stays unless these
are computed as fast with the new values. One process tunes at a time: others wait for it, also import, pin
and reset.

Programs never wait for a tuning: they use what was kept before, or a table that comes with Concord
for such a processor, or the defaults. CONCORD_TUNE=FILE pins a table for the device that it was made for, so that
every run there computes the same bits (another device has the defaults, and says so), and CONCORD_TUNE=off
the defaults. With CONCORD_TUNE=first this
command, and a program that calls FirstUse of package runtime/tune, measures beside its work what it uses
and was not measured before, for the next one; a process of the lowest priority does it, at most two minutes
for each operation and size, and ends with the program. The device's roof is measured
first, once, which takes some seconds beside --minutes. tune list names the subjects and their sizes.

A table holds for the choices that it was made with: of an operation whose choices have other names, values or
defaults in this version nothing is used, and what is known of others stays.`,
		Example: `  concord tune gemm --minutes 5
  concord tune "gemm f32" --size 1024 --try
  concord tune costs
  concord tune list
  concord tune export table.json`,
	}
	cmd.PersistentFlags().StringVar(&f.device, "device", "cpu:0", "`device` that is tuned")
	cmd.Flags().StringSliceVar(&f.sizes, "size", nil, "`sizes` that are measured, separated by commas; all when absent")
	cmd.Flags().Float64Var(&f.minutes, "minutes", 5, "end before so many `minutes` are over")
	cmd.Flags().BoolVar(&f.try, "try", false, "only show what was found, and keep nothing")
	cmd.Flags().BoolVar(&f.child, "child", false, "be a process that measures")
	_ = cmd.Flags().MarkHidden("child") // the flag exists
	for _, s := range tune.Subjects(choice.All()) {
		cmd.ValidArgs = append(cmd.ValidArgs, s.Name)
	}
	cmd.AddCommand(
		part(a, &f, "list", "List the choices of the device, with their values and reasons", list),
		part(a, &f, "show", "Show the table in use, and what was measured for it", show),
		part(a, &f, "export FILE", "Write the table in use to a file", export),
		part(a, &f, "import FILE", "Keep a table that was exported on a machine of the same kind, beside what is kept", keep),
		part(a, &f, "pin FILE", "Write the table in use to a file, and say how programs use just that", pin),
		part(a, &f, "reset", "Forget what was measured on this machine", reset),
	)
	return a.RunnableJSON(cmd, func(ctx context.Context, args []string) error {
		if err := app.CheckDevice(f.device); err != nil {
			return err
		}
		if f.child {
			return serve(ctx, a, f.device)
		}
		if cmd.Flags().Changed("size") && (len(f.sizes) == 0 || slices.Contains(f.sizes, "")) {
			return app.Usagef("--size: a size is empty; concord tune list has them")
		}
		return run(ctx, a, &f, args)
	})
}

// part is a subcommand.
func part(a *app.App, f *tuneFlags, use, short string,
	work func(ctx context.Context, a *app.App, dev *runtime.Device, file string) error) *cobra.Command {
	name, _, takesFile := strings.Cut(use, " ")
	cmd := &cobra.Command{Use: use, Short: short, Long: short + ".", Args: cobra.NoArgs,
		Example: "  concord tune " + name + "\n  concord tune " + name + " --device cpu:0 --json"}
	if takesFile {
		cmd.Args, cmd.Example = cobra.ExactArgs(1), "  concord tune "+name+" table.json"
	}
	return a.RunnableJSON(cmd, func(ctx context.Context, args []string) error {
		dev, err := open(ctx, a, f.device)
		if err != nil {
			return err
		}
		return work(ctx, a, dev, strings.Join(args, ""))
	})
}

// open opens the device. The session closes it.
func open(ctx context.Context, a *app.App, name string) (*runtime.Device, error) {
	if err := app.CheckDevice(name); err != nil {
		return nil, err
	}
	s, err := a.Open(app.Exactly)
	if err != nil {
		return nil, err
	}
	return s.Open(ctx, name)
}

func serve(ctx context.Context, a *app.App, device string) error {
	dev, err := open(ctx, a, device)
	if err != nil {
		return err
	}
	return tune.Serve(ctx, a.Session, dev, os.Stdin, a.Stdout)
}

func run(ctx context.Context, a *app.App, f *tuneFlags, subjects []string) error {
	if !(f.minutes > 0) || f.minutes > 24*60 {
		return app.Usagef("--minutes %v: it is above 0 and at most 1440", f.minutes)
	}
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find this program: %w", err)
	}
	dev, err := open(ctx, a, f.device)
	if err != nil {
		return err
	}
	if err := keeps(a, f.try); err != nil {
		return err
	}
	if !f.try {
		unlock, err := alone(ctx, a, dev)
		if err != nil {
			return err
		}
		defer unlock()
	}
	bar, subject := a.Progress(1000), 0
	table, err := tune.Run(ctx, dev, tune.Options{
		Command: func() *exec.Cmd { return exec.Command(self, "tune", "--child", "--device", f.device) },
		Only:    subjects, Sizes: f.sizes, Time: time.Duration(f.minutes * float64(time.Minute)),
		Progress: func(p tune.Progress) {
			bar.Doing(fmt.Sprintf("%v, at most %v more  %d/%d %s", p.Elapsed.Round(time.Second),
				p.Remaining.Round(time.Second), p.Subject, p.Subjects, trialText(p.Trial)))
			bar.At(int(1000*p.Elapsed/(p.Elapsed+p.Remaining+1)), 1000)
			if bar == nil && p.Subject != subject { // no terminal
				fmt.Fprintf(a.Stderr, "%d/%d %s: about %v; at most %v more for all\n", p.Subject, p.Subjects,
					p.Trial.Subject, p.Share.Round(time.Second), p.Remaining.Round(time.Second))
			}
			subject = p.Subject
		}})
	bar.End()
	if table == nil {
		if errors.Is(err, runtime.ErrInvalidArgument) { // the name of a subject or size
			err = app.UsageError(fmt.Errorf("%w; concord tune list has the subjects and their sizes", err))
		}
		return err
	}
	left := table.Left
	used := dev.Choices().Table()
	table = dev.Choices().Merged(used, table) // what was tuned before stays
	table.Left = nil
	// An interrupted tuning keeps what it has found. A table without values is kept only in place of one that has some:
	// a later version of Concord may have a better one.
	if !f.try && (len(table.Values) > 0 || used != nil && len(used.Values) > 0) {
		err = errors.Join(err, dev.KeepTuned(context.WithoutCancel(ctx), table))
	}
	if err != nil {
		return err
	}
	shown := *table
	shown.Left = left
	return a.Show(&shown, func() {
		write(a, table, f.try)
		writeLeft(a, f, left)
	})
}

// writeLeft says for what there was no time, or not enough, and how that goes on.
func writeLeft(a *app.App, f *tuneFlags, left []string) {
	if len(left) == 0 {
		return
	}
	line := "concord tune"
	for _, name := range left {
		if strings.Contains(name, " ") {
			name = strconv.Quote(name)
		}
		line += " " + name
	}
	if len(f.sizes) > 0 {
		line += " --size " + strconv.Quote(strings.Join(f.sizes, ","))
	}
	if f.device != "cpu:0" {
		line += " --device " + f.device
	}
	a.Printf("There was no time, or not enough, for %s of what is tuned. This goes on with it:\n  %s --minutes %g\n",
		ui.Quantity(len(left), "operation"), line, f.minutes)
}

// keeps returns an error if the configuration names a table or the defaults, so that what is kept has no effect.
func keeps(a *app.App, try bool) error {
	switch cfg := a.Session.Config(); {
	case try:
	case cfg.Tune != "" && cfg.Tune != driver.TuneFirst:
		return app.Usagef("CONCORD_TUNE is %s, so that nothing else is used or kept; unset it", cfg.Tune)
	case cfg.CacheDir == "off":
		return app.Usagef("CONCORD_CACHE_DIR is off, so that nothing is kept; unset it")
	}
	return nil
}

// trialText is a trial in one line.
func trialText(t choice.Trial) string {
	values := "the defaults"
	if len(t.Values) > 0 {
		values = valuesText(t.Values)
	}
	if t.Failed != "" {
		return fmt.Sprintf("%s, %s: %s", t.Subject, values, ui.OneLine(t.Failed))
	}
	if len(t.Costs) > 0 {
		return fmt.Sprintf("%s: %s", t.Subject, values)
	}
	if t.Slow {
		return fmt.Sprintf("%s, %s: too slow", t.Subject, values)
	}
	return fmt.Sprintf("%s, %s: %.2f times as fast", t.Subject, values, t.Score)
}
