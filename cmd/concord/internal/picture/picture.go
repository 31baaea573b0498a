// Package picture has what commands that draw into files share: the formats, and whether this build can.
package picture

import (
	"errors"
	"path/filepath"
	"strings"

	"github.com/concord-compute/concord/cmd/concord/internal/app"
)

// ErrNoPictures is what a build with the tag nopicture says.
var ErrNoPictures = errors.New("this build draws no pictures (it has the tag nopicture)")

// Check returns an error if a flag names a file that is no picture, or that this build cannot draw. It
// is called before the work.
func Check(flag, name string) error {
	switch ext := strings.ToLower(filepath.Ext(name)); {
	case name == "":
		return nil
	case ext != ".png" && ext != ".svg":
		return app.Usagef("%s: %s is neither .png nor .svg", flag, name)
	case !canDraw:
		return ErrNoPictures
	}
	return nil
}
