package app

// Running a command in a child process, which can be ended or crash regardless of its kernel.
//
// A pipe is the child's lifeline: the parent holds the end for writing and never writes. The parent
// closes it to end the child, and the system closes it when the parent ends for any reason. The
// child reads it, and also checks its time limit itself, so that it ends in time even while its
// parent is stopped.

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"time"

	"github.com/concord-compute/concord/runtime"
	"github.com/concord-compute/concord/runtime/driver"
)

// childVariable marks the child, and tells it where its lifeline is. It is not one of the CONCORD_
// variables, which belong to the user.
const childVariable = "_CONCORD_RUN_CHILD"

// IsChild reports whether this process is a child of a call, see App.RunInChild.
func IsChild() bool { return os.Getenv(childVariable) != "" }

// Exit statuses of a child only: wrong usage, which needs its own since a Go program that crashes
// exits with the usual status for it, and the end of its time limit.
const (
	childUsage   = 3
	childTimeout = 4
)

// ChildGrace is how long a child may take to stop its work. A child that runs a compiler ends it
// and removes its files; a child in an endless kernel cannot do anything.
const ChildGrace = 500 * time.Millisecond

// parentGrace is how long a parent waits for its child to end before it kills it. This happens only
// if the child is stopped, or its memory is corrupted.
const parentGrace = 4 * ChildGrace

// withParent returns a context for the work of a child, which is done when ctx is done or the
// parent has ended. The process then ends soon, even if its work does not.
func withParent(ctx context.Context) context.Context {
	ctx, cancel := context.WithCancel(ctx)
	line := lifeline()
	go func() {
		_, _ = io.Copy(io.Discard, line) // nothing is ever written; an error also means the end
		cancel()
	}()
	endAfter(ctx, ExitFailed)
	return ctx
}

// endAfter ends the process ChildGrace after ctx is done, unless stop is called before. It needs
// only one thread for Go: a kernel that never returns blocks another one.
func endAfter(ctx context.Context, status int) (stop func() bool) {
	return context.AfterFunc(ctx, func() {
		time.Sleep(ChildGrace)
		os.Exit(status)
	})
}

// WithLimit does work within a child's time limit.
func WithLimit(ctx context.Context, limit time.Duration, work func(context.Context) error) error {
	if limit <= 0 {
		return work(ctx)
	}
	limited, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	stop := endAfter(limited, childTimeout)
	err := work(limited)
	switch {
	case err == nil || limited.Err() == nil:
		stop()
	case ctx.Err() == nil:
		return Reported(childTimeout)
	}
	return err
}

// RunInChild runs this program with args in a child process and prints its output. There is a deadline if limit is
// positive. Where the child crashed or met the deadline, the error is a runtime.OpError of that device and operation.
func (a *App) RunInChild(ctx context.Context, limit time.Duration, device, op string, args ...string) error {
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find this program: %w", err)
	}
	limited := ctx
	if limit > 0 {
		var cancel context.CancelFunc
		limited, cancel = context.WithTimeout(ctx, limit)
		defer cancel()
	}
	cmd := exec.CommandContext(limited, self, args...)
	var stdout bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, &stdout, a.Stderr
	far, near, err := os.Pipe()
	if err != nil {
		return fmt.Errorf("run in a process of its own: %w", err)
	}
	defer far.Close()
	defer near.Close()
	line, err := giveLifeline(cmd, far)
	if err != nil {
		return fmt.Errorf("run in a process of its own: %w", err)
	}
	cmd.Env = append(os.Environ(), childVariable+"="+line)
	cmd.Cancel = near.Close
	cmd.WaitDelay = parentGrace
	timedOut := &runtime.OpError{Device: device, Op: op, Detail: fmt.Sprintf("ended after %v", limit),
		Err: driver.ErrTimeout}
	err = cmd.Run()
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case limited.Err() != nil && err != nil:
		return timedOut
	}
	status := ExitOK
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		switch status = exit.ExitCode(); status {
		case childUsage:
			status = ExitUsage
		case childTimeout: // its clock went on while this process was stopped
			return timedOut
		case ExitFailed:
		default: // a signal (-1), the crash of a Go program (2), or an exit by a driver
			return &runtime.OpError{Device: device, Op: op,
				Detail: "the kernel crashed the driver and its process: " + exit.String(), Err: runtime.ErrLaunch}
		}
	} else if err != nil {
		return fmt.Errorf("run in a process of its own: %w", err)
	}
	_, _ = a.Output.Write(stdout.Bytes()) // the printer keeps the error
	a.printed = stdout.Len() > 0
	if status != ExitOK {
		return Reported(status)
	}
	return nil
}
