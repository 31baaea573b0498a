//go:build nopicture

package trace

import (
	"io"

	"github.com/concord-compute/concord/cmd/concord/internal/picture"
	"github.com/concord-compute/concord/runtime/mempool"
)

func (d *deviceTrace) draw(io.Writer, *traceFlags, []mempool.Options) error {
	return picture.ErrNoPictures
}
