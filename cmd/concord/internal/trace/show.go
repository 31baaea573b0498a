package trace

// concord trace run and show: what took the time.

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/concord-compute/concord/cmd/concord/internal/app"
	"github.com/concord-compute/concord/cmd/concord/internal/files"
	"github.com/concord-compute/concord/runtime/profile"
)

func traceRunCommand(a *app.App) *cobra.Command {
	var out, page string
	cmd := &cobra.Command{
		Use:   "run [--out FILE] [--html FILE] -- COMMAND ...",
		Short: "Run a command and show what took the time on its devices",
		Long: `Runs a command of concord, or any program that uses Concord, and then prints for each kernel,
copy, compile and wait how often it happened and how long it took.

The program records by itself, since CONCORD_TRACE names a file in its environment: without this
command, CONCORD_TRACE=FILE makes any program leave a trace, also one that is ended by a signal; then
the last moments may be missing. Times of kernels are the device's own where its driver tells them.`,
		Example: `  concord trace run -- demo --device cpu:0
  concord trace run --html demo.html -- demo
  concord trace run --out train.trace.json -- ./train --steps 100`,
		Args: cobra.ArbitraryArgs,
	}
	cmd.Flags().StringVar(&out, "out", "", "keep the trace in this file, for ui.perfetto.dev and concord trace show")
	cmd.Flags().StringVar(&page, "html", "", "write a page with a timeline to this file")
	return a.RunnableJSON(cmd, func(ctx context.Context, args []string) error {
		if len(args) == 0 {
			return app.Usagef("trace run: what is to be run comes after --")
		}
		if !files.CanReadAgain(out) {
			return app.Usagef("trace run --out %s: the trace is read again, from a file", out)
		}
		if err := files.Page.MayReplace(page); err != nil {
			return err
		}
		file := out
		if file == "" {
			dir, err := os.MkdirTemp("", "concord-trace-")
			if err != nil {
				return err
			}
			defer os.RemoveAll(dir)
			file = filepath.Join(dir, "trace.json")
		}
		kept, ran := record(ctx, a, cmd.Root(), "CONCORD_TRACE", file, args)
		if !kept { // what lies there is older
			return ran
		}
		return errors.Join(ran, traceShow(ctx, a, file, page))
	})
}

func traceShowCommand(a *app.App) *cobra.Command {
	var page string
	cmd := &cobra.Command{
		Use:   "show FILE",
		Short: "Show what took the time in a trace",
		Long: `Prints a trace of concord trace run --out or of CONCORD_TRACE as a table: device work first, the
longest first. A question mark is what nobody stated or measured: the amount of work of a kernel, or the share of
the device's roof, which is measured once by concord bench or by roof.Of in the program.
Advice follows: what takes much of the time and can be changed.`,
		Example: `  concord trace show train.trace.json
  concord trace show train.trace.json --html train.html`,
		Args: cobra.ExactArgs(1),
	}
	cmd.Flags().StringVar(&page, "html", "", "write a page with a timeline to this file")
	return a.RunnableJSON(cmd, func(ctx context.Context, args []string) error { return traceShow(ctx, a, args[0], page) })
}

// traceShow prints the summary of a trace, and writes its page if it has a name.
func traceShow(ctx context.Context, a *app.App, file, page string) error {
	t, err := files.Read(ctx, file, files.MostTrace, profile.ReadTrace)
	if err != nil {
		return err
	}
	s := profile.Summarize(t)
	if page != "" {
		if err := files.Page.MayReplace(page); err != nil {
			return err
		}
		err := a.Save(ctx, page, func(w io.Writer) error { return profile.WriteHTML(w, filepath.Base(file), t.Events, s) })
		if err != nil {
			return fmt.Errorf("--html %s: %w", page, files.WithoutPath(err))
		}
	}
	return a.Show(s, func() {
		fmt.Fprint(a.Stdout, s)
		if page != "" {
			a.Printf("\npage: %s\n", page)
		}
	})
}
