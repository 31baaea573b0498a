package ann

import (
	"context"
	goruntime "runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestWaitsUntilDone has a call that holds the index: others end with their contexts, and leave the index and its locks
// as they were.
func TestWaitsUntilDone(t *testing.T) {
	const dim, n = 4, 40
	ids, vectors := counted(n), make([]float32, n*dim)
	for i := range vectors {
		vectors[i] = float32(i % 13)
	}
	for _, kind := range []string{"flat", "ivf", "hnsw", "sharded"} {
		ctx := t.Context()
		var ix Index
		var err error
		var hold func() func()
		if kind == "sharded" {
			s := sharded(t, virtual(t, 2), "flat", dim, L2Squared, Options{})
			ix = s
			hold = func() func() { s.mu.Lock(); return s.mu.Unlock }
		} else {
			ix, err = New(ctx, kind, dim, "l2sq", Options{})
			require.NoError(t, err)
			s := ix.(contents).base()
			hold = func() func() {
				s.writeLock.Lock()
				s.mu.Lock()
				return func() { s.mu.Unlock(); s.writeLock.Unlock() }
			}
		}
		require.NoError(t, ix.Add(ctx, ids[:n-1], vectors[:(n-1)*dim]))
		before := goruntime.NumGoroutine()
		free := hold()
		for name, call := range map[string]func(ctx context.Context) error{
			"add":    func(ctx context.Context) error { return ix.Add(ctx, ids[n-1:], vectors[:dim]) },
			"remove": func(ctx context.Context) error { return ix.Remove(ctx, ids[:1]) },
			"update": func(ctx context.Context) error { return Update(ctx, ix, 1, vectors[:dim]) },
			"search": func(ctx context.Context) error { _, err := ix.Search(ctx, nil, vectors[:dim], 3, nil); return err },
			"batch":  func(ctx context.Context) error { _, err := ix.SearchBatch(ctx, vectors, 3, nil); return err },
			"exact":  func(ctx context.Context) error { _, err := Exact(ctx, ix, vectors[:dim], 3, nil); return err },
			"get": func(ctx context.Context) error {
				_, err := ix.(interface {
					Get(context.Context, int64) ([]float32, error)
				}).Get(ctx, 1)
				return err
			},
			"compact": func(ctx context.Context) error {
				return ix.(interface{ Compact(context.Context) error }).Compact(ctx)
			},
		} {
			short, cancel := context.WithTimeout(ctx, 5*time.Millisecond)
			over := make(chan error, 1)
			go func() { over <- call(short) }()
			select {
			case err := <-over:
				assert.ErrorIs(t, err, context.DeadlineExceeded, "%s of %s", name, kind)
			case <-time.After(30 * time.Second):
				t.Errorf("%s of %s waits longer than its context says", name, kind)
			}
			cancel()
		}
		free()
		for start := time.Now(); goruntime.NumGoroutine() > before && time.Since(start) < 10*time.Second; {
			time.Sleep(time.Millisecond)
		}
		assert.LessOrEqual(t, goruntime.NumGoroutine(), before, kind)
		assert.Equal(t, n-1, ix.Info().Len)
		require.NoError(t, ix.Add(ctx, ids[n-1:], vectors[:dim]))
		found, err := ix.Search(ctx, nil, vectors[:dim], 1, nil)
		require.NoError(t, err)
		assert.Equal(t, int64(0), found[0].ID)
		if kind != "sharded" {
			require.NoError(t, ix.Close())
		}
	}
}
