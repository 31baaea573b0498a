package profile

// Traces in files that are written while things happen.

import (
	"fmt"
	"io"
	"log/slog"
	"maps"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/concord-compute/concord/internal/file"
	"github.com/concord-compute/concord/runtime/driver"
)

const (
	traceSoonest = 25 * time.Millisecond // between two writes of a trace
	traceShare   = 40                    // of its time for each part of writing
)

// traceFiles are those of this process by name. They are kept until the process ends, as it may open more sessions.
var traceFiles = struct {
	sync.Mutex
	of map[string]*TraceFile
}{of: map[string]*TraceFile{}}

// TraceFile is an Observer that writes what it is told to a file again and again. So a program that ends in whatever
// way (a signal, a panic, a call of os.Exit) leaves what happened up to then. It is safe for concurrent use.
type TraceFile struct {
	name     string
	events   Recording
	observed atomic.Int64         // events so far
	users    map[*func()]struct{} // guarded by traceFiles
	kept     bool                 // keepWriting runs; so, too

	mu      sync.Mutex // held while the file is written
	devices map[string]*KeptRoof
	written int64           // events when it was written last
	roofs   map[string]Roof // those of then
	failed  bool
	took    time.Duration
}

// OpenTraceFile returns the TraceFile of that name, which all of the process share. A file that cannot be replaced,
// such as a pipe, whose readers would get one trace after another, is ErrInvalidArgument.
func OpenTraceFile(name string) (*TraceFile, error) {
	if info, err := os.Stat(name); err == nil && !info.Mode().IsRegular() {
		return nil, fmt.Errorf("CONCORD_TRACE: %s is not a regular file: %w", name, driver.ErrInvalidArgument)
	}
	traceFiles.Lock()
	defer traceFiles.Unlock()
	t := traceFiles.of[name]
	if t == nil {
		t = &TraceFile{name: name, users: map[*func()]struct{}{}, devices: map[string]*KeptRoof{}}
		traceFiles.of[name] = t
	}
	return t, nil
}

// Observe implements Observer.
func (t *TraceFile) Observe(e Event) {
	t.events.Observe(e)
	t.observed.Add(1)
}

// Use makes a goroutine write the file from now on, until end is called, once, of each Use. Before each write it
// calls fetch, which lets the file observe what is over although nobody waits for it.
func (t *TraceFile) Use(fetch func()) (end func()) {
	traceFiles.Lock()
	defer traceFiles.Unlock()
	t.users[&fetch] = struct{}{}
	if !t.kept {
		t.kept = true
		go t.keepWriting()
	}
	return func() {
		traceFiles.Lock()
		delete(t.users, &fetch)
		traceFiles.Unlock()
		t.Write()
	}
}

// AddRoof makes the roof of a device part of the trace, if it is known, or as soon as it is.
func (t *TraceFile) AddRoof(device string, k *KeptRoof) {
	k.Known() // reads what a process before has measured
	t.mu.Lock()
	defer t.mu.Unlock()
	t.devices[device] = k
}

// keepWriting writes the file while it is used.
func (t *TraceFile) keepWriting() {
	for {
		t.mu.Lock()
		pause := max(traceSoonest, traceShare*t.took)
		t.mu.Unlock()
		time.Sleep(pause)
		traceFiles.Lock()
		users := maps.Clone(t.users)
		t.kept = len(users) > 0
		traceFiles.Unlock()
		if len(users) == 0 {
			return
		}
		for fetch := range users {
			(*fetch)()
		}
		t.Write()
	}
}

// Write replaces the file if anything happened since it was written. An error is logged once, as nobody waits for it.
func (t *TraceFile) Write() {
	t.mu.Lock()
	defer t.mu.Unlock()
	trace := Trace{Roofs: map[string]Roof{}}
	for device, k := range t.devices {
		if r := k.roof.Load(); r != nil {
			trace.Roofs[device] = *r
		}
	}
	n := t.observed.Load()
	if n == t.written && maps.Equal(trace.Roofs, t.roofs) {
		return
	}
	start := time.Now()
	trace.Events, trace.Dropped = t.events.Events()
	err := file.Replace(t.name, func(w io.Writer) error { return WriteTrace(w, trace) })
	if t.written, t.roofs, t.took = n, trace.Roofs, time.Since(start); err != nil && !t.failed {
		t.failed = true
		slog.Warn("concord: the trace is not written", "file", t.name, "error", err)
	}
}
