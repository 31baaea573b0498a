package kernelcache

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/concord-compute/concord/runtime/driver"
)

// compileNumbers returns a function that compiles key i to the text of i, and notes what it was asked for.
func compileNumbers(calls *[][]int) func(context.Context, []int) ([]Entry, []error) {
	var mu sync.Mutex
	return func(_ context.Context, missing []int) ([]Entry, []error) {
		mu.Lock()
		defer mu.Unlock()
		*calls = append(*calls, missing)
		entries := make([]Entry, len(missing))
		for k, i := range missing {
			entries[k].Binary = fmt.Append(nil, i)
		}
		return entries, make([]error, len(missing))
	}
}

func numberedKeys(n int) (keys []Key) {
	for i := range n {
		keys = append(keys, KeyOf(F("number", fmt.Sprint(i))))
	}
	return keys
}

func TestGetAll(t *testing.T) {
	dir := t.TempDir()
	keys := numberedKeys(200)
	c := Open(Options{Dir: dir})
	defer c.Close()
	_, _, err := c.Get(t.Context(), keys[3], func(context.Context) (Entry, error) {
		return Entry{Binary: []byte("three")}, nil
	})
	require.NoError(t, err)
	var calls [][]int
	results := c.GetAll(t.Context(), append(keys, keys[5]), compileNumbers(&calls))
	require.Len(t, results, 201)
	total := 0
	for _, call := range calls {
		total += len(call)
	}
	assert.Len(t, calls, 2, "a few calls")
	assert.Equal(t, 199, total, "each missing key once")
	for i, r := range results[:200] {
		require.NoError(t, r.Err)
		want, hit := fmt.Sprint(i), Compiled
		if i == 3 {
			want, hit = "three", Memory
		}
		assert.Equal(t, want, string(r.Entry.Binary))
		assert.Equal(t, hit, r.Hit)
	}
	assert.Equal(t, "5", string(results[200].Entry.Binary))
	assert.EqualValues(t, 200, c.Stats().Compiles)

	other := Open(Options{Dir: dir})
	defer other.Close()
	calls = nil
	for i, r := range other.GetAll(t.Context(), keys, compileNumbers(&calls)) {
		require.NoError(t, r.Err)
		assert.Equal(t, Disk, r.Hit, "entry %d", i)
	}
	assert.Empty(t, calls)
	assert.Empty(t, c.GetAll(t.Context(), nil, compileNumbers(&calls)))
}

// TestGetAllErrors checks that a result stands for its own key only, and that verdicts are remembered.
func TestGetAllErrors(t *testing.T) {
	c, keys := Open(Options{}), numberedKeys(4)
	verdict, passing := &driver.BuildError{Log: "no"}, errors.New("no disk")
	times := 0
	compile := func(_ context.Context, missing []int) ([]Entry, []error) {
		times++
		entries, errs := make([]Entry, len(missing)), make([]error, len(missing))
		for k, i := range missing {
			switch i {
			case 1:
				errs[k] = verdict
			case 2:
				errs[k] = passing
			default:
				entries[k].Binary = []byte{1}
			}
		}
		return entries, errs
	}
	for range 2 {
		r := c.GetAll(t.Context(), keys, compile)
		assert.NoError(t, r[0].Err)
		assert.ErrorIs(t, r[1].Err, driver.ErrCompile)
		assert.ErrorIs(t, r[2].Err, passing)
		assert.NoError(t, r[3].Err)
	}
	assert.Equal(t, 2, times)
	assert.EqualValues(t, 5, c.Stats().Compiles, "the second call compiled one program")

	few := func(context.Context, []int) ([]Entry, []error) { return nil, nil }
	for _, r := range Open(Options{}).GetAll(t.Context(), keys, few) {
		assert.ErrorIs(t, r.Err, driver.ErrInvalidArgument)
	}
	assert.Panics(t, func() {
		c.GetAll(t.Context(), numberedKeys(5), func(context.Context, []int) ([]Entry, []error) { panic("compiler") })
	})
	var calls [][]int
	assert.NoError(t, c.GetAll(t.Context(), numberedKeys(5), compileNumbers(&calls))[4].Err,
		"nobody waits for a compile that panicked")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, r := range Open(Options{}).GetAll(ctx, keys, compile) {
		assert.ErrorIs(t, r.Err, context.Canceled)
	}
}

// TestGetAllTogether starts callers with overlapping keys in opposite orders: they must not wait for each other
// in a circle.
func TestGetAllTogether(t *testing.T) {
	dir, keys := t.TempDir(), numberedKeys(40)
	var wg sync.WaitGroup
	caches := []*Cache{Open(Options{Dir: dir}), Open(Options{Dir: dir})} // as two processes
	for g := range 16 {
		wg.Go(func() {
			mine := make([]Key, len(keys))
			for i := range mine {
				mine[i] = keys[(i*(1+2*(g%4))*7+g)%len(keys)]
			}
			var calls [][]int
			for i, r := range caches[g%2].GetAll(t.Context(), mine, compileNumbers(&calls)) {
				if assert.NoError(t, r.Err) && g == 0 {
					assert.NotEmpty(t, r.Entry.Binary, "%d", i)
				}
			}
		})
	}
	wg.Wait()
	for _, c := range caches {
		assert.Zero(t, c.Stats().LockTimeouts)
		require.NoError(t, c.Close())
	}
}
