package main

// The results as lines of text, tables and JSON.

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// figure is a number that may be unknown.
type figure float64

// MarshalJSON implements json.Marshaler.
func (f figure) MarshalJSON() ([]byte, error) {
	if v := float64(f); math.IsNaN(v) || math.IsInf(v, 0) {
		return []byte("null"), nil
	}
	return json.Marshal(float64(f))
}

func (f figure) String() string {
	switch v := float64(f); {
	case math.IsNaN(v):
		return "-"
	case math.Abs(v) >= 1000:
		return fmt.Sprintf("%.0f", v)
	case math.Abs(v) >= 100:
		return fmt.Sprintf("%.1f", v)
	default:
		return fmt.Sprintf("%.3g", v)
	}
}

// row is one piece of work with the results of Concord and its peers.
type row struct {
	Suite  string   `json:"suite"`
	What   string   `json:"what"`
	Series string   `json:"series,omitempty"` // the rows of one line of a plot
	Size   float64  `json:"size,omitempty"`   // and where on it
	Unit   string   `json:"unit"`             // 10⁹ of work per second
	Work   float64  `json:"work"`
	Ours   result   `json:"ours"`
	Peers  []versus `json:"peers"`
}

// result is the rate of one contender: the median, and the quartiles.
type result struct {
	Name    string `json:"name"`
	Setting string `json:"setting,omitempty"`
	Median  figure `json:"median"`
	Low     figure `json:"low"`
	High    figure `json:"high"`
	Ms      figure `json:"ms"` // of a call
}

// versus is the result of another contender, and our rate divided by its rate: the median of the
// rounds' ratios, and their quartiles.
type versus struct {
	result
	Ratio     figure `json:"ratio"`
	RatioLow  figure `json:"ratio_low"`
	RatioHigh figure `json:"ratio_high"`
	Missing   string `json:"missing,omitempty"`
}

// Units of work per nanosecond.
const (
	gflops = "GFLOP/s"
	gbps   = "GB/s"
)

// subject is Concord's side of a row.
type subject struct {
	what   string
	series string  // rows of one series are joined in the plot; "" for none
	size   float64 // the position of the row in the series
	work   float64 // floating-point operations or bytes of a call
	unit   string
	name   string // name of the implementation
	run    func() error
}

// compare measures ours and the others in turn and adds a row, if the row is wanted. It frees the
// others.
func (b *bench) compare(s subject, others ...contender) error {
	if !b.wanted(s.what) {
		release(others)
		return b.ctx.Err()
	}
	r, err := b.measure(s, b.budget, others...)
	if err == nil {
		b.add(r)
	}
	return err
}

// measure returns the row of ours and the others, measured in turn. It frees the others.
func (b *bench) measure(s subject, budget time.Duration, others ...contender) (r row, err error) {
	defer release(others)
	if err := b.ctx.Err(); err != nil {
		return r, err
	}
	all := append([]contender{inProcess(s.name, "", s.run)}, others...)
	times, err := rounds(budget, all)
	if b.ctx.Err() != nil {
		return r, b.ctx.Err()
	}
	if err != nil {
		return r, fmt.Errorf("%s: %w", s.what, err)
	}
	rate := func(c contender, ns []float64, work float64) result {
		at := func(q float64) figure { return figure(work / quantile(ns, q)) }
		return result{c.name, c.setting, at(0.5), at(0.75), at(0.25), figure(quantile(ns, 0.5) / 1e6)}
	}
	r = row{Suite: b.suite, What: s.what, Series: s.series, Size: s.size, Unit: s.unit, Work: s.work,
		Ours: rate(all[0], times[0], s.work)}
	for i, c := range all[1:] {
		v := versus{Ratio: figure(math.NaN()), RatioLow: figure(math.NaN()), RatioHigh: figure(math.NaN())}
		work := s.work
		if c.work != 0 {
			work = c.work
		}
		v.result = rate(c, times[i+1], work)
		if c.sample == nil {
			v.Missing = c.setting
		} else {
			x := ratios(times[0], times[i+1], s.work/work)
			v.RatioLow, v.Ratio, v.RatioHigh = figure(quantile(x, 0.25)), figure(quantile(x, 0.5)), figure(quantile(x, 0.75))
		}
		r.Peers = append(r.Peers, v)
	}
	return r, nil
}

func release(list []contender) {
	for _, c := range list {
		if c.free != nil {
			c.free()
		}
	}
}

// together combines several rows with the same contenders into one: geometric means of their
// medians, and the quartiles over the rows.
func together(what string, rows []row) row {
	over := func(of func(r *row) figure) (low, mean, high figure) {
		x, sum := make([]float64, len(rows)), 0.0
		for i := range rows {
			x[i] = float64(of(&rows[i]))
			sum += math.Log(x[i])
		}
		return figure(quantile(x, 0.25)), figure(math.Exp(sum / float64(len(x)))), figure(quantile(x, 0.75))
	}
	all := func(first result, of func(r *row) *result) result {
		first.Low, first.Median, first.High = over(func(r *row) figure { return of(r).Median })
		_, first.Ms, _ = over(func(r *row) figure { return of(r).Ms })
		return first
	}
	t := rows[0]
	_, work, _ := over(func(r *row) figure { return figure(r.Work) })
	t.What, t.Work = what, float64(work)
	t.Ours = all(t.Ours, func(r *row) *result { return &r.Ours })
	t.Peers = slices.Clone(t.Peers)
	for i := range t.Peers {
		p := &t.Peers[i]
		p.result = all(p.result, func(r *row) *result { return &r.Peers[i].result })
		p.RatioLow, p.Ratio, p.RatioHigh = over(func(r *row) figure { return r.Peers[i].Ratio })
	}
	return t
}

// add keeps a row and prints it.
func (b *bench) add(r row) {
	b.rows = append(b.rows, r)
	b.say("%-7s %-30s %-7s %7v %s, %8v ms", r.Suite, r.What, r.Ours.Name, r.Ours.Median, r.Unit, r.Ours.Ms)
	for _, p := range r.Peers {
		if p.Missing != "" {
			b.say("%-7s %-30s %s is missing: %s", "", "", p.Name, p.Missing)
			continue
		}
		b.say("%-7s %30s %7v %s, ratio %.3f (%.3f to %.3f) %s", "", p.Name, p.Median, r.Unit, p.Ratio, p.RatioLow,
			p.RatioHigh, p.Setting)
	}
}

// finish writes the tables and pictures, or the document.
func (b *bench) finish(dir, device string, asJSON bool) error {
	doc := struct {
		Device  string `json:"device"`
		Threads int    `json:"threads"`
		Date    string `json:"date"`
		Limits  limits `json:"limits"`
		Rows    []row  `json:"rows"`
	}{device, b.threads, time.Now().Format("2006-01-02"), b.limits, b.rows}
	text, err := json.MarshalIndent(doc, "", "  ")
	if err != nil {
		return err
	}
	if asJSON {
		fmt.Println(string(text))
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	files := map[string][]byte{"peers.json": append(text, '\n'), "peers.md": []byte(b.markdown())}
	for name, data := range files {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o644); err != nil {
			return err
		}
	}
	return b.draw(dir, device)
}

// markdown is a table of the rows.
func (b *bench) markdown() string {
	var s strings.Builder
	fmt.Fprintf(&s, "| what | ours | peer | peer's rate | ratio (quartiles) |\n|---|---|---|---|---|\n")
	for _, r := range b.rows {
		what, ours := r.Suite+" "+r.What, fmt.Sprintf("%v %s (%v to %v)", r.Ours.Median, r.Unit, r.Ours.Low, r.Ours.High)
		for _, p := range r.Peers {
			name := p.Name
			if p.Setting != "" {
				name += ", " + p.Setting
			}
			if p.Missing != "" {
				fmt.Fprintf(&s, "| %s | %s | %s | not here | |\n", what, ours, name)
				what, ours = "", ""
				continue
			}
			fmt.Fprintf(&s, "| %s | %s | %s | %v | **%.2f** (%.2f to %.2f) |\n", what, ours, name, p.Median, p.Ratio, p.RatioLow,
				p.RatioHigh)
			what, ours = "", ""
		}
		if len(r.Peers) == 0 {
			fmt.Fprintf(&s, "| %s | %s | | | |\n", what, ours)
		}
	}
	return s.String()
}
