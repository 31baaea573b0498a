package checks

// concord verify: what a device does, shown in some minutes.

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/concord-compute/concord/cmd/concord/internal/app"
	"github.com/concord-compute/concord/cmd/concord/internal/devices"
	"github.com/concord-compute/concord/cmd/concord/internal/ui"
	"github.com/concord-compute/concord/internal/verify"
)

// verifyFlags are those of concord verify.
type verifyFlags struct {
	minutes   float64
	only      []string
	out, html string
	list      bool
	child     bool
	job       string
}

// Verify returns the command verify.
func Verify(a *app.App) *cobra.Command {
	var f verifyFlags
	cmd := &cobra.Command{
		Use:   "verify DEVICE",
		Short: "Show in some minutes what a device does: results, rates, faults",
		Long: `Verify shows what a device does, from what matters most to what matters least: its driver
and libraries, the kernels of the catalog beside the float64 reference, the rules that every
device meets, tensors beside PyTorch's results, training, search, quantized products, rates
beside the device's own limits (and PyTorch, where python3 has it), many launches and leaks,
and what compute-sanitizer finds. verify --list has the steps.

Each step runs in a process of its own with a part of the time. One that hangs or crashes is
named, with its last output, and the others go on. The whole ends before --minutes are over.
After every step the folder of --out has

  report.json   everything, for programs
  report.md     the same, to read
  logs.tar.gz   what every step wrote, and every single check

and what was not run is listed. --only repeats steps by their names, after the step device.
--only failed repeats those that the report in --out calls failed, cut off or not run; the
results of the others stay in it, if they are of the same device and program. The report that
was there before is earlier.json. Kernels are compiled anew into a cache that is removed at
the end, unless CONCORD_CACHE_DIR names one.

The exit status is 0 if every step ran and nothing failed. A step that was cut off by its
budget shows less, and is named, but is no failure. After 1 the report says what failed, hung,
crashed, or was not run.`,
		Example: `  concord verify cpu:0
  concord verify cuda:0 --minutes 7 --html page.html
  concord verify cuda:0 --only failed --minutes 3
  concord verify opencl:0 --only conformance,rates --out results`,
		Args: func(cmd *cobra.Command, args []string) error {
			if f.list || f.child || f.job != "" {
				return cobra.NoArgs(cmd, args)
			}
			return cobra.ExactArgs(1)(cmd, args)
		},
	}
	cmd.Flags().Float64Var(&f.minutes, "minutes", 0, "end before so many `minutes` are over; 8 when absent, and 4 for a "+
		"device that is no card")
	cmd.Flags().StringSliceVar(&f.only, "only", nil, "`steps` to run, separated by commas, or failed")
	cmd.Flags().StringVar(&f.out, "out", "", "`folder` for the report; concord-verify-DEVICE when absent")
	cmd.Flags().StringVar(&f.html, "html", "", "also write a page to this `file`")
	cmd.Flags().BoolVar(&f.list, "list", false, "list the steps, and run none")
	cmd.Flags().BoolVar(&f.child, "child", false, "be the process of a step")
	cmd.Flags().StringVar(&f.job, "job", "", "do this `job`, under a profiler")
	_, _ = cmd.Flags().MarkHidden("child"), cmd.Flags().MarkHidden("job") // the flags exist
	return a.RunnableJSON(cmd, func(ctx context.Context, args []string) error {
		switch {
		case f.child || f.job != "":
			return verifyStep(ctx, a, f.job)
		case f.list:
			return listSteps(a)
		}
		return verifyDevice(ctx, a, &f, args[0])
	})
}

// verifyStep is what a process of a step does. A job on the command line is one under a profiler.
func verifyStep(ctx context.Context, a *app.App, job string) error {
	a.Untuned()
	self, err := os.Executable()
	if err != nil {
		return err
	}
	tools := verify.Tools{Self: stepCommand(self), Doctor: func(ctx context.Context, device string, w io.Writer) error {
		return devices.DoctorFor(ctx, a, device, w)
	}}
	status := 0
	if job != "" {
		status = verify.Once(ctx, job, a.Stdout, tools)
	} else {
		status = verify.Child(ctx, os.Stdin, a.Stdout, tools)
	}
	if status != 0 {
		return app.Reported(status)
	}
	return nil
}

// stepCommand is the command line of the process of a step.
func stepCommand(self string) []string { return []string{self, "verify", "--child"} }

// shownStep is a row of verify --list --json.
type shownStep struct {
	Name    string  `json:"name"`
	Title   string  `json:"title"`
	Area    string  `json:"area"`
	Seconds float64 `json:"seconds"` // of a run of 8 minutes
}

func listSteps(a *app.App) error {
	list := []shownStep{}
	t := ui.NewTable("STEP", "SECONDS OF 8 MINUTES", "SHOWS")
	for _, s := range verify.Steps() {
		list = append(list, shownStep{s.Name, s.Title, s.Area, s.Budget.Seconds()})
		t.Add(s.Name, fmt.Sprintf("%.0f", s.Budget.Seconds()), s.Title)
	}
	return a.Show(list, func() { t.Write(a.Stdout, "") })
}

func verifyDevice(ctx context.Context, a *app.App, f *verifyFlags, device string) error {
	if err := app.CheckDevice(device); err != nil {
		return err
	}
	if !(f.minutes >= 0) || f.minutes > 24*60 {
		return app.Usagef("--minutes %v: it is between 0 and 1440", f.minutes)
	}
	a.Untuned()
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find this program: %w", err)
	}
	if f.out == "" {
		f.out = "concord-verify-" + strings.NewReplacer(":", "-", "/", "-").Replace(device)
	}
	line := stepCommand(self)
	for i := range f.only {
		f.only[i] = strings.TrimSpace(f.only[i])
	}
	failed := slices.Equal(f.only, []string{"failed"})
	bar := a.Progress(1000)
	opt := verify.Options{Device: device, Dir: f.out, HTML: f.html, Program: app.Version(), Only: f.only, Failed: failed,
		Limit:   time.Duration(f.minutes * float64(time.Minute)),
		Command: func() *exec.Cmd { return exec.Command(line[0], line[1:]...) },
		Progress: func(p verify.Progress) {
			bar.Doing(fmt.Sprintf("%v of %v  %d/%d %s %s", p.Elapsed.Round(time.Second), p.Limit, p.Number, p.Steps,
				p.Result.Step, ui.OneLine(p.Doing)))
			bar.At(int(1000*p.Elapsed/max(p.Limit, 1)), 1000)
			if p.Ended && !a.JSON {
				writeStep(a, p.Result)
			}
		}}
	if failed {
		opt.Only = nil
	}
	a.Output.End = func() {} // a run goes on without a reader of its lines: it has its report
	report, err := verify.Run(ctx, opt)
	bar.End()
	switch {
	case errors.Is(err, verify.ErrUsage):
		return app.UsageError(err)
	case errors.Is(err, verify.ErrNothing):
		a.Println(err)
		return nil
	case report == nil:
		return err
	}
	if a.JSON {
		err = errors.Join(err, a.Document(report))
	} else {
		writeVerified(a, report, f)
	}
	if err == nil && !report.OK {
		err = app.Reported(app.ExitFailed)
	}
	return err
}

// writeStep prints the line of a step that has ended.
func writeStep(a *app.App, r *verify.Result) {
	a.Printf("%-12s %s  %5.1f s  %s\n", r.Step, paintOutcome(a, r, fmt.Sprintf("%-12s", r.Verdict())),
		r.Seconds, r.Summary())
	for _, e := range r.Endings {
		a.Printf("    %s during %s\n", e.State, ui.OneLine(e.Check))
	}
	const most = 5
	for i, c := range r.Failures {
		if i == most {
			a.Printf("    and %d more, which are in the report\n", r.Failed-most)
			break
		}
		a.Printf("    %s: %s\n", c.Name, ui.OneLine(ui.FirstLine(c.Reason)))
	}
}

func paintOutcome(a *app.App, r *verify.Result, text string) string {
	switch r.Class() {
	case "bad":
		return a.Paint(ui.Red, text)
	case "good":
		return a.Paint(ui.Green, text)
	}
	return text
}

func writeVerified(a *app.App, r *verify.Report, f *verifyFlags) {
	name := r.Device
	if r.About != nil {
		name += " (" + r.About.Info.Name + ")"
	}
	a.Printf("\n%s, %s: %s.\n", name, r.Kind(), r.Headline())
	if r.Note != "" {
		a.Printf("%s\n", r.Note)
	}
	if again := r.Again(f.out); again != "" {
		a.Printf("To go on with what was not shown: %s\n", again)
	}
	files := []string{filepath.Join(f.out, "report.md")}
	if f.html != "" {
		files = append(files, f.html)
	}
	a.Printf("The report: %s\n", strings.Join(files, ", "))
}
