package profile

// What took the time.

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"
	"unicode"
)

// Rate is a rate or a share that may be unknown, which is NaN: null in JSON, and a question mark in
// text.
type Rate float64

// Unknown is the rate that is not known.
var Unknown = Rate(math.NaN())

// Known reports whether the rate is known.
func (r Rate) Known() bool { return !math.IsNaN(float64(r)) && !math.IsInf(float64(r), 0) }

// MarshalJSON implements json.Marshaler.
func (r Rate) MarshalJSON() ([]byte, error) {
	if !r.Known() {
		return []byte("null"), nil
	}
	return strconv.AppendFloat(nil, float64(r), 'g', -1, 64), nil
}

// text returns the rate times a factor in three digits.
func (r Rate) text(factor float64) string {
	if !r.Known() {
		return "?"
	}
	return fmt.Sprintf("%.3g", factor*float64(r))
}

// Summary is what events amount to.
type Summary struct {
	Devices []DeviceSummary `json:"devices"` // by name
	Lines   []Line          `json:"lines"`   // device work first, then the longest total first
	Dropped int64           `json:"dropped"` // events that are missing
	Advice  []string        `json:"advice"`  // sentences on what takes much of the time and can be changed
}

// DeviceSummary is the work of one device. Wall is from the first start to the last end, Busy the part of
// it in which at least one of its streams had work.
type DeviceSummary struct {
	Device    string        `json:"device"`
	Wall      time.Duration `json:"wall_ns"`
	Busy      time.Duration `json:"busy_ns"`
	Idle      time.Duration `json:"idle_ns"`
	HostTimes bool          `json:"host_times"` // some times are not the device's own
}

// Line is all events of one kind, name and device. Rates and shares are of the events whose work is
// known; without any they are unknown. Failed events count, but their times do not. The time of a graph's nodes
// is part of the graph's.
type Line struct {
	Kind   string `json:"kind"`
	Name   string `json:"name"`
	Device string `json:"device"`
	Count  int    `json:"count"`
	Failed int    `json:"failed"`

	Total time.Duration `json:"total_ns"`
	P50   time.Duration `json:"p50_ns"`
	P90   time.Duration `json:"p90_ns"`
	P99   time.Duration `json:"p99_ns"`
	Share Rate          `json:"share"` // of the total of all device work on the device; unknown for the host's

	GBs    Rate  `json:"gbs"`
	GFLOPS Rate  `json:"gflops"`
	Bound  Bound `json:"bound"`         // what most of the least time is bound by
	OfRoof Rate  `json:"share_of_roof"` // the least time under the device's roof, of the time that it took

	durations []time.Duration
}

// sums are what a line's rates come from.
type sums struct {
	flops, bytes, ns             float64 // of events whose work is known
	least, leastMemory, roofedNs float64 // of events whose least time is known
}

// Summarize sums up a trace. Where the roof of a device is missing, bounds and shares of it are unknown.
func Summarize(t Trace) Summary {
	events := t.Events
	type key struct {
		kind         Kind
		name, device string
	}
	lines, work := map[key]*Line{}, map[key]*sums{}
	totals := map[string]time.Duration{}
	spans := map[string][]span{}
	host := map[string]bool{}
	for i := range events {
		e := &events[i]
		k := key{e.Kind, e.Name, e.Device}
		l, s := lines[k], work[k]
		if l == nil {
			l, s = &Line{Kind: e.Kind.String(), Name: e.Name, Device: e.Device}, &sums{}
			lines[k], work[k] = l, s
		}
		l.Count++
		d := e.Duration()
		if e.Kind.OnDevice() && e.End > e.Start {
			spans[e.Device] = append(spans[e.Device], span{e.Start, e.End})
			host[e.Device] = host[e.Device] || !e.DeviceTime
		}
		if e.Err != nil {
			l.Failed++
			continue
		}
		l.durations = append(l.durations, d)
		l.Total += d
		if e.Kind.OnDevice() && e.Kind != Node {
			totals[e.Device] += d
		}
		if !e.Kind.OnDevice() || !e.hasWork() || d == 0 { // the bytes of an allocation are no rate
			continue
		}
		s.flops, s.bytes, s.ns = s.flops+e.Flops, s.bytes+e.Bytes, s.ns+float64(d)
		switch least, bound := t.Roofs[e.Device].limit(e.Flops, e.Bytes); bound {
		case MemoryBound:
			s.leastMemory += least
			fallthrough
		case ComputeBound:
			s.least, s.roofedNs = s.least+least, s.roofedNs+float64(d)
		}
	}
	out := Summary{Devices: []DeviceSummary{}, Lines: []Line{}, Dropped: t.Dropped}
	for k, l := range lines {
		l.finish(work[k])
		l.Share = Unknown
		if total := totals[k.device]; k.kind.OnDevice() && total > 0 {
			l.Share = Rate(float64(l.Total) / float64(total))
		}
		out.Lines = append(out.Lines, *l)
	}
	slices.SortFunc(out.Lines, func(a, b Line) int {
		return cmp.Or(-cmp.Compare(boolInt(a.Share.Known()), boolInt(b.Share.Known())), -cmp.Compare(a.Total, b.Total),
			cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Name, b.Name), cmp.Compare(a.Device, b.Device))
	})
	for device, list := range spans {
		d := occupiedTime(list)
		d.Device, d.HostTimes = device, host[device]
		out.Devices = append(out.Devices, d)
	}
	slices.SortFunc(out.Devices, func(a, b DeviceSummary) int { return cmp.Compare(a.Device, b.Device) })
	out.Advice = append([]string{}, out.advise()...)
	return out
}

func boolInt(b bool) int {
	if b {
		return 1
	}
	return 0
}

// finish computes percentiles and rates.
func (l *Line) finish(s *sums) {
	if n := len(l.durations); n > 0 {
		slices.Sort(l.durations)
		at := func(percent int) time.Duration { return l.durations[(n*percent+99)/100-1] } // the nearest rank
		l.P50, l.P90, l.P99 = at(50), at(90), at(99)
	}
	l.durations = nil
	l.GBs, l.GFLOPS, l.OfRoof = Unknown, Unknown, Unknown
	if s.ns > 0 {
		l.GBs, l.GFLOPS = Rate(s.bytes/s.ns), Rate(s.flops/s.ns)
	}
	if s.roofedNs > 0 {
		l.OfRoof = Rate(s.least / s.roofedNs)
		l.Bound = ComputeBound
		if s.leastMemory > s.least/2 {
			l.Bound = MemoryBound
		}
	}
}

type span struct{ start, end int64 }

// occupiedTime returns the length of a union of spans, and from its first start to its last end.
func occupiedTime(list []span) (d DeviceSummary) {
	slices.SortFunc(list, func(a, b span) int { return cmp.Compare(a.start, b.start) })
	end := list[0].start
	for _, s := range list {
		if s.end > end {
			d.Busy += time.Duration(s.end - max(s.start, end))
			end = s.end
		}
	}
	d.Wall = time.Duration(end - list[0].start)
	d.Idle = d.Wall - d.Busy
	return d
}

// String returns the summary as a table of text, a question mark for what is unknown, and the advice.
func (s Summary) String() string {
	var b strings.Builder
	for _, d := range s.Devices {
		fmt.Fprintf(&b, "%s: busy %v of %v (%.3g %%)", printable(d.Device), digits(d.Busy), digits(d.Wall),
			100*float64(d.Busy)/float64(max(d.Wall, 1)))
		if d.HostTimes {
			b.WriteString(", times of the host")
		}
		b.WriteByte('\n')
	}
	if s.Dropped > 0 {
		fmt.Fprintf(&b, "%d older events were dropped\n", s.Dropped)
	}
	table := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "KIND\tNAME\tDEVICE\tCOUNT\tFAILED\tTOTAL\tSHARE %\tP50\tP90\tP99\tGB/s\tGFLOP/s\tBOUND\tROOF %")
	for _, l := range s.Lines {
		fmt.Fprintf(table, "%s\t%s\t%s\t%d\t%d\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", printable(l.Kind),
			printable(l.Name), printable(l.Device), l.Count, l.Failed, digits(l.Total), l.Share.text(100), digits(l.P50),
			digits(l.P90), digits(l.P99), l.GBs.text(1), l.GFLOPS.text(1), cmp.Or(string(l.Bound), "?"), l.OfRoof.text(100))
	}
	table.Flush()
	for _, words := range s.Advice {
		b.WriteString(printable(words) + "\n")
	}
	return b.String()
}

// digits returns a duration in four digits.
func digits(d time.Duration) string {
	unit := time.Duration(1)
	for d/unit >= 10_000 {
		unit *= 10
	}
	return d.Round(unit).String()
}

// printable replaces what is not a visible character. Names come from programs and files, and must not move
// a terminal's cursor.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return unicode.ReplacementChar
		}
		return r
	}, s)
}
