//go:build !unix

package main

import (
	"os"
	"os/exec"
)

// giveLifeline makes end a child's lifeline. Only the standard descriptors are
// inherited here, so it takes the place of standard input.
func giveLifeline(cmd *exec.Cmd, end *os.File) { cmd.Stdin = end }

func lifeline() *os.File { return os.Stdin }
