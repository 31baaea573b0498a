package verify

// The report as text.

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"text/template"

	"github.com/concord-compute/concord/internal/verify/rates"
)

var words = template.FuncMap{
	"cell": cell, "indent": indent, "number": number, "share": share, "limit": shorten, "gib": gib, "notes": notes,
	"deadline": func(s float64) string { return fmt.Sprintf("%.4g min", s/60) },
	"sorted": func(m map[string]int) []string {
		var list []string
		for reason, n := range m {
			list = append(list, fmt.Sprintf("%s: %s", plural(n, "check"), reason))
		}
		slices.Sort(list)
		return list
	},
}

// cell makes a text fit a cell of a table.
func cell(text string) string {
	return strings.NewReplacer("\n", " ", "|", "\\|").Replace(shorten(strings.TrimSpace(text), 300))
}

func indent(text string) string {
	return "    " + strings.ReplaceAll(strings.TrimSpace(text), "\n", "\n    ")
}

// number writes three digits, or - for what is not known.
func number(x float64) string {
	if !(x > 0) { // NaN too
		return "-"
	}
	if x >= 1000 {
		return fmt.Sprintf("%.0f", x)
	}
	return fmt.Sprintf("%.3g", x)
}

func gib(bytes int64) string { return fmt.Sprintf("%.1f GiB", float64(bytes)/(1<<30)) }

// lessIsBetter reports whether a rate is a time.
func lessIsBetter(r rates.Rate) bool { return r.Unit == "µs" }

// notes puts together what there is to say of a rate.
func notes(r rates.Rate) string {
	peer := r.PeerNote
	if r.Peer == "" && peer != "" {
		peer = "no peer: " + peer
	}
	list := []string{r.Peer, peer, r.Resources, r.Bound, r.Reason}
	return strings.Join(slices.DeleteFunc(list, func(s string) bool { return s == "" }), "; ")
}

// share is a part of a limit; where less is better the limit is a part of it.
func share(r rates.Rate, of float64) string {
	if !(of > 0) || !(r.Median > 0) {
		return "-"
	}
	x := r.Median / of
	if lessIsBetter(r) {
		x = of / r.Median
	}
	return fmt.Sprintf("%.2f", x)
}

var markdown = template.Must(template.New("report").Funcs(words).Parse(`# concord verify {{.Device}}: {{.Kind}}

{{.Headline}}.
{{with .Note}}
{{.}}
{{end}}
Begun {{.Started.UTC.Format "2006-01-02 15:04:05"}} UTC, {{printf "%.0f" .Seconds}} s of {{deadline .Limit}}, concord {{.Program}}.
{{with .About}}
| | |
|---|---|
| device | {{cell .Info.Name}}, {{.Info.ID}}{{with .Info.Arch}}, {{cell .}}{{end}} |
| kind | {{$.Kind}} |
{{- with .Info.TotalMemory}}
| memory | {{gib .}} |{{end}}
{{- with .Info.DriverVersion}}
| driver | {{cell .}} |
{{- end}}
{{- range .Libraries}}
| {{cell .Name}} | {{cell .Version}}{{with .Path}} ({{cell .}}){{end}}{{if .Simulated}} SIMULATED{{end}} |
{{- end}}
| machine | {{cell .System}}, {{cell .Processor}}, {{.Cores}} cores |
{{end}}
## Steps

| step | shows | outcome | checks | seconds | budget |
|---|---|---|---|---|---|
{{range .Steps}}| {{.Step}} | {{.Title}} | {{.Verdict}}{{if .Earlier}} (earlier){{end}} | {{cell .Summary}} | {{printf "%.1f" .Seconds}} | {{printf "%.0f" .Budget}} |
{{end}}
{{- range .Steps}}{{if or .Failures .Endings .Reason .Skips}}
## {{.Step}}: {{.Verdict}}
{{with .Reason}}
{{.}}
{{end}}
{{- range .Endings}}
* {{.State}}{{with .Check}} during {{.}}{{end}}
{{- with .Words}}; its last words:

{{indent .}}
{{- end}}
{{end}}
{{- range .Failures}}
* FAILED {{.Name}}

{{indent (limit .Reason 2000)}}
{{end}}
{{- with .Skips}}
Skipped:
{{range sorted .}}
* {{.}}
{{- end}}
{{end}}
{{- end}}{{end}}
{{- range .Steps}}{{if .Rates}}
## Rates

The limit is measured on the device, or computed from what was measured; the peer is PyTorch with the same work, in turn. A number beside either is how many times
faster this is: 0.5 is half as fast, 2 twice. Medians; the spread is from the 10th to the 90th percentile, and is large where other work disturbs the measurement.

| area | what | median | spread | unit | limit | of the limit | peer | beside the peer | ran | notes |
|---|---|---|---|---|---|---|---|---|---|---|
{{range .Rates}}| {{.Area}} | {{cell .Name}} | {{number .Median}} | {{number .Spread}} | {{.Unit}} | {{number .Roof}} | {{share . .Roof}} | {{number .PeerMedian}} | {{share . .PeerMedian}} | {{cell .Implementation}} | {{cell (notes .)}} |
{{end}}{{end}}{{end}}
{{- range .Steps}}{{if .Facts}}
## {{.Step}}: what was read

| | |
|---|---|
{{range .Facts}}| {{cell .Name}} | {{cell .Value}} |
{{end}}{{end}}{{end}}`))

func (r *Report) writeMarkdown(w io.Writer) error { return markdown.Execute(w, r) }
