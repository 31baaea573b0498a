//go:build unix

package main

import (
	"os"
	"os/exec"
	"strconv"

	"golang.org/x/sys/unix"
)

// giveLifeline makes end a child's lifeline and returns what childVariable is to be. The
// child has it under the number that it has here, so that it takes the place of no
// descriptor that both have from the shell.
func giveLifeline(_ *exec.Cmd, end *os.File) (string, error) {
	fd := end.Fd()
	_, err := unix.FcntlInt(fd, unix.F_SETFD, 0)
	return strconv.Itoa(int(fd)), err
}

// lifeline returns the end that this process was given. The compilers that it starts
// do not get it.
func lifeline() *os.File {
	fd, err := strconv.Atoi(os.Getenv(childVariable))
	if err != nil {
		return nil // reading it fails
	}
	unix.CloseOnExec(fd)
	return os.NewFile(uintptr(fd), "lifeline")
}
