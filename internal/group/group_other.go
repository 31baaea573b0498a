//go:build !unix

package group

import (
	"os"
	"os/exec"
)

// Own has no effect here: there are no groups of processes.
func Own(*exec.Cmd) {}

// Kill kills a command that was started.
func Kill(cmd *exec.Cmd) { _ = cmd.Process.Kill() }

// End ends this process.
func End() { os.Exit(1) }
