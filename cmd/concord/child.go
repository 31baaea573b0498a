package main

// Running in a child process, which can be ended whatever its kernel does.

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"time"

	"github.com/concord-compute/concord/runtime"
)

// childVariable marks the child. It is not one of the CONCORD_ variables, which
// are the user's.
const childVariable = "_CONCORD_RUN_CHILD"

func isChild() bool { return os.Getenv(childVariable) != "" }

// childGrace is how long a child may take to stop by itself. One that runs a
// compiler ends it and removes its files; one in an endless kernel does nothing.
const childGrace = 500 * time.Millisecond

// runInChild repeats the command in a child process and passes on what it says.
func (a *app) runInChild(ctx context.Context, f *runFlags, j *job) error {
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("--timeout: %w", err)
	}
	limited, cancel := context.WithTimeout(ctx, f.timeout)
	defer cancel()
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
	if exit, ok := errors.AsType[*exec.ExitError](err); ok && !exit.Exited() {
		return &runtime.OpError{Device: j.device, Op: "run " + describe(j), Detail: "the process died: " + exit.String(), Err: runtime.ErrLaunch}
	} else if !ok && err != nil {
		return fmt.Errorf("--timeout: %w", err)
	}
	if _, writeErr := a.stdout.Write(stdout.Bytes()); writeErr != nil {
		return writeErr
	}
	a.printed = stdout.Len() > 0
	if err != nil {
		return told{cmd.ProcessState.ExitCode()}
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
