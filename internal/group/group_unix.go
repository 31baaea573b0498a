//go:build unix

package group

import (
	"os"
	"os/exec"
	"syscall"
)

// Own makes a command the first process of a group, so that what it starts can be ended with it.
func Own(cmd *exec.Cmd) {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Setpgid = true
}

// Kill kills a command that was started, and its group. Signals to a process that is gone have no effect.
func Kill(cmd *exec.Cmd) { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }

// End ends this process, and its group if it is the first of one.
func End() {
	if syscall.Getpgrp() == os.Getpid() {
		_ = syscall.Kill(0, syscall.SIGKILL)
	}
	os.Exit(1)
}
