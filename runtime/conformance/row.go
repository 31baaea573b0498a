package conformance

// The outcome of a row: it passes, fails or is skipped, depending on the lists.

import (
	"fmt"
	"path"
	goruntime "runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/concord-compute/concord/runtime"
)

// row is a row that is being checked. Its methods decide, by the lists, whether it fails or is skipped.
type row struct {
	T
	helper
	name        string
	unsupported string // why it is listed as unsupported, or ""
	failing     string // why it is listed as failing, or ""
	noCompiler  string // why compilerRow is listed as unsupported, or ""
	failed      atomic.Bool

	mu       sync.Mutex
	failures []string // of a row that is listed as failing

	sessions []*runtime.Session
	devices  []*runtime.Device
}

// helper is what a T has that, like *testing.T, finds out by itself where a row called it.
type helper interface{ Helper() }

type noHelper struct{}

func (noHelper) Helper() {}

func newRow(t T, name string, except Exceptions) *row {
	r := &row{T: t, helper: noHelper{}, name: name, unsupported: except.Unsupported[name],
		failing: except.Failing[name], noCompiler: except.Unsupported[compilerRow]}
	if h, ok := t.(helper); ok {
		r.helper = h
	}
	return r
}

// Errorf marks the row as failed and goes on.
func (t *row) Errorf(format string, args ...any) {
	t.Helper()
	t.failed.Store(true)
	message := t.place() + fmt.Sprintf(format, args...)
	if t.failing == "" {
		t.T.Errorf("%s", message)
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.failures = append(t.failures, message)
}

// Fatalf marks the row as failed and ends it.
func (t *row) Fatalf(format string, args ...any) {
	t.Helper()
	if t.failing != "" {
		t.Errorf(format, args...)
		t.known()
	}
	t.unlisted(format, args...)
}

// known ends a row that is listed as failing, and failed.
func (t *row) known() {
	t.Helper()
	t.mu.Lock()
	failures := strings.Join(t.failures, "; ")
	t.mu.Unlock()
	t.Skipf("known to fail: %s: %s", t.failing, failures)
}

// refused skips a row because a call returned ErrUnsupported. The row has to be listed.
func (t *row) refused(format string, args ...any) {
	t.Helper()
	why := fmt.Sprintf(format, args...)
	if t.unsupported == "" {
		t.unlisted("%s; nothing in Info says so, and the row is not in Exceptions.Unsupported", why)
	}
	t.Skipf("%s; listed: %s", why, t.unsupported)
}

// unlisted fails and ends a row, even one that is listed as failing.
func (t *row) unlisted(format string, args ...any) {
	t.Helper()
	t.failed.Store(true)
	t.T.Fatalf("%s", t.place()+fmt.Sprintf(format, args...))
}

// place returns the lines of the row that led to its call, innermost first, and "" if T says where by itself.
func (t *row) place() string {
	if _, finds := t.T.(helper); finds && t.failing == "" {
		return ""
	}
	var calls [32]uintptr
	frames := goruntime.CallersFrames(calls[:goruntime.Callers(2, calls[:])])
	var lines []string
	for more := true; more; {
		var f goruntime.Frame
		f, more = frames.Next()
		file := path.Base(f.File)
		if strings.HasSuffix(f.Function, "conformance.Row.Check") {
			break
		}
		helps := slices.Contains([]string{"row.go", "expect.go", "device.go"}, file)
		if strings.Contains(f.Function, "runtime/conformance.") && !helps {
			lines = append(lines, fmt.Sprintf("%s:%d", file, f.Line))
		}
	}
	if len(lines) == 0 {
		return ""
	}
	return strings.Join(lines, ", from ") + ": "
}

// session returns a session of the row's own. It is closed when the row ends, if not before.
func (t *row) session() *runtime.Session {
	t.Helper()
	s := call(runtime.New(runtime.Config{Fallback: runtime.Require})).must(t)
	t.sessions = append(t.sessions, s)
	return s
}

// open opens a device that is closed when the row ends, if not before.
func (t *row) open(s *runtime.Session, name string) (*runtime.Device, error) {
	d, err := s.Open(t.Context(), name)
	if err == nil {
		t.devices = append(t.devices, d)
	}
	return d, err
}

// end closes what a row that was skipped or failed has left open. That is no further failure. A device whose row was
// stopped is given up, since closing it would wait for its work.
func (t *row) end() {
	for _, d := range t.devices {
		if err := t.Context().Err(); err != nil {
			_ = d.Abandon(err)
		}
		_ = d.Close()
	}
	for _, s := range t.sessions {
		_ = s.Close()
	}
}
