//go:build unix && !aix

package tune

import (
	"context"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/concord-compute/concord/internal/file"
)

// Of programs that add to what is kept at the same time none loses what another one keeps.
func TestLock(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "cache")
	var all sync.WaitGroup
	for _, values := range []map[string]int{{"planted.pause": 8}, {"planted.way": fastWay}} {
		d := kept(t, dir, "")
		all.Go(func() {
			unlock, err := Lock(t.Context(), d, nil)
			if !assert.NoError(t, err) {
				return
			}
			defer unlock()
			before := d.TuneTarget().Tuned()
			time.Sleep(50 * time.Millisecond) // the other one would read the same without the lock
			assert.NoError(t, d.KeepTuned(t.Context(), d.Choices().Merged(before, d.Choices().New(values))))
		})
	}
	all.Wait()
	assert.Equal(t, map[string]int{"planted.pause": 8, "planted.way": fastWay}, kept(t, dir, "").Choices().Table().Values)
}

// A program that has to wait is told of the file, and its context ends the wait.
func TestLockWaits(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "cache")
	d := kept(t, dir, "")
	unlock, err := file.Lock(t.Context(), filepath.Join(dir, "tuned"), lockName, time.Millisecond)
	require.NoError(t, err)
	ctx, stop := context.WithCancel(t.Context())
	told := ""
	_, err = Lock(ctx, d, func(file string) {
		told = file
		stop()
	})
	require.ErrorIs(t, err, context.Canceled)
	assert.Equal(t, filepath.Join(dir, "tuned", lockName), told)
	unlock()
	unlock, err = Lock(t.Context(), d, func(string) { assert.Fail(t, "nobody has it") })
	require.NoError(t, err)
	unlock()
	unlock, err = Lock(t.Context(), kept(t, "off", ""), nil)
	require.NoError(t, err, "nothing is kept")
	unlock()
}
