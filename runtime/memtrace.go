package runtime

// Recording what devices do with memory: on request, or of a whole program into the
// file that Config.MemoryTrace names.

import (
	"errors"
	"maps"
	"os"
	"path/filepath"
	"sync"

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
	file := c.session.cfg.MemoryTrace
	if file == "" {
		return
	}
	traces.Lock()
	defer traces.Unlock()
	if traces.of == nil {
		traces.of = map[string]*fileTrace{}
	}
	maps.DeleteFunc(traces.of, func(name string, t *fileTrace) bool { return t.devices == 0 && name != file })
	if traces.of[file] == nil {
		traces.of[file] = &fileTrace{recorder: mempool.NewRecorder(fileEvents)}
	}
	traces.of[file].devices++
	c.recorder = traces.of[file].recorder
	c.pool.Record(c.recorder, c.info.ID)
}

// writeTrace writes what was recorded so far, of every device of the process.
func (c *core) writeTrace() {
	file := c.session.cfg.MemoryTrace
	if file == "" {
		return
	}
	traces.Lock()
	defer traces.Unlock()
	t := traces.of[file]
	t.devices--
	warnTrace(file, writeWhole(file, t.recorder.Trace()))
}

// writeWhole writes a file such that it is there as a whole or as it was before.
func writeWhole(file string, t *mempool.Trace) error {
	f, err := os.CreateTemp(filepath.Dir(file), filepath.Base(file)+".*")
	if err != nil {
		return err
	}
	if err = errors.Join(t.Write(f), f.Close()); err == nil {
		err = os.Rename(f.Name(), file)
	}
	if err != nil {
		_ = os.Remove(f.Name()) // what is left of it helps nobody
	}
	return err
}
