package main

// Running in a child process, which can be ended, or die, whatever its kernel does.

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/concord-compute/concord/runtime"
)

// childVariable marks the child. It is not one of the CONCORD_ variables, which
// are the user's.
const childVariable = "_CONCORD_RUN_CHILD"

func isChild() bool { return os.Getenv(childVariable) != "" }

// childUsage is a child's exit status for wrong usage. A Go program that dies exits
// with the usual one.
const childUsage = 3

// onCPU reports whether a device's name is one of the cpu backend, which takes a
// kernel's faults and has no substitute. What "auto" and numbers mean would have to
// be asked of the drivers, so they count as others.
func onCPU(device string) bool {
	backend, _, _ := strings.Cut(strings.ToLower(strings.TrimSpace(device)), ":")
	return backend == "cpu"
}

// childGrace is how long a child may take to stop by itself. One that runs a
// compiler ends it and removes its files; one in an endless kernel does nothing.
const childGrace = 500 * time.Millisecond

// runInChild repeats the command in a child process and passes on what it says.
// There is a deadline if --timeout sets one.
func (a *app) runInChild(ctx context.Context, f *runFlags, j *job) error {
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find this program: %w", err)
	}
	limited := ctx
	if f.timeout > 0 {
		var cancel context.CancelFunc
		limited, cancel = context.WithTimeout(ctx, f.timeout)
		defer cancel()
	}
	cmd := exec.CommandContext(limited, self, f.commandLine(j.file, a.json)...)
	cmd.Env = append(os.Environ(), childVariable+"=1")
	var stdout bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = nil, &stdout, a.stderr
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = childGrace
	err = cmd.Run()
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case limited.Err() != nil && err != nil:
		return &runtime.OpError{Device: j.device, Op: "run " + describe(j), Detail: fmt.Sprintf("ended after %v", f.timeout), Err: runtime.ErrTimeout}
	}
	status := exitOK
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		switch status = exit.ExitCode(); status {
		case childUsage:
			status = exitUsage
		case exitFailed:
		default: // a signal (-1), the end of a Go program (2), or what a driver exits with
			return &runtime.OpError{Device: j.device, Op: "run " + describe(j),
				Detail: "the kernel crashed the driver and its process: " + exit.String(), Err: runtime.ErrLaunch}
		}
	} else if err != nil {
		return fmt.Errorf("run in a process of its own: %w", err)
	}
	if _, writeErr := a.stdout.Write(stdout.Bytes()); writeErr != nil {
		return writeErr
	}
	a.printed = stdout.Len() > 0
	if status != exitOK {
		return told{status}
	}
	return nil
}

// describe names what runs, with its grid.
func describe(j *job) string {
	name := j.kernel
	if name == "" {
		name = j.file
	}
	return fmt.Sprintf("%s over %v", name, j.grid)
}

// commandLine writes the flags again, without the time limit.
func (f *runFlags) commandLine(file string, json bool) []string {
	args := []string{"run", "--device=" + f.device, "--kernel=" + f.kernel, "--global=" + f.global, "--local=" + f.local}
	for flag, values := range map[string][]string{"--arg=": f.args, "--out=": f.outs, "--define=": f.program.defines, "--include=": f.program.includes} {
		for _, v := range values {
			args = append(args, flag+v)
		}
	}
	if json {
		args = append(args, "--json")
	}
	return append(args, "--", file)
}
