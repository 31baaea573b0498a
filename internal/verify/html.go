package verify

// The report as a page.

import (
	"html/template"
	"io"

	"github.com/concord-compute/concord/internal/verify/rates"
)

// area is a part of the page: the steps that show it.
type area struct {
	Name  string
	Steps []*Result
}

// Areas puts the steps together that show the same area, in the order of the plan.
func (r *Report) Areas() (list []area) {
	at := map[string]int{}
	for i := range r.Steps {
		s := &r.Steps[i]
		n, ok := at[s.Area]
		if !ok {
			n, at[s.Area] = len(list), len(list)
			list = append(list, area{Name: s.Area})
		}
		list[n].Steps = append(list[n].Steps, s)
	}
	return list
}

// Class is the style of an outcome.
func (r *Result) Class() string {
	switch {
	case r.bad():
		return "bad"
	case r.State == Done && r.shown():
		return "good"
	}
	return "open"
}

// Class is the style of the headline: good only if everything was shown.
func (r *Report) Class() string {
	switch {
	case !r.OK:
		return "bad"
	case len(r.open()) > 0:
		return "open"
	}
	return "good"
}

// bar is the length of a rate as a part of its limit, in percent.
func bar(r rates.Rate) float64 {
	if !(r.Roof > 0) || !(r.Median > 0) {
		return 0
	}
	x := r.Median / r.Roof
	if lessIsBetter(r) {
		x = r.Roof / r.Median
	}
	return 100 * min(x, 1)
}

var page = template.Must(template.New("page").Funcs(words).Funcs(template.FuncMap{"bar": bar}).Parse(`<!DOCTYPE html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>concord verify {{.Device}}</title>
<style>
:root { color-scheme: light dark; --good: #1a7f37; --bad: #c0312b; --open: #8f6200; --bar: #27c; --grey: #666; }
@media (prefers-color-scheme: dark) { :root { --good: #56d364; --bad: #ff7b72; --open: #e3b341; --bar: #58a6ff; --grey: #aaa; } }
body { font: 15px/1.5 system-ui, sans-serif; max-width: 64rem; margin: 2rem auto; padding: 0 1rem; overflow-wrap: anywhere; }
h1 { margin-bottom: 0; } h2 { margin: 2.2rem 0 .4rem; } h2::first-letter { text-transform: uppercase; } h3 { font-size: 1rem; margin: 1.2rem 0 .3rem; }
.kind { font-size: 1.1rem; color: var(--grey); margin: 0 0 1rem; } .kind.bad { color: var(--bad); font-weight: bold; }
.headline { font-size: 1.15rem; padding: .6rem 1rem; border-left: .4rem solid; background: #8881; }
table { border-collapse: collapse; margin: .6rem 0; width: 100%; }
th, td { text-align: left; padding: .25rem .6rem .25rem 0; border-bottom: 1px solid #8884; vertical-align: top; }
td:first-child { overflow-wrap: normal; }
td.n, th.n { text-align: right; font-variant-numeric: tabular-nums; overflow-wrap: normal; } td.n { white-space: nowrap; }
.steps { table-layout: fixed; } .steps td:nth-child(2) { width: 8rem; } .steps td:nth-child(3) { width: 13rem; } .steps td:nth-child(4) { width: 4rem; }
small { display: block; color: var(--grey); }
.good { color: var(--good); } .bad { color: var(--bad); } .open { color: var(--open); }
pre { white-space: pre-wrap; background: #8882; padding: .6rem; border-radius: .3rem; max-height: 20rem; overflow: auto; }
.wide { overflow-x: auto; overflow-wrap: normal; } .group { color: var(--grey); padding-top: .8rem; }
.bar { background: #8883; width: 7rem; height: .8rem; margin-top: .3rem; border-radius: .2rem; } .bar i { display: block; height: 100%; background: var(--bar); border-radius: .2rem; }
details { margin: .3rem 0; } summary { cursor: pointer; }
@media (max-width: 40rem) {
	.steps tr { display: block; border-bottom: 1px solid #8884; padding: .3rem 0; } .steps td { display: inline; border: 0; } .steps td:first-child { display: block; }
	.wide table { font-size: .85rem; } .bar { width: 3rem; }
}
</style>
<h1>{{.Device}}{{with .About}}: {{.Info.Name}}{{end}}</h1>
<p class="kind{{with .About}}{{if or .Info.Simulated .Info.Fake}} bad{{end}}{{end}}">{{.Kind}}</p>
<p class="headline {{.Class}}">{{.Headline}}.</p>
{{with .Note}}<p>{{.}}</p>
{{end}}<p>Begun {{.Started.UTC.Format "2006-01-02 15:04:05"}} UTC, {{printf "%.0f" .Seconds}} s of {{deadline .Limit}}, concord {{.Program}}.</p>
{{with .About}}<table>
<tr><td>machine<td>{{.System}}, {{.Processor}}, {{.Cores}} cores</tr>
{{with .Info.Arch}}<tr><td>architecture<td>{{.}}</tr>{{end}}
{{with .Info.TotalMemory}}<tr><td>memory<td>{{gib .}}</tr>{{end}}
{{with .Info.DriverVersion}}<tr><td>driver<td>{{.}}</tr>{{end}}
{{range .Libraries}}<tr><td>{{.Name}}<td>{{.Version}}{{with .Path}} ({{.}}){{end}}{{if .Simulated}} <b class="bad">simulated</b>{{end}}</tr>
{{end}}</table>{{end}}
{{range .Areas}}
<h2>{{.Name}}</h2>
<table class="steps">
{{range .Steps}}<tr><td>{{.Title}}{{if .Earlier}} (in an earlier run){{end}}{{if ne .Reason .Summary}}{{with .Reason}}<small>{{.}}</small>{{end}}{{end}}<td><b class="{{.Class}}">{{.Verdict}}</b>
<td>{{.Summary}}<td class="n">{{printf "%.1f" .Seconds}} s</tr>
{{end}}</table>
{{range .Steps}}
{{if or .Endings .Failures}}<h3>{{.Title}}</h3>{{end}}
{{range .Endings}}<p class="bad">{{.State}}{{with .Check}} during {{.}}{{end}}</p>{{with .Words}}<pre>{{.}}</pre>{{end}}{{end}}
{{range .Failures}}<details open><summary class="bad">{{.Name}}</summary><pre>{{limit .Reason 2000}}</pre></details>{{end}}
{{if .Rates}}<div class="wide"><table>
<tr><th>what<th class="n">median<th>of the limit<th><th class="n">beside the peer<th>ran<th></tr>
{{$area := ""}}{{range .Rates}}{{if ne .Area $area}}{{$area = .Area}}<tr><td class="group" colspan="7">{{$area}}</tr>
{{end}}<tr><td>{{.Name}}<td class="n">{{number .Median}} {{.Unit}}<td>{{with bar .}}<div class="bar"><i style="width: {{printf "%.0f" .}}%"></i></div>{{end}}
<td class="n">{{share . .Roof}}<td class="n">{{share . .PeerMedian}}<td>{{.Implementation}}<td>{{notes .}}</tr>
{{end}}</table></div>{{end}}
{{if .Skips}}<details><summary>{{.Title}}: what was skipped, and why</summary><ul>{{range sorted .Skips}}<li>{{.}}{{end}}</ul></details>{{end}}
{{if .Facts}}<details><summary>{{.Title}}: what was read</summary><table>{{range .Facts}}<tr><td>{{.Name}}<td>{{.Value}}</tr>{{end}}</table></details>{{end}}
{{end}}
{{end}}
</html>
`))

func (r *Report) writeHTML(w io.Writer) error { return page.Execute(w, r) }
