package runtime

// The file of Config.MemoryTrace, in which all devices of a program record their memory
// operations.

import (
	"log/slog"
	"maps"
	"sync"

	"github.com/concord-compute/concord/internal/file"
	"github.com/concord-compute/concord/runtime/mempool"
)

// fileEvents is the limit on the events recorded for a file.
const fileEvents = 1 << 20

// traces are the recorders of this process by file, since sessions and devices of one program may
// share one. A recorder whose devices are all closed is kept, since the program may open more of
// them, until a recording to another file begins.
var traces struct {
	sync.Mutex
	of map[string]*fileTrace
}

type fileTrace struct {
	recorder *mempool.Recorder
	devices  int // open ones
}

// recordToFile makes the device record for Config.MemoryTrace.
func (m *memory) recordToFile() {
	name := m.core.session.cfg.MemoryTrace
	if name == "" {
		return
	}
	traces.Lock()
	defer traces.Unlock()
	if traces.of == nil {
		traces.of = map[string]*fileTrace{}
	}
	maps.DeleteFunc(traces.of, func(other string, t *fileTrace) bool { return t.devices == 0 && other != name })
	if traces.of[name] == nil {
		traces.of[name] = &fileTrace{recorder: mempool.NewRecorder(fileEvents)}
	}
	traces.of[name].devices++
	m.recorder = traces.of[name].recorder
	m.pool.Record(m.recorder, m.core.info.ID)
}

// writeTrace writes the recording so far, of every device of the process.
func (m *memory) writeTrace() {
	name := m.core.session.cfg.MemoryTrace
	if name == "" {
		return
	}
	traces.Lock()
	defer traces.Unlock()
	t := traces.of[name]
	t.devices--
	if err := file.Replace(name, t.recorder.Trace().Write); err != nil { // no caller waits for it
		slog.Warn("concord: the memory trace is not written", "file", name, "error", err)
	}
}
