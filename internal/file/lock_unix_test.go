//go:build unix && !aix

package file

import (
	"context"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Only one caller has the lock. Another one waits until it is free, or until its context ends.
func TestLock(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "new")
	unlock, err := Lock(t.Context(), dir, "lock", time.Millisecond)
	require.NoError(t, err)
	short, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	_, err = Lock(short, dir, "lock", time.Millisecond)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	other, err := Lock(t.Context(), dir, "other", time.Millisecond)
	require.NoError(t, err)
	defer other()

	got := make(chan error)
	go func() {
		again, err := Lock(t.Context(), dir, "lock", time.Millisecond)
		if err == nil {
			again()
		}
		got <- err
	}()
	select {
	case err := <-got:
		assert.Fail(t, "two have the lock", "%v", err)
	case <-time.After(20 * time.Millisecond):
	}
	unlock()
	require.NoError(t, <-got)
}
