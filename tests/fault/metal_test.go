//go:build cgo && linux && metal && simmetal

package fault

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/concord-compute/concord/runtime"
)

// The simulated Metal has other calls than the drivers, and other errors. tests/sim/metal/faults.h
// lists the calls of each kind.
var metalSweeps = []sweep{
	{word: "alloc", is: []error{runtime.ErrOutOfMemory}, quiet: true},
	{word: "alloc", is: []error{runtime.ErrOutOfMemory}, quiet: true, direct: true},
	{word: "alloc", tail: "+", is: []error{runtime.ErrOutOfMemory}},
	{word: "stream", is: []error{runtime.ErrOutOfMemory}},
	{word: "stream", tail: "+", is: []error{runtime.ErrOutOfMemory}},
	{word: "event", is: []error{runtime.ErrOutOfMemory}}, // every stream has one
	{word: "event", tail: "+", is: []error{runtime.ErrOutOfMemory}},
	// If a command buffer that only times an idle stream, or only commits pending work from a
	// handler, cannot be made, the next call makes it.
	{word: "record", is: []error{runtime.ErrLaunch}, quiet: true},
	{word: "record", tail: "+", is: []error{runtime.ErrLaunch}},
	{word: "launch", is: []error{runtime.ErrLaunch}},
	{word: "launch", tail: "+", is: []error{runtime.ErrLaunch}},
	{word: "launch-late", is: []error{runtime.ErrLaunch}},
	{word: "copy", is: []error{runtime.ErrLaunch}},
	{word: "copy", tail: "+", is: []error{runtime.ErrLaunch}},
	// only fills of one byte; other fills are kernels
	{word: "fill", is: []error{runtime.ErrLaunch}, quiet: true, needless: true},
	{word: "compile", is: []error{runtime.ErrCompile, runtime.ErrLaunch}, quiet: true},
	{word: "compile", tail: "+", is: []error{runtime.ErrCompile, runtime.ErrLaunch}},
	// ErrLaunch: for the shim's own kernels,
	{word: "find", is: []error{runtime.ErrNoKernel, runtime.ErrCorrupt, runtime.ErrLaunch}, quiet: true},
	{word: "load", is: []error{runtime.ErrCompile, runtime.ErrLaunch}, quiet: true},
	{word: "load", tail: "+", is: []error{runtime.ErrCompile, runtime.ErrLaunch}},
	{word: "graph", tail: "+", quiet: true, needless: true}, // a program works without an archive
	{word: "sync", is: []error{runtime.ErrLaunch}},
	{word: "sync", tail: "+", is: []error{runtime.ErrLaunch}},
	{word: "sync", tail: "=2", is: []error{runtime.ErrTimeout}},
	{word: "sync", tail: "=8", is: []error{runtime.ErrOutOfMemory}},
	{word: "sync", tail: "=4", is: []error{runtime.ErrDeviceLost}},
	// On a removed device, a failed allocation looks like a lack of memory until a command buffer
	// reports the removal. A device that is removed while it is closed has already done its work.
	{word: "lost", is: []error{runtime.ErrDeviceLost, runtime.ErrOutOfMemory, runtime.ErrLaunch, runtime.ErrCompile,
		runtime.ErrCorrupt}, quiet: true},
}

func TestSweepMetal(t *testing.T) {
	b := &backend{"sim-metal:0", "libSimMetal.so", []string{"objects", "allocations", "bytes", "streams", "events",
		"modules", "commands", "violations"}}
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

// TestArchive: a program from the cache contains the machine code of its kernels.
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
