//go:build !unix

package app

import "os"

// takeStdout returns standard output as it is.
func takeStdout() *os.File { return os.Stdout }
