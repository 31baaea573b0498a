//go:build unix

package main

import (
	"os"
	"os/exec"

	"golang.org/x/sys/unix"
)

// lifelineFD is where a child finds its lifeline: the first descriptor of ExtraFiles.
const lifelineFD = 3

// giveLifeline makes end a child's lifeline.
func giveLifeline(cmd *exec.Cmd, end *os.File) { cmd.ExtraFiles = []*os.File{end} }

// lifeline returns the end that this process was given. The compilers that it starts
// do not get it.
func lifeline() *os.File {
	unix.CloseOnExec(lifelineFD)
	return os.NewFile(lifelineFD, "lifeline")
}
