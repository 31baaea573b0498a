package verify

// The files of a report.

import (
	"encoding/json"
	"errors"
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
	earlierFile  = "earlier.json" // the report that this one replaced
)

// write writes every file of the report. Each is replaced as a whole, so that a reader never finds a part of one. The
// first error is kept in failed; the other files are written all the same.
func (r *runner) write() error {
	r.written = time.Now()
	r.report.Seconds = time.Since(r.start).Seconds()
	r.report.settle()
	var errs []error
	for _, f := range []struct {
		path  string
		write func(io.Writer) error
	}{
		{filepath.Join(r.opt.Dir, jsonFile), r.report.writeJSON},
		{filepath.Join(r.opt.Dir, markdownFile), r.report.writeMarkdown},
		{filepath.Join(r.opt.Dir, logsFile), r.logs.write},
		{r.opt.HTML, r.report.writeHTML},
	} {
		if f.path != "" {
			errs = append(errs, file.Replace(f.path, f.write))
		}
	}
	err := errors.Join(errs...)
	if r.failed == nil {
		r.failed = err
	}
	return err
}

func (r *Report) writeJSON(w io.Writer) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", " ")
	return enc.Encode(r)
}
