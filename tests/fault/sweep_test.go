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
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/concord-compute/concord/runtime"
	_ "github.com/concord-compute/concord/runtime/all"
	"github.com/concord-compute/concord/tests/sim/control"
)

// sweep is one kind of fault. The simulated library counts the calls of a kind; the
// nth of them fails, for every n that a run gets to.
type sweep struct {
	word string // KIND of CONCORD_SIM_FAULT
	tail string // behind the number: "+" is that call and all later ones
	is   []error
}

// What a fault may look like to a program. A call that can be done without (pinned
// memory for staging, an event that only frees earlier) need not fail at all; the
// results are then right.
var sweeps = []sweep{
	{"alloc", "", []error{runtime.ErrOutOfMemory}},
	{"alloc", "+", []error{runtime.ErrOutOfMemory}},
	{"pinned", "", []error{runtime.ErrOutOfMemory}},
	{"pinned", "+", []error{runtime.ErrOutOfMemory}},
	{"free", "", []error{runtime.ErrLaunch}},
	{"copy", "", []error{runtime.ErrLaunch}},
	{"copy", "+", []error{runtime.ErrLaunch}},
	{"fill", "", []error{runtime.ErrLaunch}},
	{"launch", "", []error{runtime.ErrLaunch}},
	{"launch", "+", []error{runtime.ErrLaunch}},
	{"launch-late", "", []error{runtime.ErrLaunch, runtime.ErrDeviceLost}},
	{"load", "", []error{runtime.ErrFormat}},
	{"load", "+", []error{runtime.ErrFormat}},
	{"find", "", []error{runtime.ErrNoKernel, runtime.ErrCorrupt}},
	{"find", "+", []error{runtime.ErrNoKernel, runtime.ErrCorrupt}},
	{"stream", "", []error{runtime.ErrOutOfMemory}},
	{"stream", "+", []error{runtime.ErrOutOfMemory}},
	{"event", "", []error{runtime.ErrOutOfMemory}},
	{"event", "+", []error{runtime.ErrOutOfMemory}},
	{"record", "", []error{runtime.ErrLaunch}},
	{"record", "+", []error{runtime.ErrLaunch}},
	{"sync", "", []error{runtime.ErrLaunch}},
	{"sync", "+", []error{runtime.ErrLaunch}},
	{"graph", "", []error{runtime.ErrLaunch}},
	{"graph", "+", []error{runtime.ErrLaunch}},
	{"context", "", []error{runtime.ErrLaunch, runtime.ErrNoDevice}},
	{"context", "+", []error{runtime.ErrLaunch, runtime.ErrNoDevice}},
	{"other", "", []error{runtime.ErrLaunch, runtime.ErrNoDevice}},
	{"other", "+", []error{runtime.ErrLaunch, runtime.ErrNoDevice}},
	{"lost", "", []error{runtime.ErrDeviceLost, runtime.ErrNoDevice}},
	{"copy", "=2", []error{runtime.ErrOutOfMemory}},
	{"launch", "=2", []error{runtime.ErrOutOfMemory}},
	{"sync", "=700", []error{runtime.ErrDeviceLost}},
	{"alloc", "=700", []error{runtime.ErrDeviceLost}},
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
	first       = 32
	step        = 11
)

func TestSweep(t *testing.T) {
	for _, b := range backends {
		t.Run(b.device, func(t *testing.T) {
			lib := library(t, b.device, b.library)
			cache := t.TempDir()
			require.NoError(t, os.Chmod(cache, 0o700))
			run := func() error { return attempt(t, b.device, cache) }
			require.NoError(t, lib.Control(""))
			require.NoError(t, run(), "without a fault")
			b.idle(t, lib, "without a fault")
			pairs := 0
			for _, s := range sweeps {
				t.Run(s.word+s.tail, func(t *testing.T) { pairs += b.sweep(t, lib, s, run) })
			}
			require.NoError(t, run(), "after all")
			t.Logf("%s: %d pairs of fault and position", b.device, pairs)
			if os.Getenv(allVariable) != "" {
				assert.GreaterOrEqual(t, pairs, 500)
			}
		})
	}
}

// sweep fails one call after the other and returns how many that were.
func (b *backend) sweep(t *testing.T, lib *control.Library, s sweep, run func() error) (pairs int) {
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
		if n%8 == 1 {
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
	d, err := s.Open(t.Context(), device)
	if errors.Is(err, runtime.ErrNoDevice) && !slices.ContainsFunc(s.Config().Required, func(r string) bool { return r+":0" == device }) {
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
		require.Zero(t, lib.Count(what), "%s left %s", after, what)
	}
}

// attempt is one run in a session of its own. It fails the test if that hangs.
func attempt(t *testing.T, device, cache string) error {
	t.Helper()
	ctx, stop := context.WithTimeout(t.Context(), runTime)
	defer stop()
	done := make(chan error, 1)
	go func() {
		s, err := runtime.New(runtime.Config{Fallback: runtime.Require, CacheDir: cache, NoProbeCache: true})
		if err == nil {
			err = errors.Join(exercise(ctx, s, device), s.Close())
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
