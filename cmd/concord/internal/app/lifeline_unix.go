//go:build unix

package app

import (
	"os"
	"os/exec"
	"strconv"

	"golang.org/x/sys/unix"
)

// giveLifeline makes end a child's lifeline and returns the value of childVariable. The child has
// it under the same number as this process, so that it replaces no descriptor that both inherited
// from the shell.
func giveLifeline(_ *exec.Cmd, end *os.File) (string, error) {
	fd := end.Fd()
	_, err := unix.FcntlInt(fd, unix.F_SETFD, 0)
	return strconv.Itoa(int(fd)), err
}

// lifeline returns the end that this process was given. Compilers that the process starts do not
// inherit it.
func lifeline() *os.File {
	fd, err := strconv.Atoi(os.Getenv(childVariable))
	if err != nil {
		return nil // reading it fails
	}
	unix.CloseOnExec(fd)
	return os.NewFile(uintptr(fd), "lifeline")
}
