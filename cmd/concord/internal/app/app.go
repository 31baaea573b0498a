package app

// State that all commands share: output, session, flags.

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"runtime/debug"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/concord-compute/concord/cmd/concord/internal/files"
	"github.com/concord-compute/concord/cmd/concord/internal/ui"
	"github.com/concord-compute/concord/runtime"
	"github.com/concord-compute/concord/runtime/driver"
)

// App is one call of the command.
type App struct {
	Output  *ui.Printer // standard output
	Stdout  *ui.Printer // for text and documents: standard output, unless a file claims it
	Stderr  io.Writer
	JSON    bool // --json
	started bool // the command line was understood
	printed bool // the JSON document has been printed
	Session *runtime.Session
}

// New returns a call that prints to these writers. Its session, if it opens one, ends with Close.
func New(stdout, stderr io.Writer) *App {
	p := &ui.Printer{W: stdout}
	return &App{Output: p, Stdout: p, Stderr: stderr}
}

// Runnable gives cmd its work, and returns it. Errors before the work are mistakes of usage.
func (a *App) Runnable(cmd *cobra.Command, work func(ctx context.Context, args []string) error) *cobra.Command {
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		a.started = true
		return work(cmd.Context(), args)
	}
	return cmd
}

// RunnableJSON is Runnable with the flag --json.
func (a *App) RunnableJSON(cmd *cobra.Command, work func(ctx context.Context, args []string) error) *cobra.Command {
	cmd.Flags().BoolVar(&a.JSON, "json", false, "print one JSON document and nothing else")
	return a.Runnable(cmd, work)
}

// Open returns the session of this call. A malformed environment is a mistake of
// usage.
func (a *App) Open(cfg runtime.Config) (*runtime.Session, error) {
	s, err := runtime.New(cfg)
	if err != nil {
		return nil, UsageError(err)
	}
	a.Session = s
	return s, nil
}

// Exactly returns the configuration of commands that name devices one by one: a device that does
// not open is an error and never replaced.
var Exactly = runtime.Config{Fallback: runtime.Require}

// Untuned turns CONCORD_TUNE=first off, in this process and in those that it starts, and says so: what a command
// measures or checks would share the processor with the process that tunes it.
func (a *App) Untuned() {
	if os.Getenv("CONCORD_TUNE") != driver.TuneFirst {
		return
	}
	_ = os.Unsetenv("CONCORD_TUNE") // the name is valid
	fmt.Fprintln(a.Stderr, "concord: CONCORD_TUNE=first is off here, so that nothing is tuned beside what is measured")
}

// Close closes everything that is open. After an interrupt, or when the output is gone, the process
// ends without closing: closing waits for work, and the user may have interrupted that work.
func (a *App) Close(ctx context.Context) error {
	if a.Session == nil || ctx.Err() != nil {
		return nil
	}
	return a.Session.Close()
}

// Show prints the result of a command: its document with --json, and otherwise what text prints.
func (a *App) Show(document any, text func()) error {
	if a.JSON {
		return a.Document(document)
	}
	text()
	return nil
}

// Verdict is Show, and then the failure of the command unless ok.
func (a *App) Verdict(document any, text func(), ok bool) error {
	if err := a.Show(document, text); err != nil || ok {
		return err
	}
	return Reported(ExitFailed)
}

// Printf and Println print text for people. The printer keeps their errors.
func (a *App) Printf(format string, args ...any) { fmt.Fprintf(a.Stdout, format, args...) }

// Println is fmt.Println for Printf's text.
func (a *App) Println(args ...any) { fmt.Fprintln(a.Stdout, args...) }

// Document writes the one JSON document.
func (a *App) Document(v any) error {
	enc := json.NewEncoder(a.Stdout)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(v); err != nil {
		return fmt.Errorf("write JSON: %w", err)
	}
	a.printed = true
	return nil
}

// Number is a float64 that is null in JSON if it is not a finite number.
type Number float64

// MarshalJSON implements json.Marshaler.
func (n Number) MarshalJSON() ([]byte, error) {
	if f := float64(n); math.IsNaN(f) || math.IsInf(f, 0) {
		return []byte("null"), nil
	}
	return json.Marshal(float64(n))
}

// Version describes the build, as far as the go command noted it.
func Version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	v := info.Main.Version
	if v == "" {
		v = "(devel)"
	}
	for _, s := range info.Settings {
		switch {
		case s.Key == "vcs.revision" && !strings.Contains(v, s.Value[:min(len(s.Value), 12)]):
			v += " " + s.Value[:min(len(s.Value), 12)]
		case s.Key == "-tags":
			v += " tags " + s.Value
		case s.Key == "CGO_ENABLED" && s.Value == "0":
			v += " without cgo"
		}
	}
	return v + " " + info.GoVersion
}

// NotHere reports whether err says that a device or a requirement of it is absent, in contrast to
// present and not working.
func NotHere(err error) bool {
	return errors.Is(err, runtime.ErrNoDevice) || errors.Is(err, runtime.ErrUnsupported)
}

// Null is the number of values that are not known: null in a document.
var Null = Number(math.NaN())

// settle returns the exit status of a command that ended with status, and prints an error if the
// output changes that status. Nothing is printed for a pipe whose reader has ended: other programs
// also die of SIGPIPE without a message.
func (a *App) settle(status int) int {
	err := a.Output.Err
	switch {
	case err == nil || status != ExitOK && errors.Is(err, syscall.EPIPE):
		return status
	case errors.Is(err, syscall.EPIPE):
		return ExitPipe
	}
	fmt.Fprintf(a.Stderr, "%s standard output: %v\n", a.paintErr(ui.Red, "concord:"), files.WithoutPath(err))
	if status == ExitOK {
		return ExitFailed
	}
	return status
}

// Paint colours s for standard output, if it is a terminal and NO_COLOR is unset.
func (a *App) Paint(code, s string) string { return ui.Paint(a.Stdout, code, s) }

func (a *App) paintErr(code, s string) string { return ui.Paint(a.Stderr, code, s) }

// Progress starts a bar of that many steps on standard error; 0 when they are not known yet.
func (a *App) Progress(steps int) *ui.Progress { return ui.NewProgress(a.Stderr, steps) }
