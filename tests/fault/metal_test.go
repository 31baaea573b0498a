//go:build cgo && linux && metal && simmetal

package fault

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/concord-compute/concord/runtime"
)

// Simulated Metal makes other calls than a driver does, and what fails looks otherwise:
// tests/sim/metal/faults.h says which kind is which call.
var metalSweeps = []sweep{
	{word: "alloc", is: []error{runtime.ErrOutOfMemory}, quiet: true},
	{word: "alloc", is: []error{runtime.ErrOutOfMemory}, quiet: true, direct: true},
	{word: "alloc", tail: "+", is: []error{runtime.ErrOutOfMemory}},
	{word: "stream", is: []error{runtime.ErrOutOfMemory}},
	{word: "stream", tail: "+", is: []error{runtime.ErrOutOfMemory}},
	{word: "event", is: []error{runtime.ErrOutOfMemory}}, // every stream has one
	{word: "event", tail: "+", is: []error{runtime.ErrOutOfMemory}},
	// A command buffer for no more than a time of nothing, or for what the handler would
	// have handed over, is made again by whoever asks next.
	{word: "record", is: []error{runtime.ErrLaunch}, quiet: true},
	{word: "record", tail: "+", is: []error{runtime.ErrLaunch}},
	{word: "launch", is: []error{runtime.ErrLaunch}},
	{word: "launch", tail: "+", is: []error{runtime.ErrLaunch}},
	{word: "launch-late", is: []error{runtime.ErrLaunch}},
	{word: "copy", is: []error{runtime.ErrLaunch}},
	{word: "copy", tail: "+", is: []error{runtime.ErrLaunch}},
	{word: "fill", is: []error{runtime.ErrLaunch}, quiet: true, needless: true}, // one byte only: others are kernels
	{word: "compile", is: []error{runtime.ErrCompile, runtime.ErrLaunch}, quiet: true},
	{word: "compile", tail: "+", is: []error{runtime.ErrCompile, runtime.ErrLaunch}},
	{word: "find", is: []error{runtime.ErrNoKernel, runtime.ErrCorrupt, runtime.ErrLaunch}, quiet: true}, // ErrLaunch: of the shim's own,
	{word: "load", is: []error{runtime.ErrCompile, runtime.ErrLaunch}, quiet: true},
	{word: "load", tail: "+", is: []error{runtime.ErrCompile, runtime.ErrLaunch}},
	{word: "graph", tail: "+", quiet: true, needless: true}, // a program is as good without an archive
	{word: "sync", is: []error{runtime.ErrLaunch}},
	{word: "sync", tail: "+", is: []error{runtime.ErrLaunch}},
	{word: "sync", tail: "=2", is: []error{runtime.ErrTimeout}},
	{word: "sync", tail: "=8", is: []error{runtime.ErrOutOfMemory}},
	{word: "sync", tail: "=4", is: []error{runtime.ErrDeviceLost}},
	// What a removed device cannot make looks like a lack of room until a command buffer
	// tells; one that is removed while it is closed has done its work.
	{word: "lost", is: []error{runtime.ErrDeviceLost, runtime.ErrOutOfMemory, runtime.ErrLaunch, runtime.ErrCompile, runtime.ErrCorrupt}, quiet: true},
}

func TestSweepMetal(t *testing.T) {
	b := &backend{"sim-metal:0", "libSimMetal.so", []string{"objects", "allocations", "bytes", "streams", "events", "modules", "commands", "violations"}}
	lib := library(t, b.device, b.library)
	cache := t.TempDir()
	require.NoError(t, os.Chmod(cache, 0o700))
	run := func() error { return attempt(t, b.device, runtime.Config{CacheDir: cache}) }
	require.NoError(t, lib.Control(""))
	require.NoError(t, run(), "without a fault")
	b.idle(t, lib, "without a fault")
	pairs := 0
	for _, s := range metalSweeps {
		t.Run(s.String(), func(t *testing.T) { pairs += b.sweep(t, lib, s, cache) })
	}
	require.NoError(t, run(), "after all")
	t.Logf("%s: %d pairs of fault and position", b.device, pairs)
}

// TestArchive: a program from the cache brings the machine code of its kernels.
func TestArchive(t *testing.T) {
	b := &backend{device: "sim-metal:0", library: "libSimMetal.so"}
	lib := b.faulty(t)
	cfg := runtime.Config{CacheDir: t.TempDir()}
	require.NoError(t, os.Chmod(cfg.CacheDir, 0o700))
	use := func() int64 {
		before := lib.Count("archived")
		s := session(t, cfg)
		d, p, x := b.open(t, s)
		defer d.Close()
		defer p.Close()
		defer x.Close()
		for _, k := range p.Unit().Kernels() {
			_, err := p.Kernel(k.Name)
			require.NoError(t, err)
		}
		return lib.Count("archived") - before
	}
	first, second := use(), use()
	require.Positive(t, second, "taken from the cache")
	require.GreaterOrEqual(t, second, first)
}
