package main

// Pictures: rates over sizes, for Concord and its peers, with the limits of the machine.

import (
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"slices"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/plotutil"
	"gonum.org/v1/plot/vg"
)

// line is the rates of one contender over the sizes of one series.
type line struct {
	name   string
	points plotter.XYs
}

// lines collects the rows of a suite; the limits of hand-written loops are drawn differently.
func lines(rows []row) (all []line) {
	add := func(name string, x, y float64) {
		if math.IsNaN(y) {
			return
		}
		i := slices.IndexFunc(all, func(l line) bool { return l.name == name })
		if i < 0 {
			i, all = len(all), append(all, line{name: name})
		}
		all[i].points = append(all[i].points, plotter.XY{X: x, Y: y})
	}
	for _, r := range rows {
		add(r.Series+", "+r.Ours.Name, r.Size, float64(r.Ours.Median))
		for _, p := range r.Peers {
			add(r.Series+", "+p.Name, r.Size, float64(p.Median))
		}
	}
	return all
}

// draw writes a picture of each suite that has series, as SVG and PNG.
func (b *bench) draw(dir, device string) error {
	var errs []error
	for _, suite := range suites {
		rows := slices.DeleteFunc(slices.Clone(b.rows), func(r row) bool { return r.Suite != suite.name || r.Series == "" })
		if len(rows) > 0 {
			errs = append(errs, b.drawSuite(filepath.Join(dir, suite.name), device, rows))
		}
	}
	return errors.Join(errs...)
}

func (b *bench) drawSuite(file, device string, rows []row) error {
	p := plot.New()
	p.Title.Text = fmt.Sprintf("%s, %d threads", device, b.threads)
	p.X.Label.Text, p.Y.Label.Text = "size", rows[0].Unit
	p.X.Scale, p.X.Tick.Marker = plot.LogScale{}, sizeTicks(rows)
	p.Y.Min, p.Legend.Top, p.Legend.Left = 0, false, false
	p.Add(plotter.NewGrid())
	for i, l := range lines(rows) {
		curve, points, err := plotter.NewLinePoints(l.points)
		if err != nil {
			return err
		}
		curve.Color, points.Color, points.Shape = plotutil.Color(i), plotutil.Color(i), plotutil.Shape(i)
		curve.Width = vg.Points(1.5)
		p.Add(curve, points)
		p.Legend.Add(l.name, curve, points)
	}
	for _, roof := range b.roofs(rows[0].Unit) {
		flat := plotter.NewFunction(func(float64) float64 { return roof.at })
		flat.Dashes = []vg.Length{vg.Points(4), vg.Points(4)}
		p.Add(flat)
		p.Legend.Add(roof.name, flat)
		p.Y.Max = max(p.Y.Max, 1.05*roof.at)
	}
	for _, ending := range []string{".svg", ".png"} {
		if err := p.Save(9*vg.Inch, 5*vg.Inch, file+ending); err != nil {
			return err
		}
	}
	return nil
}

// roof is a limit.
type roof struct {
	name string
	at   float64
}

func (b *bench) roofs(unit string) []roof {
	list := []roof{{"reading, by hand", float64(b.limits.Read)}, {"copying, by hand", float64(b.limits.Copy)}}
	if unit == gflops {
		list = []roof{{"multiply-adds, by hand (f32)", float64(b.limits.Peak)}}
	}
	return slices.DeleteFunc(list, func(r roof) bool { return math.IsNaN(r.at) })
}

// sizeTicks returns ticks at the sizes of the rows.
func sizeTicks(rows []row) plot.ConstantTicks {
	var ticks plot.ConstantTicks
	for _, r := range rows {
		ticks = append(ticks, plot.Tick{Value: r.Size, Label: fmt.Sprintf("%g", r.Size)})
	}
	return ticks
}
