package kernelcache

// Tests of the cache in memory: sharing, cancellation, panics, remembered failures, bounds, and the
// cost of a hit.

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	goruntime "runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/concord-compute/concord/runtime/driver"
)

func key(n int) Key { return KeyOf(F("n", fmt.Sprint(n))) }

func entry(n int) Entry {
	return Entry{Binary: []byte(fmt.Sprintf("binary %d", n)), Log: "a warning", Label: fmt.Sprintf("test:0 k%d.cl", n)}
}

// compiles returns a compile function that returns e and counts its calls.
func compiles(e Entry, calls *atomic.Int64) func(context.Context) (Entry, error) {
	return func(context.Context) (Entry, error) {
		calls.Add(1)
		return e, nil
	}
}

func fails(err error) func(context.Context) (Entry, error) {
	return func(context.Context) (Entry, error) { return Entry{}, err }
}

func mustNotCompile(t testing.TB) func(context.Context) (Entry, error) {
	return func(context.Context) (Entry, error) {
		assert.Fail(t, "compiled although it should have been found")
		return Entry{}, errors.New("must not compile")
	}
}

func TestZeroCacheKeepsEntriesInMemory(t *testing.T) {
	var c Cache
	var calls atomic.Int64
	_, ok := c.Lookup(key(1))
	assert.False(t, ok)
	for i := range 3 {
		got, hit, err := c.Get(t.Context(), key(1), compiles(entry(1), &calls))
		require.NoError(t, err)
		assert.Equal(t, entry(1), got)
		assert.Equal(t, i == 0, hit == Compiled)
		assert.Equal(t, i != 0, hit == Memory)
	}
	got, ok := c.Lookup(key(1))
	assert.True(t, ok)
	assert.Equal(t, entry(1), got)
	assert.EqualValues(t, 1, calls.Load())
	s := c.Stats()
	assert.EqualValues(t, 3, s.MemoryHits)
	assert.EqualValues(t, 1, s.Misses)
	assert.EqualValues(t, 1, s.Compiles)
	assert.Equal(t, 1, s.MemoryEntries)
	assert.Positive(t, s.MemoryBytes)
	assert.Empty(t, s.Dir)
	assert.Empty(t, s.DiskOff, "no disk was requested")
	list, err := c.List()
	assert.NoError(t, err)
	assert.Empty(t, list)
	n, size, err := c.Clear()
	require.NoError(t, err)
	assert.Equal(t, 1, n)
	assert.Equal(t, s.MemoryBytes, size)
	_, ok = c.Lookup(key(1))
	assert.False(t, ok)
}

func TestBinaryIsSafeToAppendTo(t *testing.T) {
	var c Cache
	backing := make([]byte, 2, 64)
	_, _, err := c.Get(t.Context(), key(1), fixed(Entry{Binary: backing}))
	require.NoError(t, err)
	got, _ := c.Lookup(key(1))
	_ = append(got.Binary, 7)
	assert.Zero(t, backing[:3][2], "append must copy, since all callers share the array")
}

func fixed(e Entry) func(context.Context) (Entry, error) {
	return func(context.Context) (Entry, error) { return e, nil }
}

func TestHammerCompilesOncePerKey(t *testing.T) {
	for _, dir := range []string{"", privateDir(t)} {
		c := Open(Options{Dir: dir})
		const keys, callers = 8, 64
		var calls [keys]atomic.Int64
		var wg sync.WaitGroup
		for range callers {
			wg.Go(func() {
				for k := range keys {
					got, _, err := c.Get(t.Context(), key(k), func(context.Context) (Entry, error) {
						calls[k].Add(1)
						goruntime.Gosched()
						return entry(k), nil
					})
					assert.NoError(t, err)
					assert.Equal(t, entry(k), got)
				}
			})
		}
		wg.Wait()
		for k := range keys {
			assert.EqualValues(t, 1, calls[k].Load(), "key %d", k)
		}
		s := c.Stats()
		assert.EqualValues(t, keys, s.Compiles)
		assert.EqualValues(t, keys*callers, s.MemoryHits+s.Waits+s.Compiles, "everyone is counted once")
	}
}

// A hammer over everything at once, for the race detector.
func TestHammerEverything(t *testing.T) {
	c := Open(Options{Dir: privateDir(t), MemoryEntries: 3})
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			for i := range 40 {
				k := (g + i) % 7
				got, _, err := c.Get(t.Context(), key(k), fixed(entry(k)))
				assert.NoError(t, err)
				assert.Equal(t, entry(k), got)
				switch i % 10 {
				case 3:
					_, err := c.List()
					assert.NoError(t, err)
				case 5:
					r, err := c.Verify(t.Context())
					assert.NoError(t, err)
					assert.Empty(t, r.Corrupt)
				case 7:
					c.Evict(key(k))
				case 9:
					_, _, err := c.Clear()
					assert.NoError(t, err)
				}
				c.Lookup(key(k))
				c.Stats()
			}
		})
	}
	wg.Wait()
	assert.Zero(t, c.Stats().Corrupt)
	assert.Zero(t, c.Stats().DiskErrors)
}

func TestWaiterTakesOverWhenTheCompilerIsCancelled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c Cache
		first, cancel := context.WithCancel(t.Context())
		go func() {
			_, hit, err := c.Get(first, key(1), func(ctx context.Context) (Entry, error) {
				<-ctx.Done()
				// The error of a backend whose compiler was killed.
				return Entry{}, &driver.BuildError{Source: "k", Log: "killed", Err: ctx.Err()}
			})
			assert.ErrorIs(t, err, context.Canceled)
			assert.Equal(t, Compiled, hit)
		}()
		synctest.Wait()
		var calls atomic.Int64
		for range 5 {
			go func() {
				got, _, err := c.Get(t.Context(), key(1), compiles(entry(1), &calls))
				assert.NoError(t, err, "a waiting caller does not get another caller's cancellation")
				assert.Equal(t, entry(1), got)
			}()
		}
		synctest.Wait()
		assert.Zero(t, calls.Load(), "the other callers do not compile")
		cancel()
		synctest.Wait()
		assert.EqualValues(t, 1, calls.Load(), "exactly one of them took over")
	})
}

// The error of a compiler that reports its cancellation as an ordinary failed build must not be
// remembered either.
func TestVerdictUnderCancellationIsNotBelieved(t *testing.T) {
	var c Cache
	ctx, cancel := context.WithCancel(t.Context())
	_, _, err := c.Get(ctx, key(1), func(context.Context) (Entry, error) {
		cancel()
		return Entry{}, driver.ErrCompile
	})
	assert.ErrorIs(t, err, driver.ErrCompile)
	_, hit, err := c.Get(t.Context(), key(1), fixed(entry(1)))
	assert.NoError(t, err)
	assert.Equal(t, Compiled, hit)
}

func TestWaiterHonoursItsOwnContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c Cache
		release := make(chan struct{})
		go func() {
			_, _, err := c.Get(t.Context(), key(1), func(context.Context) (Entry, error) {
				<-release
				return entry(1), nil
			})
			assert.NoError(t, err)
		}()
		synctest.Wait()
		ctx, cancel := context.WithCancel(t.Context())
		done := false
		go func() {
			_, hit, err := c.Get(ctx, key(1), mustNotCompile(t))
			assert.ErrorIs(t, err, context.Canceled)
			assert.Equal(t, NoHit, hit)
			done = true
		}()
		synctest.Wait()
		cancel()
		synctest.Wait()
		assert.True(t, done, "it does not wait for the compile")
		close(release)
	})
}

func TestContextThatIsOver(t *testing.T) {
	var c Cache
	over, cancel := context.WithCancel(t.Context())
	cancel()
	_, hit, err := c.Get(over, key(1), mustNotCompile(t))
	assert.ErrorIs(t, err, context.Canceled)
	assert.Equal(t, NoHit, hit)
	_, _, err = c.Get(t.Context(), key(1), fixed(entry(1)))
	require.NoError(t, err)
	_, hit, err = c.Get(over, key(1), mustNotCompile(t))
	assert.NoError(t, err, "a hit needs no time")
	assert.Equal(t, Memory, hit)
}

func TestPanicDoesNotPoisonTheKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c Cache
		release := make(chan struct{})
		go func() {
			defer func() { assert.Equal(t, "boom", recover()) }()
			_, _, _ = c.Get(t.Context(), key(1), func(context.Context) (Entry, error) {
				<-release
				panic("boom")
			})
		}()
		synctest.Wait()
		go func() {
			got, hit, err := c.Get(t.Context(), key(1), fixed(entry(1)))
			assert.NoError(t, err)
			assert.Equal(t, Compiled, hit)
			assert.Equal(t, entry(1), got)
		}()
		synctest.Wait()
		close(release)
		synctest.Wait()
		// A goroutine that calls Goexit in its compile leaves no state behind.
		go func() {
			_, _, _ = c.Get(t.Context(), key(2), func(context.Context) (Entry, error) {
				goruntime.Goexit()
				return Entry{}, nil
			})
		}()
		synctest.Wait()
		_, _, err := c.Get(t.Context(), key(2), fixed(entry(2)))
		assert.NoError(t, err)
	})
}

func TestOnlyAVerdictIsRemembered(t *testing.T) {
	build := &driver.BuildError{Source: "k.cl", Target: "cpu:0", Log: "k.cl:1:1: error: no"}
	with := func(cause error) error { return &driver.BuildError{Source: "k.cl", Err: cause} }
	for _, tc := range []struct {
		err        error
		remembered bool
	}{
		{driver.ErrCompile, true},
		{build, true},
		{fmt.Errorf("cpu:0: %w", build), true},
		{&driver.OpError{Op: "compile", Err: build}, true},
		{with(errors.New("exit status 1")), true},
		{with(context.DeadlineExceeded), false},
		{with(context.Canceled), false},
		{with(driver.ErrTimeout), false},
		{with(driver.ErrOutOfMemory), false},
		{with(driver.ErrUnsupported), false},
		{with(driver.ErrLaunch), false},
		{with(&fs.PathError{Op: "write", Path: "/tmp/k.o", Err: errors.New("no space left on device")}), false},
		{context.DeadlineExceeded, false},
		{driver.ErrOutOfMemory, false},
		{driver.ErrTimeout, false},
		{driver.ErrDeviceLost, false},
		{errors.New("anything else"), false},
	} {
		var c Cache
		_, hit, err := c.Get(t.Context(), key(1), fails(tc.err))
		assert.Equal(t, tc.err, err)
		assert.Equal(t, Compiled, hit)
		_, ok := c.Lookup(key(1))
		assert.False(t, ok, "a failure is no entry")
		got, hit, err := c.Get(t.Context(), key(1), fixed(entry(1)))
		if tc.remembered {
			assert.Equal(t, tc.err, err, "%v", tc.err)
			assert.Equal(t, Memory, hit)
			assert.EqualValues(t, 1, c.Stats().NegativeHits)
			_, _, _ = c.Clear()
			_, _, err = c.Get(t.Context(), key(1), fixed(entry(1)))
			assert.NoError(t, err, "Clear forgets failures too")
			continue
		}
		assert.NoError(t, err, "%v", tc.err)
		assert.Equal(t, Compiled, hit)
		assert.Equal(t, entry(1), got)
	}
}

// An error that is not remembered is still returned to all callers that were waiting, so that they
// do not each repeat a compile that would fail.
func TestWaitersShareAFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c Cache
		release := make(chan struct{})
		for range 4 {
			go func() {
				_, _, err := c.Get(t.Context(), key(1), func(context.Context) (Entry, error) {
					<-release
					return Entry{}, driver.ErrTimeout
				})
				assert.ErrorIs(t, err, driver.ErrTimeout)
			}()
		}
		synctest.Wait()
		close(release)
		synctest.Wait()
		assert.EqualValues(t, 1, c.Stats().Compiles)
		assert.EqualValues(t, 3, c.Stats().Waits)
		assert.EqualValues(t, 1, c.Stats().Failures)
	})
}

func TestGetWithoutCompile(t *testing.T) {
	var c Cache
	_, _, err := c.Get(t.Context(), key(1), nil)
	assert.ErrorIs(t, err, driver.ErrInvalidArgument)
	_, _, err = c.Get(t.Context(), key(1), fixed(entry(1)))
	assert.NoError(t, err)
}
