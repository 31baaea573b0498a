//go:build nopicture

package main

import (
	"io"

	"github.com/concord-compute/concord/nn"
)

func drawHistory(io.Writer, *nn.History, string, string) error { return errNoPictures }
