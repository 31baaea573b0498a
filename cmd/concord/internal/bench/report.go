package bench

// concord bench --report: one self-contained page. A roofline per device shows how fast each kernel
// can be for the data that it reads, and how fast it is.

import (
	"fmt"
	"html/template"
	"io"
	"math"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/concord-compute/concord/cmd/concord/internal/app"
	"github.com/concord-compute/concord/runtime/profile"
)

// benched is one device with its results.
type benched struct {
	Label, Name string
	Roof        *profile.Roof // nil where no suite needed it
	Results     []benchResult
}

// reportPage is the data of the template.
type reportPage struct {
	Date, Command, Version string
	Devices                []benched
}

// writeReport writes the page; command is the command line that repeats the measurement.
func writeReport(w io.Writer, devices []benched, command string) error {
	date := time.Now().Format("2006-01-02 15:04 MST")
	return reportTemplate.Execute(w, reportPage{date, command, app.Version(), devices})
}

var reportTemplate = template.Must(template.New("report").Funcs(template.FuncMap{
	"digits3": digits3, "percent": func(n app.Number) string {
		if math.IsNaN(float64(n)) {
			return "-"
		}
		return fmt.Sprintf("%.0f %%", 100*float64(n))
	}}).Parse(`<!DOCTYPE html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>concord bench</title>
<style>
:root { color-scheme: light dark; }
body { font: 15px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }
h2 { margin: 2.5rem 0 .5rem; }
table { border-collapse: collapse; margin: 1rem 0; width: 100%; }
th, td { text-align: right; padding: .25rem .6rem; border-bottom: 1px solid #8884; font-variant-numeric: tabular-nums; }
th:nth-child(-n+2), td:nth-child(-n+2), td.reason { text-align: left; }
code { background: #8882; padding: .1rem .3rem; border-radius: .2rem; }
svg { width: 100%; height: auto; }
svg text { fill: currentColor; font-size: 12px; }
.grid { stroke: #8883; } .roof { stroke: #c33; fill: none; stroke-width: 2; } .axis { stroke: currentColor; }
.point { fill: #27c; } .drop { stroke: #27c; stroke-dasharray: 2 4; opacity: .6; }
</style>
<h1>concord bench</h1>
<p>{{.Date}}, {{.Version}}. To repeat it: <code>{{.Command}}</code></p>
<p>Medians of repeated runs; the spread is from the 10th to the 90th percentile. Limits are
measured on the same device, once, and kept: multiply-adds in registers, and the best of a
copy within the device and of two loops over its memory. A kernel that does <i>f</i> operations on <i>b</i> bytes, each counted once, can
do no more than the smaller of the first and <i>f/b</i> times the second.</p>
{{range .Devices}}
<h2>{{.Label}}: {{.Name}}</h2>
{{with .Roof}}<p>Limits, measured on {{.Measured.Format "2006-01-02 15:04 MST"}}: {{.}}.</p>{{end}}
{{with .Roofline}}{{.}}{{else}}<p>No roofline: a limit could not be measured here, or no kernel was.</p>{{end}}
<table>
<tr><th>suite<th>what<th>median<th>spread<th>unit<th>limit<th>of the limit<th>implementation</tr>
{{range .Results}}<tr><td>{{.Suite}}<td>{{.Name}}{{if .Reason}}<td class="reason" colspan="6">{{.Unit}}: {{.Reason}}{{else -}}
<td>{{digits3 .Median}}<td>{{digits3 .Spread}}<td>{{.Unit}}<td>{{digits3 .Limit}}<td>{{percent .Ratio}}<td>{{.Implementation}}{{end}}</tr>
{{end}}</table>
{{end}}
</html>
`))

// The size of a roofline and its margins.
const (
	roofWidth, roofHeight = 860.0, 460.0
	roofLeft, roofTop     = 60.0, 20.0
	roofRight, roofBottom = 20.0, 50.0
)

// axes map logarithms to a picture.
type axes struct{ x0, x1, y0, y1 float64 }

func (a axes) x(v float64) float64 {
	return roofLeft + (math.Log10(v)-a.x0)/(a.x1-a.x0)*(roofWidth-roofLeft-roofRight)
}

func (a axes) y(v float64) float64 {
	return roofHeight - roofBottom - (math.Log10(v)-a.y0)/(a.y1-a.y0)*(roofHeight-roofTop-roofBottom)
}

// Roofline draws rate over intensity, both logarithmic, or is "" where a limit is not known.
func (d benched) Roofline() template.HTML {
	if d.Roof == nil || d.Roof.GFLOPS <= 0 || d.Roof.MemoryGBs <= 0 {
		return ""
	}
	peak, width := d.Roof.GFLOPS, d.Roof.MemoryGBs
	var kernels []benchResult
	ridge := peak / width
	left, right, low := ridge, ridge, peak
	for _, r := range d.Results {
		if r.flops > 0 && r.bytes > 0 {
			kernels = append(kernels, r)
			left, right, low = min(left, r.flops/r.bytes), max(right, r.flops/r.bytes), min(low, r.gflops())
		}
	}
	if len(kernels) == 0 || math.IsNaN(ridge) || math.IsInf(ridge, 0) || low <= 0 {
		return ""
	}
	a := axes{math.Floor(math.Log10(left)), math.Ceil(math.Log10(right * 1.5)), math.Floor(math.Log10(low)),
		math.Ceil(math.Log10(peak))}
	var s strings.Builder
	fmt.Fprintf(&s, `<svg viewBox="0 0 %g %g" role="img"><title>roofline of %s</title>`, roofWidth, roofHeight,
		template.HTMLEscapeString(d.Label))
	a.grid(&s)
	start := math.Pow(10, a.x0)
	fmt.Fprintf(&s, `<polyline class="roof" points="%.1f,%.1f %.1f,%.1f %.1f,%.1f"/>`,
		a.x(max(start, math.Pow(10, a.y0)/width)), a.y(max(start*width, math.Pow(10, a.y0))),
		a.x(ridge), a.y(peak), a.x(math.Pow(10, a.x1)), a.y(peak))
	fmt.Fprintf(&s, `<text x="%.1f" y="%.1f" text-anchor="end">%.3g GFLOP/s</text>`, roofWidth-roofRight-4, a.y(peak)-6,
		peak)
	fmt.Fprintf(&s, `<text x="%.1f" y="%.1f" text-anchor="end">%.3g GB/s&#160;&#160;</text>`, a.x(math.Sqrt(start*ridge)),
		a.y(math.Sqrt(start*ridge)*width), width)
	var names labels
	for _, r := range kernels {
		a.point(&s, &names, r)
	}
	s.WriteString("</svg>")
	return template.HTML(s.String()) // every name in it is escaped
}

// grid draws the decades and the names of the axes.
func (a axes) grid(s *strings.Builder) {
	bottom, right := roofHeight-roofBottom, roofWidth-roofRight
	for e := a.x0; e <= a.x1; e++ {
		x := a.x(math.Pow(10, e))
		fmt.Fprintf(s,
			`<line class="grid" x1="%.1f" x2="%.1f" y1="%g" y2="%g"/><text x="%.1f" y="%g" text-anchor="middle">%g</text>`, x, x,
			roofTop, bottom, x, bottom+18, math.Pow(10, e))
	}
	for e := a.y0; e <= a.y1; e++ {
		y := a.y(math.Pow(10, e))
		fmt.Fprintf(s,
			`<line class="grid" x1="%g" x2="%g" y1="%.1f" y2="%.1f"/><text x="%g" y="%.1f" text-anchor="end">%g</text>`,
			roofLeft, right, y, y, roofLeft-6, y+4, math.Pow(10, e))
	}
	fmt.Fprintf(s,
		`<line class="axis" x1="%g" x2="%g" y1="%g" y2="%g"/><line class="axis" x1="%g" x2="%g" y1="%g" y2="%g"/>`, roofLeft,
		right, bottom, bottom, roofLeft, roofLeft, roofTop, bottom)
	fmt.Fprintf(s, `<text x="%g" y="%g" text-anchor="end">operations per byte</text><text x="%g" y="%g">GFLOP/s</text>`,
		right, roofHeight-8, roofLeft+6, roofTop-6)
}

// labels are the names in a picture, with the rectangles that they fill.
type labels []label

type label struct{ left, right, y float64 }

// place returns the height nearest to y at which a name overlaps no other.
func (l *labels) place(left, right, y float64) float64 {
	const height = 13
	free := func(y float64) bool {
		return !slices.ContainsFunc(*l, func(o label) bool {
			return left < o.right && o.left < right && math.Abs(y-o.y) < height
		})
	}
	away := 0.0
	for !free(y+away) && !free(y-away) {
		away++
	}
	if !free(y + away) {
		away = -away
	}
	*l = append(*l, label{left, right, y + away})
	return y + away
}

// point draws a kernel and its distance to its roof.
func (a axes) point(s *strings.Builder, names *labels, r benchResult) {
	x, y := a.x(r.flops/r.bytes), a.y(r.gflops())
	text := r.Suite + " " + r.Name
	name := template.HTMLEscapeString(text)
	if roof := r.roof; roof > 0 {
		fmt.Fprintf(s, `<line class="drop" x1="%.1f" x2="%.1f" y1="%.1f" y2="%.1f"/>`, x, x, y, a.y(roof))
	}
	anchor, at, wide := "start", x+8, 6.5*float64(utf8.RuneCountInString(text))
	left := at
	if x > roofWidth*0.7 {
		anchor, at = "end", x-8
		left = at - wide
	}
	fmt.Fprintf(s, `<circle class="point" cx="%.1f" cy="%.1f" r="5"><title>%s: %.3g GFLOP/s</title></circle>`, x, y, name,
		r.gflops())
	fmt.Fprintf(s, `<text x="%.1f" y="%.1f" text-anchor="%s">%s</text>`, at, names.place(left, left+wide, y+4), anchor,
		name)
}
