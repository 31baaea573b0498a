//go:build !nopicture

package training

// The pictures of concord plot and of train --plot.

import (
	"fmt"
	"image/color"
	"io"
	"maps"
	"math"
	"slices"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/plotutil"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"github.com/concord-compute/concord/cmd/concord/internal/picture"
	"github.com/concord-compute/concord/cmd/concord/internal/ui"
	"github.com/concord-compute/concord/nn"
)

// drawHistory draws the losses, and under them the metrics, over the epochs. name says in which format.
func drawHistory(w io.Writer, h *nn.History, title, name string) error {
	wide, high, format := picture.Size(name)
	losses := plot.New()
	losses.Title.Text, losses.Y.Label.Text = ui.Readable(title), "loss"
	if err := addCurves(losses, "loss", 0, h.TrainLoss, h.ValLoss); err != nil {
		return err
	}
	rows := [][]*plot.Plot{{losses}}
	if len(h.TrainMetrics) > 0 {
		metrics := plot.New()
		metrics.Y.Label.Text = "metrics"
		for i, metric := range slices.Sorted(maps.Keys(h.TrainMetrics)) {
			if err := addCurves(metrics, ui.Readable(metric), i+1, h.TrainMetrics[metric], h.ValMetrics[metric]); err != nil {
				return err
			}
		}
		rows = append(rows, []*plot.Plot{metrics})
	}
	rows[len(rows)-1][0].X.Label.Text = "epoch"
	canvas, err := draw.NewFormattedCanvas(wide, vg.Length(len(rows))*high*0.7, format)
	if err != nil {
		return err
	}
	for _, row := range rows {
		p := row[0]
		p.Add(plotter.NewGrid())
		p.Legend.Top = true
		p.Y.Max += 0.3 * (p.Y.Max - p.Y.Min) // room for the legend
	}
	for i, c := range plot.Align(rows, draw.Tiles{Cols: 1, Rows: len(rows), PadX: vg.Points(8), PadY: vg.Points(8),
		PadTop: vg.Points(4), PadRight: vg.Points(8)}, draw.New(canvas)) {
		rows[i][0].Draw(c[0])
	}
	_, err = canvas.WriteTo(w)
	return err
}

// addCurves adds what an epoch of training ended with, and with dashes that of validation. Numbers that are not
// finite are left out.
func addCurves(p *plot.Plot, name string, colour int, train, val []float64) error {
	for _, curve := range []struct {
		name   string
		list   []float64
		dashes []vg.Length
	}{{name + ", training", train, nil}, {name + ", validation", val, []vg.Length{vg.Points(5), vg.Points(3)}}} {
		xys := points(curve.list)
		if len(xys) == 0 {
			continue
		}
		line, dots, err := plotter.NewLinePoints(xys)
		if err != nil {
			return fmt.Errorf("%s: %w", curve.name, err)
		}
		var c color.Color = plotutil.Color(colour)
		line.Color, line.Dashes, line.Width = c, curve.dashes, vg.Points(1.5)
		dots.Color, dots.Shape, dots.Radius = c, draw.CircleGlyph{}, vg.Points(1.5)
		p.Add(line, dots)
		p.Legend.Add(curve.name, line)
	}
	return nil
}

// columns is how many parts of the width of a picture have points of their own.
const columns = 1000

// points returns the finite numbers of a list at 1, 2 and so on. Of a list that is longer than the picture is
// wide it returns the first, the least, the largest and the last of each column. The curve between these covers
// all others.
func points(list []float64) (xys plotter.XYs) {
	width := max(1, (len(list)+columns-1)/columns)
	for first := 0; first < len(list); first += width {
		var kept []int // the finite ones
		low, high := -1, -1
		for i := first; i < min(first+width, len(list)); i++ {
			y := list[i]
			if math.IsNaN(y) || math.IsInf(y, 0) {
				continue
			}
			if low < 0 || y < list[low] {
				low = i
			}
			if high < 0 || y > list[high] {
				high = i
			}
			kept = append(kept, i)
		}
		if len(kept) > 4 {
			kept = []int{kept[0], min(low, high), max(low, high), kept[len(kept)-1]}
		}
		for _, i := range slices.Compact(kept) {
			xys = append(xys, plotter.XY{X: float64(i + 1), Y: list[i]})
		}
	}
	return xys
}
