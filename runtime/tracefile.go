package runtime

// The files of Config.Trace and Config.MemoryTrace.

import (
	"fmt"
	"sync"

	"github.com/concord-compute/concord/internal/file"
	"github.com/concord-compute/concord/runtime/profile"
)

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

// traceToFile makes the session record for Config.Trace, until the function that it returns is called.
func (s *Session) traceToFile() (end func(), err error) {
	if s.cfg.Trace == "" {
		return func() {}, nil
	}
	if s.trace, err = profile.OpenTraceFile(s.cfg.Trace); err != nil {
		return nil, err
	}
	unused := s.trace.Use(func() {
		for _, st := range s.streams() { // a program that does not wait for its work does not notice when it is over
			st.notes.fetch(st, nil, false)
		}
	})
	stop := s.Observe(s.trace)
	return sync.OnceFunc(func() {
		stop()
		unused()
	}), nil
}
