package mempool

// Recordings in files: the pools of a program that record to one file share a Recorder.

import (
	"log/slog"
	"maps"
	"sync"

	"github.com/concord-compute/concord/internal/file"
)

// fileEvents is the limit on the events recorded for a file.
const fileEvents = 1 << 20

// recordings are the recorders of this process by file. One whose pools are all closed is kept, since the program
// may open more of them, until a recording to another file begins.
var recordings struct {
	sync.Mutex
	of map[string]*fileRecording
}

type fileRecording struct {
	recorder *Recorder
	pools    int // open ones
}

// RecordTo makes the pool record its operations for a file, under the name of its device. The function that it
// returns is called once, at the end: it writes what all pools of the process have recorded for the file so far. An
// error is logged, since no caller waits for it.
func (p *Pool) RecordTo(name, device string) (write func()) {
	recordings.Lock()
	defer recordings.Unlock()
	if recordings.of == nil {
		recordings.of = map[string]*fileRecording{}
	}
	maps.DeleteFunc(recordings.of, func(other string, r *fileRecording) bool { return r.pools == 0 && other != name })
	r := recordings.of[name]
	if r == nil {
		r = &fileRecording{recorder: NewRecorder(fileEvents)}
		recordings.of[name] = r
	}
	r.pools++
	p.mu.Lock()
	defer p.mu.Unlock()
	p.toFile = true
	p.record(r.recorder, device)
	return func() {
		recordings.Lock()
		defer recordings.Unlock()
		r.pools--
		if err := file.Replace(name, r.recorder.Trace().Write); err != nil {
			slog.Warn("concord: the memory trace is not written", "file", name, "error", err)
		}
	}
}
