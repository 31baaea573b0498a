package profile

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	goruntime "runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// some are events of every kind, with what could break a format: names with markup and invalid UTF-8,
// overlapping events, events without length, times that make no sense.
func some() []Event {
	list := []Event{
		{Kind: Launch, Name: "saxpy", Device: "cuda:0", Stream: 1, Queued: 900, Start: 1000, End: 5000, DeviceTime: true,
			Items: [3]int{1024, 1, 1},
			Group: [3]int{256, 1, 1}, Flops: 2048, Bytes: 12288},
		{Kind: Launch, Name: "saxpy", Device: "cuda:0", Stream: 2, Start: 3000, End: 9000, DeviceTime: true, Flops: 2048,
			Bytes: 12288},
		{Kind: Launch, Name: "</script><b>\"'\\\x00\xff\u2028", Device: "cuda:0", Stream: 1, Start: 5000, End: 6000,
			DeviceTime: true},
		{Kind: Copy, Name: "host to device", Device: "opencl:0", Stream: 1, Start: 100, End: 2100, Bytes: 8000},
		{Kind: Fill, Name: "", Device: "opencl:0", Stream: 1, Start: 2100, End: 2100, Bytes: 5},
		{Kind: Launch, Name: "broken", Device: "opencl:0", Stream: 1, Start: 2200, End: 2300,
			Err: errors.New("out of <bounds>")},
		{Kind: Compile, Name: "saxpy.cl", Device: "cuda:0", Start: 0, End: 800, Detail: "disk"},
		{Kind: Compile, Name: "other.cl", Device: "cuda:0", Start: 500, End: 1500, Detail: "compiled & kept"},
		{Kind: Region, Name: "step", Start: 0, End: 9000},
		{Kind: Wait, Name: "sync", Device: "cuda:0", Stream: 1, Start: 4000, End: 9000},
		{Kind: Alloc, Name: "buffer", Device: "cuda:0", Start: 700, End: 750, Bytes: 1 << 20},
		{Kind: Graph, Name: "graph", Device: "cuda:0", Stream: 2, Start: 9000, End: 9500, DeviceTime: true, Flops: math.NaN(),
			Bytes: 5},
		{Kind: Launch, Name: "backwards", Device: "cuda:0", Stream: 1, Start: 7000, End: 6000},
		{Kind: 200, Name: "unknown kind", Start: 1, End: 2},
	}
	return list
}

// traceEvent is what the trace-event format says of the two kinds of events that are written: "Trace
// Event Format", Google, sections "Complete Events" and "Metadata Events".
type traceEvent struct {
	Ph   string         `json:"ph"`
	Name string         `json:"name"`
	Cat  string         `json:"cat"`
	Pid  int            `json:"pid"`
	Tid  int            `json:"tid"`
	Ts   *float64       `json:"ts"`
	Dur  *float64       `json:"dur"`
	Args map[string]any `json:"args"`
}

// validate checks a text against the format, and returns the complete events.
func validate(t *testing.T, text []byte) (list []traceEvent, dropped int64) {
	t.Helper()
	var doc struct {
		DisplayTimeUnit string `json:"displayTimeUnit"`
		OtherData       struct {
			Dropped int64
			Roofs   map[string]Roof
		} `json:"otherData"`
		TraceEvents []traceEvent `json:"traceEvents"`
	}
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.DisallowUnknownFields()
	require.NoError(t, dec.Decode(&doc))
	assert.Contains(t, []string{"ms", "ns"}, doc.DisplayTimeUnit)
	processes, threads := map[int]bool{}, map[[2]int]bool{}
	for _, e := range doc.TraceEvents {
		switch e.Ph {
		case "M":
			require.Contains(t, []string{"process_name", "thread_name"}, e.Name)
			require.NotEmpty(t, e.Args["name"])
			require.Nil(t, e.Ts)
			if e.Name == "process_name" {
				processes[e.Pid] = true
			} else {
				threads[[2]int{e.Pid, e.Tid}] = true
			}
		case "X":
			require.NotEmpty(t, e.Name)
			require.NotEmpty(t, e.Cat)
			require.NotNil(t, e.Ts)
			require.NotNil(t, e.Dur)
			require.GreaterOrEqual(t, *e.Ts, 0.0)
			require.GreaterOrEqual(t, *e.Dur, 0.0)
			require.True(t, processes[e.Pid] && threads[[2]int{e.Pid, e.Tid}], "named before: %+v", e)
			list = append(list, e)
		default:
			require.Fail(t, "phase "+e.Ph)
		}
	}
	// Complete events of a thread may not overlap in part; here they do not overlap at all.
	last := map[int]float64{}
	for _, e := range list {
		require.GreaterOrEqual(t, *e.Ts+1e-9, last[e.Tid], "%+v", e)
		last[e.Tid] = *e.Ts + *e.Dur
	}
	return list, doc.OtherData.Dropped
}

func TestWriteTrace(t *testing.T) {
	var b bytes.Buffer
	require.NoError(t, WriteTrace(&b, Trace{Events: some(), Dropped: 3, Roofs: map[string]Roof{"cuda:0": {MemoryGBs: 1}}}))
	list, dropped := validate(t, b.Bytes())
	assert.Len(t, list, len(some())-1)
	assert.EqualValues(t, 4, dropped, "three, and one that ends before it starts")
	find := func(name string) traceEvent {
		i := slices.IndexFunc(list, func(e traceEvent) bool { return e.Name == name })
		require.GreaterOrEqual(t, i, 0, name)
		return list[i]
	}
	saxpy := find("saxpy")
	assert.Equal(t, "launch", saxpy.Cat)
	assert.InDelta(t, 1, *saxpy.Ts, 1e-9)
	assert.InDelta(t, 4, *saxpy.Dur, 1e-9)
	assert.Equal(t, map[string]any{"items": "1024x1x1", "group": "256x1x1", "flops": 2048.0, "bytes": 12288.0,
		"gflops": 0.512, "gbs": 3.072, "queued_us": 0.1}, saxpy.Args)
	assert.Equal(t, map[string]any{"times": "host", "error": "out of <bounds>"}, find("broken").Args)
	assert.Empty(t, find("graph").Args, "its work is not a number, so it is unknown")
	assert.NotEqual(t, find("saxpy.cl").Tid, find("other.cl").Tid, "they overlap")
	find("fill")
	b.Reset()
	require.NoError(t, WriteTrace(&b, Trace{}))
	list, _ = validate(t, b.Bytes())
	assert.Empty(t, list)
	for _, at := range []int{0, 100, 70000} {
		assert.ErrorIs(t, WriteTrace(&full{at}, Trace{Events: slices.Repeat(some(), 1000)}), errFull)
		assert.ErrorIs(t, WriteHTML(&full{at}, "", slices.Repeat(some(), 1000), Summary{}), errFull)
	}
}

var errFull = errors.New("full")

// full is a writer that fails after some bytes.
type full struct{ left int }

func (f *full) Write(b []byte) (int, error) {
	if f.left -= len(b); f.left < 0 {
		return 0, errFull
	}
	return len(b), nil
}

// Random events, many of which overlap, are valid traces, too.
func TestWriteTraceRandom(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 5))
	for range 30 {
		list := make([]Event, r.IntN(200))
		for i := range list {
			start := r.Int64N(1000) - 500
			list[i] = Event{Kind: Kind(r.IntN(int(kinds))), Name: string([]byte{byte(r.IntN(256)), byte(r.IntN(256))}),
				Device: []string{"", "a", "b"}[r.IntN(3)],
				Stream: r.Int64N(3), Start: start, End: start + r.Int64N(100)*r.Int64N(2), Flops: float64(r.IntN(2)),
				Queued: r.Int64N(50), Detail: strings.Repeat("x", r.IntN(3000))}
		}
		var b bytes.Buffer
		require.NoError(t, WriteTrace(&b, Trace{Events: list}))
		got, _ := validate(t, b.Bytes())
		assert.Len(t, got, len(list))
	}
}

// Many that overlap do not take the square of their number.
func TestPlaceOverlaps(t *testing.T) {
	list := make([]Event, 300_000)
	for i := range list {
		list[i] = Event{Kind: Region, Start: int64(i), End: 1e6 - int64(i)}
	}
	list = append(list, Event{Kind: Region, Start: 1e6 - 2, End: 1e6})
	p := place(list)
	assert.Len(t, p.tracks, len(list)-1)
	assert.Equal(t, 2, p.tracks[p.at[len(list)-1]].lane, "the first that is free")
}

func million() []Event {
	list := make([]Event, 1e6)
	for i := range list {
		s := int64(i % 4)
		list[i] = Event{Kind: Launch, Name: "kernel", Device: "cuda:0", Stream: s, Queued: int64(i) * 100,
			Start: int64(i) * 100, End: int64(i)*100 + 350,
			DeviceTime: true, Items: [3]int{1 << 20, 1, 1}, Group: [3]int{256, 1, 1}, Flops: 1e6, Bytes: 4e6}
	}
	return list
}

// A million events are written in little memory. The time is reported by BenchmarkWriteTrace.
func TestWriteTraceMemory(t *testing.T) {
	list := million()
	goruntime.GC()
	var before, after goruntime.MemStats
	goruntime.ReadMemStats(&before)
	require.NoError(t, WriteTrace(io.Discard, Trace{Events: list}))
	goruntime.ReadMemStats(&after)
	assert.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(16<<20))
}

func BenchmarkWriteTrace(b *testing.B) {
	list := million()
	for b.Loop() {
		if err := WriteTrace(io.Discard, Trace{Events: list}); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(b.Elapsed().Seconds()/float64(b.N), "s/million")
}

func TestRecording(t *testing.T) {
	var r Recording
	events, dropped := r.Events()
	assert.Empty(t, events)
	assert.Zero(t, dropped)
	for _, most := range []int{10, 1, perBlock, 2*perBlock + 7} {
		r.Reset()
		r.Most = most
		for _, n := range []int{1, most, most + 1, 4*most + 3} {
			r.Reset()
			for i := range n {
				r.Observe(Event{Start: int64(i)})
			}
			events, dropped = r.Events()
			require.Len(t, events, min(n, most))
			assert.EqualValues(t, max(n-most, 0), dropped)
			for i, e := range events {
				require.EqualValues(t, max(n-most, 0)+i, e.Start, "the newest, in order")
			}
		}
	}
	r.Reset()
	r.Most = 10
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 1000 {
				r.Observe(Event{})
				if _, n := r.Events(); n < 0 {
					panic("negative")
				}
			}
		})
	}
	wg.Wait()
	events, dropped = r.Events()
	assert.Len(t, events, 10)
	assert.EqualValues(t, 8000-10, dropped)
}

func TestSummarize(t *testing.T) {
	roofs := map[string]Roof{"cuda:0": {MemoryGBs: 12, GFLOPS: 1000}}
	s := Summarize(Trace{Events: some(), Dropped: 7, Roofs: roofs})
	assert.EqualValues(t, 7, s.Dropped)
	line := func(name string) Line {
		i := slices.IndexFunc(s.Lines, func(l Line) bool { return l.Name == name })
		require.GreaterOrEqual(t, i, 0, name)
		return s.Lines[i]
	}
	saxpy := line("saxpy")
	assert.Equal(t, 2, saxpy.Count)
	assert.EqualValues(t, 10000, saxpy.Total)
	assert.EqualValues(t, 4000, saxpy.P50)
	assert.EqualValues(t, 6000, saxpy.P99)
	assert.InDelta(t, 10000.0/11500, float64(saxpy.Share), 1e-9, "of saxpy, one other kernel and the graph")
	assert.InDelta(t, 2.4576, float64(saxpy.GBs), 1e-9)
	assert.InDelta(t, 0.4096, float64(saxpy.GFLOPS), 1e-9)
	assert.Equal(t, MemoryBound, saxpy.Bound)
	assert.InDelta(t, 2*1024.0/10000, float64(saxpy.OfRoof), 1e-9)

	for _, name := range []string{"graph", "</script><b>\"'\\\x00\xff\u2028"} {
		unknown := line(name)
		assert.False(t, unknown.GBs.Known() || unknown.GFLOPS.Known() || unknown.OfRoof.Known(), "unknown is not 0")
		assert.Equal(t, UnknownBound, unknown.Bound)
	}
	copied := line("host to device")
	assert.InDelta(t, 4, float64(copied.GBs), 1e-9)
	assert.False(t, copied.OfRoof.Known(), "no roof of that device is known")
	broken := line("broken")
	assert.Equal(t, 1, broken.Failed)
	assert.Zero(t, broken.Total)
	assert.False(t, line("step").Share.Known(), "a region is not work of a device")

	require.Len(t, s.Devices, 2)
	cuda := s.Devices[0]
	assert.Equal(t, DeviceSummary{Device: "cuda:0", Wall: 8500, Busy: 8500}, cuda)
	assert.Equal(t, DeviceSummary{Device: "opencl:0", Wall: 2200, Busy: 2100, Idle: 100, HostTimes: true}, s.Devices[1])
	text := s.String()
	assert.Contains(t, text, "7 older events were dropped")
	assert.Contains(t, text, "opencl:0: busy 2.1µs of 2.2µs (95.5 %), times of the host")
	assert.Regexp(t, `launch +saxpy +cuda:0 +2 +0 +10µs +87 +4µs +6µs +6µs +2.46 +0.41 +memory +20.5`, text)
	assert.Regexp(t, `graph +graph .* \? +\? +\? +\?\n`, text)
	data, err := json.Marshal(s)
	require.NoError(t, err)
	assert.Contains(t, string(data), `"share_of_roof":null`)
	assert.NotContains(t, string(data), "NaN")

	empty := Summarize(Trace{})
	assert.Empty(t, empty.Lines)
	assert.NotEmpty(t, empty.String())
	idle := Summarize(Trace{
		Events: []Event{{Kind: Launch, Device: "a", Start: 10, End: 20}, {Kind: Launch, Device: "a", Start: 15, End: 30},
			{Kind: Launch, Device: "a", Start: 50, End: 51}}})
	assert.Equal(t, []DeviceSummary{{Device: "a", Wall: 41, Busy: 21, Idle: 20, HostTimes: true}}, idle.Devices)
}

// Percentiles are the nearest rank.
func TestPercentiles(t *testing.T) {
	var list []Event
	for i := range 100 {
		list = append(list, Event{Kind: Launch, Name: "k", End: int64(i + 1)})
	}
	rand.New(rand.NewPCG(1, 1)).Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
	l := Summarize(Trace{Events: list}).Lines[0]
	assert.Equal(t, []time.Duration{50, 90, 99}, []time.Duration{l.P50, l.P90, l.P99})
	one := Summarize(Trace{Events: list[:1]}).Lines[0]
	assert.Equal(t, one.Total, one.P50)
	assert.Equal(t, one.Total, one.P99)
}

func TestWriteHTML(t *testing.T) {
	var b strings.Builder
	events := some()
	require.NoError(t, WriteHTML(&b, "a </title> & more", events, Summarize(Trace{Events: events, Dropped: 2})))
	text := b.String()
	assert.NotContains(t, text, "</script><b>", "names are escaped")
	assert.NotContains(t, text, "{{DATA}}")
	assert.NotRegexp(t, `(https?:)?//[a-z]+\.|src=|@import|url\(`, text, "nothing is asked for")
	assert.Equal(t, 2, strings.Count(text, "</script>"))
	_, data, _ := strings.Cut(text, `id="data">`)
	data, _, _ = strings.Cut(data, "</script>")
	var doc struct {
		Events [][]any
		Names  []string
		Lanes  []string
		Span   int64
	}
	require.NoError(t, json.Unmarshal([]byte(data), &doc))
	assert.Len(t, doc.Events, len(events)-1)
	assert.Contains(t, doc.Lanes, "cuda:0 stream 2")
	assert.EqualValues(t, 9500, doc.Span)
	require.NoError(t, WriteHTML(io.Discard, "", nil, Summary{}))
}

// chromium returns a browser, or skips.
func chromium(t *testing.T) string {
	t.Helper()
	for _, name := range []string{"chromium-headless-shell", "chromium", "chromium-browser", "google-chrome", "chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	t.Skip("no Chromium is installed")
	return ""
}

// The page works in a browser, and asks nobody for anything: the browser counts no request of it, and a proxy
// that every request has to pass gets none to a host that it names. A script at the end of the page zooms,
// searches and points.
func TestPage(t *testing.T) {
	browser := chromium(t)
	proxy, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer proxy.Close()
	requests := make(chan string, 100)
	go func() {
		defer close(requests)
		for {
			c, err := proxy.Accept()
			if err != nil {
				return
			}
			// Browsers open connections in advance, and close some of them without a request.
			if line, err := bufio.NewReader(c).ReadString('\n'); err == nil {
				requests <- strings.TrimSpace(line)
			}
			c.Close()
		}
	}()
	var b strings.Builder
	events := some()
	require.NoError(t, WriteHTML(&b, "test", events,
		Summarize(Trace{Events: events, Dropped: 2, Roofs: map[string]Roof{"cuda:0": {MemoryGBs: 12, GFLOPS: 1000}}})))
	b.WriteString(`<script>
const box = document.getElementById("lanes").getBoundingClientRect(), report = document.body.dataset,
  send = (type, x, y, more) => document.getElementById("lanes").dispatchEvent(new (type === "wheel" ? WheelEvent : PointerEvent)(type,
  Object.assign({ clientX: box.left + x, clientY: box.top + y, bubbles: true, cancelable: true }, more)));
const lane = data.lanes.indexOf("cuda:0 stream 1");
send("pointermove", left + (2000 / data.span) * (box.width - left), axis + lane * rowHeight + 10);
report.tip = document.getElementById("tip").textContent;
report.shown = getComputedStyle(document.getElementById("tip")).display;
const whole = to - from;
send("wheel", left + 50, 30, { deltaY: -400 });
report.zoomed = (to - from) < whole;
document.getElementById("search").value = "SAXPY";
document.getElementById("search").dispatchEvent(new Event("input"));
report.found = document.getElementById("found").textContent;
draw();
const pixels = g.getImageData(0, 0, canvas.width, canvas.height).data;
report.advice = data.summary.advice.length > 0 && document.getElementById("advice").textContent.includes(data.summary.advice[0]);
report.drawn = pixels.some(v => v !== 0);
report.requests = performance.getEntriesByType("resource").length;
report.rows = document.querySelectorAll("#lines tr").length;
</script>`)
	dir := t.TempDir()
	file := filepath.Join(dir, "page.html")
	require.NoError(t, os.WriteFile(file, []byte(b.String()), 0o600))
	cmd := exec.CommandContext(t.Context(), browser, "--headless", "--no-sandbox", "--disable-gpu",
		"--disable-background-networking", "--user-data-dir="+dir,
		"--proxy-server="+proxy.Addr().String(), "--proxy-bypass-list=<-loopback>", "--virtual-time-budget=2000",
		"--window-size=1200,700", "--dump-dom", "file://"+file)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	require.NoError(t, err, stderr.String())
	_, body, _ := strings.Cut(string(out), "<body")
	body, _, _ = strings.Cut(body, ">")
	for _, want := range []string{
		fmt.Sprintf(`data-events="%d"`, len(events)-1), `data-zoomed="true"`, `data-found="3 of`, `data-drawn="true"`,
		`data-shown="block"`, `data-requests="0"`, `data-advice="true"`,
		"grid 1024x1x1 in groups of 256x1x1", "work 2048 operations", "rate 0.512 GFLOP/s, 3.07 GB/s",
		fmt.Sprintf(`data-rows="%d"`, len(Summarize(Trace{Events: events}).Lines)),
	} {
		assert.Contains(t, cmp.Or(body, string(out)), want)
	}
	require.NoError(t, proxy.Close())
	for r := range requests { // browsers look for updates, at hosts that the page does not name
		fields := strings.Fields(r)
		require.Len(t, fields, 3)
		u, err := url.Parse("//" + strings.TrimPrefix(fields[1], "http://"))
		require.NoError(t, err)
		assert.NotContains(t, b.String(), u.Hostname(), "a request of the page")
	}
}
