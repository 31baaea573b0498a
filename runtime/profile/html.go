package profile

// A page for people.

import (
	"bufio"
	_ "embed"
	"encoding/json"
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
	b := append(make([]byte, 0, 4096), `{"title":`...)
	b = appendString(b, title)
	b = append(b, `,"kinds":[`...)
	for k, name := range kindNames {
		if k > 0 {
			b = append(b, ',')
		}
		b = appendString(b, name)
	}
	b = append(b, `],"device":[`...)
	for k := range kinds {
		if k > 0 {
			b = append(b, ',')
		}
		b = strconv.AppendBool(b, k.OnDevice())
	}
	b = append(b, `],"lanes":[`...)
	for i := range p.tracks {
		if i > 0 {
			b = append(b, ',')
		}
		t := &p.tracks[i]
		name := t.name()
		if t.device != "" {
			name = t.device + " " + name
		}
		b = appendString(b, name)
	}
	b = append(b, `],"summary":`...)
	text, err := json.Marshal(s) // escapes what could end the script
	if err != nil {
		return err
	}
	b = append(b, text...)
	names, index := []string{}, map[string]int{}
	b = append(b, `,"events":[`...)
	last := p.zero
	for n, i := range p.order {
		e := &events[i]
		last = max(last, e.End)
		name := e.Name
		if name == "" {
			name = e.Kind.String()
		}
		id, known := index[name]
		if !known {
			id = len(names)
			names, index[name] = append(names, name), id
		}
		if n > 0 {
			b = append(b, ",\n"...)
		}
		b = append(b, '[')
		b = strconv.AppendInt(b, int64(p.at[i]), 10)
		b = append(b, ',')
		b = strconv.AppendInt(b, int64(min(e.Kind, kinds-1)), 10)
		b = append(b, ',')
		b = strconv.AppendInt(b, int64(id), 10)
		b = append(b, ',')
		b = strconv.AppendInt(b, e.Start-p.zero, 10)
		b = append(b, ',')
		b = strconv.AppendInt(b, e.End-e.Start, 10)
		b = append(b, ',')
		b = appendArgs(b, e)
		b = append(b, ']')
		if len(b) > 2048 {
			_, _ = out.Write(b)
			b = b[:0]
		}
	}
	b = append(b, `],"names":[`...)
	for i, name := range names {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendString(b, name)
	}
	b = append(b, `],"span":`...)
	b = strconv.AppendInt(b, last-p.zero, 10)
	b = append(b, '}')
	_, _ = out.Write(b)
	_, _ = out.WriteString(after)
	return out.Flush()
}
