package runtime

// The file of Config.Trace, in which all sessions of a program record what happens.

import (
	"fmt"
	"io"
	"log/slog"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/concord-compute/concord/internal/file"
	"github.com/concord-compute/concord/runtime/profile"
)

const (
	traceSoonest = 25 * time.Millisecond // between two writes of a trace
	traceShare   = 40                    // of its time for each part of writing
)

// traceFiles are the recordings of this process by file, since sessions of one program may share one. They
// are kept until the process ends, as it may open more sessions.
var traceFiles struct {
	sync.Mutex
	of map[string]*traceFile
}

// traceFile is a recording that is written to a file again and again, so that a program which ends in
// whatever way (a signal, a panic, a call of os.Exit) leaves what happened up to then.
type traceFile struct {
	name     string
	events   profile.Recording
	observed atomic.Int64 // events so far
	sessions []*Session   // open ones; guarded by traceFiles
	kept     bool         // keepWriting runs; so, too

	mu      sync.Mutex // held while the file is written
	roofs   map[string]profile.Roof
	written int64 // events when it was written last; -1 if a roof came since
	failed  bool
	took    time.Duration
}

// Observe implements profile.Observer.
func (t *traceFile) Observe(e profile.Event) {
	t.events.Observe(e)
	t.observed.Add(1)
}

// learn keeps the roof of a device for the file. t may be nil, for no file.
func (t *traceFile) learn(device string, r profile.Roof) {
	if t == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.roofs == nil {
		t.roofs = map[string]profile.Roof{}
	}
	t.roofs[device] = r
	t.written = -1 // the file lacks it, even if no event follows
}

// checkTraces returns an error if Config.Strict is set and a file of traces could not be written. Otherwise
// nobody waits for such an error.
func checkTraces(c *Config) error {
	if !c.Strict {
		return nil
	}
	for _, f := range []struct{ variable, name string }{
		{"CONCORD_TRACE", c.Trace}, {"CONCORD_MEMORY_TRACE", c.MemoryTrace}} {
		if f.name == "" {
			continue
		}
		out, err := file.Create(f.name)
		if err != nil {
			return fmt.Errorf("%s, refused by CONCORD_STRICT=1: %w", f.variable, err)
		}
		if err := out.Close(); err != nil { // which leaves the file as it was
			return err
		}
	}
	return nil
}

// traceToFile makes the session record for Config.Trace, until the function that it returns is called. A file that
// cannot be replaced, such as a pipe, whose readers would get one trace after another, is refused.
func (s *Session) traceToFile() (end func(), err error) {
	name := s.cfg.Trace
	if name == "" {
		return func() {}, nil
	}
	if info, err := os.Stat(name); err == nil && !info.Mode().IsRegular() {
		return nil, fmt.Errorf("CONCORD_TRACE: %s is not a regular file: %w", name, ErrInvalidArgument)
	}
	traceFiles.Lock()
	defer traceFiles.Unlock()
	if traceFiles.of == nil {
		traceFiles.of = map[string]*traceFile{}
	}
	t := traceFiles.of[name]
	if t == nil {
		t = &traceFile{name: name}
		traceFiles.of[name] = t
	}
	if t.sessions = append(t.sessions, s); !t.kept {
		t.kept = true
		go t.keepWriting()
	}
	s.trace = t
	stop := s.Observe(t)
	return sync.OnceFunc(func() {
		stop()
		traceFiles.Lock()
		t.sessions = slices.DeleteFunc(t.sessions, func(open *Session) bool { return open == s })
		traceFiles.Unlock()
		t.write()
	}), nil
}

// keepWriting writes the file while sessions are open.
func (t *traceFile) keepWriting() {
	for {
		t.mu.Lock()
		pause := max(traceSoonest, traceShare*t.took)
		t.mu.Unlock()
		time.Sleep(pause)
		traceFiles.Lock()
		t.kept = len(t.sessions) > 0
		sessions := slices.Clone(t.sessions)
		traceFiles.Unlock()
		if len(sessions) == 0 {
			return
		}
		for _, s := range sessions {
			for _, st := range s.streams() { // a program that does not wait for its work does not notice when it is over
				st.notes.fetch(st, nil, false)
			}
		}
		t.write()
	}
}

// write replaces the file if anything happened since it was written. Nobody waits for an error, which is logged
// once.
func (t *traceFile) write() {
	t.mu.Lock()
	defer t.mu.Unlock()
	n := t.observed.Load()
	if n == t.written {
		return
	}
	start := time.Now()
	trace := profile.Trace{Roofs: t.roofs}
	trace.Events, trace.Dropped = t.events.Events()
	err := file.Replace(t.name, func(w io.Writer) error { return profile.WriteTrace(w, trace) })
	if t.written, t.took = n, time.Since(start); err != nil && !t.failed {
		t.failed = true
		slog.Warn("concord: the trace is not written", "file", t.name, "error", err)
	}
}
