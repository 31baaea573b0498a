//go:build !unix

package app

import (
	"os"
	"os/exec"
)

// giveLifeline makes end a child's lifeline and returns the value of childVariable. Only
// the standard descriptors are inherited here, so the lifeline replaces standard input.
func giveLifeline(cmd *exec.Cmd, end *os.File) (string, error) {
	cmd.Stdin = end
	return "stdin", nil
}

func lifeline() *os.File { return os.Stdin }
