//go:build nopicture

package main

// The command without pictures, and without the library that draws them and its fonts,
// which take a tenth of the time of a first build: what `make demo` builds.

import (
	"errors"
	"io"

	"github.com/concord-compute/concord/runtime/mempool"
)

func (d *deviceTrace) draw(io.Writer, *traceFlags, []mempool.Options) error {
	return errors.New("this build draws no pictures (it has the tag nopicture)")
}
