//go:build nopicture

package training

import (
	"io"

	"github.com/concord-compute/concord/cmd/concord/internal/picture"
	"github.com/concord-compute/concord/nn"
)

func drawHistory(io.Writer, *nn.History, string, string) error { return picture.ErrNoPictures }
