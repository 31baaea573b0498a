//go:build cgo && linux

// Package fault makes every call into the vendors' libraries fail once, each in a separate run; the
// simulated libraries do that on demand. Whichever call fails, the error has to be of the right
// kind, all objects have to be released, nothing may hang, and the next run has to work.
package fault

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/concord-compute/concord/runtime"
	_ "github.com/concord-compute/concord/runtime/all"
	"github.com/concord-compute/concord/runtime/config"
	"github.com/concord-compute/concord/tests/sim/control"
)

// sweep is one kind of fault. The simulated library counts the calls of a kind; the
// nth of them fails, for every n that a run gets to.
type sweep struct {
	word string // KIND of CONCORD_SIM_FAULT
	tail string // after the number: "+" means that call and all later ones
	is   []error
	// quiet: a run need not fail, for the reason in the comment of the row. Its results are then
	// right.
	quiet bool
	// needless: a run may succeed although all calls of this kind fail.
	needless bool
	// direct: without the memory pool, so that every buffer is an allocation by the driver.
	direct bool
}

func (s *sweep) String() string {
	if s.direct {
		return s.word + s.tail + " direct"
	}
	return s.word + s.tail
}

// The errors that a program may get for each kind of fault, and the kinds that need not cause an
// error.
var sweeps = []sweep{
	// If the device is out of memory, closed memory is freed and the call is tried again.
	{word: "alloc", is: []error{runtime.ErrOutOfMemory}, quiet: true},
	{word: "alloc", is: []error{runtime.ErrOutOfMemory}, quiet: true, direct: true},
	{word: "alloc", tail: "+", is: []error{runtime.ErrOutOfMemory}},
	{word: "alloc", tail: "+", is: []error{runtime.ErrOutOfMemory}, direct: true},
	// Without pinned memory for staging, copies wait for the stream instead.
	{word: "pinned", is: []error{runtime.ErrOutOfMemory}, quiet: true},
	{word: "pinned", tail: "+", is: []error{runtime.ErrOutOfMemory}, quiet: true},
	// Most memory is freed some time after its buffer is closed, when there is no caller left to
	// return the error to.
	{word: "free", is: []error{runtime.ErrLaunch}, quiet: true},
	{word: "free", is: []error{runtime.ErrLaunch}, quiet: true, direct: true},
	{word: "copy", is: []error{runtime.ErrLaunch}},
	{word: "copy", tail: "+", is: []error{runtime.ErrLaunch}},
	{word: "fill", is: []error{runtime.ErrLaunch}},
	{word: "launch", is: []error{runtime.ErrLaunch}},
	{word: "launch", tail: "+", is: []error{runtime.ErrLaunch}},
	{word: "launch-late", is: []error{runtime.ErrLaunch, runtime.ErrDeviceLost}},
	// A program whose cached binary is refused, or lacks a kernel, is compiled again.
	{word: "load", is: []error{runtime.ErrFormat}, quiet: true},
	{word: "load", tail: "+", is: []error{runtime.ErrFormat}},
	{word: "find", is: []error{runtime.ErrNoKernel, runtime.ErrCorrupt}, quiet: true},
	{word: "find", tail: "+", is: []error{runtime.ErrNoKernel, runtime.ErrCorrupt}},
	{word: "stream", is: []error{runtime.ErrOutOfMemory}},
	{word: "stream", tail: "+", is: []error{runtime.ErrOutOfMemory}},
	// If the event that marks when staging memory is free again cannot be made, the host waits for
	// the stream.
	{word: "event", is: []error{runtime.ErrOutOfMemory}, quiet: true},
	{word: "event", tail: "+", is: []error{runtime.ErrOutOfMemory}, quiet: true},
	// If an event for another stream to wait for cannot be recorded, the host waits instead.
	{word: "record", is: []error{runtime.ErrLaunch}, quiet: true},
	{word: "record", tail: "+", is: []error{runtime.ErrLaunch}},
	// Some calls only check whether closed memory can be freed, or wait for a stream that recorded
	// a graph and executed nothing.
	{word: "sync", is: []error{runtime.ErrLaunch}, quiet: true},
	{word: "sync", tail: "+", is: []error{runtime.ErrLaunch}, quiet: true},
	// A graph that cannot be updated in place is instantiated again.
	{word: "graph", is: []error{runtime.ErrLaunch}, quiet: true},
	{word: "graph", tail: "+", is: []error{runtime.ErrLaunch}},
	// Freeing also makes the device's context current; the object is freed even if that fails.
	{word: "context", is: []error{runtime.ErrLaunch, runtime.ErrNoDevice}, quiet: true},
	{word: "context", tail: "+", is: []error{runtime.ErrLaunch, runtime.ErrNoDevice}, quiet: true},
	// Attributes whose query fails are unknown.
	{word: "other", is: []error{runtime.ErrLaunch, runtime.ErrNoDevice}, quiet: true},
	{word: "other", tail: "+", is: []error{runtime.ErrLaunch, runtime.ErrNoDevice}, quiet: true},
	// A device that is lost while it is closed has already done its work.
	{word: "lost", is: []error{runtime.ErrDeviceLost, runtime.ErrNoDevice}, quiet: true},
	{word: "copy", tail: "=2", is: []error{runtime.ErrOutOfMemory}},
	// The vendors' BLAS have numbers of their own for a launch that failed.
	{word: "launch", tail: "=2", is: []error{runtime.ErrOutOfMemory, runtime.ErrLaunch}},
	{word: "sync", tail: "=700", is: []error{runtime.ErrDeviceLost}, quiet: true}, // the same errors as without a number
	{word: "alloc", tail: "=700", is: []error{runtime.ErrDeviceLost}},
}

// backend is a simulated device, the library whose calls are made to fail, and the counters that
// must be zero after a run.
type backend struct {
	device, library string
	counts          []string
}

var objects = []string{"allocations", "bytes", "pinned", "streams", "events", "modules", "graphs"}

// HIP's contexts belong to the devices, and exist as long as the process.
var backends = []backend{
	{"sim-cuda:0", "libcuda.so.1", append(objects, "contexts")},
	{"sim-rocm:0", "libamdhip64.so.5", objects},
}

// Limits against endless work: for the positions of one sweep, and for one run.
const (
	mostPositions = 2000
	runTime       = 60 * time.Second
)

// Without allVariable a sweep tries its first positions and then only some of them, because most
// calls query attributes of devices and are alike.
const (
	allVariable = "FAULT_ALL"
	first       = 24
	step        = 19
)

func TestSweep(t *testing.T) {
	for _, b := range backends {
		t.Run(b.device, func(t *testing.T) {
			lib := library(t, b.device, b.library)
			cache := t.TempDir()
			require.NoError(t, os.Chmod(cache, 0o700))
			run := func() error { return attempt(t, b.device, runtime.Config{CacheDir: cache}) }
			require.NoError(t, lib.Control(""))
			require.NoError(t, run(), "without a fault")
			b.idle(t, lib, "without a fault")
			pairs := 0
			for _, s := range sweeps {
				t.Run(s.String(), func(t *testing.T) { pairs += b.sweep(t, lib, s, cache) })
			}
			require.NoError(t, run(), "after all")
			t.Logf("%s: %d pairs of fault and position", b.device, pairs)
			if os.Getenv(allVariable) != "" {
				assert.GreaterOrEqual(t, pairs, 500)
			}
		})
	}
}

// TestStagedSweep tests copies through the runtime's staging buffers, with the kinds of faults that
// affect them.
func TestStagedSweep(t *testing.T) {
	for i, b := range backends {
		t.Run(b.device, func(t *testing.T) {
			if i > 0 && os.Getenv(allVariable) == "" {
				t.Skip("each copies 66 MiB: one device says enough")
			}
			lib := library(t, b.device, b.library)
			for _, s := range sweeps {
				if !slices.Contains([]string{"pinned", "copy", "event", "record", "sync"}, s.word) ||
					strings.HasPrefix(s.tail, "=") {
					continue
				}
				s.needless = s.quiet && s.word != "record" // there is another way
				t.Run(s.String(), func(t *testing.T) {
					b.fail(t, lib, s, func() error { return attemptOf(t, b.device, runtime.Config{CacheDir: "off"}, staged) })
				})
			}
		})
	}
}

// sweep makes one call after the other fail, and returns their number.
func (b *backend) sweep(t *testing.T, lib *control.Library, s sweep, cache string) (pairs int) {
	return b.fail(t, lib, s, func() error {
		return attempt(t, b.device, runtime.Config{CacheDir: cache, NoMemoryPool: s.direct})
	})
}

func (b *backend) fail(t *testing.T, lib *control.Library, s sweep, run func() error) (pairs int) {
	for n := 1; n <= mostPositions; n = next(n) {
		fault := fmt.Sprintf("%s:%d%s", s.word, n, s.tail)
		require.NoError(t, lib.Control(fault))
		err := run()
		reached := calls(lib, s.word)
		require.NoError(t, lib.Control(""))
		b.idle(t, lib, fault)
		if reached < int64(n) {
			assert.NoError(t, err, "%s comes too late for this run", fault)
			return pairs
		}
		pairs++
		judge(t, fault, err, s.is)
		if !s.quiet || !s.needless && n == 1 && s.tail == "+" { // no run succeeds if all calls of a needed kind fail
			assert.Error(t, err, "%s went unnoticed", fault)
		}
		if n%8 == 1 || os.Getenv(allVariable) != "" {
			require.NoError(t, run(), "after %s", fault)
			b.idle(t, lib, "after "+fault)
		}
	}
	require.Fail(t, "the sweep does not end")
	return pairs
}

func next(n int) int {
	if n < first || os.Getenv(allVariable) != "" {
		return n + 1
	}
	return n + step
}

// library opens the library of a simulated device, or skips the test if it is not built.
func library(t *testing.T, device, name string) *control.Library {
	t.Helper()
	s, err := runtime.New(runtime.Config{Fallback: runtime.Require})
	require.NoError(t, err)
	defer s.Close()
	required, err := config.Requires(s.Config(), strings.TrimSuffix(device, ":0"))
	require.NoError(t, err)
	d, err := s.Open(t.Context(), device)
	if errors.Is(err, runtime.ErrNoDevice) && !required {
		t.Skip(err)
	}
	require.NoError(t, err)
	require.NoError(t, d.Close())
	lib, err := control.Open(s.Config().SimDir + "/" + name)
	require.NoError(t, err)
	return lib
}

// calls returns the number of calls of a kind since the last Control.
func calls(lib *control.Library, word string) int64 {
	if word == "lost" {
		return lib.Count("calls")
	}
	return lib.Count("calls:" + word)
}

// idle checks that all objects of a run were released.
func (b *backend) idle(t *testing.T, lib *control.Library, after string) {
	t.Helper()
	for _, what := range b.counts {
		// A thread of the library may not have released its last work yet.
		for end := time.Now().Add(5 * time.Second); lib.Count(what) != 0 && time.Now().Before(end); {
			time.Sleep(time.Millisecond)
		}
		require.Zero(t, lib.Count(what), "%s left %s", after, what)
	}
}

// attempt is one run in a new session. It fails the test if the run hangs.
func attempt(t *testing.T, device string, cfg runtime.Config) error {
	return attemptOf(t, device, cfg, exercise)
}

func attemptOf(t *testing.T, device string, cfg runtime.Config,
	work func(context.Context, *runtime.Session, string) error) error {
	t.Helper()
	cfg.Fallback, cfg.NoProbeCache = runtime.Require, true
	ctx, stop := context.WithTimeout(t.Context(), runTime)
	defer stop()
	done := make(chan error, 1)
	go func() {
		s, err := runtime.New(cfg)
		if err == nil {
			err = errors.Join(work(ctx, s, device), s.Close())
		}
		done <- err
	}()
	select {
	case err := <-done:
		return err
	case <-time.After(2 * runTime):
		panic("a run hangs") // shows every goroutine
	}
}

// judge checks that every part of an error is an expected one, and none is a wrong result.
func judge(t *testing.T, fault string, err error, is []error) {
	t.Helper()
	for _, part := range parts(err) {
		var typed *runtime.OpError
		assert.ErrorAs(t, part, &typed, "%s: an error without its circumstances", fault)
		assert.True(t, slices.ContainsFunc(is, func(s error) bool { return errors.Is(part, s) }),
			"%s: %v is none of %v", fault, part, is)
	}
}

// parts returns the parts of a joined error.
func parts(err error) []error {
	joined, ok := err.(interface{ Unwrap() []error })
	switch {
	case err == nil:
		return nil
	case !ok || fmt.Sprintf("%T", err) != "*errors.joinError": // fmt.Errorf with several %w is one error
		return []error{err}
	}
	var all []error
	for _, e := range joined.Unwrap() {
		all = append(all, parts(e)...)
	}
	return all
}
