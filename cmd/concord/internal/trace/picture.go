//go:build !nopicture

package trace

// concord trace memory --picture: addresses over time.

import (
	"cmp"
	"fmt"
	"image/color"
	"io"
	"math"
	"math/bits"
	"slices"
	"time"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"github.com/concord-compute/concord/cmd/concord/internal/picture"
	"github.com/concord-compute/concord/runtime/mempool"
)

// drawnBoxes is the number of blocks that a picture shows; the largest areas are drawn. Further
// ones would be smaller than a dot, and make the file too large for viewers.
const drawnBoxes = 20_000

// draw draws the arena as it was recorded, or of a replay.
func (d *deviceTrace) draw(w io.Writer, f *traceFlags, settings []mempool.Options) error {
	t, title := d.trace, "recorded"
	if f.arena != title {
		var mode mempool.Mode
		_ = mode.UnmarshalText([]byte(f.arena)) // it is a valid mode: see settings
		o := mempool.Options{Mode: mode}
		if len(settings) > 0 { // they differ only in the mode
			o = settings[0]
			o.Mode = mode
		}
		r := mempool.NewRecorder(4*len(t.Events) + 1)
		if _, err := t.Replay(d.like(o), r); err != nil {
			return err
		}
		t, title = r.Trace(), "replayed, "+mode.String()
	}
	a := t.Arena()
	p := plot.New()
	p.Title.Text = fmt.Sprintf("memory of %s, %s", d.Device, title)
	p.X.Label.Text, p.Y.Label.Text = "time, s", "address, MiB"
	blocks := largest(a.Blocks)
	if left := len(a.Blocks) - len(blocks); left > 0 {
		p.Title.Text += fmt.Sprintf(" (%d small blocks left out)", left)
	}
	p.Add(&boxes{a, a.Slabs, func(mempool.Box) color.Color { return color.Gray{0xDD} }}, &boxes{a, blocks, bySize})
	for _, line := range []struct {
		name  string
		of    func(mempool.Sample) int64
		style draw.LineStyle
	}{
		{"reserved", func(s mempool.Sample) int64 { return s.Reserved },
			draw.LineStyle{Color: color.Black, Width: vg.Points(1), Dashes: []vg.Length{vg.Points(4), vg.Points(2)}}},
		{"live", func(s mempool.Sample) int64 { return s.Live }, draw.LineStyle{Color: color.Black, Width: vg.Points(1)}},
	} {
		xys := make(plotter.XYs, len(a.Samples))
		for i, s := range a.Samples {
			xys[i] = plotter.XY{X: s.At.Seconds(), Y: mebibytes(line.of(s))}
		}
		l, err := plotter.NewLine(xys)
		if err != nil {
			return err
		}
		l.LineStyle, l.StepStyle = line.style, plotter.PostStep
		p.Add(l)
		p.Legend.Add(line.name, l)
	}
	p.Legend.Top, p.Legend.Left = true, true
	p.Y.Max *= 1.15 // room for the legend
	return picture.Write(w, p, f.picture)
}

func mebibytes(n int64) float64 { return float64(n) / (1 << 20) }

// largest returns the blocks that take most of a picture, in the order of time.
func largest(list []mempool.Box) []mempool.Box {
	if len(list) <= drawnBoxes {
		return list
	}
	area := func(b mempool.Box) float64 { return float64(b.Until-b.From) * float64(b.Size) }
	list = slices.Clone(list)
	slices.SortFunc(list, func(x, y mempool.Box) int { return cmp.Compare(area(y), area(x)) })
	list = list[:drawnBoxes]
	slices.SortFunc(list, func(x, y mempool.Box) int { return cmp.Compare(x.From, y.From) })
	return list
}

// bySize gives each power of two a hue of its own, so that the layers of a program are
// told apart.
func bySize(b mempool.Box) color.Color {
	hue := math.Mod(float64(bits.Len64(uint64(b.Size)))*0.38196601, 1) * 6
	part := func(from float64) uint8 {
		x := math.Abs(math.Mod(hue+from, 6) - 3) // a triangle, over the six hues
		return uint8(70 + 160*max(0, min(1, x-1)))
	}
	return color.RGBA{part(0), part(4), part(2), 0xFF}
}

// boxes draws address ranges over the time in which they were there.
type boxes struct {
	arena *mempool.Arena
	list  []mempool.Box
	paint func(mempool.Box) color.Color
}

// Plot implements plot.Plotter.
func (b *boxes) Plot(c draw.Canvas, p *plot.Plot) {
	x, y := p.Transforms(&c)
	const gap = 0.2 // points, so that neighbours are seen as two
	for _, box := range b.list {
		left, right := x(box.From.Seconds()), x(box.Until.Seconds())
		bottom, top := y(mebibytes(box.Address)), y(mebibytes(box.Address+box.Size))
		if right-left > 4*gap {
			right -= gap
		}
		if top-bottom > 4*gap {
			top -= gap
		}
		c.FillPolygon(b.paint(box), []vg.Point{{X: left, Y: bottom}, {X: right, Y: bottom}, {X: right, Y: top},
			{X: left, Y: top}})
	}
}

// DataRange implements plot.DataRanger.
func (b *boxes) DataRange() (xmin, xmax, ymin, ymax float64) {
	return 0, max(b.arena.Until, time.Microsecond).Seconds(), 0, max(mebibytes(b.arena.Height), 0.001)
}
