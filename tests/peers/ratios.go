package main

// The picture of README.md: recorded ratios of many suites.

import (
	"encoding/csv"
	"fmt"
	"os"
	"slices"
	"strconv"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/plotutil"
	"gonum.org/v1/plot/vg"
)

// ratio is how many times as fast as a peer the cpu backend was, in the slowest and the fastest run.
type ratio struct {
	name, source string
	least, most  float64
}

// readRatios reads a table with the columns operation, peer, least, most and the file of the measurement.
func readRatios(file string) ([]ratio, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	records, err := csv.NewReader(f).ReadAll()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	var ratios []ratio
	for i, r := range records[min(1, len(records)):] {
		least, errLeast := strconv.ParseFloat(r[2], 64)
		most, errMost := strconv.ParseFloat(r[3], 64)
		if errLeast != nil || errMost != nil || !(0 < least && least <= most) {
			return nil, fmt.Errorf("%s: row %d: %s and %s are not the ends of a range above 0", file, i+1, r[2], r[3])
		}
		ratios = append(ratios, ratio{name: r[0] + " · " + r[1], source: r[4], least: least, most: most})
	}
	if len(ratios) == 0 {
		return nil, fmt.Errorf("%s has no rows", file)
	}
	return ratios, nil
}

// drawRatios writes a picture of the ranges to a file, whose ending says in which format.
func drawRatios(ratios []ratio, file string) error {
	p := plot.New()
	p.X.Label.Text = "times as fast as the peer"
	p.X.Scale, p.X.Tick.Marker = plot.LogScale{}, plot.ConstantTicks{
		{Value: 0.8, Label: "0.8"}, {Value: 1, Label: "1"}, {Value: 1.5, Label: "1.5"},
		{Value: 2, Label: "2"}, {Value: 4, Label: "4"}, {Value: 8, Label: "8"},
	}
	p.X.Min, p.X.Max = 0.8, 8
	p.Add(plotter.NewGrid())
	var names []string
	for i, r := range slices.Backward(ratios) { // the first row is the topmost
		y := float64(len(names))
		names = append(names, ratios[i].name)
		for _, bar := range []struct{ end, width float64 }{{r.least, 8}, {r.most, 1.5}} {
			line, err := plotter.NewLine(plotter.XYs{{X: 1, Y: y}, {X: bar.end, Y: y}})
			if err != nil {
				return err
			}
			line.Width, line.Color = vg.Length(bar.width), plotutil.Color(2)
			if r.least < 1 {
				line.Color = plotutil.Color(0)
			}
			p.Add(line)
		}
	}
	p.NominalY(names...)
	p.Y.Min, p.Y.Max = -0.5, float64(len(names))-0.5
	return p.Save(8*vg.Inch, vg.Length(len(ratios))*0.24*vg.Inch+0.7*vg.Inch, file)
}
