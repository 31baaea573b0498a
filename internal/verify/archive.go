package verify

// The logs of the steps, and the one archive of them.

import (
	"archive/tar"
	"compress/gzip"
	"errors"
	"io"
	"os"
	"regexp"
	"strings"
	"sync"
	"time"
)

// archive holds what the processes of all steps wrote.
type archive struct{ logs []*stepLog }

// unpack reads an archive of logs, as far as it can be read.
func unpack(path string) map[string][]byte {
	files := map[string][]byte{}
	f, err := os.Open(path)
	if err != nil {
		return files
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		return files
	}
	for t := tar.NewReader(z); ; {
		h, err := t.Next()
		if err != nil {
			return files
		}
		data, err := io.ReadAll(io.LimitReader(t, 4<<20))
		if err != nil {
			return files
		}
		files[h.Name] = data
	}
}

// keep takes the logs of a step from those of an earlier run.
func (a *archive) keep(files map[string][]byte, step string) {
	l := a.log(step)
	l.words.add(files[step+".log"])
	l.records.add(files[step+".jsonl"])
}

// stepLog is what the processes of one step wrote: to the standard error, and their records. It may be used from any
// goroutine.
type stepLog struct {
	name    string
	mu      sync.Mutex
	words   clipped
	records clipped
}

func (a *archive) log(name string) *stepLog {
	l := &stepLog{name: name, words: clipped{most: 512 << 10}, records: clipped{most: 2 << 20}}
	a.logs = append(a.logs, l)
	return l
}

// Write takes a part of the standard error.
func (l *stepLog) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.words.add(b)
	return len(b), nil
}

// record takes a record.
func (l *stepLog) record(line []byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.records.add(append(line, '\n'))
}

// crash begins the line with which a runtime says why it ends a process. What follows are stacks and registers.
var crash = regexp.MustCompile(`(?m)^(panic|fatal error|runtime/cgo|SIG[A-Z]+): `)

// lastWords are the last lines of the standard error, or those around the last line that says why the process ended.
func (l *stepLog) lastWords() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	const lines, before, most = 15, 3, 3000
	text := strings.ToValidUTF8(strings.TrimSpace(string(l.words.end())), "?")
	all := strings.Split(text, "\n")
	from := max(0, len(all)-lines)
	if found := crash.FindAllStringIndex(text, -1); found != nil {
		from = max(0, strings.Count(text[:found[len(found)-1][0]], "\n")-before)
	}
	return shorten(strings.Join(all[from:min(len(all), from+lines)], "\n"), most)
}

// clipped keeps the first and the last half of what is more than most bytes.
type clipped struct {
	most       int
	head, tail []byte
	lost       bool
}

func (c *clipped) add(b []byte) {
	n := min(len(b), c.most/2-len(c.head))
	c.head = append(c.head, b[:n]...)
	c.tail = append(c.tail, b[n:]...)
	if len(c.tail) > c.most { // seldom, so that the copying costs little
		c.tail, c.lost = append([]byte(nil), c.tail[len(c.tail)-c.most/2:]...), true
	}
}

// end is the last part.
func (c *clipped) end() []byte {
	if len(c.tail) > 0 {
		return c.tail
	}
	return c.head
}

func (c *clipped) bytes() []byte {
	all := append([]byte(nil), c.head...)
	if c.lost {
		all = append(all, "\n[...]\n"...)
	}
	return append(all, c.tail...)
}

// write writes the logs as a tar file compressed by gzip: for each step STEP.log and STEP.jsonl.
func (a *archive) write(w io.Writer) error {
	z := gzip.NewWriter(w)
	t := tar.NewWriter(z)
	for _, l := range a.logs {
		l.mu.Lock()
		words, records := l.words.bytes(), l.records.bytes()
		l.mu.Unlock()
		for _, f := range []struct {
			ending string
			data   []byte
		}{{".log", words}, {".jsonl", records}} {
			if len(f.data) == 0 {
				continue
			}
			if err := t.WriteHeader(&tar.Header{Name: l.name + f.ending, Mode: 0o644, Size: int64(len(f.data)),
				ModTime: time.Now()}); err != nil {
				return err
			}
			if _, err := t.Write(f.data); err != nil {
				return err
			}
		}
	}
	return errors.Join(t.Close(), z.Close())
}
