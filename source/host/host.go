// Package host has the two parts of the host's prelude that csrc includes, too: abi.h, the layout of a compiled
// program, and host_float.h, mathematical functions of float. They are a package of their own, so that the go command
// compiles the C that includes them again after an edit.
package host

import "embed"

// Files has abi.h and host_float.h.
//
//go:embed *.h
var Files embed.FS
