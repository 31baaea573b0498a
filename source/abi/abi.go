// Package abi has the text of abi.h, the layout of a compiled program, which the rendered program and the host executor
// share. It is a package of its own, so that the executor is compiled again after an edit of it.
package abi

import _ "embed"

// Text is the contents of abi.h.
//
//go:embed abi.h
var Text string
