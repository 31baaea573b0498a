package main

// State that all commands share: output, session, flags.

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"runtime/debug"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/concord-compute/concord/runtime"
)

// app is one call of the command.
type app struct {
	output  *printer // standard output
	stdout  *printer // for text and documents: standard output, unless a file claims it
	stderr  io.Writer
	json    bool // --json
	started bool // the command line was understood
	printed bool // the JSON document has been printed
	session *runtime.Session
}

func newApp(stdout, stderr io.Writer) *app {
	p := &printer{w: stdout}
	return &app{output: p, stdout: p, stderr: stderr}
}

// do wraps the work of a command: errors before it are mistakes of usage.
func (a *app) do(work func(ctx context.Context, args []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		a.started = true
		return work(cmd.Context(), args)
	}
}

// jsonFlag adds --json.
func (a *app) jsonFlag(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&a.json, "json", false, "print one JSON document and nothing else")
}

// open returns the session of this call. A malformed environment is a mistake of
// usage.
func (a *app) open(cfg runtime.Config) (*runtime.Session, error) {
	s, err := runtime.New(cfg)
	if err != nil {
		return nil, usageError(err)
	}
	a.session = s
	return s, nil
}

// exactly returns the configuration of commands that name devices one by one: a device that does
// not open is an error and never replaced.
var exactly = runtime.Config{Fallback: runtime.Require}

// close closes everything that is open. After an interrupt, or when the output is gone, the process
// ends without closing: closing waits for work, and the user may have interrupted that work.
func (a *app) close(ctx context.Context) error {
	if a.session == nil || ctx.Err() != nil {
		return nil
	}
	return a.session.Close()
}

// print writes the one JSON document.
func (a *app) print(v any) error {
	enc := json.NewEncoder(a.stdout)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(v); err != nil {
		return fmt.Errorf("write JSON: %w", err)
	}
	a.printed = true
	return nil
}

// number is a float64 that is null in JSON if it is not a finite number.
type number float64

// MarshalJSON implements json.Marshaler.
func (n number) MarshalJSON() ([]byte, error) {
	if f := float64(n); math.IsNaN(f) || math.IsInf(f, 0) {
		return []byte("null"), nil
	}
	return json.Marshal(float64(n))
}

// version describes the build, as far as the go command noted it.
func version() string {
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

// notHere reports whether err says that a device or a requirement of it is absent, in contrast to
// present and not working.
func notHere(err error) bool {
	return errors.Is(err, runtime.ErrNoDevice) || errors.Is(err, runtime.ErrUnsupported)
}

// unknown is the number for unknown values.
var unknown = number(math.NaN())

// settle returns the exit status of a command that ended with status, and prints an error if the
// output changes that status. Nothing is printed for a pipe whose reader has ended: other programs
// also die of SIGPIPE without a message.
func (a *app) settle(status int) int {
	err := a.output.err
	switch {
	case err == nil || status != exitOK && errors.Is(err, syscall.EPIPE):
		return status
	case errors.Is(err, syscall.EPIPE):
		return exitPipe
	}
	fmt.Fprintf(a.stderr, "%s standard output: %v\n", a.paintErr(red, "concord:"), withoutPath(err))
	if status == exitOK {
		return exitFailed
	}
	return status
}

// paint colours s for standard output, if it is a terminal and NO_COLOR is unset.
func (a *app) paint(code, s string) string { return paintFor(a.stdout, code, s) }

func (a *app) paintErr(code, s string) string { return paintFor(a.stderr, code, s) }

// progress starts a bar of that many steps on standard error; 0 when they are not known yet.
func (a *app) progress(steps int) *progress { return newProgress(a.stderr, steps) }
