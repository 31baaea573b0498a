//go:build unix

package rates

import (
	"os/exec"
	"syscall"
)

// group makes the command, and all that it starts, a group of processes, which ends as a whole when the command's
// context does.
func group(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
}
