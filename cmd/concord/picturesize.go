//go:build !nopicture

package main

import (
	"path/filepath"
	"strings"

	"gonum.org/v1/plot/vg"
)

// pictures says that this build draws pictures.
const pictures = true

// pictureSize returns the size and the format of a picture in a file of this name. A picture of dots is larger.
func pictureSize(name string) (wide, high vg.Length, format string) {
	if strings.EqualFold(filepath.Ext(name), ".png") {
		return 12 * vg.Inch, 7 * vg.Inch, "png"
	}
	return 9 * vg.Inch, 5 * vg.Inch, "svg"
}
