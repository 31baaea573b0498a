// Package app is the frame of the command concord: the call of a command with its flags, output, session and exit
// status, and child processes. Commands are functions of the other packages here; package main lists them.
package app

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/concord-compute/concord/cmd/concord/internal/ui"
	"github.com/concord-compute/concord/runtime"
	"github.com/concord-compute/concord/runtime/driver"
	"github.com/concord-compute/concord/source"
)

// Command makes a command for a call of the program.
type Command func(*App) *cobra.Command

// Main is the program with those commands. It does not return.
func Main(commands ...Command) { os.Exit(Run(os.Args[1:], takeStdout(), os.Stderr, commands...)) }

// The exit statuses.
const (
	ExitOK     = 0
	ExitFailed = 1
	ExitUsage  = 2
	ExitPipe   = 128 + 13 // what shells say of a program that died of SIGPIPE
)

// Run runs the program with those commands for one command line, and returns its exit status.
func Run(args []string, stdout, stderr io.Writer, commands ...Command) int {
	ends := []os.Signal{os.Interrupt, syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) { // nohup starts programs that ignore it
		ends = append(ends, syscall.SIGHUP)
	}
	ctx, stop := signal.NotifyContext(context.Background(), ends...)
	defer stop()
	// The first Ctrl-C cancels; a second one ends a process that does not react.
	defer context.AfterFunc(ctx, stop)()
	if IsChild() {
		ctx = withParent(ctx)
	}
	work, end := context.WithCancel(ctx)
	defer end()
	a := New(stdout, stderr)
	a.Output.End = end
	root := a.Root(commands...)
	root.SetArgs(args)
	err := root.ExecuteContext(work)
	if a.Output.Err != nil && ctx.Err() == nil && errors.Is(err, context.Canceled) {
		err = nil // the error of the output came first
	}
	if err != nil && !a.started {
		a.JSON = slices.Contains(args, "--json") // flags may not have been parsed
		err = usage{err}
	}
	if closeErr := a.Close(work); err == nil {
		err = closeErr
	}
	if ctx.Err() != nil && err != nil {
		if IsChild() {
			return ExitFailed // the parent reports the reason
		}
		err = fmt.Errorf("interrupted: %w", err)
	}
	status := a.settle(a.report(root, args, err))
	if status == ExitUsage && IsChild() {
		return childUsage
	}
	return status
}

// Root returns the command concord with those commands below it, which belong to this call.
func (a *App) Root(commands ...Command) *cobra.Command {
	root := &cobra.Command{
		Use:   "concord",
		Short: "Compile, launch and check compute kernels on every device of this machine",
		Long: `Concord runs kernels written once, in OpenCL C, on CUDA, ROCm, OpenCL, Metal, Vulkan
and the CPU, and checks them against a float64 reference.

A device is named
  auto                       the first real GPU, or else the CPU; CONCORD_DEVICE can name another
  cuda:0 rocm:0 opencl:0     a backend and an index; hip:0 is rocm:0; metal:0 on macOS
  vulkan:0                   a Vulkan device; one that is the CPU is not in the list
  cpu:0                      the CPU
  cpu:reference              the CPU in float64, the reference for the others: the catalog only
  cuda                       a backend alone: its first device
  3                          an index into all devices, in the order of concord devices
  sim-cuda:0 sim-rocm:0      simulated libraries (make sim) in build/sim or CONCORD_SIM_DIR;
                             sim-metal:0 in builds for it (make test-metal)

Exit status: 0 success, 1 the work failed or its output could not be written, 2 wrong
usage, 141 the reader of standard output ended first, as in concord top | head.`,
		Example: `  concord devices
  concord demo
  concord run --device cpu:0 --kernel saxpy --global 1024 \
      --arg f32:2 --arg @x.npy --arg @y.npy --arg u32:1000 --out 2=result.npy saxpy.cl`,
		Version:       Version(),
		SilenceUsage:  true,
		SilenceErrors: true,
		RunE:          NeedsCommand,
	}
	root.SetFlagErrorFunc(flagError)
	root.SetUsageTemplate(usageTemplate(root))
	root.SetOut(a.Stdout)
	root.SetErr(a.Stderr)
	for _, command := range commands {
		root.AddCommand(command(a))
	}
	nameArguments(root)
	decimalFlags(root)
	root.InitDefaultCompletionCmd()
	mendCompletion(root)
	root.InitDefaultHelpCmd()
	help, _, _ := root.Find([]string{"help"}) // it is there now
	help.Example = "  concord help run"
	help.Run, help.RunE = nil, func(_ *cobra.Command, args []string) error {
		cmd, rest, err := root.Find(args)
		if err != nil || len(rest) > 0 {
			return fmt.Errorf("help: there is no command %q", strings.Join(args, " "))
		}
		cmd.InitDefaultHelpFlag() // to be listed, as --help does
		cmd.InitDefaultVersionFlag()
		return cmd.Help()
	}
	return root
}

// nameArguments replaces cobra's errors for a wrong number of arguments, which do not say what the arguments are.
func nameArguments(root *cobra.Command) {
	for _, cmd := range root.Commands() {
		nameArguments(cmd)
		check := cmd.Args
		if check == nil || !strings.Contains(cmd.Use, " ") {
			continue
		}
		cmd.Args = func(cmd *cobra.Command, args []string) error {
			err := check(cmd, args)
			if err == nil || !strings.Contains(err.Error(), "arg(s)") { // what cobra calls their number
				return err
			}
			return fmt.Errorf("it is called as %s %s, and not with %s", cmd.Parent().CommandPath(), cmd.Use,
				ui.Quantity(len(args), "argument"))
		}
	}
}

// mendCompletion adapts cobra's command to the others: wrong usage of it is an error, and it
// has examples.
func mendCompletion(root *cobra.Command) {
	completion, _, _ := root.Find([]string{"completion"}) // it is there now
	completion.Example = "  source <(concord completion bash)"
	completion.Args, completion.RunE = cobra.NoArgs, NeedsCommand
	for _, shell := range completion.Commands() {
		shell.Example = map[string]string{
			"bash":       "  source <(concord completion bash)",
			"zsh":        "  source <(concord completion zsh)",
			"fish":       "  concord completion fish | source",
			"powershell": "  concord completion powershell | Out-String | Invoke-Expression",
		}[shell.Name()]
	}
}

// usageTemplate is cobra's, but for commands that only group others: it takes them for commands
// that run, because RunE is set.
func usageTemplate(root *cobra.Command) string {
	return strings.NewReplacer(
		"{{if .Runnable}}\n  {{.UseLine}}{{end}}{{if .HasAvailableSubCommands}}\n  {{.CommandPath}} [command]{{end}}",
		"\n  {{if .HasAvailableSubCommands}}{{if .ValidArgs}}{{.UseLine}}\n  {{end}}{{.CommandPath}} COMMAND [flags]"+
			"{{else}}{{.UseLine}}{{end}}",
		"{{.CommandPath}} [command] --help", "{{.CommandPath}} COMMAND --help").Replace(root.UsageTemplate())
}

// flagError takes the names of Go's functions out of errors of flags.
func flagError(_ *cobra.Command, err error) error {
	if bad, ok := errors.AsType[*strconv.NumError](err); ok {
		return errors.New(strings.Replace(err.Error(), bad.Error(), bad.Err.Error(), 1))
	}
	return err
}

// NeedsCommand is the error of a command that only groups others.
func NeedsCommand(cmd *cobra.Command, _ []string) error {
	return fmt.Errorf("%s needs a command", cmd.CommandPath())
}

// usage is the error of a command line that was not understood.
type usage struct{ error }

func (u usage) Unwrap() error { return u.error }

// UsageError makes err a mistake in the command line.
func UsageError(err error) error { return usage{err} }

// Usagef makes an error for a mistake that can be seen in the command line alone.
func Usagef(format string, args ...any) error { return usage{fmt.Errorf(format, args...)} }

// Reported is an error that the user has already read; only the exit status, which it is, counts.
type Reported int

// Error implements error.
func (r Reported) Error() string { return fmt.Sprintf("exit status %d", int(r)) }

// failure is the document of a command that failed before it could print another one.
type failure struct {
	Error  string `json:"error"`
	Log    string `json:"log,omitempty"`
	Remedy string `json:"remedy,omitempty"`
}

// report prints err and returns the exit status.
func (a *App) report(root *cobra.Command, args []string, err error) int {
	if err == nil {
		return ExitOK
	}
	if status, ok := errors.AsType[Reported](err); ok {
		return int(status)
	}
	f := failure{Error: err.Error(), Remedy: runtime.Remedy(err)}
	if errors.Is(err, runtime.ErrCompile) {
		f.Remedy = "" // the remedy is to read the log, which is printed
	}
	if build, ok := errors.AsType[*runtime.BuildError](err); ok {
		f.Log = build.Log
	}
	if list, ok := errors.AsType[source.ErrorList](err); ok && f.Error == list.Error() {
		fmt.Fprintln(a.Stderr, f.Error) // file:line:col: as compilers and editors have it
	} else {
		fmt.Fprintf(a.Stderr, "%s %s\n", a.paintErr(ui.Red, "concord:"), f.Error)
	}
	if log := strings.TrimSpace(f.Log); log != "" && !strings.Contains(f.Error, log) {
		fmt.Fprintln(a.Stderr, log)
	}
	if f.Remedy != "" {
		fmt.Fprintf(a.Stderr, "what helps: %s\n", f.Remedy)
	}
	if a.JSON && !a.printed {
		_ = json.NewEncoder(a.Stdout).Encode(f) // settle reports errors of the output
	}
	if _, ok := errors.AsType[usage](err); !ok && !errors.Is(err, driver.ErrUnknownBackend) {
		return ExitFailed
	}
	if cmd, _, findErr := root.Find(args); findErr == nil {
		root = cmd
	}
	fmt.Fprintf(a.Stderr, "see %s --help\n", root.CommandPath())
	return ExitUsage
}
