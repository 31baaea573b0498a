//go:build !nopicture

package picture

import (
	"path/filepath"
	"strings"

	"gonum.org/v1/plot/vg"
)

// canDraw says that this build draws pictures.
const canDraw = true

// Size returns the size and the format of a picture in a file of this name. A picture of dots is larger.
func Size(name string) (wide, high vg.Length, format string) {
	if strings.EqualFold(filepath.Ext(name), ".png") {
		return 12 * vg.Inch, 7 * vg.Inch, "png"
	}
	return 9 * vg.Inch, 5 * vg.Inch, "svg"
}
