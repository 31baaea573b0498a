// Package trace records what a program does with devices and their memory, and shows it.
package trace

// concord trace: recordings of a program, and their analysis.

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"github.com/concord-compute/concord/cmd/concord/internal/app"
	"github.com/concord-compute/concord/cmd/concord/internal/files"
	"github.com/concord-compute/concord/cmd/concord/internal/picture"
	"github.com/concord-compute/concord/runtime/config"
	"github.com/concord-compute/concord/runtime/mempool"
)

// Command returns the command trace.
func Command(a *app.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "trace",
		Short:   "Record what a program does with devices and their memory",
		Example: "  concord trace run --html demo.html -- demo\n  concord trace memory --record demo.trace -- demo",
		Args:    cobra.NoArgs,
		RunE:    app.NeedsCommand,
	}
	cmd.AddCommand(traceRunCommand(a), traceShowCommand(a), traceMemoryCommand(a))
	return cmd
}

// traceFlags are the flags of concord trace memory.
type traceFlags struct {
	record, device, picture, arena string
	modes                          []string
	soft, hard                     string
	slack                          float64
}

func traceMemoryCommand(a *app.App) *cobra.Command {
	f := &traceFlags{}
	cmd := &cobra.Command{
		Use:   "memory FILE | memory --record FILE -- COMMAND ...",
		Short: "Analyze a memory trace, replay it with other pools, draw the arena",
		Long: `A memory trace records the memory operations of a program's devices: every allocation,
every free, and the driver's allocations behind them. CONCORD_MEMORY_TRACE=FILE makes any program that
uses Concord write one when it closes a device; --record FILE does so for the COMMAND after
--, which is a command of concord or a program.

The trace is replayed, without a device, with the pools of --mode:
  split   blocks are cut from larger allocations, as on CUDA and ROCm
  whole   a block is an allocation of its class's size, as on OpenCL
  exact   a block is an allocation, reused for the same size, as on the CPU
  off     no pool: every request goes to the driver

--picture draws addresses over time: allocations of the driver grey, blocks in colours by
size, the sums as lines. --arena chooses the arena: recorded, or one of the modes.`,
		Example: `  concord trace memory --record demo.trace -- demo --device cpu:0
  concord trace memory demo.trace --mode split --mode exact --picture arena.svg
  concord trace memory demo.trace --soft 512M --json`,
		Args: cobra.ArbitraryArgs,
	}
	cmd.Flags().StringVar(&f.record, "record", "", "run the command after -- and write its trace to this file")
	cmd.Flags().StringVar(&f.device, "device", "", "the device to analyze; default each of the trace")
	cmd.Flags().StringArrayVar(&f.modes, "mode", []string{"split", "whole", "exact", "off"},
		"a pool to replay with; repeatable")
	cmd.Flags().StringVar(&f.soft, "soft", "",
		"soft limit of the replays, suffix K, M or G; default that of the recording")
	cmd.Flags().StringVar(&f.hard, "hard", "", "hard limit of the replays; default none")
	cmd.Flags().Float64Var(&f.slack, "slack", 0, "memory that a replay keeps beside the largest live memory, as a part "+
		"of that; default the pool's own")
	cmd.Flags().StringVar(&f.picture, "picture", "", "draw the arena over time into this file: .png or .svg")
	cmd.Flags().StringVar(&f.arena, "arena", "recorded", "arena to draw: recorded, or a mode")
	return a.RunnableJSON(cmd, func(ctx context.Context, args []string) error {
		switch {
		case f.record == "" && len(args) != 1:
			return app.Usagef("trace memory takes one file, not %d", len(args))
		case f.record != "" && len(args) == 0:
			return app.Usagef("trace memory --record: what is to be run comes after --")
		case !files.CanReadAgain(f.record):
			return app.Usagef("trace memory --record %s: the trace is read again, from a file", f.record)
		}
		settings, err := f.settings()
		if err != nil {
			return app.UsageError(err)
		}
		file := f.record
		if file == "" {
			file = args[0]
		} else if _, err := record(ctx, a, cmd.Root(), "CONCORD_MEMORY_TRACE", file, args); err != nil {
			return err
		}
		return traceMemory(ctx, a, file, f, settings)
	})
}

// settings returns the replays' options according to the flags.
func (f *traceFlags) settings() ([]mempool.Options, error) {
	var base mempool.Options
	for _, size := range []struct {
		name, text string
		to         *int64
	}{{"--soft", f.soft, &base.SoftLimit}, {"--hard", f.hard, &base.HardLimit}} {
		if size.text == "" {
			continue
		}
		n, err := config.ParseSize(size.text)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", size.name, err)
		}
		*size.to = n
	}
	if base.Slack = f.slack; f.slack < 0 {
		return nil, fmt.Errorf("--slack: %v is negative", f.slack)
	}
	var list []mempool.Options
	for _, name := range f.modes {
		o := base
		if err := o.Mode.UnmarshalText([]byte(name)); err != nil {
			return nil, fmt.Errorf("--mode: %w", err)
		}
		list = append(list, o)
	}
	var mode mempool.Mode
	if err := mode.UnmarshalText([]byte(f.arena)); f.arena != "recorded" && err != nil {
		return nil, fmt.Errorf("--arena: %w", err)
	}
	return list, picture.Check("--picture", f.picture)
}

// record runs a command of concord, or a program, and keeps the trace that it writes to the file that a variable
// names, also if the command fails. It reports whether there was one.
func record(ctx context.Context, a *app.App, root *cobra.Command, variable, file string,
	args []string) (kept bool, err error) {
	if err := files.Document.MayReplace(file); err != nil {
		return false, err
	}
	dir, err := os.MkdirTemp("", "concord-trace-")
	if err != nil {
		return false, err
	}
	defer os.RemoveAll(dir)
	trace := filepath.Join(dir, "trace")
	program := args[0]
	if slices.ContainsFunc(root.Commands(), func(c *cobra.Command) bool { return c.Name() == args[0] }) {
		if program, err = os.Executable(); err != nil {
			return false, fmt.Errorf("find this program: %w", err)
		}
	} else {
		args = args[1:]
	}
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Env = append(os.Environ(), variable+"="+trace)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, a.Output.W, a.Stderr
	if a.JSON {
		cmd.Stdout = a.Stderr // standard output is reserved for the document
	}
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = app.ChildGrace
	if err = cmd.Run(); err != nil {
		err = fmt.Errorf("run %s: %w", program, err)
	}
	kept, late := keepTrace(a, trace, file, program, err == nil)
	return kept, errors.Join(err, late)
}

// keepTrace moves a trace to its place, and reports whether it is there. A missing trace is an error if the
// command succeeded.
func keepTrace(a *app.App, trace, file, program string, wanted bool) (kept bool, err error) {
	in, err := os.Open(trace)
	switch {
	case err != nil && !wanted:
		return false, nil
	case err != nil:
		return false, fmt.Errorf("%s left no trace: it did nothing on a device, closed none, or does not use Concord",
			program)
	}
	defer in.Close()
	err = a.Save(context.Background(), file, func(w io.Writer) error { // it is small, and was wanted
		_, err := io.Copy(w, in)
		return err
	})
	if err != nil {
		return false, fmt.Errorf("the trace %s: %w", file, files.WithoutPath(err))
	}
	return true, nil
}
