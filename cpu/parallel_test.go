package cpu

// Tests of dividing work among threads, ending it and waiting for it, and of Prepare, which runs a
// launch without a queue.

import (
	"context"
	"errors"
	"math/bits"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/concord-compute/concord/kernels"
	"github.com/concord-compute/concord/runtime/driver"
	"github.com/concord-compute/concord/source"
)

// openThreads opens a device of n threads.
func openThreads(t *testing.T, n int) *device {
	t.Helper()
	d, err := backend{}.Open(t.Context(), fastIndex, &driver.Config{CPUThreads: n})
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, d.Close()) })
	return d.(*device)
}

// TestParallelStreamsEndOnOneThread checks that a launch on one thread ends between two ranges when the
// device is closed.
func TestParallelStreamsEndOnOneThread(t *testing.T) {
	d := openThreads(t, 1)
	const n = 1 << 24
	calls, seen := 0, 0
	err := runKernel(t, d, func(c *Call) error {
		return c.Host.(*call).spread(n, 4, func(_ *call, lo, hi int) {
			d.stop()
			calls, seen = calls+1, seen+hi-lo
		})
	}, launchOf(nil, 1))
	require.ErrorIs(t, err, driver.ErrLaunch)
	require.ErrorIs(t, err, context.Canceled)
	assert.Equal(t, 1, calls)
	assert.LessOrEqual(t, 4*seen, rangeMost.Default<<10)
}

// TestGemmI8Parts checks that a task of gemm_i8 is a number of whole tiles, and not too large.
func TestGemmI8Parts(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		size := rapid.Custom(func(rt *rapid.T) int {
			return rapid.IntRange(1, 1<<rapid.IntRange(0, 20).Draw(rt, "bits")).Draw(rt, "size")
		})
		m, n, k := size.Draw(rt, "m"), size.Draw(rt, "n"), size.Draw(rt, "k")-1
		tile, threads := rapid.IntRange(1, 12).Draw(rt, "tile"), rapid.IntRange(1, 64).Draw(rt, "threads")
		part := gemmI8Part(m, n, k, tile, 4*threads)
		require.Positive(rt, part)
		require.Zero(rt, part%tile)
		if part > tile {
			high, low := bits.Mul(uint(part), uint(n*k))
			require.True(rt, high == 0 && low <= gemmI8Most, "%d rows", part)
			require.Less(rt, part, (m+4*threads-1)/(4*threads)+tile)
		}
	})
}

// TestPanicInNestedParallel checks that a failure in a Parallel within another one is reported.
func TestPanicInNestedParallel(t *testing.T) {
	d := openThreads(t, 2)
	nested := func(f func()) error {
		return runKernel(t, d, func(c *Call) error {
			return c.Parallel(100, 1, func(int, int) { _ = c.Parallel(100, 1, func(int, int) { f() }) })
		}, launchOf(nil, 1))
	}
	mine := errors.New("mine")
	err := nested(func() { panic(mine) })
	require.ErrorIs(t, err, driver.ErrLaunch)
	require.ErrorIs(t, err, mine)
	assert.Regexp(t, `the function panicked at .*/parallel_test.go:\d+: mine$`, err.Error())
	err = nested(func() { panic(kernels.ArgumentError("mine")) })
	require.ErrorIs(t, err, driver.ErrInvalidArgument)
	assert.NotContains(t, err.Error(), "panicked")
}

// TestStripsHelpEnds checks that help does not wait forever for a strip that no thread packs, if the work
// has failed or the device is being closed.
func TestStripsHelpEnds(t *testing.T) {
	for _, what := range []string{"failed", "closed"} {
		d := openThreads(t, 1)
		s := &strips{product: &product{call: &call{device: d, ctx: d.ctx}}, list: make([]strip, 1)}
		over := make(chan struct{})
		go func() { s.help(0); close(over) }()
		if what == "failed" {
			s.failed.Store(true)
		} else {
			d.stop()
		}
		select {
		case <-over:
		case <-background(t).Done():
			s.failed.Store(true)
			t.Fatal(what)
		}
	}
}

// TestPrepare checks that a prepared launch fails as one in a stream does, and allocates nothing.
func TestPrepare(t *testing.T) {
	d := openThreads(t, 1)
	u, err := kernels.Unit("gemm", &source.Features{FP64: true})
	require.NoError(t, err)
	k, ok := d.Native(u, "gemm")
	require.True(t, ok)
	prepare := func(n uint32, m driver.Memory) func() error {
		l := launchOf(k, 1)
		matrix := func() {
			l.Args = append(l.Args, driver.Arg{Kind: driver.ArgMemory, Memory: m})
			pass(l, n)
		}
		for range 3 {
			pass(l, n)
		}
		pass(l, float32(1))
		matrix()
		matrix()
		pass(l, float32(0))
		matrix()
		run, release, err := Prepare(d, l)
		require.NoError(t, err)
		t.Cleanup(release)
		return run
	}
	m := allocBytes(t, d, 4*40*40)
	short := prepare(41, m)
	for range 2 {
		err := short()
		require.ErrorIs(t, err, driver.ErrLaunch)
		require.ErrorIs(t, err, driver.ErrInvalidArgument)
	}
	run := prepare(40, m)
	require.NoError(t, run())
	if d.simd != nil && !instrumented {
		assert.Zero(t, testing.AllocsPerRun(20, func() { err = run() }))
		require.NoError(t, err)
	}

	var oops atomic.Bool
	f, release, err := Prepare(d, launchOf(goKernel(d, "k", func(*Call) error {
		if oops.Load() {
			panic("oops")
		}
		return nil
	}), 1))
	require.NoError(t, err)
	defer release()
	require.NoError(t, f())
	oops.Store(true)
	require.ErrorContains(t, f(), "oops")
	require.Zero(t, d.workers.running)
	d.stop()
	require.ErrorIs(t, run(), driver.ErrClosed)
}
