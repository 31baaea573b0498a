package profile

// A page for people.

import (
	"bufio"
	"cmp"
	_ "embed"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
)

//go:embed page.html
var page string

// WriteHTML writes a page that shows events on a timeline, with a lane for each stream, above the table of their
// summary. It zooms, searches names and details, and shows grid, work and rates of the event under the pointer. The
// page is one file, and asks for nothing from anywhere. Events whose end lies before their start are not drawn. title
// is the page's; the summary is that of Summarize.
//
// Browsers are at ease with some hundred thousand events. Errors are those of w.
func WriteHTML(w io.Writer, title string, events []Event, s Summary) error {
	p := place(events)
	before, after, _ := strings.Cut(page, "{{DATA}}")
	out := bufio.NewWriterSize(w, 1<<16)
	_, _ = out.WriteString(before) // the first error stays with out
	onDevice, lanes := []bool{}, []string{}
	for k := range kinds {
		onDevice = append(onDevice, k.OnDevice())
	}
	for i := range p.tracks {
		name := p.tracks[i].name()
		if device := p.tracks[i].device; device != "" {
			name = device + " " + name
		}
		lanes = append(lanes, name)
	}
	head, err := json.Marshal(struct { // which escapes what could end the script
		Title   string   `json:"title"`
		Kinds   []string `json:"kinds"`
		Device  []bool   `json:"device"`
		Lanes   []string `json:"lanes"`
		Summary Summary  `json:"summary"`
	}{title, kindNames[:], onDevice, lanes, s})
	if err != nil {
		return err
	}

	names, index := []string{}, map[string]int{}
	b := append(head[:len(head)-1], `,"events":[`...) // behind the members, without the brace
	last := p.zero
	for n, i := range p.order {
		e := &events[i]
		last = max(last, e.End)
		name := cmp.Or(e.Name, e.Kind.String())
		id, known := index[name]
		if !known {
			id = len(names)
			names, index[name] = append(names, name), id
		}
		if n > 0 {
			b = append(b, ",\n"...)
		}
		separator := byte('[')
		for _, v := range [...]int64{int64(p.at[i]), int64(min(e.Kind, kinds-1)), int64(id), e.Start - p.zero,
			e.End - e.Start} {
			b = strconv.AppendInt(append(b, separator), v, 10)
			separator = ','
		}
		b = append(appendArgs(append(b, separator), e), ']')
		if len(b) > 2048 {
			_, _ = out.Write(b)
			b = b[:0]
		}
	}
	text, err := json.Marshal(names)
	if err != nil {
		return err
	}
	b = fmt.Appendf(b, `],"names":%s,"span":%d}`, text, last-p.zero)
	_, _ = out.Write(b)
	_, _ = out.WriteString(after)
	return out.Flush()
}
