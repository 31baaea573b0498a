//go:build nopicture

package main

// The command without pictures, and without the library that draws them and its fonts,
// which take a tenth of the time of a first build: what `make demo` builds.

import (
	"io"

	"github.com/concord-compute/concord/nn"
	"github.com/concord-compute/concord/runtime/mempool"
)

const pictures = false

func (d *deviceTrace) draw(io.Writer, *traceFlags, []mempool.Options) error { return errNoPictures }

func drawHistory(io.Writer, *nn.History, string, string) error { return errNoPictures }

func drawErrors(io.Writer, *errorCounts, string, string) error { return errNoPictures }
