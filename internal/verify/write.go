package verify

// The files of a report.

import (
	"encoding/json"
	"io"
	"path/filepath"
	"time"

	"github.com/concord-compute/concord/internal/file"
)

// The files in the folder of a report.
const (
	jsonFile     = "report.json"
	markdownFile = "report.md"
	logsFile     = "logs.tar.gz"
)

// write writes every file of the report. Each is replaced as a whole, so that a reader never finds a part of one.
func (r *runner) write() error {
	r.written = time.Now()
	r.report.Seconds = time.Since(r.start).Seconds()
	r.report.settle()
	for _, f := range []struct {
		path  string
		write func(io.Writer) error
	}{
		{filepath.Join(r.opt.Dir, jsonFile), r.report.writeJSON},
		{filepath.Join(r.opt.Dir, markdownFile), r.report.writeMarkdown},
		{filepath.Join(r.opt.Dir, logsFile), r.logs.write},
		{r.opt.HTML, r.report.writeHTML},
	} {
		if f.path == "" {
			continue
		}
		if err := file.Replace(f.path, f.write); err != nil {
			return err
		}
	}
	return nil
}

func (r *Report) writeJSON(w io.Writer) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", " ")
	return enc.Encode(r)
}
