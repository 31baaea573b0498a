package profile

// Traces for Perfetto and Chrome.

import (
	"bufio"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strconv"
)

// Trace is a recording: what WriteTrace writes and ReadTrace reads.
type Trace struct {
	Events  []Event
	Dropped int64           // events that are missing
	Roofs   map[string]Roof // of devices, as Event.Device names them; unknown where one is missing
}

// track is a row of a timeline on which no two events overlap: one stream of a device, or events of the
// host. Where events of a stream overlap, such as those of goroutines on the host, there are several.
type track struct {
	device string
	stream int64
	host   bool
	lane   int // among the tracks of the stream
}

// name is what a reader sees.
func (t *track) name() string {
	name := "stream " + strconv.FormatInt(t.stream, 10)
	switch {
	case t.host && t.stream == 0:
		name = "host"
	case t.host:
		name += ", host"
	}
	if t.lane > 0 {
		name += " (" + strconv.Itoa(t.lane+1) + ")"
	}
	return name
}

// placed is a timeline: the order of events by their start, their tracks, and the time of the first.
type placed struct {
	order  []int32
	at     []int32 // the track of each event, as an index of tracks; -1: not drawn, as its times make no sense
	tracks []track
	zero   int64
}

// place lays events out. It takes time n·log n and 8 bytes for each event.
func place(events []Event) placed {
	p := placed{order: make([]int32, 0, len(events)), at: make([]int32, len(events)), zero: math.MaxInt64}
	for i := range events {
		p.at[i] = -1
		if events[i].End >= events[i].Start {
			p.order = append(p.order, int32(i))
			p.zero = min(p.zero, events[i].Start)
		}
	}
	byStart := func(a, b int32) int { // the longer first, so that others lie within it
		return cmp.Or(cmp.Compare(events[a].Start, events[b].Start), -cmp.Compare(events[a].End, events[b].End),
			cmp.Compare(a, b))
	}
	if !slices.IsSortedFunc(p.order, byStart) {
		slices.SortFunc(p.order, byStart)
	}
	type row struct {
		device string
		stream int64
		host   bool
	}
	rows := map[row]*lanes{}
	for _, i := range p.order {
		e := &events[i]
		r := row{e.Device, e.Stream, !e.Kind.OnDevice()}
		l := rows[r]
		if l == nil {
			l = &lanes{}
			rows[r] = l
		}
		j := l.take(e.Start, max(e.End, e.Start+1)) // an event without a length takes room, too
		if j == len(l.tracks) {
			p.tracks = append(p.tracks, track{device: e.Device, stream: e.Stream, host: r.host, lane: j})
			l.tracks = append(l.tracks, int32(len(p.tracks)-1))
		}
		p.at[i] = l.tracks[j]
	}
	if len(p.order) == 0 {
		p.zero = 0
	}
	p.sort()
	return p
}

// lanes are the tracks of one stream.
type lanes struct {
	tracks []int32 // indices of placed.tracks
	ends   []int64 // a binary tree from index 1, whose leaves are the lanes' ends, and other nodes the least below them
}

// take returns the first lane that is free from start on, and takes it until end.
func (l *lanes) take(start, end int64) int {
	if len(l.ends) == 0 || l.ends[1] > start { // twice as many lanes
		n := max(len(l.ends), 1)
		wider := make([]int64, 2*n)
		for i := range wider {
			wider[i] = math.MinInt64
		}
		copy(wider[n:], l.ends[len(l.ends)/2:])
		l.ends = wider
		for i := n - 1; i > 0; i-- {
			l.least(i)
		}
	}
	i := 1
	for i < len(l.ends)/2 {
		if i *= 2; l.ends[i] > start {
			i++
		}
	}
	lane := i - len(l.ends)/2
	l.ends[i] = end
	for i /= 2; i > 0; i /= 2 {
		l.least(i)
	}
	return lane
}

func (l *lanes) least(i int) { l.ends[i] = min(l.ends[2*i], l.ends[2*i+1]) }

// sort puts the tracks into the order of devices, of which the host comes first, and of streams.
func (p *placed) sort() {
	by := make([]int32, len(p.tracks))
	for i := range by {
		by[i] = int32(i)
	}
	slices.SortFunc(by, func(i, j int32) int {
		a, b := &p.tracks[i], &p.tracks[j]
		return cmp.Or(cmp.Compare(a.device, b.device), -cmp.Compare(boolInt(a.host), boolInt(b.host)),
			cmp.Compare(a.stream, b.stream), cmp.Compare(a.lane, b.lane))
	})
	tracks, to := make([]track, len(by)), make([]int32, len(by))
	for n, i := range by {
		tracks[n], to[i] = p.tracks[i], int32(n)
	}
	p.tracks = tracks
	for i, t := range p.at {
		if t >= 0 {
			p.at[i] = to[t]
		}
	}
}

// WriteTrace writes a trace as JSON in the trace-event format, which ui.perfetto.dev and chrome://tracing read. There
// is a process for each device and one for the host, and a thread for each stream. Events are complete ones, with the
// grid, the work, its rates, the time in the queue and the error as arguments. Roofs and the number of dropped events
// are noted beside them. Events whose end lies before their start are left out, and counted as dropped.
//
// It writes as it goes, and needs some bytes for each event besides. Errors are those of w.
func WriteTrace(w io.Writer, t Trace) error {
	events := t.Events
	p := place(events)
	dropped := t.Dropped + int64(len(events)-len(p.order))
	out := bufio.NewWriterSize(w, 1<<16)
	b := make([]byte, 0, 1024)
	b = append(b, `{"displayTimeUnit":"ns","otherData":{"dropped":`...)
	b = strconv.AppendInt(b, dropped, 10)
	b = appendRoofs(b, t.Roofs)
	b = append(b, `},"traceEvents":[`...)
	pids := map[string]int{}
	comma := false
	separate := func() {
		if comma {
			b = append(b, ",\n"...)
		}
		comma = true
	}
	for i := range p.tracks {
		t := &p.tracks[i]
		pid, known := pids[t.device]
		if !known {
			pid = len(pids) + 1
			pids[t.device] = pid
			separate()
			b = fmt.Appendf(b, `{"ph":"M","name":"process_name","pid":%d,"tid":0,"args":{"name":%s}}`, pid,
				appendString(nil, cmp.Or(t.device, "host")))
		}
		separate()
		b = fmt.Appendf(b, `{"ph":"M","name":"thread_name","pid":%d,"tid":%d,"args":{"name":%s,"stream":%d}}`, pid, i+1,
			appendString(nil, t.name()), t.stream)
	}
	for _, i := range p.order {
		e := &events[i]
		separate()
		b = append(b, `{"ph":"X","pid":`...)
		b = strconv.AppendInt(b, int64(pids[e.Device]), 10)
		b = append(b, `,"tid":`...)
		b = strconv.AppendInt(b, int64(p.at[i])+1, 10)
		b = append(b, `,"ts":`...)
		b = appendMicros(b, e.Start-p.zero)
		b = append(b, `,"dur":`...)
		b = appendMicros(b, e.End-e.Start)
		b = append(b, `,"cat":"`...)
		b = append(b, e.Kind.String()...)
		b = append(b, `","name":`...)
		b = appendString(b, cmp.Or(e.Name, e.Kind.String()))
		b = append(b, `,"args":`...)
		b = appendArgs(b, e)
		b = append(b, '}')
		if len(b) > 512 {
			if _, err := out.Write(b); err != nil {
				return err
			}
			b = b[:0]
		}
	}
	b = append(b, "]}\n"...)
	if _, err := out.Write(b); err != nil {
		return err
	}
	return out.Flush()
}

// appendRoofs appends roofs as a member of an object, if there are any.
func appendRoofs(b []byte, roofs map[string]Roof) []byte {
	valid := maps.Clone(roofs)
	maps.DeleteFunc(valid, func(_ string, r Roof) bool {
		_, err := json.Marshal(r)
		return err != nil // a rate that is not a number is as good as none
	})
	if len(valid) == 0 {
		return b
	}
	text, _ := json.Marshal(valid) // each has a form
	return append(append(b, `,"roofs":`...), text...)
}

// appendArgs appends what else is known of an event, as an object.
func appendArgs(b []byte, e *Event) []byte {
	b = append(b, '{')
	start := len(b)
	key := func(name string) {
		if len(b) > start {
			b = append(b, ',')
		}
		b = append(b, '"')
		b = append(b, name...)
		b = append(b, `":`...)
	}
	if e.Items != [3]int{} {
		key("items")
		b = appendSizes(b, e.Items)
	}
	if e.Group != [3]int{} {
		key("group")
		b = appendSizes(b, e.Group)
	}
	if e.hasWork() {
		key("flops")
		b = strconv.AppendFloat(b, e.Flops, 'g', -1, 64)
		key("bytes")
		b = strconv.AppendFloat(b, e.Bytes, 'g', -1, 64)
		if ns := float64(e.End - e.Start); ns > 0 && e.Kind.OnDevice() {
			key("gflops")
			b = strconv.AppendFloat(b, e.Flops/ns, 'g', 4, 64)
			key("gbs")
			b = strconv.AppendFloat(b, e.Bytes/ns, 'g', 4, 64)
		}
	}
	if e.Queued != 0 && e.Start >= e.Queued {
		key("queued_us")
		b = appendMicros(b, e.Start-e.Queued)
	}
	if e.Kind.OnDevice() && !e.DeviceTime {
		key("times")
		b = append(b, `"host"`...)
	}
	if e.Detail != "" {
		key("detail")
		b = appendString(b, e.Detail)
	}
	if e.Err != nil {
		key("error")
		b = appendString(b, e.Err.Error())
	}
	return append(b, '}')
}

// appendSizes appends "1024x1x1" as a string.
func appendSizes(b []byte, n [3]int) []byte {
	b = append(b, '"')
	for i, v := range n {
		if i > 0 {
			b = append(b, 'x')
		}
		b = strconv.AppendInt(b, int64(v), 10)
	}
	return append(b, '"')
}

// appendMicros appends nanoseconds, which are not negative, as microseconds.
func appendMicros(b []byte, ns int64) []byte {
	b = strconv.AppendInt(b, ns/1000, 10)
	if rest := ns % 1000; rest > 0 {
		b = append(b, '.', byte('0'+rest/100), byte('0'+rest/10%10), byte('0'+rest%10))
	}
	return b
}

// appendString appends a string of JSON that may also stand in a script of HTML.
func appendString(b []byte, s string) []byte {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c >= 0x7f || c == '"' || c == '\\' || c == '<' || c == '>' || c == '&' {
			text, _ := json.Marshal(s) // a string always has a form; this one escapes <, > and &
			return append(b, text...)
		}
	}
	b = append(b, '"')
	b = append(b, s...)
	return append(b, '"')
}
