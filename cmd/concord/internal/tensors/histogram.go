//go:build !nopicture

package tensors

// concord quantize --histogram.

import (
	"io"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"

	"github.com/concord-compute/concord/cmd/concord/internal/picture"
)

// drawErrors draws the histogram.
func drawErrors(w io.Writer, c *errorCounts, title, name string) error {
	p := plot.New()
	p.Title.Text = title
	p.X.Label.Text, p.Y.Label.Text = "error, in root mean squares of the tensor", "part of the numbers"
	total := 0
	for _, n := range c {
		total += n
	}
	h := &plotter.Histogram{FillColor: plotter.DefaultLineStyle.Color, Width: 2.0 / float64(len(c)-1)}
	for i, n := range c {
		middle := float64(i)*h.Width - 1
		h.Bins = append(h.Bins, plotter.HistogramBin{Min: middle - h.Width/2, Max: middle + h.Width/2,
			Weight: float64(n) / float64(max(total, 1))})
	}
	p.Add(h)
	return picture.Write(w, p, name)
}
