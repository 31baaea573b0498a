//go:build nopicture

package main

import (
	"io"

	"github.com/concord-compute/concord/runtime/mempool"
)

func (d *deviceTrace) draw(io.Writer, *traceFlags, []mempool.Options) error { return errNoPictures }
