//go:build nopicture

package tensors

import (
	"io"

	"github.com/concord-compute/concord/cmd/concord/internal/picture"
)

func drawErrors(io.Writer, *errorCounts, string, string) error { return picture.ErrNoPictures }
