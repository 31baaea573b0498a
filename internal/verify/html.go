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
:root { color-scheme: light dark; --good: #2a7d3a; --bad: #c0312b; --open: #9a6b00; }
body { font: 15px/1.5 system-ui, sans-serif; max-width: 64rem; margin: 2rem auto; padding: 0 1rem; }
h1 { margin-bottom: 0; } h2 { margin: 2.2rem 0 .4rem; text-transform: capitalize; }
.kind { font-size: 1.1rem; color: #888; margin: 0 0 1rem; }
.headline { font-size: 1.15rem; padding: .6rem 1rem; border-left: .4rem solid var(--good); background: #8881; }
.headline.bad { border-color: var(--bad); } .headline.open { border-color: var(--open); }
table { border-collapse: collapse; margin: .6rem 0; width: 100%; }
th, td { text-align: left; padding: .25rem .6rem; border-bottom: 1px solid #8884; vertical-align: top; }
td.n { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
.good { color: var(--good); } .bad { color: var(--bad); } .open { color: var(--open); } b.good, b.bad, b.open { white-space: nowrap; }
pre { white-space: pre-wrap; background: #8882; padding: .6rem; border-radius: .3rem; max-height: 20rem; overflow: auto; }
.bar { background: #8883; width: 9rem; height: .8rem; border-radius: .2rem; } .bar i { display: block; height: 100%; background: #27c; border-radius: .2rem; }
details { margin: .3rem 0; }
</style>
<h1>{{.Device}}{{with .About}}: {{.Info.Name}}{{end}}</h1>
<p class="kind">{{.Kind}}</p>
<p class="headline {{if .OK}}good{{else}}bad{{end}}">{{.Headline}}.</p>
<p>Begun {{.Started.UTC.Format "2006-01-02 15:04:05"}} UTC, {{printf "%.0f" .Seconds}} s of {{deadline .Limit}}, concord {{.Program}}.</p>
{{with .About}}<table>
<tr><td>machine<td>{{.System}}, {{.Processor}}, {{.Cores}} cores</tr>
{{with .Info.Arch}}<tr><td>architecture<td>{{.}}</tr>{{end}}
{{with .Info.TotalMemory}}<tr><td>memory<td>{{gib .}}</tr>{{end}}
{{with .Info.DriverVersion}}<tr><td>driver<td>{{.}}</tr>{{end}}
{{range .Libraries}}<tr><td>{{.Name}}<td>{{.Version}}{{with .Path}} ({{.}}){{end}}{{if .Simulated}} <b class="bad">simulated</b>{{end}}</tr>
{{end}}</table>{{end}}
{{range .Areas}}
<h2>{{.Name}}</h2>
<table>
{{range .Steps}}<tr><td>{{.Title}}{{if .Earlier}} (in an earlier run){{end}}<td><b class="{{.Class}}">{{.Verdict}}</b><td>{{.Summary}}<td class="n">{{printf "%.1f" .Seconds}} s</tr>
{{end}}</table>
{{range .Steps}}
{{with .Reason}}<p>{{.}}</p>{{end}}
{{range .Endings}}<p class="bad">{{.State}}{{with .Check}} during {{.}}{{end}}</p>{{with .Words}}<pre>{{.}}</pre>{{end}}{{end}}
{{range .Failures}}<details open><summary class="bad">{{.Name}}</summary><pre>{{limit .Reason 2000}}</pre></details>{{end}}
{{with .Skips}}<details><summary>what was skipped, and why</summary><ul>{{range sorted .}}<li>{{.}}{{end}}</ul></details>{{end}}
{{if .Rates}}<table>
<tr><th>what<th>median<th>of the limit<th><th>beside the peer<th>ran<th></tr>
{{range .Rates}}<tr><td>{{.Name}}<td class="n">{{number .Median}} {{.Unit}}<td><div class="bar"><i style="width: {{printf "%.0f" (bar .)}}%"></i></div><td class="n">{{share . .Roof}}<td class="n">{{share . .PeerMedian}}<td>{{.Implementation}}<td>{{notes .}}</tr>
{{end}}</table>{{end}}
{{if .Facts}}<details><summary>what was read</summary><table>{{range .Facts}}<tr><td>{{.Name}}<td>{{.Value}}</tr>{{end}}</table></details>{{end}}
{{end}}
{{end}}
</html>
`))

func (r *Report) writeHTML(w io.Writer) error { return page.Execute(w, r) }
