package runtime

// Recording what devices do with memory: on request, or of a whole program into the
// file that Config.MemoryTrace names.

import (
	"maps"
	"sync"

	"github.com/concord-compute/concord/internal/file"
	"github.com/concord-compute/concord/runtime/mempool"
)

// TraceMemory begins or ends recording what the device does with memory: at most
// mempool.DefaultEvents events, the oldest are dropped. An event costs some 100 ns.
// Beginning again changes nothing. With Config.MemoryTrace the device records from its
// beginning to its end, and this does nothing.
func (d *Device) TraceMemory(on bool) error {
	c, err := d.use("trace memory")
	if err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case on && c.recorder == nil:
		c.recorder = mempool.NewRecorder(0)
		c.pool.Record(c.recorder, c.info.ID)
	case !on && c.session.cfg.MemoryTrace == "":
		c.recorder = nil
		c.pool.Record(nil, "")
	}
	return nil
}

// MemoryTrace returns what was recorded since TraceMemory, or nil if nothing is. It can
// be written, replayed with other settings and analyzed; see package mempool. With
// Config.MemoryTrace it holds the other devices of the program as well.
func (d *Device) MemoryTrace() *mempool.Trace {
	d.core.mu.Lock()
	defer d.core.mu.Unlock()
	if d.core.recorder == nil {
		return nil
	}
	return d.core.recorder.Trace()
}

// fileEvents bounds what is recorded for a file.
const fileEvents = 1 << 20

// traces are the recorders of this process by file, since sessions and devices of one
// program may share one. One that no open device records to is kept, as the program may
// open more of them, until another file is begun.
var traces struct {
	sync.Mutex
	of map[string]*fileTrace
}

type fileTrace struct {
	recorder *mempool.Recorder
	devices  int // open ones
}

// recordToFile makes the device record for Config.MemoryTrace.
func (c *core) recordToFile() {
	name := c.session.cfg.MemoryTrace
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
	c.recorder = traces.of[name].recorder
	c.pool.Record(c.recorder, c.info.ID)
}

// writeTrace writes what was recorded so far, of every device of the process.
func (c *core) writeTrace() {
	name := c.session.cfg.MemoryTrace
	if name == "" {
		return
	}
	traces.Lock()
	defer traces.Unlock()
	t := traces.of[name]
	t.devices--
	warnTrace(name, file.Replace(name, t.recorder.Trace().Write))
}
