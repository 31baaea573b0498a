//go:build !nopicture

package picture

import (
	"io"
	"path/filepath"
	"strings"

	"gonum.org/v1/plot"
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

// Write draws a plot in the size and the format of a file of this name.
func Write(w io.Writer, p *plot.Plot, name string) error {
	picture, err := p.WriterTo(Size(name))
	if err != nil {
		return err
	}
	_, err = picture.WriteTo(w)
	return err
}
