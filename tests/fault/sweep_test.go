//go:build cgo && linux

// Package fault fails every call into the vendors' libraries once, one run each: the
// simulated libraries do it on demand. Whatever fails, the error has to be the right
// one, nothing may be left behind, nothing may hang, and the next run has to work.
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
	tail string // behind the number: "+" is that call and all later ones
	is   []error
	// quiet: a run need not fail, for the reason that stands beside it. Its results are
	// right then.
	quiet bool
	// needless: a run may do without calls of this kind altogether.
	needless bool
	// direct: without the pool of memory, so that every buffer is a call.
	direct bool
}

func (s *sweep) String() string {
	if s.direct {
		return s.word + s.tail + " direct"
	}
	return s.word + s.tail
}

// What a fault may look like to a program, and where it need not see any.
var sweeps = []sweep{
	// Where the device has no room, what is closed is freed and the call made again.
	{word: "alloc", is: []error{runtime.ErrOutOfMemory}, quiet: true},
	{word: "alloc", is: []error{runtime.ErrOutOfMemory}, quiet: true, direct: true},
	{word: "alloc", tail: "+", is: []error{runtime.ErrOutOfMemory}},
	{word: "alloc", tail: "+", is: []error{runtime.ErrOutOfMemory}, direct: true},
	// Without pinned memory to stage in, copies wait instead.
	{word: "pinned", is: []error{runtime.ErrOutOfMemory}, quiet: true},
	{word: "pinned", tail: "+", is: []error{runtime.ErrOutOfMemory}, quiet: true},
	// Most memory is given back later than its buffer is closed: nobody is left to tell.
	{word: "free", is: []error{runtime.ErrLaunch}, quiet: true},
	{word: "free", is: []error{runtime.ErrLaunch}, quiet: true, direct: true},
	{word: "copy", is: []error{runtime.ErrLaunch}},
	{word: "copy", tail: "+", is: []error{runtime.ErrLaunch}},
	{word: "fill", is: []error{runtime.ErrLaunch}},
	{word: "launch", is: []error{runtime.ErrLaunch}},
	{word: "launch", tail: "+", is: []error{runtime.ErrLaunch}},
	{word: "launch-late", is: []error{runtime.ErrLaunch, runtime.ErrDeviceLost}},
	// A binary of the cache that is refused, or lacks a kernel, is compiled anew.
	{word: "load", is: []error{runtime.ErrFormat}, quiet: true},
	{word: "load", tail: "+", is: []error{runtime.ErrFormat}},
	{word: "find", is: []error{runtime.ErrNoKernel, runtime.ErrCorrupt}, quiet: true},
	{word: "find", tail: "+", is: []error{runtime.ErrNoKernel, runtime.ErrCorrupt}},
	{word: "stream", is: []error{runtime.ErrOutOfMemory}},
	{word: "stream", tail: "+", is: []error{runtime.ErrOutOfMemory}},
	// Where an event cannot be made that only tells when staged memory is free again, the
	// stream is waited for.
	{word: "event", is: []error{runtime.ErrOutOfMemory}, quiet: true},
	{word: "event", tail: "+", is: []error{runtime.ErrOutOfMemory}, quiet: true},
	// An event that one stream waits for is not needed: the host waits instead.
	{word: "record", is: []error{runtime.ErrLaunch}, quiet: true},
	{word: "record", tail: "+", is: []error{runtime.ErrLaunch}},
	// Some calls only ask whether closed memory is free already, or wait for a stream that
	// recorded a graph and ran nothing.
	{word: "sync", is: []error{runtime.ErrLaunch}, quiet: true},
	{word: "sync", tail: "+", is: []error{runtime.ErrLaunch}, quiet: true},
	// A graph that cannot be updated in place is instantiated anew.
	{word: "graph", is: []error{runtime.ErrLaunch}, quiet: true},
	{word: "graph", tail: "+", is: []error{runtime.ErrLaunch}},
	// What is freed tells the driver its device: it is freed all the same.
	{word: "context", is: []error{runtime.ErrLaunch, runtime.ErrNoDevice}, quiet: true},
	{word: "context", tail: "+", is: []error{runtime.ErrLaunch, runtime.ErrNoDevice}, quiet: true},
	// Attributes that are not told are unknown ones.
	{word: "other", is: []error{runtime.ErrLaunch, runtime.ErrNoDevice}, quiet: true},
	{word: "other", tail: "+", is: []error{runtime.ErrLaunch, runtime.ErrNoDevice}, quiet: true},
	// A device that is lost while it is closed has done its work.
	{word: "lost", is: []error{runtime.ErrDeviceLost, runtime.ErrNoDevice}, quiet: true},
	{word: "copy", tail: "=2", is: []error{runtime.ErrOutOfMemory}},
	// The vendors' BLAS have numbers of their own for a launch that failed.
	{word: "launch", tail: "=2", is: []error{runtime.ErrOutOfMemory, runtime.ErrLaunch}},
	{word: "sync", tail: "=700", is: []error{runtime.ErrDeviceLost}, quiet: true}, // as without a number
	{word: "alloc", tail: "=700", is: []error{runtime.ErrDeviceLost}},
}

// backend is a simulated device, the library whose calls are made to fail, and what
// must be zero after a run.
type backend struct {
	device, library string
	counts          []string
}

var objects = []string{"allocations", "bytes", "pinned", "streams", "events", "modules", "graphs"}

// HIP's contexts are the devices', and last as long as the process.
var backends = []backend{
	{"sim-cuda:0", "libcuda.so.1", append(objects, "contexts")},
	{"sim-rocm:0", "libamdhip64.so.5", objects},
}

// Limits against endless work: of positions of one sweep, and of one run.
const (
	mostPositions = 2000
	runTime       = 60 * time.Second
)

// Without allVariable a sweep tries its first positions and then only some of them:
// most calls ask for attributes of the devices, one like the other.
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

// TestStagedSweep is about copies through the runtime's staging buffers, with the
// faults that these meet.
func TestStagedSweep(t *testing.T) {
	for i, b := range backends {
		t.Run(b.device, func(t *testing.T) {
			if i > 0 && os.Getenv(allVariable) == "" {
				t.Skip("each copies 66 MiB: one device says enough")
			}
			lib := library(t, b.device, b.library)
			for _, s := range sweeps {
				if !slices.Contains([]string{"pinned", "copy", "event", "record", "sync"}, s.word) || strings.HasPrefix(s.tail, "=") {
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

// sweep fails one call after the other and returns how many that were.
func (b *backend) sweep(t *testing.T, lib *control.Library, s sweep, cache string) (pairs int) {
	return b.fail(t, lib, s, func() error { return attempt(t, b.device, runtime.Config{CacheDir: cache, NoMemoryPool: s.direct}) })
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
		if !s.quiet || !s.needless && n == 1 && s.tail == "+" { // all of a kind is too much for any
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

// library opens the library under a simulated device, or skips the test where
// there is none.
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

// calls is how often a kind was called since the last Control.
func calls(lib *control.Library, word string) int64 {
	if word == "lost" {
		return lib.Count("calls")
	}
	return lib.Count("calls:" + word)
}

// idle demands that nothing is left of a run.
func (b *backend) idle(t *testing.T, lib *control.Library, after string) {
	t.Helper()
	for _, what := range b.counts {
		// A thread of the library may be about to let go of what it ran.
		for end := time.Now().Add(5 * time.Second); lib.Count(what) != 0 && time.Now().Before(end); {
			time.Sleep(time.Millisecond)
		}
		require.Zero(t, lib.Count(what), "%s left %s", after, what)
	}
}

// attempt is one run in a session of its own. It fails the test if that hangs.
func attempt(t *testing.T, device string, cfg runtime.Config) error {
	return attemptOf(t, device, cfg, exercise)
}

func attemptOf(t *testing.T, device string, cfg runtime.Config, work func(context.Context, *runtime.Session, string) error) error {
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

// judge demands that every part of an error is the fault, and none is a wrong
// result.
func judge(t *testing.T, fault string, err error, is []error) {
	t.Helper()
	for _, part := range parts(err) {
		var typed *runtime.OpError
		assert.ErrorAs(t, part, &typed, "%s: an error without its circumstances", fault)
		assert.True(t, slices.ContainsFunc(is, func(s error) bool { return errors.Is(part, s) }),
			"%s: %v is none of %v", fault, part, is)
	}
}

// parts takes joined errors apart.
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
